"""FAR beside its authors' program, on the same batches.

The program is not part of this project. Fetch it, and give its folder:

    git clone https://github.com/artecs-group/RL_MIG_scheduler /tmp/RL_MIG_scheduler
    python -m bench.batch.far_authors /tmp/RL_MIG_scheduler

It takes some minutes. The program's schedules are judged like all others: its assignment of tasks to instances is
timed again with the driver's order that is used here, and its own times count where they are valid and end earlier.
"""

import copy
import importlib.util
import itertools
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from bench.batch.far_measures import Cell, Figures, area, means, schedule
from bench.report import Page, parser_of, start, tell, there
from mig_opt import Batch, Placement, Run, Schedule, generate_batch, plan_stream, solve
from mig_opt.batch.timing import PlannedInstance
from mig_opt.heuristics.batch.far import far, far_published
from mig_opt.heuristics.batch.far.concatenation import EndState, arranged, far_behind
from mig_opt.heuristics.batch.far.concatenation import joined as joining
from mig_opt.heuristics.batch.far.refinement import Refinement
from mig_opt.instances.batch import SCALINGS, TIME_RANGES, ScalingName, TimesName
from mig_opt.method.control import Control
from mig_opt.studies.summary import grouped
from mig_opt.validation import validate

PROGRAM = Path("visual_scheduler", "FAR_scheduler", "algorithm.py")
"""File of the repository with the scheduler that draws its figures; it is the one with moves and swaps."""
_PROGRAM: dict[str, Any] = {"variant": "published-program"}
KINDS: Mapping[str, tuple[int, Mapping[str, Any]]] = {
    "A100, paper": (10, {}),
    "A100, published program": (5, _PROGRAM),
    "A100, published program, memory-bound": (9, {**_PROGRAM, "memory_bound": 0.5, "shuffle": True}),
    "A30, paper": (2, {"gpu": "A30"}),
    "H100, paper": (2, {"gpu": "H100"}),
}
"""Kinds of batches, each with its seeds and parameters, all scalings, both ranges of times and all sizes."""
SIZES = (10, 15, 20, 25, 30, 35)
METHODS = ("far", "far-printed", "far-published", "far-unrefined")
TOLERANCE = 1.001  # the goal: ``far`` is on no batch longer than the program's schedule by more than this
JOINS = {"same": "as the program plans it", "stream": "as `plan_stream` plans it"}
JOINS |= {"foresight": "as `plan_stream` plans it with `foresight`"}
"""The first of two batches that are joined."""
PARTS = ("batches", "joins", "studies")
PAIRS = 60  # batches of each cell that are joined


class Outcome(NamedTuple):
    """Makespans of one batch, in seconds: ours by method, and those of the program."""

    batch: Batch
    kind: str
    ours: Mapping[str, float]
    printed: float  # what the program says itself
    timed: float  # that of its assignment with our driver's order
    valid: bool  # whether the validator finds operations for the program's own times

    @property
    def theirs(self) -> float:
        """The makespan that counts for the program."""
        return min(self.timed, self.printed) if self.valid else self.timed


def load(folder: Path) -> ModuleType:
    """Import the program from a copy of its repository; exit if it is not there."""
    path = folder / PROGRAM
    if not path.is_file():
        sys.exit(f"{path} is not there; see the first lines of {Path(__file__).name}")
    spec = there(importlib.util.spec_from_file_location("far_of_its_authors", path))
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def theirs(program: ModuleType, batch: Batch) -> Any:
    """Return the tree that the program makes of a batch for one GPU."""
    gpu = batch.kind(0)
    slices, device = gpu.compute_slices, gpu.name.split("-")[0]
    times = [[(at, size, task.times[size]) for size in gpu.sizes] for at, task in enumerate(batch.tasks)]
    tree = program.moldable_scheduler_tree(slices, program.create_allotments_family(times, slices), device)
    program.refinement(tree, device)
    return tree


def nodes(tree: Any) -> Iterator[Any]:
    """Yield the nodes of a tree, outer ones first."""
    yield tree
    for child in tree.children:
        yield from nodes(child)


def placed(batch: Batch, node: Any) -> Placement:
    """Return where a node of the program's tree is."""
    start = node.slices[0].num_slice
    there = (placement for placement in batch.placements() if placement.start == start)
    return next(placement for placement in there if placement.profile.compute_slices == node.size)


def tree_runs(batch: Batch, tree: Any, prefix: str = "") -> tuple[Run, ...]:
    """Return the runs of a tree with the program's own times; ``prefix`` stands before the names of tasks."""
    runs = []
    for node in nodes(tree):
        placement = placed(batch, node)
        for task in node.tasks:
            name = prefix + batch.tasks[task.index].name
            runs.append(Run(name, 0, placement.profile.name, placement.start, task.start, task.start + task.time))
    return tuple(runs)


def judge(batch: Batch, tree: Any) -> tuple[float, float, bool]:
    """Return what the program says of its schedule, its assignment timed here, and whether its times are valid."""
    tasks = ((placed(batch, node), [batch.tasks[task.index] for task in node.tasks]) for node in nodes(tree))
    instances = [PlannedInstance(0, *each) for each in tasks]
    own = Schedule(tree_runs(batch, tree))
    timed = Refinement(batch, instances).schedule()
    assert validate(batch, timed).valid
    return own.makespan, timed.makespan, validate(batch, own).valid


def compare(program: ModuleType, batch: Batch, kind: str) -> Outcome:
    """Plan a batch with the program and with our methods."""
    ours = {method: solve(batch, method).makespan or float("inf") for method in METHODS}
    return Outcome(batch, kind, ours, *judge(batch, theirs(program, batch)))


def batches(*, cut: bool = False) -> Iterator[tuple[str, Batch]]:
    """Yield the batches with their kind."""
    sizes = SIZES[: 1 if cut else None]
    for kind, (seeds, parameters) in KINDS.items():
        drawn = range(1 if cut else seeds)
        for scaling, times, n, seed in itertools.product(SCALINGS, TIME_RANGES, sizes, drawn):
            yield kind, generate_batch(n, scaling=scaling, times=times, seed=seed, **parameters)


def studies(program: ModuleType, count: int) -> list[dict[str, Any]]:
    """Return what the program itself computes for the paper's Tables 7, 8 and 9, on ``count`` batches for a cell.

    Each batch is joined with itself, as in its study of joins; and its study of streams sums the ends of all pairs of
    neighbours, and counts each bound once.
    """
    rows: list[dict[str, Any]] = []
    for scaling, times, n, drawn, trees in cells(program, count):
        found = means(joined(program, tree) for tree in trees)
        ends = statistics.fmean(
            program.give_makespan_tree(moved(program, first, second)[0]) for first, second in itertools.pairwise(trees)
        )
        found["above"] = (ends / statistics.fmean(map(area, drawn)) - 1) * 100
        rows.append({"scaling": scaling, "times": times, "n": n, **{name: round(x, 2) for name, x in found.items()}})
    return rows


def cells(program: ModuleType, count: int) -> Iterator[tuple[ScalingName, TimesName, int, list[Batch], list[Any]]]:
    """Yield scaling, times and n of each cell, its batches, and the trees that the program makes of them."""
    for scaling, times, n in itertools.product(SCALINGS, TIME_RANGES, (10, 20, 30)):
        drawn = list(Cell("program", scaling, times, n, count).drawn())
        yield scaling, times, n, drawn, [theirs(program, batch) for batch in drawn]


def pairs(program: ModuleType, count: int) -> dict[str, list[float]]:
    """Return the ends of two batches that are joined here by those with the program, for each of :data:`JOINS`.

    The program's second batch counts with its assignment, timed here in the direction that ends first, or with its own
    times, where the validator accepts them and they end earlier.
    """
    found: dict[str, list[float]] = {name: [] for name in JOINS}
    neighbours = (itertools.pairwise(zip(drawn, trees, strict=True)) for *_, drawn, trees in cells(program, count))
    for (first, before), (second, after) in itertools.chain(*neighbours):
        # The program's schedule with operations that the validator finds for its times, or else timed here.
        validation = validate(first, Schedule(tree_runs(first, before)))
        begun = validation.schedule if validation.valid else schedule(first, far_published)
        state = EndState().after(first, begun)
        behind = moved(program, before, after)[0]
        assigned = Schedule(tree_runs(second, behind))
        end = max(state.makespan, arranged(second, assigned, state, moved=False).makespan)
        stream = plan_stream([first, second])
        own = Schedule(tree_runs(first, before, "0/") + tree_runs(second, behind, "1/"))
        if own.makespan < end and validate(stream.batch, own).valid:
            end = own.makespan
        plans = schedule(second, far), *far_behind(second, state, Control())
        best = min(joining(second, plan, state, "moved").makespan for plan in plans)
        found["same"].append(max(state.makespan, best) / end)
        found["stream"].append(stream.makespan / end)
        found["foresight"].append(plan_stream([first, second], foresight=True).makespan / end)
    return found


def joined(program: ModuleType, tree: Any) -> Figures:
    """Return what joining a schedule with itself gains, in %, and the steps of the program."""
    first, second = copy.deepcopy(tree), copy.deepcopy(tree)
    program.consecutive_concat(first, second)
    trivial = program.give_makespan_tree(second)
    first, second = copy.deepcopy(tree), copy.deepcopy(tree)
    program.concat_schedules(first, second, reverse=True)
    reverse = program.give_makespan_tree(second)
    behind, moves, swaps = moved(program, tree, tree)
    gains = {"reversed": reverse, "moved": program.give_makespan_tree(behind)}
    return {name: (trivial / end - 1) * 100 for name, end in gains.items()} | {"moves": moves, "swaps": swaps}


def moved(program: ModuleType, first: Any, second: Any) -> tuple[Any, int, int]:
    """Return the second of two schedules that the program joins with moves and swaps, and their numbers."""
    first, second = copy.deepcopy(first), copy.deepcopy(second)
    program.concat_schedules(first, second, reverse=True)
    _, moves, swaps = program.concat_moves_swaps(first, second, "A100")
    return second, moves, swaps


def spread(ratios: Sequence[float]) -> dict[str, float]:
    """Return mean, worst and best of ratios, and how many are above the tolerance."""
    above = sum(ratio > TOLERANCE for ratio in ratios)
    return {"mean": statistics.fmean(ratios), "worst": max(ratios), "best": min(ratios), "above": above}


def compared(found: Sequence[Outcome]) -> dict[str, Any]:
    """Return how our methods do beside the program, by kind and number of tasks."""
    by_size = grouped(found, lambda each: f"n = {len(each.batch.tasks)}")
    kinds = {**grouped(found, lambda each: each.kind), **by_size, "all": found}
    worst = max(found, key=lambda each: each.ours["far"] / each.theirs)
    return {
        "batches": len(found),
        **spread([each.ours["far"] / each.theirs for each in found]),
        "of the worst": f"{worst.batch.name}, {worst.kind}",
        "valid": sum(each.valid for each in found),
        "earlier": sum(each.printed < each.timed - 1e-9 for each in found),
        "same": sum(abs(each.ours["far-published"] - each.timed) < 1e-6 for each in found),
        "kinds": {
            kind: {
                "batches": len(those),
                "above": sum(each.ours["far"] > TOLERANCE * each.theirs for each in those),
                **{method: spread([each.ours[method] / each.theirs for each in those]) for method in METHODS},
            }
            for kind, those in kinds.items()
        },
    }


def write(page: Page, figures: Mapping[str, Any]) -> None:
    """Write the page."""
    found, joins, own = (figures[part] for part in PARTS)
    commit = f" at {figures['commit']}" if figures["commit"] else ""
    page.add(f"The program: github.com/artecs-group/RL_MIG_scheduler{commit}, {PROGRAM.as_posix()}.")
    page.add("""Makespan by that of the program: mean (worst, best). The program's schedules count with their own times
        where the validator accepts them, or with its assignment timed with our driver's order, whichever ends
        earlier.""")
    head = ["batches", "number", *(f"`{method}`" for method in METHODS), f"`far` above {TOLERANCE:g}"]
    cell = "{mean:.4f} ({worst:.4f}, {best:.4f})".format
    kinds = found["kinds"].items()
    cells = ([kind, row["batches"], *(cell(**row[own]) for own in METHODS), row["above"]] for kind, row in kinds)
    page.table(head, cells)
    page.add(
        f"""The worst for `far` is {found["worst"]:.5f}: {found["of the worst"]}. The program's own times are valid on
        {found["valid"]} of {found["batches"]} batches, and earlier than those timed here on {found["earlier"]}.
        `far-published` has the makespan of its assignment on {found["same"]}."""
    )
    page.section("Two batches, joined")
    page.add(f"""Ends of {joins["same"]["pairs"]} pairs of batches of its generator, by those with the program's moves
        and swaps, which are judged as above.""")
    rows = (
        [name, *(f"{joins[key][which]:.4f}" for which in ("mean", "worst", "best")), joins[key]["above"]]
        for key, name in JOINS.items()
    )
    page.table(["the first batch", "mean", "worst", "best", f"above {TOLERANCE:g}"], rows)
    page.section("The program's own studies")
    page.add(f"""What the program computes for the paper's Tables 7, 8 and 9 (each batch joined with itself; for the
        last column the ends of all pairs of neighbours, by each bound once), {own["batches"]} batches of its generator
        for a row.""")
    page.table(list(own["rows"][0]), (list(row.values()) for row in own["rows"]), range(2))


def measured(part: str, program: ModuleType, *, cut: bool) -> dict[str, Any]:
    """Return the figures of one of :data:`PARTS`."""
    count = 3 if cut else PAIRS
    if part == "joins":
        return {name: {"pairs": len(each), **spread(each)} for name, each in pairs(program, count).items()}
    if part == "studies":
        return {"batches": count, "rows": studies(program, count)}
    found: list[Outcome] = []
    for kind, batch in batches(cut=cut):
        found.append(compare(program, batch, kind))
        if len(found) % 100 == 0:
            tell(f"{len(found)} batches")
    return compared(found)


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison."""
    parser = parser_of(__doc__, "far_authors.md and far_authors.json", "one batch of each kind and 10 tasks")
    parser.add_argument("program", type=Path, help="folder with a copy of github.com/artecs-group/RL_MIG_scheduler")
    parser.add_argument("--commit", default="", help="what commit it is, for the page")
    parser.add_argument("--only", choices=PARTS, help="measure this part again; the others stay as they are stored")
    options = parser.parse_args(arguments)
    program = load(options.program)
    stored = options.results / "far_authors.json"
    figures: dict[str, Any] = json.loads(stored.read_text(encoding="utf-8")) if stored.is_file() else {}
    figures["commit"] = options.commit or figures.get("commit", "")
    for part in PARTS:
        if part == options.only or options.only is None or part not in figures:
            figures[part] = measured(part, program, cut=options.cut)
    options.results.mkdir(parents=True, exist_ok=True)
    stored.write_text(json.dumps(figures) + "\n", encoding="utf-8")
    page = Page("far_authors", "FAR beside its authors' program", "mig-opt", folder=options.results)
    write(page, figures)
    page.save()
