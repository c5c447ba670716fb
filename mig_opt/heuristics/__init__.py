"""Heuristic methods. Each takes a batch and a :class:`mig_opt.control.Control` and reports its schedules there."""
