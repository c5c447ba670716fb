"""The figures that the paper of the fragmentation-aware scheduler prints, beside those of the simulator.

Run: python -m bench.fleet.fragmentation. It takes about ten minutes; with --cut seconds.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from matplotlib.figure import Figure

from bench.figures import panels, save_figure
from bench.fleet.fragmentation_worlds import (
    ALL,
    CONTENTION,
    OFF,
    STEPS,
    WORKLOADS,
    Bench,
    Way,
    World,
    concurrency,
    execution,
    instance_counts,
    instances,
    make_trace,
    migration,
    moves,
    spread,
    total,
    wait,
)
from bench.report import Page, parser_of, start
from mig_opt import simulate
from mig_opt.simulation import Metrics


def waits(page: Page, bench: Bench) -> None:
    """Add the table for the paper's Figure 7."""
    page.section(
        "Waits (Figure 7; printed: dynamic at least 30 % less than the best static configuration)",
        """Mean seconds of a wait, mean and standard deviation over the seeds; less: by how much the mean over all seeds
        is less than that of static. Static is the better of two placements of the same instances. With one queue the
        first job in it holds up all others; with a queue per size only those of its size.""",
    )
    rows = []
    for workload in WORKLOADS:
        static, passing = (bench.static(workload, queues=queues) for queues in (False, True))
        both = dataclasses.replace(ALL, queues=True)
        rows.append(
            [
                workload,
                *(spread(bench.values(workload, way, wait)) for way in (static, passing, ALL, both)),
                *(
                    f"{bench.saved(workload, way, rival, wait):.0f} %"
                    for way, rival in ((ALL, static), (ALL, passing), (both, passing))
                ),
            ]
        )
    heads = ["workload", "static, one queue", "static, per size", "dynamic, one queue", "dynamic, per size"]
    page.table([*heads, "less: one queue", "less: static per size", "less: both per size"], rows)


def executions(page: Page, bench: Bench) -> None:
    """Add the table for the paper's Figures 8 and 9."""
    page.section(
        "Migration (Figures 8 and 9; printed: execution more than 10 % less at gap 50, more than 6 % at gap 25)"
    )
    rows = []
    still = dataclasses.replace(ALL, migration=False)
    packed = dataclasses.replace(ALL, balancing=False)
    for workload in WORKLOADS:
        fragmentation = [
            f"{100 * statistics.fmean(bench.values(workload, way, lambda m: m.fragmentation)):.1f} %"
            for way in (still, ALL)
        ]
        rows.append(
            [
                workload,
                "6 %" if workload.endswith("25") else "10 %",
                spread(bench.values(workload, still, execution), 1),
                spread(bench.values(workload, ALL, execution), 1),
                f"{bench.saved(workload, ALL, still, execution):.1f} %",
                f"{bench.saved(workload, packed, dataclasses.replace(packed, migration=False), execution):.1f} %",
                f"{statistics.fmean(bench.values(workload, ALL, moves)):.2f}",
                " to ".join(fragmentation),
            ]
        )
    heads = ["workload", "printed", "without s", "with s", "less", "less without balancing", "migrations per job"]
    page.table([*heads, "fragmentation without to with"], rows)
    page.add("By how many percent execution is less with migration, depending on who is held up by PCIe and how much:")
    rows = []
    for contention in CONTENTION:
        own = dataclasses.replace(bench, world=dataclasses.replace(bench.world, contention=contention))
        for name, way in (("balancing", ALL), ("no balancing", packed)):
            rival = dataclasses.replace(way, migration=False)
            saved = [f"{own.saved(workload, way, rival, execution):.1f}" for workload in WORKLOADS]
            rows.append([f"{contention}, {name}", *saved])
    page.table(["held up by PCIe", *WORKLOADS], rows)


def ratios(bench: Bench, workload: str, way: Way, *, queues: bool, of: Callable[[Metrics], float]) -> list[float]:
    """Return a figure as a share of the baseline's, seed by seed."""
    own, base = (dataclasses.replace(each, queues=queues) for each in (way, OFF))
    pairs = zip(bench.values(workload, own, of), bench.values(workload, base, of), strict=True)
    return [mine / other for mine, other in pairs]


def steps(page: Page, bench: Bench) -> None:
    """Add the tables for the paper's Figure 10."""
    page.section(
        "Ablation (Figure 10; printed: wait + execution 13 to 35 % less than the baseline)",
        """Mean of wait + execution, the paper's *makespan*, as a share of the baseline's, which is first fit on static
        partitions: mean and standard deviation over the seeds. Last line: the end of the last job, with all three.""",
    )
    for queues, heading in ((False, "One queue, first come first served"), (True, "A queue for each size")):
        page.lines += [f"### {heading}, also for the baseline", ""]
        rows = [
            [name, *(spread(ratios(bench, workload, way, queues=queues, of=total), 2) for workload in WORKLOADS)]
            for name, way in STEPS
        ]
        last = (
            spread(ratios(bench, workload, ALL, queues=queues, of=lambda m: m.makespan), 2) for workload in WORKLOADS
        )
        rows.append(["all three, last end", *last])
        page.table(["techniques", *WORKLOADS], rows)


def variations(cut: bool) -> Iterator[tuple[str, World]]:
    """Yield other assumptions."""
    base = World()
    yield "as above", base
    changes: list[tuple[str, str, Sequence[object]]] = [
        ("held up by PCIe", "contention", list(CONTENTION)),
        ("gaps x", "gap", (0.5, 0.75, 1.5, 2.0)),
        ("threshold", "threshold", (0.0, 0.2, 0.6, 0.8, 1.0)),
        ("operations x", "costs", (0.0, 10.0, 50.0)),
        ("sigma of the lengths", "sigma", (0.5, 1.5)),
        ("jobs", "jobs", (50, 400)),
        ("sizes equally likely", "uniform", (True,)),
    ]
    for name, field, values in changes[:1] if cut else changes:
        for value in values:
            world = dataclasses.replace(base, **{field: value})  # type: ignore[arg-type]  # one of its fields
            if world != base:
                yield _named(name, value), world


def _named(name: str, value: object) -> str:
    if value is True:
        return name
    return f"{name} {value:g}" if isinstance(value, float) else f"{name}: {value}"


def sensitivity(page: Page, bench: Bench, *, cut: bool) -> None:
    """Add the table of other assumptions."""
    page.section(
        "Other assumptions",
        """The least and the most of the four workloads, each of the mean over all seeds. Negative: more. Static
        instances are in the first of the two placements.""",
    )
    rows = []
    for name, world in variations(cut):
        own = bench if world == bench.world else dataclasses.replace(bench, world=_as_large(world, bench.world))
        queued = dataclasses.replace(ALL, queues=True)
        still = dataclasses.replace(ALL, migration=False)
        base = dataclasses.replace(OFF, queues=True)
        rows.append(
            [
                name,
                _range(own.saved(workload, ALL, OFF, wait) for workload in WORKLOADS),
                _range(own.saved(workload, queued, base, wait) for workload in WORKLOADS),
                _range((own.saved(workload, ALL, still, execution) for workload in WORKLOADS), 1),
                _range(own.saved(workload, ALL, OFF, total) for workload in WORKLOADS),
                _range(own.saved(workload, queued, base, total) for workload in WORKLOADS),
                _range((statistics.fmean(own.values(workload, ALL, moves)) for workload in WORKLOADS), 2),
            ]
        )
    heads = ["assumption", "wait, one queue %", "wait, per size %", "execution by migration %"]
    page.table([*heads, "wait + execution, one queue %", "the same, per size %", "migrations per job"], rows)
    page.add("Printed: at least 30, at least 30, 6 to 10, 13 to 35, 13 to 35, nothing.")


def _as_large(world: World, other: World) -> World:
    """Return a world with the number of jobs of a cut."""
    return dataclasses.replace(world, jobs=min(world.jobs, other.jobs)) if other.jobs < World().jobs else world


def _range(values: Iterable[float], digits: int = 0) -> str:
    found = list(values)
    return f"{min(found):.{digits}f} to {max(found):.{digits}f}"


def figure_data(bench: Bench, *, queues: bool) -> dict[str, list[list[float]]]:
    """Return for the first three steps the shares of the baseline, by workload and seed."""
    return {
        name: [ratios(bench, workload, way, queues=queues, of=total) for workload in WORKLOADS]
        for name, way in STEPS[:3]
    }


_COLOURS = ("#56B4E9", "#0072B2", "#D55E00")
_HATCHES = ("", "///", "")
_PRINTED = (0.65, 0.87)


def ablation(workloads: Sequence[str], shares: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]) -> Figure:
    """Return a figure with the shares of the baseline that are left with more and more techniques.

    ``shares`` has for each panel the techniques, and of each the shares by workload and seed.
    """
    figure, several = panels(shares, (10.5, 3.4))
    for axes, techniques in zip(several, shares.values(), strict=True):
        axes.axhspan(*_PRINTED, color="#e8e8e8", zorder=0, label="printed, all three")
        axes.axhline(1.0, color="black", linewidth=0.8)
        width = 0.8 / len(techniques)
        for index, (name, by_workload) in enumerate(techniques.items()):
            places = [at - 0.4 + (index + 0.5) * width for at in range(len(workloads))]
            means = [statistics.fmean(seeds) for seeds in by_workload]
            deviations = [statistics.stdev(seeds) if len(seeds) > 1 else 0.0 for seeds in by_workload]
            axes.bar(
                places, means, width, yerr=deviations, color=_COLOURS[index], hatch=_HATCHES[index], edgecolor="white",
                error_kw={"elinewidth": 0.8, "capsize": 2}, label=name, zorder=2,
            )  # fmt: skip
        axes.set_xticks(range(len(workloads)), workloads)
    several[0].set_ylabel("wait + execution, share of the baseline")
    several[0].set_ylim(0, 1.45)
    several[0].legend(fontsize=8, loc="upper left", ncols=2)
    return figure


def instance_figure(counts: Mapping[str, Sequence[tuple[float, int, int]]]) -> Figure:
    """Return a figure with the desired and the actual number of instances of each profile over time (Figure 6).

    ``counts`` has for each profile the seconds at which something changes, with both numbers from then on.
    """
    figure = Figure(figsize=(10.5, 5.6), layout="constrained")
    several = figure.subplots(len(counts), 1, sharex=True, squeeze=False)[:, 0]
    end = max(points[-1][0] for points in counts.values())
    for axes, (profile, points) in zip(several, sorted(counts.items()), strict=True):
        seconds, desired, actual = zip((0.0, 0, 0), *points, (end, *points[-1][1:]), strict=True)
        axes.fill_between(seconds, actual, step="post", color=_COLOURS[0], linewidth=0, label="instances")
        axes.step(seconds, desired, where="post", color=_COLOURS[2], linewidth=1.2, label="jobs that want or have one")
        axes.set_ylabel(profile, rotation=0, ha="right", va="center")
        axes.set_ylim(0, max(*desired, *actual) + 1)
        axes.grid(visible=True, axis="y", color="#dddddd")
        axes.set_axisbelow(True)
    several[0].legend(fontsize=8, loc="upper right", ncols=2)
    several[-1].set_xlabel("seconds")
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    parser = parser_of(__doc__, "online_fragmentation.md and two .svg", "one seed, 25 jobs, fewer assumptions")
    parser.add_argument("--seeds", type=int, default=20, help="traces of each workload (20)")
    options = parser.parse_args(arguments)
    bench = Bench(1, World(jobs=25)) if options.cut else Bench(options.seeds, World())
    title = "The fragmentation-aware scheduler's paper"
    page = Page("online_fragmentation", title, "mig-opt", folder=options.results)
    page.add(f"""{bench.seeds} seeds, {bench.world.jobs} jobs each, 4 A100-40GB. `bench/fleet/fragmentation.py` made
        this page; [The simulation of a fleet](../../docs/explanation/simulation.md) says what it means and what is
        assumed.""")
    waits(page, bench)
    executions(page, bench)
    steps(page, bench)
    concurrency(page, bench.seeds)
    instances(page, bench.seeds, bench.world.jobs)
    migration(page, min(bench.seeds, 10), bench.world.jobs)
    sensitivity(page, bench, cut=options.cut)
    page.save()
    queues = {"one queue": False, "a queue for each size": True}
    shares = {name: figure_data(bench, queues=each) for name, each in queues.items()}
    save_figure(ablation(WORKLOADS, shares), options.results / "online_fragmentation.svg")
    shown = simulate(make_trace("normal-25", 0, bench.world), "fragmentation-aware").log
    save_figure(instance_figure(instance_counts(shown)), options.results / "online_fragmentation_instances.svg")


if __name__ == "__main__":
    start(main)
