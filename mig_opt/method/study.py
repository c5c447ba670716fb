"""Description of a study: methods on batches, and schedulers on traces. :mod:`mig_opt.studies` runs it.

Wherever there is a tuple, all combinations are run. Without ``operation_costs``, creations and destructions take no
time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEFAULT_TIME_LIMIT = 60.0
"""Seconds that a run of a study has unless it says otherwise."""

COMPARISON_TIME_LIMIT = 10.0
"""Seconds that a method of a comparison has for a batch unless it says otherwise."""


@dataclass(frozen=True, slots=True)
class BundledBatch:
    """A bundled instance by its name; ``gpus`` replaces its number of GPUs."""

    instance: str
    gpus: int | None = None
    operation_costs: bool = True


@dataclass(frozen=True, slots=True)
class BatchFromFile:
    """A batch file (JSON or CSV), in a study file relative to the folder of that.

    ``gpu`` and ``gpus`` replace the GPU that the file names (CSV files need it) and its number of GPUs.
    """

    file: str
    gpu: str | None = None
    gpus: int | None = None
    operation_costs: bool = True


@dataclass(frozen=True, slots=True)
class GeneratedBatches:
    """Batches of :func:`mig_opt.generate_batch` for every combination of its arguments, one for each seed."""

    n: tuple[int, ...]
    seeds: tuple[int, ...] = (0,)
    scaling: tuple[str, ...] = ("MixedScaling",)
    times: tuple[str, ...] = ("WideTimes",)
    p_sup: tuple[float, ...] = (0.5,)
    gpu: tuple[str, ...] = ("A100",)
    gpus: tuple[int, ...] = (1,)
    variant: tuple[str, ...] = ("paper",)
    operation_costs: tuple[bool, ...] = (True,)


BatchSource = BundledBatch | BatchFromFile | GeneratedBatches


@dataclass(frozen=True, slots=True)
class MethodSettings:
    """A method with its arguments of :func:`mig_opt.solve`, for every combination of what is listed.

    Attributes
    ----------
    method : str
        Name of the method.
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

    method: str
    time_limit: tuple[float | None, ...] = (DEFAULT_TIME_LIMIT,)
    gap: tuple[float, ...] = (0.0,)
    workers: tuple[int, ...] = (1,)
    partition: tuple[str | None, ...] = (None,)
    deterministic: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class TraceFromFile:
    """A trace file, as :class:`BatchFromFile`; traces of a ``group`` are summarised together, by default by file."""

    file: str
    gpu: str | None = None
    gpus: int | None = None
    operation_costs: bool = True
    group: str = ""


@dataclass(frozen=True, slots=True)
class GeneratedTraces:
    """Traces of :func:`mig_opt.generate_trace` for every combination of its arguments, one for each seed.

    ``gpus`` None: as many as the family is for. ``parameters`` replace defaults of the family. Traces of a ``group``
    are summarised together, by default those that differ by their seed only.
    """

    family: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    gpu: tuple[str, ...] = ("A100",)
    gpus: tuple[int | None, ...] = (None,)
    parameters: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)
    operation_costs: tuple[bool, ...] = (True,)
    group: str = ""


TraceSource = TraceFromFile | GeneratedTraces


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """A scheduler for every combination of its options; ``label`` is its name in tables, by default with options."""

    policy: str
    options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)
    label: str = ""


@dataclass(frozen=True, slots=True)
class Study:
    """Every method on every batch, some times, and every scheduler on every trace, once: that is the same each time.

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

    batches: tuple[BatchSource, ...] = ()
    methods: tuple[MethodSettings, ...] = ()
    repetitions: int = 1
    seed: int = 0
    fresh: bool = False
    traces: tuple[TraceSource, ...] = ()
    policies: tuple[PolicySettings, ...] = ()
