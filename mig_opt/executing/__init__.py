"""Execution of schedules on the GPUs of this machine, with a journal of everything, and what came of it."""

from mig_opt.executing.entry import resume_schedule, run_schedule, undo_schedule
from mig_opt.executing.report import Difference, ExecutedStep, Execution

__all__ = ["Difference", "ExecutedStep", "Execution", "resume_schedule", "run_schedule", "undo_schedule"]
