"""Exact methods: they report schedules, and bounds that hold for every schedule, to a control."""
