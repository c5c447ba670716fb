"""Fleets over time: jobs that arrive, the state of a fleet, and migrations."""
