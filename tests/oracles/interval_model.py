"""The textbook model of the problem, to compare the exact methods with: one optional interval for every choice.

For each GPU and placement there are some instances, one after the other; for each task and instance there is an
optional run. Runs on an instance do not overlap, instances on a memory slice do not overlap, operations of a driver do
not overlap. There is no symmetry to break, no load, no bound, no order that is known in advance: nothing is shared
with the block model but the batch. With as many instances of a placement as there are tasks, every schedule is covered.
"""

from dataclasses import dataclass

from ortools.sat.python import cp_model

from mig_opt import Batch, LiveInstance, Placement

TICKS_PER_SECOND = 100


def ticks(seconds: float) -> int:
    whole = round(seconds * TICKS_PER_SECOND)
    assert abs(whole - seconds * TICKS_PER_SECOND) < 1e-6, f"{seconds} s is not a whole number of ticks"
    return whole


def optimum(batch: Batch, copies: int | None = None) -> float:
    """Return the least makespan in seconds of a batch whose times are multiples of 0.01 s.

    ``copies`` is how often each placement may be created; by default as often as there are tasks.
    """
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.cp_model_presolve = False
    solver.parameters.catch_sigint_signal = False  # or Ctrl-C would end the process ever after
    status = solver.solve(_Model(batch, copies or len(batch.tasks)).model)
    assert status == cp_model.OPTIMAL
    return round(solver.objective_value) / TICKS_PER_SECOND


@dataclass
class _Instance:
    gpu: int
    placement: Placement
    exists: cp_model.IntVar
    ready: cp_model.LinearExprT
    destroyed: cp_model.IntVar
    close: cp_model.IntVar
    life: cp_model.IntervalVar


class _Model:
    def __init__(self, batch: Batch, copies: int) -> None:
        self.batch = batch
        self.model = cp_model.CpModel()
        profiles = [profile for gpu in batch.kinds for profile in gpu.profiles_of("double-memory")]
        costs = [batch.operations.of(kind, profile) for profile in profiles for kind in ("create", "destroy")]
        longest = sum(max(task.profiled(one) or 0 for one in profiles) + 2 * max(costs) for task in batch.tasks)
        self.horizon = ticks(longest) + sum(ticks(live.free + max(costs)) for live in batch.initial)
        self.operations: list[list[cp_model.IntervalVar]] = [[] for _ in range(batch.gpus)]
        self.instances = [self.live(entry) for entry in batch.initial]
        for gpu in range(batch.gpus):
            for placement in batch.kind(gpu).placements("double-memory"):
                self.instances += [self.created(gpu, placement) for _ in range(copies)]
        self.separate()
        self.run_tasks()

    def time(self) -> cp_model.IntVar:
        return self.model.new_int_var(0, self.horizon, "")

    def live(self, entry: LiveInstance) -> _Instance:
        return self.instance(entry.gpu, self.batch.placement(entry), self.model.new_constant(1), 0, ticks(entry.free))

    def created(self, gpu: int, placement: Placement) -> _Instance:
        exists, begin = self.model.new_bool_var(""), self.time()
        seconds = ticks(self.batch.operations.of("create", placement.profile))
        self.operations[gpu].append(self.model.new_optional_fixed_size_interval_var(begin, seconds, exists, ""))
        return self.instance(gpu, placement, exists, begin, begin + seconds)

    def instance(
        self,
        gpu: int,
        placement: Placement,
        exists: cp_model.IntVar,
        begin: cp_model.LinearExprT,
        ready: cp_model.LinearExprT,
    ) -> _Instance:
        model, close, end = self.model, self.time(), self.model.new_int_var(0, 2 * self.horizon, "")
        seconds = ticks(self.batch.operations.of("destroy", placement.profile))
        destroyed = model.new_bool_var("")
        model.add_implication(destroyed, exists)
        model.add(close >= ready).only_enforce_if(destroyed)
        model.add(end == close + seconds).only_enforce_if(destroyed)
        model.add(close == self.horizon).only_enforce_if(~destroyed)
        model.add(end == 2 * self.horizon).only_enforce_if(~destroyed)
        self.operations[gpu].append(model.new_optional_fixed_size_interval_var(close, seconds, destroyed, ""))
        size = model.new_int_var(0, 2 * self.horizon, "")
        life = model.new_optional_interval_var(begin, size, end, exists, "")
        return _Instance(gpu, placement, exists, ready, destroyed, close, life)

    def separate(self) -> None:
        """Instances on a slice are apart, and so are the operations of a driver."""
        for gpu in range(self.batch.gpus):
            for position in range(self.batch.kind(gpu).memory_slices):
                self.model.add_no_overlap(
                    entry.life for entry in self.instances if entry.gpu == gpu and position in entry.placement.footprint
                )
            if not self.batch.parallel_operations:
                self.model.add_no_overlap(self.operations[gpu])

    def run_tasks(self) -> None:
        makespan = self.time()
        runs: list[list[cp_model.IntervalVar]] = [[] for _ in self.instances]
        for task in self.batch.tasks:
            choices = []
            for index, entry in enumerate(self.instances):
                seconds = task.time_on(entry.placement.profile)
                if seconds is None:
                    continue
                here, begin = self.model.new_bool_var(""), self.time()
                end = begin + ticks(seconds)
                self.model.add_implication(here, entry.exists)
                self.model.add(begin >= entry.ready).only_enforce_if(here)
                self.model.add(end <= entry.close).only_enforce_if(here)
                self.model.add(end <= makespan).only_enforce_if(here)
                runs[index].append(self.model.new_optional_fixed_size_interval_var(begin, ticks(seconds), here, ""))
                choices.append(here)
            self.model.add_exactly_one(choices)
        for intervals in runs:
            self.model.add_no_overlap(intervals)
        self.model.minimize(makespan)
