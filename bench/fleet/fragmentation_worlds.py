"""The study of the fragmentation-aware scheduler: workloads, schedulers, what is assumed of them, and some tables."""

import dataclasses
import functools
import itertools
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from bench.report import Page
from mig_opt import Job, OperationCosts, Trace, generate_trace, simulate
from mig_opt.fleet.log import CREATE, Log
from mig_opt.simulation import Metrics

WORKLOADS = ("normal-25", "long-25", "normal-50", "long-50")
STATIC = (("4+3", "4+3", "4+3", "2+2+2+1"), ("4+3", "4+3", "4+2+1", "2+2+3"))
"""Partitions of the four GPUs with the same instances in other places."""
PROFILES = {1: "1g.5gb", 2: "2g.10gb", 3: "3g.20gb", 4: "4g.20gb"}
MIX = {4: 0.3, 3: 0.3, 2: 0.3, 1: 0.1}  # shares of the sizes that are asked for: those of the instances above
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
"""Models that PCIe holds up, with their demand and sensitivity."""
wait, execution, total = (attrgetter(f"{name}.mean") for name in ("wait", "execution", "completion"))
"""Means of a run; the last one, of wait + execution, is what the paper calls makespan."""


@dataclasses.dataclass(frozen=True)
class World:
    """Assumptions where the paper prints nothing."""

    jobs: int = 100
    gap: float = 1.0  # factor on the mean gap between arrivals
    median: float = 90.0
    sigma: float = 1.0
    costs: float = 1.0  # factor on the seconds of creations and destructions
    contention: str = "opt"
    uniform: bool = False  # true if all sizes are equally likely, in place of the shares of the static instances
    threshold: float = 0.4


@functools.lru_cache(maxsize=256)
def make_trace(workload: str, seed: int, world: World) -> Trace:
    """Return a workload of the paper's Table II, with sizes and PCIe demand as assumed."""
    gap = float(workload.split("-")[1]) * world.gap
    settings: Any = {"mean_gap": gap, "median_s": world.median, "sigma": world.sigma}
    drawn = generate_trace(workload, jobs=world.jobs, seed=seed, **settings)
    sizes = np.random.default_rng([seed, 7]).choice(list(MIX), size=world.jobs, p=list(MIX.values()))
    jobs = []
    for job, wanted in zip(drawn.jobs, map(int, sizes), strict=True):
        number, model = job.name.split("-", 1)
        size = next(iter(job.times)) if world.uniform else wanted
        model = LARGER.get(model, model) if size > 2 else SMALLER.get(model, model)
        demand, sensitivity = CONTENTION[world.contention].get(model.split("-")[0], (0.0, 0.0))
        link = {"pcie_gbps": demand, "sensitivity": sensitivity}
        asked: dict[str, Any] = {"times": {size: job.work}, "profile": PROFILES[size], **link}
        jobs.append(dataclasses.replace(job, name=f"{number}-{model}", **asked))
    own = drawn.operations
    create, destroy = ({s: world.costs * t for s, t in table.items()} for table in (own.create, own.destroy))
    return drawn.replace(jobs=tuple(jobs), operations=OperationCosts(create, destroy))


@dataclasses.dataclass(frozen=True)
class Way:
    """A scheduler: the paper's with some of its techniques; all off, it is first fit on static partitions."""

    balancing: bool = True
    partitioning: bool = True
    migration: bool = True
    queues: bool = False  # true if jobs pass those before them that do not fit, as with a queue for each size
    placement: int = 0  # index of a static partition
    source_load: str = "after"
    """Load of the GPU that a job leaves with which the other is compared: that after the migration or before."""

    def run(self, trace: Trace, threshold: float) -> Metrics:
        """Return its outcome."""
        options: dict[str, Any] = {"threshold": threshold, "backfill": self.queues, "patience": None}
        options |= {"load_balancing": self.balancing, "dynamic_partitioning": self.partitioning}
        options |= {"migration": self.migration, "source_load": self.source_load}
        options |= {} if self.partitioning else {"partition": STATIC[self.placement]}
        done = simulate(trace, "fragmentation-aware", **options)
        assert not done.unfinished
        return done.metrics


OFF = Way(balancing=False, partitioning=False, migration=False)
ALL = Way()
STILL, QUEUED = Way(migration=False), Way(queues=True)
STEPS = (
    ("balancing", Way(partitioning=False, migration=False)),
    ("balancing, partitioning", STILL),
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


RIVALS = ("first-fit", "best-fit", "load-balancing")
MODELS = ("opt-6.7b", "bloom-1b7", "opt-13b", "bloom-7b1")
TASKS = (2, 4, 6, 8)
MEDIANS = (30.0, 45.0, 90.0, 180.0)
_SLICES = 28
_SECONDS = 1000.0


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Return mean and standard deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.{digits}f} ± {deviation:.{digits}f}"


# Concurrent tasks: the paper's Figure 5


def concurrent_tasks(count: int, seed: int) -> Trace:
    """Return tasks that arrive together, ask for less than three quarters of 4 GPUs, and are all held up by PCIe."""
    drawn = make_trace("normal-25", seed, World(jobs=30, contention="all jobs", uniform=True))
    chosen: list[Job] = []
    load = 0
    for job in drawn.jobs:
        size = next(iter(job.times))
        if len(chosen) < count and load + size <= 0.75 * _SLICES - (count - len(chosen) - 1):
            chosen.append(dataclasses.replace(job, arrival=0.0, times={size: _SECONDS}))
            load += size
    return drawn.replace(jobs=tuple(chosen))


def slowdowns(count: int, seeds: int) -> dict[str, dict[str, list[float]]]:
    """Return the slowdowns of concurrent tasks against a task alone on its GPU, by scheduler and by model.

    The threshold is the load of all tasks, as in the paper.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for seed in range(seeds):
        trace = concurrent_tasks(count, seed)
        load = sum(next(iter(job.times)) for job in trace.jobs) / _SLICES
        given: Mapping[str, Mapping[str, Any]] = {"fragmentation-aware": {"threshold": load}, **{r: {} for r in RIVALS}}
        for policy, options in given.items():
            log = simulate(trace, policy, **options).log
            own = found.setdefault(policy, {model: [] for model in MODELS})
            for job, begin, end in zip(trace.jobs, log.scheduled, log.finished, strict=True):
                own[job.name.split("-", 1)[1]].append((end - begin) / _SECONDS)
    return found


def concurrency(page: Page, seeds: int) -> None:
    """Add the tables for Figure 5."""
    page.section(
        "Concurrent tasks (Figure 5; printed: conditional load balancing has the least time per token, no figures)"
    )
    page.add("""Tasks that all arrive in the first second and take less than three quarters of the GPUs, each held up by
        PCIe; the threshold is the load of all tasks. Mean slowdown against a task alone on its GPU: of all tasks with
        the standard deviation, and of each model. The paper's two rivals are not among them.""")
    rows = []
    for count in TASKS:
        found = slowdowns(count, seeds)
        every = (list(itertools.chain(*models.values())) for models in found.values())
        rows.append([str(count), "all", *(spread(values, 2) for values in every)])
        for model in MODELS:
            drawn = (models[model] for models in found.values())
            rows.append([str(count), model, *(f"{statistics.fmean(own):.2f}" if own else "-" for own in drawn)])
    page.table(["tasks", "model", "fragmentation-aware", *RIVALS], rows, texts=(1,))


# Desired and actual instances: the paper's Figure 6


def instance_counts(log: Log) -> dict[str, list[tuple[float, int, int]]]:
    """Return for each profile the moments of change: seconds, jobs that want or have an instance, instances."""
    changes: dict[str, list[tuple[float, int, int]]] = {}
    for job, end in zip(log.trace.jobs, log.finished, strict=True):
        assert job.profile is not None
        changes.setdefault(job.profile, []).extend([(job.arrival, 1, 0), (end, -1, 0)])
    for operation in log.operations():
        change = 1 if operation.kind == "create" else -1
        changes.setdefault(operation.profile, []).append((operation.end, 0, change))
    found: dict[str, list[tuple[float, int, int]]] = {}
    for profile, own in changes.items():
        desired = actual = 0
        found[profile] = []
        for moment, more, created in sorted(own):
            desired, actual = desired + more, actual + created
            found[profile].append((moment, desired, actual))
    return found


def surplus_shares(log: Log) -> dict[str, float]:
    """Return for each profile the share of the time in which there are more instances than jobs want."""
    end = max(log.finished)
    shares = {}
    for profile, points in instance_counts(log).items():
        spans = itertools.pairwise([*points, (end, 0, 0)])
        surplus = sum(max(0.0, after[0] - at) for (at, desired, actual), after in spans if actual > desired)
        shares[profile] = surplus / end
    return shares


def instances(page: Page, seeds: int, jobs: int) -> None:
    """Add the table for Figure 6."""
    page.section("Desired and actual instances (Figure 6; printed without figures: surplus ones stay)")
    page.add("""normal-25. Surplus: share of the time in which there are more instances of a profile than jobs that want
        or have one. Destroyed: instances of each profile that made room for others, per job.""")
    surplus: dict[str, list[float]] = {}
    destroyed: Counter[str] = Counter()
    for seed in range(seeds):
        log = simulate(make_trace("normal-25", seed, World(jobs=jobs)), "fragmentation-aware").log
        for profile, share in surplus_shares(log).items():
            surplus.setdefault(profile, []).append(share)
        kinds = zip(log.operation_kind, log.operation_placement, strict=True)
        destroyed.update(log.placements[place].profile.name for kind, place in kinds if kind != CREATE)
    rows = [
        [profile, f"{100 * statistics.fmean(surplus[profile]):.0f} %", f"{destroyed[profile] / (seeds * jobs):.2f}"]
        for profile in sorted(surplus)
    ]
    page.table(["profile", "surplus", "destroyed"], rows)


# Migration: the paper's Figure 9


def shortened(bench: Bench, way: Way) -> list[float]:
    """Return by how many percent migration shortens the mean execution, for each workload."""
    still = dataclasses.replace(way, migration=False)
    return [bench.saved(workload, way, still, execution) for workload in WORKLOADS]


WAYS = {
    "balancing": ALL,
    "balancing, load before": Way(source_load="before"),
    "no balancing": Way(balancing=False),
    "no balancing, load before": Way(balancing=False, source_load="before"),
}
CONTENDED = ("opt", "all jobs", "all jobs, whole link")


def migration(page: Page, seeds: int, jobs: int) -> None:
    """Add the table of lengths, contention, balancing and the two readings of the load criterion."""
    page.section("What migration needs to shorten execution")
    page.add("""By how many percent the mean execution is less with migration, by who is held up by PCIe and by the
        median length. *Load before*: a job migrates if the load of the lazy GPU is then less than that of the other one
        was before (`source_load`), else than it is afterwards. Arrivals stay, so shorter jobs mean emptier GPUs.""")
    rows = []
    for contention, median in itertools.product(CONTENDED, MEDIANS):
        bench = Bench(seeds, World(jobs=jobs, contention=contention, median=median))
        for name, way in WAYS.items():
            per_job = statistics.fmean(value for load in WORKLOADS for value in bench.values(load, way, moves))
            cells = (f"{value:.1f}" for value in shortened(bench, way))
            rows.append([contention, f"{median:g} s", name, *cells, f"{per_job:.2f}"])
    page.table(["held up", "median", "", *WORKLOADS, "migrations per job"], rows, texts=(0, 2))
    page.add("Printed: more than 6, 6, 10, 10 (normal-25, long-25, normal-50, long-50).")
