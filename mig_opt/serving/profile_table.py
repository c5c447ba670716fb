"""Profile tables: throughput and latency of a model on instances of each size.

The terms are those of ParvaGPU (Lee et al., SC 2024), section III.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

from mig_opt.errors import Problem
from mig_opt.gpu.catalogue import GpuName, get_gpu
from mig_opt.gpu.model import GpuModel, Profile
from mig_opt.gpu.problems import wrong_size
from mig_opt.rules import Checked, check_values
from mig_opt.rules.vocabulary import Count, Gigabytes, Name, NotEmpty, Number, PerSecond, Seconds, stated

LATENCIES = ("latency", "ttft", "itl")
"""Names of the latencies that points have and services limit, as they are called in files."""

Quantile = Annotated[
    float, Number(above=0, at_most=1, words="a quantile, > 0 and at most 1 (0.99 is the 99th percentile)")
]


@dataclass(frozen=True, slots=True)
class Point(Checked):
    """Throughput and latencies measured for one triplet (size, batch, processes).

    Attributes
    ----------
    size : int
        Compute slices of the instance.
    batch : int
        Requests that each process answers together.
    processes : int
        Processes that share the instance.
    throughput : float
        Requests per second of all processes together.
    latency : float
        Seconds from the begin of a batch to its end.
    ttft : float, optional
        Seconds to the first token of an answer.
    itl : float, optional
        Seconds from one token of an answer to the next.

    Raises
    ------
    InputError
        If a figure is not finite and > 0.

    Examples
    --------
    >>> Point(size=1, batch=8, processes=2, throughput=314.79, latency=0.051).throughput
    314.79
    """

    size: Count
    batch: Count
    processes: Count
    throughput: PerSecond
    latency: Seconds
    ttft: Seconds | None = None
    itl: Seconds | None = None

    def dominates(self, other: Point) -> bool:
        """Return True if this point has at least the throughput of another one, and no latency that is longer."""
        return self.throughput >= other.throughput and all(
            theirs is None or (own is not None and own <= theirs)
            for own, theirs in ((getattr(self, name), getattr(other, name)) for name in LATENCIES)
        )


@dataclass(frozen=True, slots=True)
class ProfileTable:
    """Measured points of a model on the instances of one kind of GPU.

    Attributes
    ----------
    model : str
        Name of the model.
    gpu : str
        Name or alias of the GPU, in files by default the only one that they name; kept as its name in the catalogue.
    points : tuple of Point
        What ran; ways that did not run have no point.
    memory_gb : float, optional
        Memory that the model needs in GB; instances with less nominal memory are forbidden.
    quantile : float, optional
        Share of the requests that are answered within the latencies of the points, such as 0.99; by default these are
        means.
    continuous : bool
        Whether requests join and leave a running batch one by one, as language models serve them: the batch size of a
        point is then the number of requests in flight (the concurrency), and its latency that of a whole request.

    Raises
    ------
    InputError
        With every problem: no name, an unknown GPU, no point, sizes that the GPU does not have, a way measured twice.
    """

    model: Name
    gpu: Annotated[GpuName, stated(type=("string", "null"))]
    points: Annotated[tuple[Point, ...], NotEmpty("at least one point")]
    memory_gb: Gigabytes | None = None
    quantile: Quantile | None = None
    continuous: bool = False

    def __post_init__(self) -> None:
        check_values(self)
        object.__setattr__(self, "gpu", get_gpu(self.gpu).name)

    def _problems(self) -> Iterator[Problem]:
        first: dict[tuple[int, int, int], int] = {}
        for index, point in enumerate(self.points or ()):
            if point is None:
                continue
            if self.gpu and point.size:
                yield from wrong_size(f"points[{index}].size", get_gpu(self.gpu), point.size)
            triplet = point.size, point.batch, point.processes
            other = first.setdefault(triplet, index)
            if other != index and None not in triplet:
                way = f"size {point.size}, batch {point.batch}, processes {point.processes}"
                yield Problem(f"points[{index}]", f"{way} is points[{other}] already; keep one of them")


def joined(table: ProfileTable, more: ProfileTable) -> ProfileTable:
    """Return a table with the points of another one of the same model and GPU, which replace those of the same way.

    Examples
    --------
    >>> old = ProfileTable("bert", "A30", (Point(1, 1, 1, 74.4, 0.013), Point(1, 2, 1, 85.9, 0.023)))
    >>> new = ProfileTable("bert", "A30", (Point(1, 2, 1, 90.0, 0.02), Point(2, 1, 1, 120.0, 0.008)))
    >>> [point.throughput for point in joined(old, new).points]
    [74.4, 90.0, 120.0]
    """
    ways = {(point.size, point.batch, point.processes): point for point in (*table.points, *more.points)}
    return replace(table, points=tuple(ways[way] for way in sorted(ways)))


def smallest_profile(gpu: GpuModel, size: int, memory_gb: float | None) -> Profile | None:
    """Return the plain profile with ``size`` compute slices of least, but enough, memory; None if there is none."""
    enough = [
        profile
        for profile in gpu.profiles_of("double-memory")
        if profile.compute_slices == size and (memory_gb is None or memory_gb <= profile.memory_gb)
    ]
    return min(enough, key=lambda profile: profile.memory_slices, default=None)


def front(table: ProfileTable, size: int, max_processes: int | None = None) -> tuple[Point, ...]:
    """Return the points of ``size`` that can be the best in time for some limits of their latencies.

    They come by rising latency, and no other point dominates one of them: where points have one latency only, each has
    more throughput than all that are as quick.
    """
    chosen: list[Point] = []
    candidates = (
        point
        for point in table.points
        if point.size == size and (max_processes is None or point.processes <= max_processes)
    )
    for point in sorted(candidates, key=lambda p: (p.latency, -p.throughput, p.processes, p.batch)):
        if not any(quicker.dominates(point) for quicker in chosen):
            chosen.append(point)
    return tuple(chosen)
