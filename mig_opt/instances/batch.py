"""Synthetic batches as in section 6.3 of the FAR paper (doi:10.1016/j.jpdc.2025.105128).

A task *exploits* some size: its speedup is good up to there and sub-linear beyond. Its time on one slice is uniform in
``[t_min, t_max]``; each further slice changes it by ::

    t(s + 1) = (s + r) / (s + 1) * t(s)

where r is drawn from a normal distribution, clipped: r < 0 is super-linear, r near 0 near-linear, r > 0 sub-linear.
With r <= 1 no time is longer than the one before it. Memory-bound tasks start super-linearly from 1 to 2 slices; with
every further slice they become compute-bound with probability 0.3, and from then on they scale sub-linearly. The other
tasks that exploit more than one slice are near-linear up to the size they exploit. Times for sizes that the GPU does
not have are steps on the way and dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, cast, get_args

import numpy as np

from mig_opt.batch.batch import Batch, Task
from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.gpu.catalogue import get_gpu, gpu_noting
from mig_opt.gpu.model import GpuModel
from mig_opt.gpu.pools import Pool
from mig_opt.gpu.problems import wrong_size
from mig_opt.rules import entries_of, is_listed, wrong_choice, wrong_integer, wrong_number, wrong_share, wrong_type
from mig_opt.rules.decimals import as_fraction
from mig_opt.rules.vocabulary import MOST_GPUS, TimesByKind, is_real

ScalingName = Literal["PoorScaling", "MixedScaling", "GoodScaling"]
"""Named shares of tasks by the size they exploit, see :func:`scaling_shares`."""
TimesName = Literal["WideTimes", "NarrowTimes"]
"""Named ranges of the time on one slice, see :data:`TIME_RANGES`."""
Variant = Literal["paper", "published-program"]
"""Version of the generator: that of the paper's text, or of the authors' program (see :func:`generate_batch`)."""

Decision = Literal["slice", "size"]
"""Points at which a memory-bound task may become compute-bound: with every slice, or between the sizes of the GPU."""

SCALINGS: tuple[ScalingName, ...] = get_args(ScalingName)
VARIANTS: tuple[Variant, ...] = get_args(Variant)
DECISIONS: tuple[Decision, ...] = get_args(Decision)
TIME_RANGES: Mapping[TimesName, tuple[float, float]] = {"WideTimes": (1.0, 100.0), "NarrowTimes": (90.0, 100.0)}
"""Shortest and longest time on one slice, in seconds."""

_STAYS_MEMORY_BOUND: Mapping[Variant, float] = {"paper": 0.7, "published-program": 0.9}
"""Probability that a memory-bound task remains one with a slice more."""
_SHARE_TOLERANCE = 1e-9
MOST_TASKS, MOST_SEED = 10_000_000, 2**128 - 1
"""Number of tasks of a batch above which it is taken for a slip of the pen, and the largest seed."""
SPEEDS = 0.7, 1.6
"""Range of the times of a task on another kind of GPU, as a multiple of those on the largest."""


@dataclass(frozen=True, slots=True)
class _ClippedNormal:
    mean: float
    deviation: float
    low: float
    high: float

    def draw(self, rng: np.random.Generator) -> float:
        return min(max(float(rng.normal(self.mean, self.deviation)), self.low), self.high)


_SUPER_LINEAR: Mapping[Variant, _ClippedNormal] = {
    "paper": _ClippedNormal(-0.25, 0.25, -0.5, 0.0),
    "published-program": _ClippedNormal(-0.25, 0.25, -0.3, 0.0),
}
_SUB_LINEAR = _ClippedNormal(0.75, 0.25, 0.5, 1.0)
_NEAR_LINEAR: Mapping[Variant, _ClippedNormal] = {
    "paper": _ClippedNormal(0.1, 0.1, 0.0, 0.2),
    "published-program": _ClippedNormal(0.05, 0.05, 0.0, 0.1),
}


def generate_batch(
    n: int,
    *,
    scaling: ScalingName | Mapping[int, float] = "MixedScaling",
    times: TimesName | tuple[float, float] = "WideTimes",
    p_sup: float = 0.5,
    gpu: str | GpuModel = "A100",
    gpus: int = 1,
    seed: int = 0,
    decimals: int | None = 3,
    variant: Variant = "paper",
    memory_bound: float = 0.0,
    shuffle: bool = False,
    decided_by: Decision = "slice",
    pools: Sequence[Pool] = (),
) -> Batch:
    """Return a synthetic batch as in section 6.3 of the FAR paper.

    Parameters
    ----------
    n : int
        Number of tasks. They come in the order of the size they exploit, memory-bound ones first within a size.
    scaling : str or mapping of int to float
        Which share of the tasks exploits which size: a name (see
        :func:`~mig_opt.instances.batch.scaling_shares`) or shares by size that sum to 1, e.g. ``{1: 0.25, 7: 0.75}``.
        :func:`~mig_opt.instances.batch.task_counts` turns them into numbers of tasks.
    times : str or pair of float
        Range of the time on one slice in seconds: a name of :data:`~mig_opt.instances.batch.TIME_RANGES` or
        ``(t_min, t_max)``.
    p_sup : float
        Share of memory-bound tasks among those that exploit a certain size > 1 (rounded up to whole tasks), for the
        variant ``paper``.
    gpu : str or GpuModel
        The kind of GPU.
    gpus : int
        How many GPUs the batch is for; changes no times.
    seed : int
        The same arguments and seed give the same batch everywhere.
    decimals : int or None
        Decimals of a second to which times are rounded, but never to 0; 3 is milliseconds. None: not rounded.
    variant : str
        ``paper``, or ``published-program`` for the generator that reproduces the paper's Table 4: near-linear
        r ~ N(0.05, 0.05) clipped to [0, 0.1] in place of N(0.1, 0.1) clipped to [0, 0.2], and memory-bound tasks of
        another kind.
    memory_bound : float
        Share of memory-bound tasks of the variant ``published-program`` (rounded down to whole tasks for each size).
        Its authors call it ``perc_membound``: it is 0 for the paper's Tables 4, 6, 7 and 9 and 0.5 for Table 5. They
        are super-linear with r ~ N(-0.25, 0.25) clipped to [-0.3, 0], become near-linear with probability 0.1 after
        each slice, and are sub-linear from 3 to 4 slices where both have the same memory. Other variants ignore it.
    shuffle : bool
        Whether the tasks come in random order, as that program has them.
    decided_by : str
        Where a memory-bound task of the variant ``paper`` may become compute-bound. ``slice``: with each slice more,
        with probability 0.3. ``size``: once between two sizes that the GPU has, with that probability for each slice
        between them. The paper's example for an A30 means ``size``: from 2 to 4 slices a task stays super-linear as a
        whole with probability 0.49, else it is sub-linear as a whole.
    pools : sequence of Pool
        Several kinds of GPUs, in place of ``gpu`` and ``gpus``. Tasks are drawn for the largest; on each other kind
        the times of a task are a multiple of those there, which is uniform from 0.7 to 1.6.

    Returns
    -------
    Batch
        Its tasks are called ``t001``, ``t002``, ...; times are in seconds.

    Raises
    ------
    InputError
        With every argument that is wrong.

    Examples
    --------
    >>> batch = generate_batch(3, scaling="PoorScaling", gpu="A30", seed=1)
    >>> for task in batch.tasks:
    ...     print(task.name, dict(task.times))
    t001 {1: 51.67, 2: 50.518, 4: 41.737}
    t002 {1: 31.871, 2: 29.666, 4: 25.189}
    t003 {1: 55.41, 2: 22.816, 4: 20.375}
    """
    if pools := entries_of("pools", pools, Pool, "a Pool"):
        gpu, gpus = max((pool.gpu for pool in pools), key=lambda kind: kind.sizes[-1]), 1
    problems = [*wrong_integer("n", n, 1, MOST_TASKS), *wrong_share("p_sup", p_sup)]
    problems += [*wrong_integer("gpus", gpus, 1, MOST_GPUS), *wrong_integer("seed", seed, 0, MOST_SEED)]
    problems += () if decimals is None else wrong_integer("decimals", decimals, 0, 300)
    problems += [*wrong_share("memory_bound", memory_bound), *wrong_choice("variant", variant, VARIANTS)]
    problems += wrong_choice("decided_by", decided_by, DECISIONS)
    t_min, t_max = _time_range(times, problems)
    model = gpu_noting(gpu, problems)
    shares = _shares(scaling, model, problems)
    if problems or model is None:
        raise InputError(problems)

    rng = np.random.Generator(np.random.PCG64(seed))
    speeds = np.random.Generator(np.random.PCG64((seed, 1)))  # tasks are those that they are without pools
    others = list(dict.fromkeys(pool.gpu for pool in pools if pool.gpu != model))
    times_of: list[TimesByKind] = []
    share = as_fraction(p_sup if variant == "paper" else memory_bound)
    kinds: Any = {"variant": variant, "memory_bound": share, "decided_by": decided_by}
    for steps in _step_lists(task_counts(n, shares), model.sizes, rng, **kinds):
        drawn = [float(rng.uniform(t_min, t_max))]
        for size, step in enumerate(steps, start=1):
            drawn.append((size + step.draw(rng)) / (size + 1) * drawn[-1])
        times_of.append(_rounded(model, drawn, decimals))
        if pools:
            by_kind = {model.name: times_of[-1]}
            for other in others:
                speed = float(speeds.uniform(*SPEEDS))
                by_kind[other.name] = _rounded(other, [speed * seconds for seconds in drawn], decimals)
            times_of[-1] = by_kind
    if shuffle:
        times_of = [times_of[index] for index in rng.permutation(n)]
    width = max(3, len(str(n)))
    tasks = tuple(Task(f"t{number:0{width}}", kept) for number, kept in enumerate(times_of, 1))
    label = scaling if isinstance(scaling, str) else "custom scaling"
    range_label = times if isinstance(times, str) else f"{t_min:g}-{t_max:g} s"
    name = f"{label}, {range_label}, n={n}, seed={seed}"
    return Batch(tasks, pools=tuple(pools), name=name) if pools else Batch(tasks, model, gpus, name=name)


def scaling_shares(name: ScalingName, gpu: str | GpuModel = "A100") -> dict[int, float]:
    """Return the share of tasks by the size they exploit, for each size of ``gpu``.

    ``PoorScaling``: half of the tasks exploit the smallest size, half the second smallest. ``MixedScaling``: every size
    is exploited by equally many. ``GoodScaling``: half exploit the second largest size, half the largest. For the sizes
    1, 2, 3, 4, 7 these are the configurations of the FAR paper; for other GPUs they are their natural analogue. A GPU
    with a single size has that share at 1.

    Raises
    ------
    InputError
        If there is no configuration or no GPU of that name.

    Examples
    --------
    >>> scaling_shares("GoodScaling")
    {1: 0.0, 2: 0.0, 3: 0.0, 4: 0.5, 7: 0.5}
    >>> scaling_shares("PoorScaling", "A30")
    {1: 0.5, 2: 0.5, 4: 0.0}
    """
    raise_any(wrong_choice("scaling", name, SCALINGS))
    sizes = (get_gpu(gpu) if isinstance(gpu, str) else gpu).sizes
    chosen = {"PoorScaling": sizes[:2], "MixedScaling": sizes, "GoodScaling": sizes[-2:]}[name]
    return {size: 1 / len(chosen) if size in chosen else 0.0 for size in sizes}


def task_counts(n: int, shares: Mapping[int, float]) -> dict[int, int]:
    """Return how many of ``n`` tasks exploit each size.

    Each size gets its exact share of ``n``, rounded down; then the size that is farthest below its exact share gets one
    more (the smallest of several), until there are ``n`` (FAR section 6.3, footnote 8).

    Raises
    ------
    InputError
        If ``n`` is negative, a share is not from 0 to 1, or the shares do not sum to 1.

    Examples
    --------
    >>> task_counts(12, scaling_shares("MixedScaling"))
    {1: 3, 2: 3, 3: 2, 4: 2, 7: 2}
    """
    problems = [problem.below("shares") for problem in _share_problems(shares)]
    if n < 0:
        problems.append(Problem("n", f"must be >= 0 tasks, is {n}"))
    raise_any(problems)
    exact = {size: n * as_fraction(share) for size, share in sorted(shares.items())}
    counts = {size: math.floor(wanted) for size, wanted in exact.items()}
    while sum(counts.values()) < n:
        counts[max(counts, key=lambda size: exact[size] - counts[size])] += 1
    return counts


def _rounded(gpu: GpuModel, drawn: Sequence[float], decimals: int | None) -> dict[int, float]:
    """Return the times for the sizes of a GPU, rounded but never to 0, of those for 1, 2, ... slices."""
    if decimals is None:
        return {size: drawn[size - 1] for size in gpu.sizes}
    return {size: max(round(drawn[size - 1], decimals), 10.0**-decimals) for size in gpu.sizes}


def _step_lists(
    counts: Mapping[int, int],
    sizes: Sequence[int],
    rng: np.random.Generator,
    *,
    variant: Variant,
    memory_bound: Fraction,
    decided_by: Decision,
) -> Iterator[Iterator[_ClippedNormal]]:
    """Yield for each task the distributions of r of its steps; the memory-bound ones come first within a size."""
    for exploited, count in counts.items():
        if variant == "paper":
            bound = math.ceil(memory_bound * count) if exploited > 1 else 0
        else:
            bound = math.floor(memory_bound * count)
        for index in range(count):
            if variant == "paper":
                yield _steps(exploited, index < bound, sizes, decided_by, rng)
            else:
                yield _published_steps(exploited, index < bound, sizes, rng)


def _steps(
    exploited: int, memory_bound: bool, sizes: Sequence[int], decided_by: Decision, rng: np.random.Generator
) -> Iterator[_ClippedNormal]:
    """Yield the distribution of r for each step from s to s + 1 slices, as the paper describes it."""
    stays = _STAYS_MEMORY_BOUND["paper"]
    for size in range(1, sizes[-1]):
        if memory_bound and 1 < size < exploited and (decided_by == "slice" or size in sizes):
            slices = 1 if decided_by == "slice" else next(other for other in sizes if other > size) - size
            if rng.random() >= stays**slices:
                exploited = size  # compute-bound from here on
        if size >= exploited:
            yield _SUB_LINEAR
        else:
            yield _SUPER_LINEAR["paper"] if memory_bound else _NEAR_LINEAR["paper"]


def _published_steps(
    exploited: int, memory_bound: bool, sizes: Sequence[int], rng: np.random.Generator
) -> Iterator[_ClippedNormal]:
    """Yield the distribution of r for each step from s to s + 1 slices, as the authors' program has it."""
    variant: Variant = "published-program"
    same_memory = 3 in sizes and 4 in sizes
    for size in range(1, sizes[-1]):
        to_four = memory_bound and size + 1 == 4
        if size >= exploited or (to_four and same_memory):
            yield _SUB_LINEAR
        elif memory_bound and not to_four:
            yield _SUPER_LINEAR[variant]
            memory_bound = rng.random() < _STAYS_MEMORY_BOUND[variant]
        else:
            yield _NEAR_LINEAR[variant]


def _time_range(times: str | tuple[float, float], problems: list[Problem]) -> tuple[float, float]:
    if isinstance(times, str):
        problems += wrong_choice("times", times, list(TIME_RANGES))
        return TIME_RANGES.get(cast("TimesName", times), (1.0, 1.0))
    if not is_listed(times) or list(map(is_real, times)) != [True, True]:
        problems.append(wrong_type("times", times, "the name of a configuration, or two numbers of seconds"))
        return 1.0, 1.0
    t_min, t_max = times
    for label, seconds in (("t_min", t_min), ("t_max", t_max)):
        problems += wrong_number(f"times.{label}", seconds, "a finite number of seconds > 0", above=0)
    if t_min > t_max:
        problems.append(Problem("times", f"t_min must be at most t_max, but {t_min} > {t_max}"))
    return t_min, t_max


def _shares(
    scaling: ScalingName | Mapping[int, float], gpu: GpuModel | None, problems: list[Problem]
) -> Mapping[int, float]:
    """Return the shares by size; without a GPU only the problems that do not depend on one are found."""
    if isinstance(scaling, str):
        try:
            return scaling_shares(scaling, gpu or "A100")
        except InputError as error:
            problems += error.problems
            return {}
    if not isinstance(scaling, Mapping):
        problems.append(wrong_type("scaling", scaling, "the name of a scaling, or shares by size"))
        return {}
    problems += (problem.below("scaling") for problem in _share_problems(scaling))
    if gpu is not None:
        for size in scaling:
            problems += wrong_size(f"scaling.{size}", gpu, size)
    return scaling


def _share_problems(shares: Mapping[int, float]) -> list[Problem]:
    problems = [problem for size, share in shares.items() for problem in wrong_share(str(size), share)]
    if not problems and abs((total := math.fsum(shares.values())) - 1) > _SHARE_TOLERANCE:
        problems.append(Problem("", f"the shares must sum to 1, sum to {total:g}"))
    return problems
