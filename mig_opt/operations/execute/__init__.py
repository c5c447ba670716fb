"""Execution of schedules on the GPUs of this machine, with a journal; measurements of tasks and models."""

from mig_opt.operations.execute.profiles import ProfileOutcome, ProfilePlan, profile_tasks
from mig_opt.operations.execute.report import Difference, ExecutedStep, Execution
from mig_opt.operations.execute.schedules import resume_schedule, run_schedule, undo_schedule

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
