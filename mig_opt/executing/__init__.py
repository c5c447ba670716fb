"""Execution of schedules on the GPUs of this machine, with a journal; measurements of tasks and models."""

from mig_opt.executing.entry import resume_schedule, run_schedule, undo_schedule
from mig_opt.executing.profiling import ProfileOutcome, ProfilePlan, profile_tasks
from mig_opt.executing.report import Difference, ExecutedStep, Execution

__all__ = [
    "Difference",
    "ExecutedStep",
    "Execution",
    "ProfileOutcome",
    "ProfilePlan",
    "profile_tasks",
    "resume_schedule",
    "run_schedule",
    "undo_schedule",
]
