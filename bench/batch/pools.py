"""Several kinds of GPUs: proofs, gaps, what the format costs where there is one kind, and services by cost.

Run: python -m bench.batch.pools, which takes minutes; --cut takes seconds. Runs on two kinds that are kept are not
measured again.
"""

import dataclasses
import json
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.report import Kept, Page, parser_of, start, timed
from mig_opt import Batch, Pool, Task, deploy, generate_batch, get_gpu, load, read, solve
from mig_opt.gpu.catalogue import add_gpu
from mig_opt.instances.batch import SCALINGS

A100, A80, A30 = get_gpu("A100"), get_gpu("A100-80GB"), get_gpu("A30")
MIXED = {"12 tasks, A100 + A30": (12, 1, 30, 20.0), "20 tasks, 2 A100 + 2 A30": (20, 2, 10, 60.0)}
"""Tasks, GPUs of each kind, batches, and seconds."""
WORKERS = 2
PRICES = {
    "each GPU costs 1": (Pool(A30), Pool(A80)),
    "A30 1, A100 2.2": (Pool(A30), Pool(A80, cost=2.2)),
    "A30 1, A100 2.2, at most 3 A30": (Pool(A30, 3), Pool(A80, cost=2.2)),
    "2 A30 that are there already, A100 2.2": (Pool(A30, 2, 0.0), Pool(A80, cost=2.2)),
}


def mixed(tasks: int, gpus: int, number: int, limit: float) -> list[Any]:
    """Return status, seconds and gap in percent of a run on two kinds."""
    scaling, pools = SCALINGS[number % len(SCALINGS)], (Pool(A100, gpus), Pool(A30, gpus))
    batch = generate_batch(tasks, pools=pools, scaling=scaling, seed=number // len(SCALINGS))
    result = solve(batch, "cp", time_limit=limit, workers=WORKERS)
    return [result.status.value, result.runtime_s, 100.0 if result.gap is None else 100 * result.gap]


def pairs(plain: Callable[[], object], other: Callable[[], object], turns: int) -> list[float]:
    """Return the ratios of the seconds of the processor of two actions, which take turns in going first."""
    ratios = []
    for turn in range(turns):
        seconds = {action: timed(action)[1] for action in ((plain, other), (other, plain))[turn % 2]}
        ratios.append(seconds[other] / seconds[plain])
    return ratios


def one_kind(batches: int, tasks: int, turns: int) -> Iterator[tuple[str, list[float]]]:
    """Yield ratios of the seconds that everything takes with pools and without; the twin is an A100 by another name."""
    twin = add_gpu(dataclasses.replace(A100, name="A100-twin", aliases=()))
    for gpus, pools in ((1, [Pool(A100, 1)]), (2, [Pool(A100, 2)]), (2, [Pool(A100, 1), Pool(twin, 1)])):
        ratios = []
        for number in range(batches):
            plain = generate_batch(12, gpus=gpus, scaling=SCALINGS[number % len(SCALINGS)], seed=number)
            named = [task.with_times({pool.gpu.name: task.times for pool in pools}) for task in plain.tasks]
            both = [plain, Batch(tuple(named), pools=tuple(pools))]
            one, other = (partial(solve, batch, "cp", workers=1) for batch in both)
            ratios += pairs(one, other, max(2, turns // 4))
        yield "proof, 12 tasks, pools of " + " and ".join(f"{pool.count} {pool.gpu.name}" for pool in pools), ratios
    times = [dict(task.times) for task in generate_batch(tasks).tasks]
    by_kind = [{A100.name: own} for own in times]
    alone, pool = {"gpu": A100.name}, {"pools": [{"gpu": A100.name, "count": 1}]}
    files: list[tuple[Mapping[str, object], Sequence[object]]] = [(alone, times), (pool, times), (pool, by_kind)]
    with tempfile.TemporaryDirectory() as folder:
        reads = []
        for number, (head, given) in enumerate(files):
            entries = [{"name": f"t{at}", "times": own} for at, own in enumerate(given)]
            path = Path(folder, f"{number}.json")
            path.write_text(json.dumps({"schema": "mig-opt/batch/1", **head, "tasks": entries}), encoding="utf-8")
            reads.append(partial(read, Batch, path))
        yield f"reading {tasks} tasks, a pool", pairs(reads[0], reads[1], turns)
        yield f"reading {tasks} tasks, a pool and times by kind", pairs(reads[0], reads[2], turns)
    makes = [lambda given=given: [Task("t", own) for own in given] for given in (times, by_kind)]
    yield f"making {tasks} tasks with times by kind", pairs(makes[0], makes[1], turns)


def services() -> Iterator[tuple[str, str, float | None, float, str, str]]:
    """Yield what the services of MLPerf cost."""
    for prices, pools in PRICES.items():
        result = deploy(load("mlperf-offline").replace(pools=pools))
        gpus = " + ".join(f"{count} {name}" for name, count in Counter(result.plan.gpus if result.plan else ()).items())
        yield prices, gpus, result.cost, result.lower_bound, ", ".join(result.proven), f"{result.runtime_s:.2f}"


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, and write the page."""
    parser = parser_of(__doc__, "pools.jsonl and pools.md", "one batch of each, 1 s")
    options = parser.parse_args(arguments)
    kept = Kept(options.results / "pools.jsonl")
    page = Page("pools", "Several kinds of GPUs", "mig-opt", "ortools", "highspy", folder=options.results)
    page.add(f"""Batches of the generator in all three scalings, on A100-40GB and A30: `cp` with {WORKERS} workers until
        the proof, 12 tasks for at most 20 s, 20 tasks for at most 60 s. The goals: a proof in 2 s for 12 tasks, a gap
        of 0.5 % for 20.""")
    rows = []
    for size, (tasks, gpus, batches, longest) in MIXED.items():
        limit = 1.0 if options.cut else longest
        runs = [
            kept.get(f"{size}, {number}, {limit:g} s", partial(mixed, tasks, gpus, number, limit))
            for number in range(1 if options.cut else batches)
        ]
        proven = [seconds for status, seconds, _ in runs if status == "optimal"]
        spread = [f"{f(column):.2f}" for column in list(zip(*runs, strict=True))[1:] for f in (statistics.median, max)]
        rows.append((size, len(runs), len(proven), sum(seconds <= 2.0 for seconds in proven), *spread))
    heads = ["size", "batches", "proven", "in 2 s", "median s", "worst s", "median gap in %", "worst gap in %"]
    page.table(heads, rows)
    page.section("One kind, with pools and without")
    page.add("""Medians of the ratios of pairs, in seconds of the processor, with one worker; the goal is a few percent.
        The twin is an A100 by another name: two kinds for every method. Times by kind are needed only where there are
        several.""")
    found = one_kind(*(1, 10, 2) if options.cut else (9, 2000, 40))
    medians = ((what, len(ratios), f"{statistics.median(ratios):.3f}") for what, ratios in found)
    page.table(["what", "pairs", "with pools / without"], medians)
    page.section("Services by cost", "`mlperf-offline`, until all goals are proven.")
    page.table(["prices", "GPUs", "cost", "bound", "proven", "s"], services(), (0, 1, 4))
    page.save()
