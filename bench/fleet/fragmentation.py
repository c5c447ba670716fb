"""The figures that the paper of the fragmentation-aware scheduler prints, beside those of the simulator.

Run: python -m bench.fleet.fragmentation. It takes about ten minutes; with --cut seconds.
"""

import dataclasses
import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from matplotlib.figure import Figure

from bench.figures import panels, save_figure
from bench.fleet import fragmentation_worlds as worlds
from bench.fleet.fragmentation_worlds import ALL, OFF, QUEUED, STILL, WORKLOADS, Bench, Way, World, execution, wait
from bench.report import Page, parser_of, start
from mig_opt import simulate
from mig_opt.simulation import Metrics


def waits(page: Page, bench: Bench) -> None:
    """Add the table for the paper's Figure 7."""
    page.section("Waits (Figure 7; printed: dynamic at least 30 % less than the best static configuration)")
    page.add("""Mean seconds of a wait, mean and standard deviation over the seeds; less: by how much the mean over all
        seeds is less than that of static. Static is the better of two placements of the same instances. With one queue
        the first job in it holds up all others; with a queue per size only those of its size.""")
    rows = []
    for workload in WORKLOADS:
        static, passing = (bench.static(workload, queues=queues) for queues in (False, True))
        cells = [worlds.spread(bench.values(workload, way, wait)) for way in (static, passing, ALL, QUEUED)]
        pairs = (ALL, static), (ALL, passing), (QUEUED, passing)
        rows.append([workload, *cells, *(f"{bench.saved(workload, *pair, wait):.0f} %" for pair in pairs)])
    heads = ["workload", "static, one queue", "static, per size", "dynamic, one queue", "dynamic, per size"]
    page.table([*heads, "less: one queue", "less: static per size", "less: both per size"], rows)


def executions(page: Page, bench: Bench) -> None:
    """Add the table for the paper's Figures 8 and 9."""
    page.section(
        "Migration (Figures 8 and 9; printed: execution more than 10 % less at gap 50, more than 6 % at gap 25)"
    )
    rows = []
    packed, kept = Way(balancing=False), Way(balancing=False, migration=False)
    for workload in WORKLOADS:
        fragmentation = (
            f"{100 * statistics.fmean(bench.values(workload, way, lambda m: m.fragmentation)):.1f} %"
            for way in (STILL, ALL)
        )
        cells = [worlds.spread(bench.values(workload, way, execution), 1) for way in (STILL, ALL)]
        cells += [f"{bench.saved(workload, *pair, execution):.1f} %" for pair in ((ALL, STILL), (packed, kept))]
        cells += [f"{statistics.fmean(bench.values(workload, ALL, worlds.moves)):.2f}", " to ".join(fragmentation)]
        rows.append([workload, "6 %" if workload.endswith("25") else "10 %", *cells])
    heads = ["workload", "printed", "without s", "with s", "less", "less without balancing", "migrations per job"]
    page.table([*heads, "fragmentation without to with"], rows)
    page.add("By how many percent execution is less with migration, depending on who is held up by PCIe and how much:")
    rows = []
    for contention in worlds.CONTENTION:
        own = dataclasses.replace(bench, world=dataclasses.replace(bench.world, contention=contention))
        for name, way in (("balancing", ALL), ("no balancing", packed)):
            rows.append([f"{contention}, {name}", *(f"{saved:.1f}" for saved in worlds.shortened(own, way))])
    page.table(["held up by PCIe", *WORKLOADS], rows)


def ratios(bench: Bench, workload: str, way: Way, *, queues: bool, of: Callable[[Metrics], float]) -> list[float]:
    """Return a figure as a share of the baseline's, seed by seed."""
    own, base = (dataclasses.replace(each, queues=queues) for each in (way, OFF))
    pairs = zip(bench.values(workload, own, of), bench.values(workload, base, of), strict=True)
    return [mine / other for mine, other in pairs]


def steps(page: Page, bench: Bench) -> None:
    """Add the tables for the paper's Figure 10."""
    page.section("Ablation (Figure 10; printed: wait + execution 13 to 35 % less than the baseline)")
    page.add("""Mean of wait + execution, the paper's *makespan*, as a share of the baseline's, which is first fit on
        static partitions: mean and standard deviation over the seeds. Last line: the end of the last job, with all
        three.""")
    for queues, heading in ((False, "One queue, first come first served"), (True, "A queue for each size")):
        page.lines += [f"### {heading}, also for the baseline", ""]
        rows = [
            [name, *(worlds.spread(ratios(bench, load, way, queues=queues, of=worlds.total), 2) for load in WORKLOADS)]
            for name, way in worlds.STEPS
        ]
        ends = (ratios(bench, workload, ALL, queues=queues, of=lambda m: m.makespan) for workload in WORKLOADS)
        rows.append(["all three, last end", *(worlds.spread(shares, 2) for shares in ends)])
        page.table(["techniques", *WORKLOADS], rows)


def variations(cut: bool) -> Iterator[tuple[str, World]]:
    """Yield other assumptions."""
    base = World()
    yield "as above", base
    changes: list[tuple[str, str, Sequence[object]]] = [
        ("held up by PCIe", "contention", list(worlds.CONTENTION)),
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
                text = f" {value:g}" if isinstance(value, float) else "" if value is True else f": {value}"
                yield f"{name}{text}", world


def sensitivity(page: Page, bench: Bench, *, cut: bool) -> None:
    """Add the table of other assumptions."""
    page.section("Other assumptions")
    page.add("""The least and the most of the four workloads, each of the mean over all seeds. Negative: more. Static
        instances are in the first of the two placements.""")
    rows = []
    for name, world in variations(cut):
        own = dataclasses.replace(bench, world=dataclasses.replace(world, jobs=25) if cut else world)
        base = dataclasses.replace(OFF, queues=True)
        cells = [
            _range((own.saved(workload, way, rival, of) for workload in WORKLOADS), digits)
            for way, rival, of, digits in (
                *((ALL, OFF, wait, 0), (QUEUED, base, wait, 0), (ALL, STILL, execution, 1)),
                *((ALL, OFF, worlds.total, 0), (QUEUED, base, worlds.total, 0)),
            )
        ]
        per_job = _range((statistics.fmean(own.values(workload, ALL, worlds.moves)) for workload in WORKLOADS), 2)
        rows.append([name, *cells, per_job])
    heads = ["assumption", "wait, one queue %", "wait, per size %", "execution by migration %"]
    page.table([*heads, "wait + execution, one queue %", "the same, per size %", "migrations per job"], rows)
    page.add("Printed: at least 30, at least 30, 6 to 10, 13 to 35, 13 to 35, nothing.")


def _range(values: Iterable[float], digits: int) -> str:
    found = list(values)
    return f"{min(found):.{digits}f} to {max(found):.{digits}f}"


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


@start
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
    worlds.concurrency(page, bench.seeds)
    worlds.instances(page, bench.seeds, bench.world.jobs)
    worlds.migration(page, min(bench.seeds, 10), bench.world.jobs)
    sensitivity(page, bench, cut=options.cut)
    page.save()
    shares: dict[str, dict[str, list[list[float]]]] = {"one queue": {}, "a queue for each size": {}}
    for own, (name, way) in itertools.product(shares, worlds.STEPS[:3]):
        given = {"queues": own != "one queue", "of": worlds.total}
        shares[own][name] = [ratios(bench, workload, way, **given) for workload in WORKLOADS]
    save_figure(ablation(WORKLOADS, shares), options.results / "online_fragmentation.svg")
    shown = simulate(worlds.make_trace("normal-25", 0, bench.world), "fragmentation-aware").log
    save_figure(instance_figure(worlds.instance_counts(shown)), options.results / "online_fragmentation_instances.svg")
