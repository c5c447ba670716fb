"""What a study is: methods on batches, and schedulers on traces. :mod:`mig_opt.studies` runs it.

Wherever there is a tuple, all combinations are run.
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
    """A bundled instance.

    Attributes
    ----------
    instance : str
        Its name.
    gpus : int, optional
        In place of its number of GPUs.
    operation_costs : bool
        Whether creations and destructions take time.
    """

    instance: str
    gpus: int | None = None
    operation_costs: bool = True


@dataclass(frozen=True, slots=True)
class BatchFromFile:
    """A batch file.

    Attributes
    ----------
    file : str
        Path of a JSON or CSV file; in a study file relative to the folder of that.
    gpu : str, optional
        In place of the GPU that the file names; CSV files need it.
    gpus : int, optional
        In place of its number of GPUs.
    operation_costs : bool
        Whether creations and destructions take time.
    """

    file: str
    gpu: str | None = None
    gpus: int | None = None
    operation_costs: bool = True


@dataclass(frozen=True, slots=True)
class GeneratedBatches:
    """Batches of the generator, for every combination of what is listed.

    Attributes
    ----------
    n, scaling, times, p_sup, gpu, gpus, variant : tuple
        As :func:`mig_opt.generate_batch` takes them.
    seeds : tuple of int
        One batch for each.
    operation_costs : tuple of bool
        Whether creations and destructions take time.
    """

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
    """A method with its arguments, for every combination of what is listed.

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
        For a method that needs one, as :func:`mig_opt.solve` takes it; it has to be one of every GPU of the study.
    deterministic : bool
        Whether time limits count work instead of time.
    label : str
        What tables call it; by default the method with the arguments that are not the usual ones.
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
    """A trace file.

    Attributes
    ----------
    file : str
        Path of a JSON or CSV file; in a study file relative to the folder of that.
    gpu : str, optional
        In place of the GPU that the file names; CSV files need it.
    gpus : int, optional
        In place of its number of GPUs.
    operation_costs : bool
        Whether creations and destructions take time.
    group : str
        Traces of the same group are summarised together; by default the file is a group.
    """

    file: str
    gpu: str | None = None
    gpus: int | None = None
    operation_costs: bool = True
    group: str = ""


@dataclass(frozen=True, slots=True)
class GeneratedTraces:
    """Traces drawn at random, for every combination of what is listed.

    Attributes
    ----------
    family : tuple of str
        Of :func:`mig_opt.trace_families`.
    seeds : tuple of int
        One trace for each.
    gpu : tuple of str
        The kind of GPU.
    gpus : tuple of int or None
        How many; None: as many as the family is for.
    parameters : mapping of str to tuple
        Values of parameters of the family, in place of its defaults.
    operation_costs : tuple of bool
        Whether creations and destructions take time.
    group : str
        Traces of the same group are summarised together; by default those that differ by their seed only.
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
    """A scheduler with its options, for every combination of what is listed.

    Attributes
    ----------
    policy : str
        Name of the scheduler.
    options : mapping of str to tuple
        Values of its options.
    label : str
        What tables call it; by default the scheduler with its options.
    """

    policy: str
    options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)
    label: str = ""


@dataclass(frozen=True, slots=True)
class Study:
    """Every method on every batch, some times, and every scheduler on every trace, once: that is the same each time.

    Attributes
    ----------
    batches : tuple
        Where the batches come from.
    methods : tuple of MethodSettings
        What runs on each.
    repetitions : int
        How often, each time with another seed of the method.
    seed : int
        Seed of the first time; the next ones follow.
    fresh : bool
        Whether each run has a process of its own: its memory is measured then, and start-up counts.
    traces : tuple
        Where the traces come from.
    policies : tuple of PolicySettings
        What is simulated on each.

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
