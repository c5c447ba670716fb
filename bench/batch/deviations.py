"""Executions of plans whose times are not the true ones: as planned, by rules of a list, with new plans; the optimum.

Run: python -m bench.batch.deviations. It takes simulated time, and of a core about three minutes; --cut takes seconds.
"""

import heapq
import itertools
import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

from bench.report import Page, parser_of, start, there
from mig_opt import Batch, Schedule, Task, generate_batch, load, solve, validate
from mig_opt.batch.journal import Commands, Event, Journal
from mig_opt.files.batch.journals import JournalFile
from mig_opt.gpu.model import GpuPlacement, Placement
from mig_opt.operations.driver.instances import MigInstance
from mig_opt.operations.execute.attempts import Outcome
from mig_opt.operations.execute.executor import Executor
from mig_opt.operations.execute.machines import Done, Machines
from mig_opt.studies.summary import grouped

SIGMAS = (0.1, 0.2, 0.5)
"""Standard deviations of the logarithm of the true time over the planned one; the mean of their ratio is one."""
SHARES = (0.05, 0.1, 0.2, 0.5)
DEFAULT = 0.2
SEEDS = range(30)
PLANNING, OPTIMUM = 0.1, 3.0  # seconds of counted work for a new plan, and of the clock for the optimum
BATCHES: Mapping[str, Callable[[], Batch]] = {
    "rodinia-a30": lambda: load("rodinia-a30"),
    "PoorScaling, 12 tasks, A100": partial(generate_batch, 12, scaling="PoorScaling", seed=1),
    "MixedScaling, 12 tasks, A100": partial(generate_batch, 12, scaling="MixedScaling", seed=1),
    "GoodScaling, 12 tasks, A100": partial(generate_batch, 12, scaling="GoodScaling", seed=1),
    "MixedScaling, 16 tasks, 2 x A30": partial(generate_batch, 16, scaling="MixedScaling", gpu="A30", gpus=2, seed=1),
}


class Driver:
    """The instances of GPUs without a machine; an operation takes the planned seconds, which it tells."""

    def __init__(self, batch: Batch) -> None:
        self._batch, self._numbers, self.spent = batch, itertools.count(1), 0.0
        self._there: dict[tuple[str, int], tuple[MigInstance, Placement]] = {}

    def instances(self, gpu: str) -> tuple[MigInstance, ...]:
        """Return the instances of a GPU."""
        return tuple(one for (own, _), (one, _) in self._there.items() if own == gpu)

    def check(self, gpu: str, placements: Sequence[Placement]) -> list[str]:
        """Return nothing: every placement of the model can be created."""
        return []

    def create(self, gpu: str, placement: Placement) -> MigInstance:
        """Create an instance."""
        number, profile = next(self._numbers), placement.profile
        one = MigInstance(gpu, number, profile.name, placement.start, profile.memory_slices, f"MIG-{number}")
        self._there[gpu, number] = one, placement
        self.spent = self._batch.operations.of("create", profile)
        return one

    def destroy(self, gpu: str, number: int) -> None:
        """Destroy an instance."""
        self.spent = self._batch.operations.of("destroy", self._there.pop((gpu, number))[1].profile)


class Simulated(Machines):
    """Machine without GPUs and programs, in simulated time."""

    def __init__(self, batch: Batch, truth: Mapping[str, Task]) -> None:
        self._simulated, self._truth, self._gpu = Driver(batch), truth, batch.kind(0)
        self._time = self._shift = 0.0
        self._ends: list[tuple[float, int, Done]] = []
        self._order = itertools.count()
        self.tries: Any = SimpleNamespace(clear=lambda: None)  # they have no files

    @property
    def driver(self) -> Any:
        """Return the driver."""
        return self._simulated

    def now(self) -> float:
        """Return the simulated second."""
        return self._time

    def _end(self, seconds: float, instance: int | None, task: str | None, value: Any) -> None:
        time = self._time + seconds
        heapq.heappush(self._ends, (time, next(self._order), Done(instance, task, time, value)))

    def later(self, act: Callable[[], Any], *, instance: int | None = None, task: str | None = None) -> None:
        """Do an operation, which ends later; anything else takes no simulated time."""
        value = act()
        self._end(0.0 if instance is None else self._simulated.spent, instance, task, value)

    def begin(self, task: str, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Begin a task, which takes its true time."""
        seconds = there(self._truth[task].time_on(self._gpu.profile(environment["MIG_OPT_PROFILE"])))
        self._end(seconds, None, task, Outcome(seconds, 0))

    def next(self, until: float | None) -> Done | None:
        """Return what ends next."""
        if until is not None and (not self._ends or self._ends[0][0] > until):
            self._time = until
            return None
        self._time, _, done = heapq.heappop(self._ends)
        return done


class Notes(JournalFile):
    """Journal without a file."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def append(self, event: Event) -> None:
        """Add an event."""
        self.journal.append(event)


def deterministic(batch: Batch, schedule: Schedule, _: float) -> Schedule | None:
    """Plan anew as ``mig-opt run`` does, but with counted work in place of time."""
    return solve(batch, initial=schedule, time_limit=PLANNING, deterministic=True).schedule


def executed(batch: Batch, plan: Schedule, truth: Batch, replan: float | None = None) -> tuple[float, int]:
    """Return the makespan of an execution and its number of new plans."""
    commands = Commands({task.name: ("true",) for task in batch.tasks})
    journal = Journal(batch, plan, commands, tuple(f"GPU-{gpu}" for gpu in range(batch.gpus)), replan=replan)
    machines = Simulated(batch, {task.name: task for task in truth.tasks})
    assert Executor(Notes(journal), machines, planner=deterministic).execute()
    assert validate(*journal.measured()).valid
    return max(run.end for run in journal.runs()), len(journal.stages) - 1


def listed(batch: Batch, truth: Batch, plan: Schedule | None = None) -> float:
    """Return the makespan if the next task of a list that fits anywhere begins there, whenever something ends.

    A task fits where no instance that is busy has one of the slices; those that are idle are destroyed. The list has
    the longest task first, and of what fits a task takes the profile of least work (slices x seconds). With a plan, the
    list has its order, and a task takes its profile there. Of several places it takes the one where it begins first.
    """
    true = {task.name: task for task in truth.tasks}
    runs = {run.task: run for run in plan.runs} if plan else {}
    waiting = sorted(batch.tasks, key=lambda task: runs[task.name].begin if plan else -min(task.times.values()))
    idle: dict[GpuPlacement, float] = {}  # the second at which each instance gets idle
    free = [0.0] * batch.gpus  # the second at which each driver does
    now = last = 0.0
    while waiting:
        for task in waiting:
            options = []
            for gpu, (placement, seconds) in itertools.product(range(batch.gpus), batch.options(task)):
                held = [other for other in idle if other[0] == gpu and other[1].excludes(placement)]
                another = plan is not None and runs[task.name].profile != placement.profile.name
                if another or any(idle[other] > now for other in held):
                    continue
                begin = now
                if held != [(gpu, placement)]:
                    operations = sum(batch.operations.of("destroy", other[1].profile) for other in held)
                    begin = max(now, free[gpu]) + operations + batch.operations.of("create", placement.profile)
                work = placement.profile.compute_slices * seconds
                options.append((work, begin, gpu, placement.start, placement, held))
            if options:
                break
        else:
            now = min(end for end in idle.values() if end > now)
            continue
        _, begin, gpu, _, placement, held = min(options, key=lambda entry: entry[:4])
        if held != [(gpu, placement)]:
            free[gpu] = begin
        for other in held:
            del idle[other]
        waiting.remove(task)
        taken = there(true[task.name].time_on(placement.profile))
        idle[gpu, placement] = begin + taken
        last = max(last, begin + taken)
    return last


def deviating(batch: Batch, sigma: float, seed: int) -> Batch:
    """Return the batch with true times: those of a task are off by one factor on all sizes."""
    rng = random.Random(f"{sigma} {seed}")
    factors = [math.exp(rng.gauss(-sigma * sigma / 2, sigma)) for _ in batch.tasks]
    pairs = zip(batch.tasks, factors, strict=True)
    times = ({size: round(time * factor, 6) for size, time in task.times.items()} for task, factor in pairs)
    return batch.replace(tasks=tuple(map(Task.with_times, batch.tasks, times)))


class Case(NamedTuple):
    """Makespans of one batch with one set of true times, and numbers of new plans by share."""

    batch: str
    sigma: float
    optimum: float
    proven: bool
    static: float
    longest: float  # first on the list
    planned: float  # order and profiles
    replanned: Mapping[float, tuple[float, int]]


def cases(names: Sequence[str], seeds: Sequence[int], shares: Sequence[float]) -> list[Case]:
    """Return all cases."""
    found = []
    for name in names:
        batch = BATCHES[name]()
        plan = there(solve(batch, time_limit=20, workers=1).schedule)
        for sigma, seed in itertools.product(SIGMAS, seeds):
            truth = deviating(batch, sigma, seed)
            best = solve(truth, time_limit=OPTIMUM, workers=1)
            assert best.makespan is not None
            fixed = executed(batch, plan, truth)[0], listed(batch, truth), listed(batch, truth, plan)
            replanned = {share: executed(batch, plan, truth, share) for share in shares}
            found.append(Case(name, sigma, best.makespan, best.status.value == "optimal", *fixed, replanned))
    return found


def above(values: Sequence[float], optima: Sequence[float]) -> str:
    """Return by how much makespans are above optima, as the mean of the shares."""
    return f"{100 * statistics.fmean(value / best - 1 for value, best in zip(values, optima, strict=True)):.1f}"


def row(name: str, own: Sequence[Case]) -> list[str]:
    """Return a row of the table of rules."""
    optima = [case.optimum for case in own]
    new = [case.replanned[DEFAULT][0] for case in own]
    rules = [[getattr(case, rule) for case in own] for rule in ("static", "longest", "planned")]
    longer = [one - case.static for one, case in zip(new, own, strict=True)]
    better, worse = sum(by < -1e-6 for by in longer), sum(by > 1e-6 for by in longer)
    return [name, str(len(own)), *(above(values, optima) for values in (*rules, new)), str(better), str(worse)]


@start
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study."""
    options = parser_of(__doc__, "deviations.md", "two short cases").parse_args(arguments)
    names = list(BATCHES)[:1] if options.cut else list(BATCHES)
    found = cases(names, SEEDS[:1] if options.cut else SEEDS, [DEFAULT] if options.cut else SHARES)
    page = Page("deviations", "Times that are not those of the plan", "mig-opt", "ortools", folder=options.results)
    page.add(
        f"""Executions in simulated time, by the executor of `mig-opt run`. A true time is the planned one times a
        factor, the same on all sizes of a task, lognormal with mean one; sigma is the standard deviation of its
        logarithm. {len(SEEDS)} seeds for each batch and sigma. Static: the plan, optimal for the planned times, as it
        is. List: whenever something ends, the next task of a list that fits anywhere begins: the longest first, on the
        profile of least work that fits, or in the order of the plan, on the profile that it has there. New plans:
        `--replan={DEFAULT:.0%}`; planning takes no simulated time. The figures are the percent by which makespans are
        above those of a plan that knows the true times, on the mean. {sum(case.proven for case in found)} of
        {len(found)} of these are proven optimal within {OPTIMUM:g} s."""
    )
    what = "Better, worse: in how many executions new plans end earlier, or later, than the static one."
    page.section("New plans", what)
    head = ["sigma", "cases", "static", "list, longest first", "list of the plan", "new plans", "better", "worse"]
    page.table(head, (row(key, own) for key, own in grouped(found, lambda case: f"{case.sigma:g}").items()))
    page.section("By batch", "The same with all sigmas together.")
    page.table(["batch", *head[1:]], (row(*pair) for pair in grouped(found, lambda case: case.batch).items()))
    what = "Deviations that are a reason to plan anew: percent above the optimum, and new plans for an execution."
    page.section("Shares", what)
    rows = []
    for share in found[0].replanned:
        cells = [f"{share:.0%}"]
        for sigma in SIGMAS:
            own = [case for case in found if case.sigma == sigma]
            makespans, plans = zip(*(case.replanned[share] for case in own), strict=True)
            cells += [above(makespans, [case.optimum for case in own]), f"{statistics.fmean(plans):.1f}"]
        rows.append(cells)
    page.table(["share", *(text for sigma in SIGMAS for text in (f"sigma {sigma:g}", "plans"))], rows)
    page.save()
    return 0
