"""Violations of the rules: closed lists of codes, a violation with its path and message, and verdicts."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

from mig_opt.errors import Problem


class RuleCode(enum.StrEnum):
    """A code of a closed list; each member has a ``description`` of one line."""

    description: str

    def __new__(cls, value: str, description: str) -> Self:
        """Make a member that equals its code."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member


class ViolationCode(RuleCode):
    """Every way in which a schedule can be wrong; each member has a ``description`` of one line."""

    UNKNOWN_TASK = "unknown-task", "a run names a task that the batch does not have"
    MISSING_TASK = "missing-task", "a task of the batch has no run"
    REPEATED_TASK = "repeated-task", "a task has more than one run"
    UNKNOWN_GPU = "unknown-gpu", "a run or operation is on a GPU that the batch does not have"
    UNKNOWN_PLACEMENT = "unknown-placement", "the GPU has no such profile, or it cannot start at that slice"
    INSUFFICIENT_MEMORY = "insufficient-memory", "a task runs on an instance with less memory than it needs"
    SIZE_NOT_PROFILED = "size-not-profiled", "a task runs on an instance size for which it has no time"
    WRONG_DURATION = "wrong-duration", "a run is not exactly as long as the task takes on that size"
    BAD_TIME = "bad-time", "a time is negative or not finite, or an end is before its begin"
    TOO_LATE = "too-late", "a begin is so late that an end, as a floating-point number, does not tell the duration"
    RUN_WITHOUT_INSTANCE = "run-without-instance", "no instance ever exists where a task runs"
    RUN_OUTSIDE_INSTANCE = "run-outside-instance", "a run is not within the lifetime of one instance"
    RUNS_OVERLAP = "runs-overlap", "two tasks run on one instance at once"
    INSTANCES_OVERLAP = "instances-overlap", "two instances that share memory slices exist at once"
    TOO_MANY_INSTANCES = "too-many-instances", "more instances of a profile exist at once than the GPU allows"
    OPERATION_DURATION = "operation-duration", "an operation is not exactly as long as the batch says"
    OPERATIONS_OVERLAP = "operations-overlap", "two operations on one GPU overlap in time"
    DESTROY_WITHOUT_CREATE = "destroy-without-create", "an instance is destroyed that does not exist"
    CREATE_TWICE = "create-twice", "an instance is created that exists already"
    WITHOUT_MIG = "without-mig", "an operation is on a GPU without MIG"
    DESTROY_TOO_EARLY = "destroy-too-early", "an instance is destroyed before it is ready or free"
    WRONG_MAKESPAN = "wrong-makespan", "the stated makespan is not the last end of a run"
    NO_OPERATION_SEQUENCE = "no-operation-sequence", "no sequence of operations is in time for the runs"


class DeploymentViolationCode(RuleCode):
    """Every way in which a deployment can be wrong; each member has a ``description`` of one line."""

    UNKNOWN_SERVICE = "unknown-service", "a segment names a service that the demand does not have"
    UNKNOWN_GPU = "unknown-gpu", "a segment is on a GPU that the deployment does not have"
    UNKNOWN_GPU_KIND = "unknown-gpu-kind", "the catalogue has no GPU of that name"
    UNKNOWN_PLACEMENT = "unknown-placement", "the GPU has no such profile, or it cannot start at that slice"
    INSTANCES_OVERLAP = "instances-overlap", "two instances on one GPU share memory slices"
    INSTANCE_USED_TWICE = "instance-used-twice", "two segments are in the same instance"
    TOO_MANY_INSTANCES = "too-many-instances", "a GPU has more instances of a profile than it allows"
    MODEL_NOT_PROFILED = "model-not-profiled", "the service's model has no profile table for that kind of GPU"
    SIZE_NOT_PROFILED = "size-not-profiled", "the profile table has no point for that instance size"
    WAY_NOT_PROFILED = "way-not-profiled", "the profile table has no point for that batch size and number of processes"
    WRONG_THROUGHPUT = "wrong-throughput", "the throughput of a segment is not that of the profile table"
    WRONG_LATENCY = "wrong-latency", "the latency of a segment is not that of the profile table"
    TOO_SLOW = "too-slow", "the latency of a segment takes more of the SLO than it may"
    TOO_MANY_PROCESSES = "too-many-processes", "more processes share an instance than may"
    INSUFFICIENT_MEMORY = "insufficient-memory", "an instance has less memory than the model needs"
    UNSERVED = "unserved", "a service has no segment"
    RATE_NOT_MET = "rate-not-met", "the segments of a service answer fewer requests per second than arrive"
    TOO_FEW_REPLICAS = "too-few-replicas", "a service has fewer segments than it needs"
    NO_POOL = "no-pool", "a GPU with segments is of a kind that no pool has"
    POOL_EXCEEDED = "pool-exceeded", "more GPUs of a kind have segments than its pool has"


class ChangeViolationCode(RuleCode):
    """Every way in which a plan of a change can be wrong; each member has a ``description`` of one line."""

    WRONG_GPUS = "wrong-gpus", "the plan is for other GPUs"
    UNKNOWN_GPU = "unknown-gpu", "a step is on a GPU that the fleet does not have"
    UNKNOWN_PLACEMENT = "unknown-placement", "the GPU has no such profile, or it cannot start at that slice"
    BAD_TIME = "bad-time", "a time is negative or not finite"
    WRONG_ORDER = "wrong-order", "a step ends or begins a segment before the step in front of it does"
    WRONG_STEP = "wrong-step", "a step ends or begins a segment where its kind has none, or one in another place"
    WRONG_SEGMENT = "wrong-segment", "the segment that a step ends does not serve there, or its instance exists already"
    INSTANCES_OVERLAP = "instances-overlap", "an instance is created in memory slices that are not free"
    TOO_MANY_INSTANCES = "too-many-instances", "more instances of a profile exist at once than the GPU allows"
    OPERATION_DURATION = "operation-duration", "a step is not exactly as long as its operation takes"
    OPERATIONS_OVERLAP = "operations-overlap", "two operations on one GPU overlap in time"
    WRONG_END = "wrong-end", "what serves after the last step is not the new deployment"
    WRONG_KEPT = "wrong-kept", "the segments said to go on are not those that go on"
    WRONG_INTERRUPTED = "wrong-interrupted", "the segments said to be interrupted are not those that are"
    WRONG_DURATION = "wrong-duration", "the stated duration is not the end of the last step"


class DayViolationCode(RuleCode):
    """Every way in which the plan of a day can be wrong beyond its deployments and changes, with a ``description``."""

    WRONG_TIMES = "wrong-times", "the steps are not those of the table of rates"
    WRONG_LENGTH = "wrong-length", "there is not one deployment for each step, or not one change between two steps"
    OTHER_GPUS = "other-gpus", "a deployment has other GPUs than those before it"
    WRONG_CHANGE = "wrong-change", "a change cannot be replayed: its deployments have instances that cannot exist"
    POOL_EXCEEDED = "pool-exceeded", "a change needs more GPUs of a kind at a time than the pool has"


class MigrationViolationCode(RuleCode):
    """Every way in which a plan of migrations can be wrong; each member has a ``description`` of one line."""

    NOTHING_THERE = "nothing-there", "a migration moves an instance that does not exist then"
    PINNED = "pinned", "a migration moves an instance that must stay where it is"
    UNKNOWN_GPU = "unknown-gpu", "a migration leads to a GPU that the fleet does not have"
    UNKNOWN_PLACEMENT = "unknown-placement", "the GPU has no such profile, or it cannot start at that slice"
    INSTANCES_OVERLAP = "instances-overlap", "a replica is created in memory slices that are not free"
    TOO_MANY_INSTANCES = "too-many-instances", "more instances of a profile exist at once than the GPU allows"
    OTHER_KIND = "other-kind", "a migration leads to another kind of GPU or profile, which its job may not have"
    OTHER_GPU = "other-gpu", "a migration leads to another GPU where instances have to stay on theirs"
    TOO_MANY_MIGRATIONS = "too-many-migrations", "there are more migrations than are allowed"
    TOO_MANY_OF_OWNER = "too-many-of-owner", "more instances of an owner migrate at a time than may"
    NOT_TOGETHER = "not-together", "a migration of a round needs another one of the round to be over"
    TOO_FRAGMENTED = "too-fragmented", "the fleet is more fragmented in the end than it may be"
    NO_ROOM = "no-room", "an instance for which there should be room cannot be created in the end"


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that a schedule, a deployment, or a plan of a change or of migrations breaks.

    Attributes
    ----------
    code : RuleCode
        Which rule (a string such as ``runs-overlap``): a :class:`ViolationCode` for schedules, a
        :class:`DeploymentViolationCode` for deployments, a :class:`ChangeViolationCode` for changes, a
        :class:`DayViolationCode` for days, a :class:`MigrationViolationCode` for migrations.
    path : str
        Where, e.g. ``runs[3]``, ``runs[3].start``, ``operations[2]``, ``makespan``, ``segments[5].batch``,
        ``steps[0]``; for a missing task or service its index in what was asked for, e.g. ``tasks[0]``.
    message : str
        What is wrong, with names and figures.
    """

    code: RuleCode
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message} ({self.code})"

    def problem(self, prefix: str = "") -> Problem:
        """Return the violation as a problem of an input, see ``Problem.below``."""
        return Problem(self.path, self.message).below(prefix)


class Verdict(ABC):
    """Verdict of a validator: everything that is wrong, or the figures of a plan that is valid."""

    __slots__ = ()

    violations: tuple[Violation, ...]

    @property
    def valid(self) -> bool:
        """True if no rule is broken."""
        return not self.violations

    @property
    @abstractmethod
    def _figures(self) -> str:
        """The figures of a valid plan, in words."""

    def __str__(self) -> str:
        if self.valid:
            return f"valid, {self._figures}"
        return "\n  ".join([f"not valid, {len(self.violations)} violations:", *map(str, self.violations)])
