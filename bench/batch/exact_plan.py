"""Runs of the study of exactness, section by section, and the goals."""

import importlib.util
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.batch.runs import PYJOBSHOP, Instance, Row, Run, Variant
from mig_opt import methods

GIB = 2**30
SMALLEST_FOR_UNTIL = 50
ALIASES = ("milp",)  # methods that stand for another one


@dataclass(frozen=True, slots=True)
class Goal:
    """Goal of the runs of a group, for all but the share ``optimal`` and half for ``median_s``."""

    optimal: float = 0.0
    median_s: float | None = None
    worst_s: float | None = None
    gap: float | None = None
    peak_gib: float | None = None
    status: str = ""
    overrun: bool = False
    schedule: bool = False

    def __str__(self) -> str:
        return ", ".join(text for text, _, _ in self._parts())

    def misses(self, rows: Sequence[Row]) -> list[str]:
        """Return the parts of the goal that are missed, each with how many of the runs reach it."""
        parts = [(text, share, sum(map(reached, rows))) for text, share, reached in self._parts()]
        return [f"{text}: {count} of {len(rows)}" for text, share, count in parts if count < share * len(rows)]

    def _parts(self) -> Iterator[tuple[str, float, Callable[[Row], bool]]]:
        """Yield each part in words, the share of the runs that have to reach it, and whether one does."""
        if self.status:
            yield f"status `{self.status}`", 1, lambda row: row.outcome.status == self.status
        if self.schedule:
            yield "schedule kept", 1, lambda row: row.outcome.makespan is not None
        if self.optimal:
            share = "all" if self.optimal == 1 else f"{self.optimal:.0%}"
            yield f"{share} `optimal`", self.optimal, lambda row: row.outcome.status == "optimal"
        if (median := self.median_s) is not None:
            yield f"median < {median:g} s", 0.5, lambda row: row.outcome.seconds < median
        if (worst := self.worst_s) is not None:
            yield f"worst < {worst:g} s", 1, lambda row: row.outcome.seconds < worst
        if (gap := self.gap) is not None:
            yield f"gap <= {gap * 100:g} %", 1, lambda row: row.outcome.gap <= gap
        if (peak := self.peak_gib) is not None:
            yield f"peak < {peak:g} GiB", 1, lambda row: (row.outcome.peak_bytes or float("inf")) < peak * GIB
        if self.overrun:
            yield "overrun <= 1 s + 2 %", 1, lambda row: overrun(row) <= 1 + 0.02 * _end(row.run)


NO_GOAL = Goal()


def overrun(row: Row) -> float:
    """Return the seconds that a run took beyond its time limit or Ctrl-C (0 if it ended before)."""
    return max(0.0, row.outcome.seconds - _end(row.run))


def _end(run: Run) -> float:
    return min(end for end in (run.time_limit, run.interrupt_after, float("inf")) if end is not None)


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that share a line of a table: ``label`` is its first cell."""

    label: str
    runs: tuple[Run, ...]
    goal: Goal = NO_GOAL


def _gap(options: Namespace, n: int, goal: Goal) -> float:
    """Return the gap at which a run of ``n`` tasks may end."""
    if n < SMALLEST_FOR_UNTIL or goal.optimal:
        return 0.0
    return goal.gap or 0.0 if options.until == "goal" else float(options.until)


def _runs(
    options: Namespace,
    n: int,
    limit: float,
    goal: Goal = NO_GOAL,
    *,
    seeds: int | None = None,
    methods: Sequence[str] = ("auto",),
    variants: Sequence[Variant] = ("plain",),
    gpu: str = "A100",
    gpus: int = 1,
    fresh: bool = False,
) -> tuple[Run, ...]:
    """Return the runs of some methods on batches of one size, of each scaling and variant."""
    settings: dict[str, Any] = {"gap": _gap(options, n, goal), "fresh": fresh}
    return tuple(
        Run(Instance(n, scaling, seed, gpu, gpus, variant), method, limit * options.limit_scale, **settings)
        for scaling in options.scalings
        for variant in variants
        for seed in range(min(options.seeds, seeds or options.seeds))
        for method in methods
    )


def _sizes(sizes: Sequence[int], limit: float, goal: Goal, **settings: Any) -> Callable[[Namespace], list[Group]]:
    """Return the function of a section with a group for each number of tasks."""
    more = f", {settings['gpus']} GPUs" if "gpus" in settings else ""
    return lambda options: [Group(f"{n}{more}", _runs(options, n, limit, goal, **settings), goal) for n in sizes]


def _handover(options: Namespace) -> list[Group]:
    sizes = ((6, 10, Goal(optimal=1)), (8, 10, Goal(optimal=1)), (20, 60, Goal(optimal=0.5, gap=0.003)))
    return [
        Group(f"{gpu}, {n}", _runs(options, n, limit, goal, seeds=2, variants=("handover",), gpu=gpu), goal)
        for gpu in ("A30", "A100")
        for n, limit, goal in sizes
    ]


def _real(options: Namespace) -> list[Group]:
    return [
        Group(name, (Run(Instance(n, bundled=name), time_limit=60 * options.limit_scale),), Goal(optimal=1))
        for name, n in (("rodinia-a30", 8), ("miso-a100-32", 32), ("miso-a100-100", 100))
    ]


def exact_methods() -> list[str]:
    """Return the exact methods, each once."""
    return [method.name for method in methods() if method.kind == "exact" and method.name not in ALIASES]


def _methods(options: Namespace) -> list[Group]:
    settings: dict[str, Any] = {"seeds": 2, "methods": exact_methods(), "variants": ("plain", "memory")}
    return [
        Group(f"{gpu}, {n}", _runs(options, n, 20, gpu=gpu, **settings))
        for gpu in ("A30", "A100", "RTX-PRO-6000")
        for n in range(2, 7)
    ]


def _pyjobshop(options: Namespace) -> list[Group]:
    if importlib.util.find_spec("pyjobshop") is None:
        return []
    settings: dict[str, Any] = {"methods": ("auto", PYJOBSHOP), "variants": ("no operation costs",)}
    # It mostly takes all of the time from 15 tasks on, so there are fewer of them.
    return [Group(str(n), _runs(options, n, 60, seeds=None if n < 15 else 3, **settings)) for n in (8, 10, 12, 15, 20)]


def _limits(options: Namespace) -> list[Group]:
    kept = Goal(overrun=True, schedule=True)
    instances = {"20": Instance(20), "60, 4 GPUs": Instance(60, gpus=4), "1000": Instance(1000)}
    groups = []
    for size, instance in (instances | {"10000": Instance(10_000)}).items():
        for seconds in (1, 5, 20):
            run = Run(instance, time_limit=seconds * options.limit_scale, fresh=True)
            groups.append(Group(f"{size}, limit {run.time_limit:g} s", (run,), kept))
    brief, late = replace(kept, status="feasible"), replace(kept, status="interrupted")
    nowhere = Run(Instance(10, variant="impossible"), time_limit=60 * options.limit_scale)
    out_of_time = Run(Instance(100), time_limit=2 * options.limit_scale)
    interrupted = [Run(Instance(n), interrupt_after=after, fresh=True) for n, after in ((100, 2), (10_000, 10))]
    return [
        *groups,
        Group("10, a task fits nowhere", (nowhere,), Goal(status="infeasible")),
        Group("100, out of time", (out_of_time,), brief),
        Group("100, Ctrl-C after 2 s", (interrupted[0],), late),
        Group("10000, Ctrl-C after 10 s", (interrupted[1],), late),
    ]


_MINUTE = Goal(optimal=1, worst_s=60)
SECTIONS: dict[str, tuple[str, Callable[[Namespace], list[Group]]]] = {
    "small": ("Small batches", _sizes((6, 8, 10, 12), 60, Goal(optimal=1, median_s=0.5, worst_s=5))),
    "15": ("15 tasks", _sizes((15,), 60, _MINUTE)),
    "20": ("20 tasks", _sizes((20,), 60, _MINUTE)),
    "25": ("25 tasks", _sizes((25,), 60, _MINUTE)),
    "medium": ("30 to 100 tasks", _sizes((30, 50, 100), 60, Goal(optimal=1, gap=0.0005))),
    "1000": ("1000 tasks", _sizes((1000,), 60, Goal(optimal=0.5, gap=0.0005, peak_gib=2), fresh=True)),
    "10000": ("10,000 tasks", _sizes((10_000,), 300, Goal(optimal=0.5, gap=0.0005, peak_gib=4), fresh=True)),
    "gpus": ("Several GPUs", _sizes((60,), 60, Goal(gap=0.001), gpus=4)),
    "2-gpus": ("Two GPUs", _sizes((20,), 60, _MINUTE, gpus=2)),
    "8-gpus": ("Eight GPUs", _sizes((200,), 120, Goal(gap=0.001), gpus=8, seeds=4)),
    "handover": ("With the live instances of the batch before", _handover),
    "real": ("Measured times", _real),
    "limits": ("Time limits and statuses", _limits),
    "methods": ("The same optimum by every exact method", _methods),
    "pyjobshop": ("PyJobShop, without operation costs", _pyjobshop),
}


def plan(options: Namespace, only: Sequence[str]) -> dict[str, list[Group]]:
    """Return the groups of the sections that are wanted, without those of other sizes."""
    chosen: dict[str, list[Group]] = {}
    for name in only or SECTIONS:
        chosen[name] = []
        for group in SECTIONS[name][1](options):
            runs = tuple(run for run in group.runs if not options.sizes or run.instance.n in options.sizes)
            chosen[name] += [replace(group, runs=runs)] if runs else []
    return chosen
