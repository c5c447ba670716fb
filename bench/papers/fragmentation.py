"""The figures of the fragmentation-aware scheduler's paper (arXiv 2025), printed and measured."""

import dataclasses
import itertools
import statistics
from collections.abc import Callable
from functools import cache

from bench.fleet import fragmentation_worlds as tables
from bench.fleet.fragmentation_worlds import ALL, OFF, QUEUED, STEPS, STILL, WORKLOADS, Bench, Way, World
from bench.papers.claims import Claim, Group, Paper, Reading, Verdict, compare, held, listed, same
from mig_opt import generate_trace, get_gpu, simulate
from mig_opt.gpu.geometry import geometry_of
from mig_opt.simulation import Metrics

_WORLD = (
    "The traces are not public. Assumed: 100 jobs; lognormal lengths with a median of 90 s; sizes in the shares of the"
    " static instances (3 x 4g, 3 x 3g, 3 x 2g, 1 x 1g); opt models, which do not fit into memory, ask for 17.65 GB/s"
    " of PCIe, bloom models for none; migration costs jobs no time. The mean of {seeds} traces of each workload."
)
_PRINTED_EXECUTION = {"normal-25": 6, "long-25": 6, "normal-50": 10, "long-50": 10}
_SEARCHED = (("opt", 90.0), ("all jobs", 45.0), ("all jobs, whole link", 30.0), ("all jobs, whole link", 45.0))


@cache
def _bench(cut: bool, world: World | None = None, seeds: int = 20) -> Bench:
    world = world or World()
    return Bench(2, dataclasses.replace(world, jobs=25)) if cut else Bench(seeds, world)


def _assumed(cut: bool) -> str:
    return _WORLD.format(seeds=_bench(cut).seeds)


def table1(_cut: bool) -> Group:
    """Table I: Compute slices, memory slices, starting indices and size of each profile."""
    printed = {"7g.40gb": "7, 8, at 0, 8", "4g.20gb": "4, 4, at 0, 4", "3g.20gb": "3, 4, at 0, 4, 4"}
    printed |= {"2g.10gb": "2, 2, at 0, 2, 4, 2", "1g.10gb": "1, 2, at 0, 2, 4, 6, 2"}
    printed |= {"1g.5gb": "1, 1, at 0, 1, 2, 3, 4, 5, 6, 1"}
    claims = []
    for name, wanted in printed.items():
        own = get_gpu("A100").profile(name)
        found = f"{own.compute_slices}, {own.memory_slices}, at {', '.join(map(str, own.starts))}, {own.memory_slices}"
        claims.append(same(name, wanted, found))
    return Group(
        tuple(claims),
        assumed="None: the catalogue has them from NVIDIA.",
        readings=(Reading("placements of the catalogue", "as in the table"),),
    )


def figure1(_cut: bool) -> Group:
    """Figure 1, section III-A: External fragmentation on one GPU."""
    geometry = geometry_of(get_gpu("A100"))
    by_name = {str(entry): index for index, entry in enumerate(geometry.placements)}

    def possible(profile: str, *busy: str) -> bool:
        used = geometry.mask([by_name[name] for name in busy])
        return bool(geometry.usage(used).available[geometry.profile_index(get_gpu("A100").profile(profile))])

    left, right = possible("4g.20gb", "3g.20gb@0"), possible("4g.20gb", "3g.20gb@4")
    costs = {start: geometry.usage(1 << by_name[f"2g.10gb@{start}"]).cost for start in (0, 2, 4)}
    best = min(costs, key=costs.__getitem__)
    found = ["can be created" if it else "cannot be created" for it in (left, right)]
    return Group(
        (
            same("4g beside a 3g on the left, with 4 free slices on the right", "cannot be created", found[0]),
            same("4g beside a 3g on the right", "can be created", found[1]),
            Claim("start of a first 2g", *compare(4, best, within=0, digits=0), "of least fragmentation cost (Eq. 5)"),
        ),
        assumed="The driver's own choice for 2g is printed (4); measured is what the fragmentation cost prefers.",
        readings=(Reading("Equations 3 to 5 over the profiles of Table I", "as in the table"),),
    )


def table2(cut: bool) -> Group:
    """Table II: Arrivals of the workloads."""
    claims = []
    for name in WORKLOADS:
        gaps = [generate_trace(name, seed=seed).jobs[-1].arrival / 100 for seed in range(2 if cut else 100)]
        printed = float(name.split("-")[1])
        claims.append(Claim(f"{name}: mean gap in s", *compare(printed, statistics.fmean(gaps), within=2, digits=1)))
    return Group(
        tuple(claims),
        assumed="An input of the families: agreement is no evidence. Query lengths are from BurstGPT in the paper; "
        "here they are lognormal, and the top half of them in `long-...`. Gaps agree within 2 s.",
        readings=(Reading("100 traces of 100 jobs", "as in the table"),),
    )


def figure5(cut: bool) -> Group:
    """Figure 5, section V-B: Slowdown of concurrent tasks against a task alone on its GPU, by model."""
    seeds = 2 if cut else 20
    found = {count: tables.slowdowns(count, seeds) for count in tables.TASKS}

    def mean(count: int, policy: str, model: str) -> float:
        return statistics.fmean(found[count][policy][model] or [1.0])

    claims, tried = [], []
    most = tables.TASKS[-1]
    for model in tables.MODELS:
        own, first = mean(most, "fragmentation-aware", model), mean(most, "first-fit", model)
        text = f"{own:.2f} against {first:.2f}"
        claims.append(held(f"{model}, {most} tasks: less than first fit", "shortest", text, own <= first + 1e-9))
        series = [mean(count, "fragmentation-aware", model) for count in tables.TASKS]
        rises = series[0] < series[-1] and all(one <= other + 0.05 for one, other in itertools.pairwise(series))
        what = f"{model}: more tasks, more time"
        claims.append(held(what, "increases", listed(series, 2), rises, "2, 4, 6, 8 tasks"))
        others = (f"{policy} {mean(most, policy, model):.2f}" for policy in tables.RIVALS)
        tried.append(Reading(f"{model}, {most} tasks, other rivals", ", ".join(others)))
    claims += [
        Claim("less than the heuristic of OWP", "shortest", "", Verdict.CANNOT),
        Claim("less than the deploy manager of ElasticBatch", "shortest", "", Verdict.CANNOT),
        Claim("milliseconds per token", "only in the figure", "", Verdict.CANNOT),
    ]
    return Group(
        tuple(claims),
        assumed="Tasks that arrive together and ask for less than three quarters of 4 GPUs; each asks for 17.65 GB/s; "
        "the threshold is the load of all tasks, as printed. The mean over 20 draws of the tasks.",
        reason="Times per token are points of a picture, measured on GPUs. The paper names both rivals and defines"
        " neither. OWP (arXiv 2409.06646), by its abstract, places a set known in advance on as few GPUs as it can;"
        " ElasticBatch (IEEE TPDS 35, 2024) is not openly accessible, and chooses the sizes of instances itself, while"
        " here jobs ask for theirs. Rules written from abstracts would be ours and not theirs. What packing on few GPUs"
        " means for contention shows `best-fit`, which fills GPUs too: it is nearly as slow as first fit. Plain load"
        " balancing, which the paper leaves out, is faster than conditional balancing for three of the four models.",
        readings=tuple(tried),
    )


def figure6(cut: bool) -> Group:
    """Figure 6, section V-C: Desired and actual numbers of instances."""
    shares: list[float] = []
    early = destroyed = 0
    for seed in range(2 if cut else 20):
        trace = tables.make_trace("normal-25", seed, _bench(cut).world)
        log = simulate(trace, "fragmentation-aware").log
        shares += tables.surplus_shares(log).values()
        operations = list(log.operations())
        destroyed += sum(operation.kind == "destroy" for operation in operations)
        # The driver of a GPU does its operations in order: one that destroys is followed by one that creates.
        for gpu in range(trace.gpus):
            own = [operation.kind for operation in operations if operation.gpu == gpu]
            early += bool(own) and own[-1] == "destroy"
    share = statistics.fmean(shares)
    stay = f"{100 * share:.0f} % of the time there are more than wanted"
    reclaimed = f"{destroyed - early} of {destroyed} destructions are followed by a creation"
    return Group(
        (
            held("surplus instances are not destroyed at once", "they stay", stay, share > 0.1, "mean over profiles"),
            held("they are reclaimed only for other instances", "only then", reclaimed, not early),
            Claim("the curves themselves, such as around second 1900", "only in the figure", "", Verdict.CANNOT),
        ),
        assumed=_assumed(cut) + " Of normal-25;"
        " [a picture](../../../bench/results/online_fragmentation_instances.svg) of one trace.",
        reason="The curves belong to a trace that is not public.",
        readings=(Reading("20 traces of normal-25", "as in the table"),),
    )


def figure7(cut: bool) -> Group:
    """Figure 7, section V-C: Waiting time against the best static partition."""
    bench = _bench(cut)
    claims, tried = [], []
    for workload in WORKLOADS:
        static = {queues: bench.static(workload, queues=queues) for queues in (False, True)}
        one = bench.saved(workload, ALL, static[False], tables.wait)
        both = bench.saved(workload, QUEUED, static[True], tables.wait)
        mixed = bench.saved(workload, ALL, static[True], tables.wait)
        claims.append(held(f"{workload}, % less", "at least 30", f"{one:.0f}", one >= 30, direction=one > 0))
        text = f"a queue for each size in both {both:.0f} %, in static partitions only {mixed:.0f} %"
        tried.append(Reading(workload, text))
    return Group(
        tuple(claims),
        assumed=_assumed(cut)
        + " One queue, first come first served, in both; the paper says so of its own scheduler only."
        " Static is the better of two placements of the instances.",
        reason="A strict queue ruins static partitions: a job that waits for the only 1g holds up all others.",
        readings=tuple(tried),
    )


def figure8(cut: bool) -> Group:
    """Figure 8, section V-D: Mean fragmentation without and with migration."""
    bench = _bench(cut)
    claims = []
    for workload in WORKLOADS:
        without, with_it = (
            100 * statistics.fmean(bench.values(workload, way, lambda metrics: metrics.fragmentation))
            for way in (STILL, ALL)
        )
        claims.append(held(workload, "lower", f"{without:.1f} to {with_it:.1f} %", with_it < without))
    return Group(tuple(claims), assumed=_assumed(cut), readings=(Reading("defaults of the study", "as in the table"),))


def figure9(cut: bool) -> Group:
    """Figure 9, section V-D: Execution time with migration against without."""
    bench = _bench(cut)
    claims = []
    for workload, printed in _PRINTED_EXECUTION.items():
        saved, what = bench.saved(workload, ALL, STILL, tables.execution), f"{workload}, % less"
        claims.append(held(what, f"more than {printed}", f"{saved:.1f}", saved > printed, direction=saved >= 2))
    tried, every = [], {}
    for contention, median in _SEARCHED:
        own = _bench(cut, dataclasses.replace(World(), contention=contention, median=median), 10)
        for name, way in tables.WAYS.items():
            values = every[contention, median, name] = tables.shortened(own, way)
            per_job = statistics.fmean(value for load in WORKLOADS for value in own.values(load, way, tables.moves))
            label = f"held up: {contention}; median {median:g} s; {name}"
            searched = (contention, median) != _SEARCHED[0]
            tried.append(Reading(label, f"{listed(values, 1)} %, {per_job:.2f} migrations per job", searched))
    reached = {
        key: sum(value > printed for value, printed in zip(values, _PRINTED_EXECUTION.values(), strict=True))
        for key, values in every.items()
    }
    balanced = max(count for (_, _, name), count in reached.items() if not name.startswith("no "))
    before = ", load before"
    added = max(
        value - other
        for (contention, median, name), values in every.items()
        if name.endswith(before)
        for value, other in zip(values, every[contention, median, name.removesuffix(before)], strict=True)
    )
    return Group(
        tuple(claims),
        assumed=_assumed(cut)
        + " From 2 % on it counts as in direction. In the list below: normal-25, long-25, normal-50,"
        " long-50, 10 traces each.",
        reason="Sizes are fixed, so a job takes equally long anywhere unless PCIe holds it up, and arrivals are"
        " balanced already. The printed 6 and 10 % come nearest where every job asks for the whole link, jobs are short"
        " (a median of 30 to 45 s) and arrivals are *not* balanced. Of the four figures at most"
        f" {max(reached.values())} are reached in one of the {len(reached)} settings below, and with balancing, as in"
        f" the paper's figure, {balanced}. The second reading of the load criterion"
        f" (a source's load before the move) adds up to {added:.0f} points.",
        readings=tuple(tried),
    )


def figure10(cut: bool) -> Group:
    """Figure 10, abstract: Wait + execution (the paper's makespan) against first fit on static partitions."""
    bench = _bench(cut)

    def saved(way: Way, queues: bool, figure: Callable[[Metrics], float] = tables.total) -> list[float]:
        own, base = (dataclasses.replace(each, queues=queues) for each in (way, OFF))
        return [bench.saved(workload, own, base, figure) for workload in WORKLOADS]

    one, each = saved(ALL, queues=False), saved(ALL, queues=True)
    steps = dict(STEPS)
    growing = [steps["balancing"], steps["balancing, partitioning"], ALL]
    grown = [saved(way, queues=True) for way in growing]
    adds = [
        [one - before for one, before in zip(values, base, strict=True)]
        for values, base in zip(grown, [[0.0] * len(WORKLOADS), *grown], strict=False)
    ]
    claims = []
    for what, values, note, direction in (
        ("all three techniques, % less", one, "one queue", min(one) > 0),
        ("the same", each, "a queue for each size", True),
    ):
        text, inside = f"{min(values):.0f} to {max(values):.0f}", min(values) >= 13 and max(values) <= 35
        claims.append(held(what, "13 to 35", text, inside, note, direction=direction))
    everywhere = all(value > 0 for values in adds for value in values)
    mostly = all(statistics.fmean(values) > 0 for values in adds)
    what, text = "each technique adds to it, points", "; ".join(listed(values, 1) for values in adds)
    note = "balancing; partitioning; migration, for each workload, a queue for each size"
    claims.append(held(what, "consistently", text, everywhere, note, direction=mostly))
    tried = [
        Reading(f"{name}, a queue for each size", listed(saved(way, queues=True), unit=" %")) for name, way in STEPS
    ]
    ends = saved(ALL, queues=False, figure=lambda metrics: metrics.makespan)
    tried.append(Reading("makespan as the end of the last job", listed(ends, unit=" %")))
    return Group(
        tuple(claims),
        assumed=_assumed(cut) + " The paper does not say what queue its baseline has. A technique adds to it if it does"
        " so with every workload; in direction if it does in the mean.",
        reason="Nearly all of the gain is dynamic partitioning. With one queue static partitions suffer more than"
        " printed.",
        readings=tuple(tried),
    )


PAPER = Paper(
    "fragmentation",
    "Fragmentation-aware scheduling",
    '"An Online Fragmentation-Aware Scheduler for Managing GPU-Sharing Workloads on Multi-Instance GPUs" (arXiv, 2025).'
    " The scheduler is `fragmentation-aware`; [its rules](../simulation.md#the-schedulers).",
    (table1, figure1, table2, figure5, figure6, figure7, figure8, figure9, figure10),
)
