"""What can be wrong with a schedule: a closed list of codes, and a violation with its path and message."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class ViolationCode(enum.StrEnum):
    """Every way in which a schedule can be wrong; each member has a ``description`` of one line."""

    description: str

    def __new__(cls, value: str, description: str) -> ViolationCode:
        """Make a member that equals its code."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member

    UNKNOWN_TASK = "unknown-task", "a run names a task that the batch does not have"
    MISSING_TASK = "missing-task", "a task of the batch has no run"
    REPEATED_TASK = "repeated-task", "a task has more than one run"
    UNKNOWN_GPU = "unknown-gpu", "a run or operation is on a GPU that the batch does not have"
    UNKNOWN_PLACEMENT = "unknown-placement", "the GPU has no such profile, or it cannot start at that slice"
    INSUFFICIENT_MEMORY = "insufficient-memory", "a task runs on an instance with less memory than it needs"
    SIZE_NOT_PROFILED = "size-not-profiled", "a task runs on an instance size for which it has no time"
    WRONG_DURATION = "wrong-duration", "a run is not exactly as long as the task takes on that size"
    BAD_TIME = "bad-time", "a time is negative or not finite, or an end is before its begin"
    RUN_WITHOUT_INSTANCE = "run-without-instance", "no instance ever exists where a task runs"
    RUN_OUTSIDE_INSTANCE = "run-outside-instance", "a run is not within the life of one instance"
    RUNS_OVERLAP = "runs-overlap", "two tasks run on one instance at once"
    INSTANCES_OVERLAP = "instances-overlap", "two instances that share memory slices exist at once"
    TOO_MANY_INSTANCES = "too-many-instances", "more instances of a profile exist at once than the GPU allows"
    OPERATION_DURATION = "operation-duration", "an operation is not exactly as long as the batch says"
    OPERATIONS_OVERLAP = "operations-overlap", "two operations on one GPU overlap in time"
    DESTROY_WITHOUT_CREATE = "destroy-without-create", "an instance is destroyed that does not exist"
    CREATE_TWICE = "create-twice", "an instance is created that exists already"
    DESTROY_TOO_EARLY = "destroy-too-early", "an instance is destroyed before it is ready or free"
    WRONG_MAKESPAN = "wrong-makespan", "the stated makespan is not the last end of a run"
    NO_OPERATION_SEQUENCE = "no-operation-sequence", "no sequence of operations is in time for the runs"


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that a schedule breaks.

    Attributes
    ----------
    code : ViolationCode
        Which rule (a string such as ``runs-overlap``).
    path : str
        Where, e.g. ``runs[3]``, ``runs[3].start``, ``operations[2]``, ``makespan``; for a missing task its index in the
        batch, e.g. ``tasks[0]``.
    message : str
        What is wrong, with names and seconds.
    """

    code: ViolationCode
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message} ({self.code})"
