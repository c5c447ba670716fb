"""Batches of tasks: the problem, its schedules, integer time, timing, lifetimes of instances, and lower bounds."""
