"""The workloads and schedulers of the study of the fragmentation-aware scheduler, and what is assumed about them."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from mig_opt import OperationCosts, Trace, generate_trace, simulate
from mig_opt.simulation import Metrics

WORKLOADS = ("normal-25", "long-25", "normal-50", "long-50")
STATIC = (("4+3", "4+3", "4+3", "2+2+2+1"), ("4+3", "4+3", "4+2+1", "2+2+3"))
"""Partitions of the four GPUs with the same instances in other places."""
PROFILES = {1: "1g.5gb", 2: "2g.10gb", 3: "3g.20gb", 4: "4g.20gb"}
MIX = {4: 0.3, 3: 0.3, 2: 0.3, 1: 0.1}
"""Shares of the sizes that are asked for: those of the instances above."""
LARGER = {"opt-6.7b": "opt-13b", "bloom-1b7": "bloom-7b1"}
SMALLER = {large: small for small, large in LARGER.items()}
HEAVY, LIGHT = (17.65, 1.07), (5.7, 1.25)
"""PCIe demand in GB/s and sensitivity of Bloom7b1 and Bloom560m in Table 2 of the PCIe-aware scheduler's paper."""
CONTENTION = {
    "no job": {},
    "opt": {"opt": HEAVY},
    "opt, bloom lightly": {"opt": HEAVY, "bloom": LIGHT},
    "all jobs": {"opt": HEAVY, "bloom": HEAVY},
    "all jobs, whole link": {"opt": (30.08, 1.07), "bloom": (30.08, 1.07)},
}
"""Which models are held up by PCIe, and how much."""


wait, execution, total = (attrgetter(f"{name}.mean") for name in ("wait", "execution", "completion"))
"""Means of a run; the last one, of wait + execution, is what the paper calls makespan."""


@dataclasses.dataclass(frozen=True)
class World:
    """Assumptions where the paper prints nothing."""

    jobs: int = 100
    gap: float = 1.0
    """Factor on the mean gap between arrivals."""
    median: float = 90.0
    sigma: float = 1.0
    costs: float = 1.0
    """Factor on the seconds of creations and destructions."""
    contention: str = "opt"
    uniform: bool = False
    """Whether all sizes are equally likely, in place of the shares of the static instances."""
    threshold: float = 0.4


@functools.lru_cache(maxsize=256)
def make_trace(workload: str, seed: int, world: World) -> Trace:
    """Return a workload of the paper's Table II, with sizes and PCIe demand as assumed."""
    drawn = generate_trace(
        workload,
        jobs=world.jobs,
        seed=seed,
        mean_gap=float(workload.split("-")[1]) * world.gap,
        median_s=world.median,
        sigma=world.sigma,
    )
    sizes = np.random.default_rng([seed, 7]).choice(list(MIX), size=world.jobs, p=list(MIX.values()))
    jobs = []
    for job, wanted in zip(drawn.jobs, map(int, sizes), strict=True):
        number, model = job.name.split("-", 1)
        size = next(iter(job.times)) if world.uniform else wanted
        model = LARGER.get(model, model) if size > 2 else SMALLER.get(model, model)
        demand, sensitivity = CONTENTION[world.contention].get(model.split("-")[0], (0.0, 0.0))
        jobs.append(
            dataclasses.replace(
                job,
                name=f"{number}-{model}",
                times={size: job.work},
                profile=PROFILES[size],
                pcie_gbps=demand,
                sensitivity=sensitivity,
            )
        )
    own = drawn.operations
    create, destroy = ({s: world.costs * t for s, t in table.items()} for table in (own.create, own.destroy))
    return drawn.replace(jobs=tuple(jobs), operations=OperationCosts(create, destroy))


@dataclasses.dataclass(frozen=True)
class Way:
    """A scheduler: the paper's with some of its techniques; all off, it is first fit on static partitions."""

    balancing: bool = True
    partitioning: bool = True
    migration: bool = True
    queues: bool = False
    """Whether jobs pass those before them that do not fit: as with a queue for each size."""
    placement: int = 0
    """Which of the static partitions."""
    source_load: str = "after"
    """With which load of the GPU that a job leaves the other is compared: after the migration or before."""

    def run(self, trace: Trace, threshold: float) -> Metrics:
        """Return its outcome."""
        options: dict[str, Any] = {} if self.partitioning else {"partition": STATIC[self.placement]}
        done = simulate(
            trace,
            "fragmentation-aware",
            threshold=threshold,
            load_balancing=self.balancing,
            dynamic_partitioning=self.partitioning,
            migration=self.migration,
            source_load=self.source_load,
            backfill=self.queues,
            patience=None,
            **options,
        )
        assert not done.unfinished
        return done.metrics


OFF = Way(balancing=False, partitioning=False, migration=False)
ALL = Way()


STEPS = (
    ("balancing", Way(partitioning=False, migration=False)),
    ("balancing, partitioning", Way(migration=False)),
    ("all three", ALL),
    ("partitioning", Way(balancing=False, migration=False)),
    ("partitioning, migration", Way(balancing=False)),
    ("balancing, migration", Way(partitioning=False)),
    ("migration", Way(balancing=False, partitioning=False)),
)


@dataclasses.dataclass(frozen=True)
class Bench:
    """Runs every way on every seed, each once."""

    seeds: int
    world: World

    @functools.cache  # noqa: B019  # lives as long as the study
    def runs(self, workload: str, way: Way) -> tuple[Metrics, ...]:
        """Return the metrics, seed by seed."""
        traces = (make_trace(workload, seed, self.world) for seed in range(self.seeds))
        return tuple(way.run(trace, self.world.threshold) for trace in traces)

    def values(self, workload: str, way: Way, of: Callable[[Metrics], float]) -> list[float]:
        """Return one figure, seed by seed."""
        return [of(metrics) for metrics in self.runs(workload, way)]

    def saved(self, workload: str, way: Way, rival: Way, of: Callable[[Metrics], float]) -> float:
        """Return by how many percent the mean of a figure is less than a rival's."""
        own, other = (statistics.fmean(self.values(workload, each, of)) for each in (way, rival))
        return 100 * (1 - own / other) if other else 0.0

    def static(self, workload: str, *, queues: bool) -> Way:
        """Return the better placement of the static instances."""
        ways = [dataclasses.replace(OFF, queues=queues, placement=number) for number in range(len(STATIC))]
        return min(ways, key=lambda way: statistics.fmean(self.values(workload, way, wait)))


def moves(metrics: Metrics) -> float:
    """Return the migrations per job."""
    return metrics.migrations / metrics.jobs
