"""Description of a study: methods on batches, and schedulers on traces. :mod:`mig_opt.studies` runs it.

Wherever there is a tuple, all combinations are run. Without ``operation_costs``, creations and destructions take no
time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from mig_opt.errors import InputError, Problem
from mig_opt.rules import MOST_SEEDS
from mig_opt.rules.vocabulary import MOST_GPUS, NotEmpty, OneOrMore, Rule, Whole, stated

if TYPE_CHECKING:
    _Method: TypeAlias = str | Callable[..., Any]
    _Policy: TypeAlias = Any
else:  # files have names only
    _Method = _Policy = str

DEFAULT_TIME_LIMIT = 60.0  # seconds that a run of a study has unless it says otherwise
COMPARISON_TIME_LIMIT = 10.0  # seconds that a method of a comparison has for a batch unless it says otherwise


class _Seeds(Rule):
    """Seeds, for which a file may have how many there are."""

    __slots__ = ()

    def read(self, value: Any) -> tuple[Any, ...]:
        """Return the seeds."""
        if type(value) is not int:
            return tuple(value) if isinstance(value, list) else (value,)
        if not 1 <= value <= MOST_SEEDS:
            message = f"must be from 1 to {MOST_SEEDS} seeds, or a list of them, is {value}"
            raise InputError([Problem("", message)])
        return tuple(range(value))

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema with a number in place of the list."""
        number = {"type": "integer", "minimum": 1, "maximum": MOST_SEEDS}
        words = "How many seeds (0, 1, ...), or a list of them."
        return {"description": words, "anyOf": [number, {**schema, "minItems": 1}]}


_Seed = Annotated[int, stated(minimum=0)]
_Gpus = Annotated[int, stated(minimum=1, maximum=MOST_GPUS)]
_Share = Annotated[float, stated(minimum=0, maximum=1)]
_GPU = stated(description="Name of the GPU, or a list of them.")
_FILE = stated(description="Path of a JSON or CSV file, seen from this one.")
_OTHER_GPU = stated(description="In place of the GPU that the file names; CSV files need it.")
_OTHER_GPUS = stated(description="In place of its number of GPUs, or one for each of a list.")
_COSTS = stated(description="Whether creations and destructions take time.")
_GROUP = stated(description="Traces of the same group are summarised together.")
_SOME = NotEmpty("at least one entry")
_LABEL = stated(description="Name in tables.")


@dataclass(frozen=True, slots=True)
class BundledBatch:
    """A bundled instance by its name; ``gpus`` replaces its number of GPUs."""

    instance: Annotated[str, stated(description="Name of a bundled instance.")]
    gpus: Annotated[_Gpus | None, _OTHER_GPUS] = None
    operation_costs: Annotated[bool, _COSTS] = True


@dataclass(frozen=True, slots=True)
class BatchFromFile:
    """A batch file (JSON or CSV), in a study file relative to the folder of that.

    ``gpu`` and ``gpus`` replace the GPU that the file names (CSV files need it) and its number of GPUs.
    """

    file: Annotated[str, _FILE]
    gpu: Annotated[str | None, _OTHER_GPU] = None
    gpus: Annotated[_Gpus | None, _OTHER_GPUS] = None
    operation_costs: Annotated[bool, _COSTS] = True


@dataclass(frozen=True, slots=True)
class GeneratedBatches:
    """Batches of :func:`mig_opt.generate_batch` for every combination of its arguments, one for each seed."""

    n: Annotated[
        tuple[Annotated[int, stated(minimum=1)], ...],
        OneOrMore(),
        stated(description="Number of tasks, or a list of them."),
    ]
    seeds: Annotated[tuple[_Seed, ...], _Seeds()] = (0,)
    scaling: Annotated[
        tuple[str, ...], OneOrMore(), stated(description="PoorScaling, MixedScaling, GoodScaling, or a list.")
    ] = ("MixedScaling",)
    times: Annotated[tuple[str, ...], OneOrMore(), stated(description="WideTimes, NarrowTimes, or a list.")] = (
        "WideTimes",
    )
    p_sup: Annotated[tuple[_Share, ...], OneOrMore(), stated(description="Share of super-linear tasks, or a list.")] = (
        0.5,
    )
    gpu: Annotated[tuple[str, ...], OneOrMore(), _GPU] = ("A100",)
    gpus: Annotated[tuple[_Gpus, ...], OneOrMore(), _OTHER_GPUS] = (1,)
    variant: Annotated[tuple[str, ...], OneOrMore(), stated(description="paper, published-program, or a list.")] = (
        "paper",
    )
    operation_costs: Annotated[tuple[bool, ...], OneOrMore(), _COSTS] = (True,)


BatchSource = BundledBatch | BatchFromFile | GeneratedBatches


@dataclass(frozen=True, slots=True)
class MethodSettings:
    """A method with its arguments of :func:`mig_opt.solve`, for every combination of what is listed.

    Attributes
    ----------
    method : str or callable
        Name of the method, or a heuristic of your own at the top of a file, as :func:`mig_opt.solve` takes it.
    time_limit : tuple of float or None
        Seconds for a run; None: no limit.
    gap : tuple of float
        A run ends as soon as the gap between schedule and bound is at most this share.
    workers : tuple of int
        Threads of a run.
    partition : tuple of str or None
        For a method that needs one; it has to be one of every GPU of the study.
    deterministic : bool
        True: time limits count work instead of time.
    label : str
        Name in tables; by default the method with the arguments that are not the usual ones.
    """

    method: Annotated[_Method, stated(description="Name of the method.")]
    time_limit: Annotated[tuple[Annotated[float, stated(exclusiveMinimum=0)] | None, ...], OneOrMore()] = (
        DEFAULT_TIME_LIMIT,
    )
    gap: Annotated[tuple[_Share, ...], OneOrMore()] = (0.0,)
    workers: Annotated[tuple[Annotated[int, stated(minimum=1)], ...], OneOrMore()] = (1,)
    partition: Annotated[tuple[str | None, ...], OneOrMore()] = (None,)
    deterministic: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class TraceFromFile:
    """A trace file, as :class:`BatchFromFile`; traces of a ``group`` are summarised together, by default by file."""

    file: Annotated[str, _FILE]
    gpu: Annotated[str | None, _OTHER_GPU] = None
    gpus: Annotated[_Gpus | None, _OTHER_GPUS] = None
    operation_costs: Annotated[bool, _COSTS] = True
    group: Annotated[str, _GROUP] = ""


@dataclass(frozen=True, slots=True)
class GeneratedTraces:
    """Traces of :func:`mig_opt.generate_trace` for every combination of its arguments, one for each seed.

    ``gpus`` None: as many as the family is for. ``parameters`` replace defaults of the family. Traces of a ``group``
    are summarised together, by default those that differ by their seed only.
    """

    family: Annotated[tuple[str, ...], OneOrMore(), stated(description="Family of traces, or a list of them.")]
    seeds: Annotated[tuple[_Seed, ...], _Seeds()] = (0,)
    gpu: Annotated[tuple[str, ...], OneOrMore(), _GPU] = ("A100",)
    gpus: Annotated[tuple[_Gpus | None, ...], OneOrMore(), _OTHER_GPUS] = (None,)
    parameters: Annotated[
        Mapping[str, Annotated[tuple[Annotated[Any, stated(type=("number", "string"))], ...], OneOrMore()]],
        stated(description="Parameters of the family, each with its value or a list."),
    ] = field(default_factory=dict, hash=False)
    operation_costs: Annotated[tuple[bool, ...], OneOrMore(), _COSTS] = (True,)
    group: Annotated[str, _GROUP] = ""


TraceSource = TraceFromFile | GeneratedTraces


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """A scheduler for every combination of its options; ``label`` is its name in tables, by default with options.

    In place of its name it may be an object with the methods of :class:`mig_opt.simulation.Policy`, such as a trained
    :class:`~mig_opt.environments.FleetAgent`, that has a name at the top of a file.
    """

    policy: Annotated[_Policy, stated(description="Name of the scheduler.")]
    options: Annotated[
        Mapping[str, Annotated[tuple[Any, ...], OneOrMore()]],
        stated(description="Its options, each with its value or a list of values."),
    ] = field(default_factory=dict, hash=False)
    label: Annotated[str, _LABEL] = ""


@dataclass(frozen=True, slots=True)
class Study:
    """Batches with the methods that run on each of them, traces with the schedulers that run on each of them.

    Attributes
    ----------
    batches : tuple
        Bundled, read or generated batches.
    methods : tuple of MethodSettings
        Methods that run on each.
    repetitions : int
        Number of times, each with another seed of the method.
    seed : int
        Seed of the first time; the next ones follow.
    fresh : bool
        True: each run has a process of its own; its memory is measured then, and start-up counts.
    traces : tuple
        Read or generated traces.
    policies : tuple of PolicySettings
        Schedulers that are simulated on each.

    Examples
    --------
    >>> study = Study((GeneratedBatches(n=(10, 20), seeds=(0, 1, 2)),), (MethodSettings("far"),))
    >>> study.batches[0].gpu, study.methods[0].time_limit
    (('A100',), (60.0,))
    >>> thresholds = PolicySettings("fragmentation-aware", {"threshold": (0.2, 0.4, 0.6)})
    >>> study = Study(traces=(GeneratedTraces(("normal-25",)),), policies=(PolicySettings("first-fit"), thresholds))
    """

    batches: Annotated[tuple[BatchSource, ...], _SOME] = ()
    methods: Annotated[tuple[MethodSettings, ...], _SOME] = ()
    repetitions: Annotated[int, Whole(1, 2**30 - 1)] = 1
    seed: Annotated[int, Whole(0, 2**30 - 1)] = 0
    fresh: bool = False
    traces: Annotated[tuple[TraceSource, ...], _SOME] = ()
    policies: Annotated[tuple[PolicySettings, ...], _SOME] = ()
