"""Execution of schedules on the GPUs of this machine, with a journal; measurements of tasks and models."""
