"""Lower bounds of traces beside the best schedules: how much of a scheduler's distance is that of the bound.

Run: python -m bench.fleet.trace_bounds, which takes some minutes; or with --cut, which takes seconds. The best
schedules of small traces are proven: by constraint programming, and for PCIe-bound jobs, whose speeds depend on their
neighbours, by a search through all schedules.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from bench.fleet.regret import bounds_of
from bench.report import Page, parser_of, start
from mig_opt import Trace, generate_trace, methods, simulate
from mig_opt.fleet.bounds import _Need, _weightings
from mig_opt.fleet.relaxation import Capacity, Relaxation, ends_in_order, last_end
from mig_opt.models.fleet.optimum import trace_optimum

WHOLE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("pcie-4", {}),
    ("pcie-60", {"gpus": 20, "jobs": 300}),
    ("migm-nw", {}),
    ("migm-hm1", {}),
    ("migm-ht1", {}),
    ("migm-ml1", {}),
    ("migm-flan-t5", {}),
    ("migm-flan-t5-train", {}),
    ("migm-qwen2", {}),
    ("long-25", {"jobs": 60}),
    ("far-stream", {}),
)
"""Families with the parameters of the study of schedulers."""
SMALL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("pcie-4", {"gpus": 1, "jobs": 6, "load": 1.5}),
    ("pcie-4", {"gpus": 1, "jobs": 6, "load": 1.5, "pcie_share": 1.0}),
    ("migm-nw", {"jobs": 4}),
    ("migm-hm1", {"jobs": 4}),
    ("migm-ht1", {"jobs": 4}),
    ("migm-ml1", {"jobs": 3}),
    ("migm-flan-t5", {"jobs": 4}),
    ("migm-flan-t5-train", {"jobs": 3}),
    ("long-25", {"gpus": 1, "jobs": 5}),
    ("far-stream", {"batches": 1, "tasks": 4}),
)
"""Small traces."""
LIMIT_S = 20.0
_NEVER = "whole-gpu"  # a baseline that is far behind everywhere


def plain_bounds(trace: Trace) -> tuple[float, float]:
    """Return bounds on makespan and mean flow time from areas and shortest times alone.

    So they were before creations, useful speeds, mean busy times and prices counted.
    """
    needs = [_Need.of(trace, job) for job in trace.jobs]
    ready = [max(job.arrival, need.created) for job, need in zip(trace.jobs, needs, strict=True)]
    seconds = [need.seconds for need in needs]
    shortest = sorted(map(sum, zip(ready, seconds, strict=True)))
    last, ends = shortest[-1], [shortest]
    for _, _, weigh, link, _ in _weightings(trace, needs):
        areas = [math.fsum(need.areas(weigh, link)) / trace.gpus for need in needs]
        relaxed = Relaxation(Capacity(), ready, areas, seconds, seconds)
        last = max(last, last_end(relaxed)[0])
        ends.append(ends_in_order(relaxed))
    return last, mean_flow(trace, math.fsum(map(max, zip(*ends, strict=True))))


def mean_flow(trace: Trace, ends: float) -> float:
    """Return the mean flow time for a sum of ends."""
    return (ends - math.fsum(job.arrival for job in trace.jobs)) / len(trace.jobs)


def best_of_schedulers(trace: Trace) -> tuple[float, float]:
    """Return the least makespan and the least mean flow time that any scheduler reaches."""
    runs = [simulate(trace, entry.name) for entry in methods("simulate") if entry.name != _NEVER]
    done = [run.metrics for run in runs if not run.unfinished]
    return min(each.makespan for each in done), min(each.completion.mean for each in done)


def best_schedule(trace: Trace, limit: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the least makespan and the least mean flow time without migration, each between two values."""
    if any(job.pcie_gbps for job in trace.jobs):
        last, ends = least_end(trace), mean_flow(trace, least_end(trace, total=True))
        return (last, last), (ends, ends)
    makespan, total = (trace_optimum(trace, goal, time_limit=limit, workers=1) for goal in ("makespan", "completion"))
    ranges = ((found.value if found.proven else found.lower_bound, found.value) for found in (makespan, total))
    longest, (least, most) = ranges
    return longest, (mean_flow(trace, least), mean_flow(trace, most))


# PCIe-bound jobs that ask for one slice, on one GPU


def least_end(trace: Trace, *, total: bool = False) -> float:
    """Return the least last end of a small trace of PCIe-bound jobs, or the least sum of ends, without migration."""
    return _Search(trace, total=total).best


class _Search:
    """Search through all schedules in which each job begins when it arrives, another ends or an instance is ready.

    One of them is best: between such moments all speeds are constant, so that ends are linear in the seconds of the
    begins as long as their order stays, and best at a corner, where each begin is one of these moments. No instance is
    destroyed, since all jobs ask for the same profile and there are no more jobs than instances.
    """

    def __init__(self, trace: Trace, *, total: bool) -> None:
        profile = trace.one_kind.profile(trace.jobs[0].profile or "")
        if trace.gpus != 1 or any(job.profile != profile.name for job in trace.jobs):
            raise ValueError("the search is for jobs of one profile on one GPU")
        if len(trace.jobs) > len(profile.starts):
            raise ValueError("the search is for no more jobs than instances")
        create = trace.operations.of("create", profile)
        self._ready = [create * (number + 1) for number in range(len(trace.jobs))]
        self._arrivals = [job.arrival for job in trace.jobs]
        self._seconds = [job.times[profile.compute_slices] for job in trace.jobs]
        self._factors = [job.sensitivity * job.pcie_gbps / trace.pcie_limit for job in trace.jobs]
        self._total = total
        self.best = math.inf
        self._go_on(0.0, frozenset(range(len(trace.jobs))), {}, ())

    def _go_on(self, now: float, left: frozenset[int], running: dict[int, float], ends: tuple[float, ...]) -> None:
        slow = {job: max(1.0, self._factors[job]) for job in {*left, *running}}
        least = [now + running[job] * slow[job] for job in running]
        least += [max(now, self._arrivals[job], self._ready[0]) + self._seconds[job] * slow[job] for job in left]
        if (math.fsum([*ends, *least]) if self._total else max([*ends, *least])) >= self.best - 1e-9:
            return
        if not left and not running:
            self.best = math.fsum(ends) if self._total else max(ends)
            return
        waiting = [job for job in sorted(left) if self._arrivals[job] <= now]
        free = sum(ready <= now for ready in self._ready) - len(running)
        for count in range(min(free, len(waiting)), -1, -1):
            for chosen in itertools.combinations(waiting, count):
                self._until_next(now, left - set(chosen), {**running, **{j: self._seconds[j] for j in chosen}}, ends)

    def _until_next(self, now: float, left: frozenset[int], running: dict[int, float], ends: tuple[float, ...]) -> None:
        bound = sum(self._factors[job] > 0 for job in running)
        slow = {job: max(1.0, self._factors[job] * bound) for job in running}
        moments = [now + running[job] * slow[job] for job in running]
        moments += [at for at in (*(self._arrivals[job] for job in left), *self._ready) if at > now]
        if not moments:
            return
        after = min(moments)
        still = {job: seconds - (after - now) / slow[job] for job, seconds in running.items()}
        over = tuple(after for seconds in still.values() if seconds <= 1e-9)
        self._go_on(after, left, {job: seconds for job, seconds in still.items() if seconds > 1e-9}, ends + over)


def traces(
    families: Sequence[tuple[str, dict[str, Any]]], seeds: int, *, cut: bool
) -> Iterator[tuple[str, list[Trace]]]:
    """Yield families with their traces."""
    for family, parameters in families:
        fewer = {"batches": 1, "tasks": 3} if family == "far-stream" else {"jobs": 3}
        given = {**parameters, **(fewer if cut else {})}
        name = " ".join([f"`{family}`", *(f"{option}={value}" for option, value in given.items())])
        yield name, [generate_trace(family, seed=seed, **given) for seed in range(1 if cut else seeds)]


def figures(own: Sequence[Trace], limit: float | None) -> tuple[list[str], list[str]]:
    """Return for both goals the bounds, the optimum and the best scheduler, and this one's distances to the bounds."""
    optima = [best_schedule(trace, limit) for trace in own] if limit is not None else []
    plain = [plain_bounds(trace) for trace in own]
    bounds, fixed = ([bounds_of(trace, resizing=resizing) for trace in own] for resizing in (True, False))
    reached = [best_of_schedulers(trace) for trace in own]
    both = []
    for goal in range(2):
        means = [statistics.fmean(each[goal] for each in found) for found in (plain, bounds, fixed)]
        best = statistics.fmean(each[goal] for each in reached)
        cells = [f"{mean:.2f}" for mean in means]
        if limit is not None:
            least, most = (f"{statistics.fmean(each[goal][at] for each in optima):.2f}" for at in range(2))
            cells.append(least if least == most else f"{least} to {most}")
        both.append([*cells, f"{best:.2f}", *(f"{best / mean:.2f}" for mean in means)])
    return both[0], both[1]


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the results."""
    options = parser_of(__doc__, "trace_bounds.md", "few small traces").parse_args(arguments)
    few = slice(3) if options.cut else slice(None)
    page = Page("trace_bounds", "Bounds of traces", "mig-opt", "ortools", folder=options.results)
    page.add(f"""Seconds, means of seeds 0 and 1. *areas*: the bound from areas and shortest times alone; *bound*: that
        of `trace_bounds`; *one size*: with `resizing=False`; the last three columns are the best scheduler's value over
        them. Of the small traces, which have one GPU, the optimum neither migrates nor preempts; a scheduler that
        migrates may be below it. Where {LIMIT_S:g} s do not prove it, it lies between two values.""")
    for title, families, limit in (("Families", WHOLE[few], None), ("Small traces", SMALL[few], LIMIT_S)):
        optimum = [] if limit is None else ["optimum"]
        over = ["over areas", "over bound", "over one size"]
        found = [(name, figures(own, limit)) for name, own in traces(families, 2, cut=options.cut)]
        for at, goal in enumerate(("makespan", "mean flow time")):
            page.section(f"{title}: {goal}")
            heads = ["trace", "areas", "bound", "one size", *optimum, "best scheduler", *over]
            page.table(heads, ([name, *both[at]] for name, both in found))
    page.save()
