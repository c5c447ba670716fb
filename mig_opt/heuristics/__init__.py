"""Heuristic methods: each takes a problem, and reports plans to its :class:`mig_opt.method.control.Control`."""
