"""Executions in a world without waits: virtual time, tasks that only last, and a death wherever a test wants one."""

import os
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nvml_machine import Machine

from mig_opt import Batch, Commands, Journal, LiveInstance, Schedule, Task, get_gpu, solve
from mig_opt.files.batch.journals import JournalFile
from mig_opt.operations.driver.instances import Patience
from mig_opt.operations.driver.nvml import Nvml
from mig_opt.operations.execute.attempts import Outcome
from mig_opt.operations.execute.executor import Executor
from mig_opt.operations.execute.machines import Done, Machines

BEGINNING = 1_700_000_000.0
CHANGES = (
    "nvmlDeviceCreateGpuInstanceWithPlacement",
    "nvmlGpuInstanceCreateComputeInstance",
    "nvmlComputeInstanceDestroy",
    "nvmlGpuInstanceDestroy",
)


class Killed(BaseException):
    """The process has died here."""


@dataclass
class Attempt:
    task: str
    begin: float
    end: float
    code: int | None
    counted: bool = False


@dataclass
class World:
    """All that survives the death of a process: the machine, the time, and programs that run."""

    machine: Machine
    batch: Batch
    seconds: Mapping[str, float | Mapping[int, float]]  # that each task takes in truth, perhaps by compute slices
    codes: Mapping[str, int] = field(default_factory=dict)  # exit codes other than 0
    now: float = BEGINNING
    attempts: dict[str, Attempt] = field(default_factory=dict)
    ended: Counter[str] = field(default_factory=Counter)
    left: int = -1  # points until the process dies
    torn: bool = False  # true if the last line of the journal is cut then

    def __post_init__(self) -> None:
        self.advance(self.now)

    def advance(self, time: float) -> None:
        self.now = max(self.now, time)
        self.machine.set("clock", f"{self.now:.9f}")
        for attempt in self.attempts.values():
            if attempt.code is not None and attempt.end <= self.now and not attempt.counted:
                self.ended[attempt.task] += 1
                attempt.counted = True

    def sleep(self, seconds: float) -> None:
        self.point()
        self.advance(self.now + seconds)

    def point(self) -> None:
        """Die here, if it is time to."""
        if self.left > 0:
            self.left -= 1
            if self.left == 0:
                raise Killed

    def reboot(self) -> None:
        self.machine.reboot()
        for attempt in self.attempts.values():
            if attempt.end > self.now:
                attempt.end, attempt.code = self.now, None


class _Bindings:
    """The genuine bindings, which a process may die in, before or after a change."""

    def __init__(self, bindings: Any, world: World) -> None:
        self._bindings, self._world = bindings, world

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._bindings, name)
        if name not in CHANGES:
            return found

        def call(*arguments: Any) -> Any:
            self._world.point()
            value = found(*arguments)
            self._world.point()
            return value

        return call


class _File(JournalFile):
    """A journal in which a process may die, before, in or after a line."""

    world: World

    def _append(self, raw: dict[str, Any]) -> None:
        world = getattr(self, "world", None)
        if world is None:
            super()._append(raw)
            return
        world.point()
        if world.left == 1 and world.torn:
            os.write(self._file, b'{"time": 17000')
        world.point()
        super()._append(raw)
        world.point()


class Simulated(Machines):
    """The machine of an executor in a world."""

    def __init__(self, world: World, driver: Nvml) -> None:
        self.world, self.driver = world, driver
        self.tries: Any = self
        self._operations: list[tuple[float, int, Any, Exception | None]] = []
        self._watched: dict[str, str] = {}
        self._planned: list[Done] = []
        self._shift = 0.0

    def now(self) -> float:
        return self.world.now

    def later(self, act: Any, *, instance: int | None = None, task: str | None = None) -> None:
        if task is not None:
            self._watched[act.args[0]] = task
            return
        if instance is None:
            self._planned = [*self._planned, Done(None, None, self.world.now, act())]
            return
        value = error = None
        begin = self.world.now
        try:
            value = act()
        except Exception as raised:
            error = raised
        self._operations.append((max(self.world.now, begin + 0.1), instance, value, error))

    def begin(self, task: str, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        world, uuid = self.world, environment["CUDA_VISIBLE_DEVICES"]
        world.point()
        assert world.ended[task] == 0, f"{task} has come to its end already"
        assert all(each.task != task or each.end <= world.now for each in world.attempts.values()), "it runs already"
        there = {one.uuid: one for gpu in range(world.batch.gpus) for one in world.machine.instances(gpu)}
        assert (there[uuid].profile, str(there[uuid].start)) == (
            environment["MIG_OPT_PROFILE"],
            environment["MIG_OPT_START"],
        )
        seconds = world.seconds[task]
        if not isinstance(seconds, float):
            seconds = seconds[int(environment["MIG_OPT_PROFILE"].partition("g")[0])]
        world.attempts[name] = Attempt(task, world.now, world.now + seconds, world.codes.get(task, 0))
        self._watched[name] = task
        world.point()

    def wait(self, name: str) -> Outcome:
        raise AssertionError(name)  # only looked at

    def outcome(self, name: str) -> Outcome | None:
        attempt = self.world.attempts.get(name)
        if attempt is None:
            return Outcome(0.0, None)
        return None if attempt.end > self.world.now else Outcome(attempt.end - attempt.begin, attempt.code)

    def next(self, until: float | None) -> Done | None:
        world = self.world
        if self._planned:
            return self._planned.pop()
        ends = [(world.attempts[name].end, 1, name) for name in self._watched]
        ends += [(entry[0], 0, str(index)) for index, entry in enumerate(self._operations)]
        first = min(ends, default=None)
        if first is None or (until is not None and first[0] > until):
            assert until is not None, "nothing will ever happen"
            world.advance(until)
            return None
        world.advance(first[0])
        if first[1]:
            task = self._watched.pop(first[2])
            return Done(None, task, first[0], self.outcome(first[2]))
        time, instance, value, error = self._operations.pop(int(first[2]))
        return Done(instance, None, time, value, error)

    def stop(self, names: Iterable[str]) -> None:
        for name in names:
            attempt = self.world.attempts.get(name)
            if attempt is not None and attempt.end > self.world.now:
                attempt.end, attempt.code = self.world.now, None

    def clear(self) -> None:
        self.world.point()


def random_batch(rng: random.Random, kinds: Sequence[str], numbers: Sequence[int], most: int) -> Batch:
    """Tasks of different sizes on GPUs of some kind and number, sometimes with an instance on the first one."""
    gpu, gpus = get_gpu(rng.choice(kinds)), rng.choice(numbers)
    tasks = []
    for index in range(rng.randint(2, most)):
        sizes = rng.sample(gpu.sizes, rng.randint(1, len(gpu.sizes)))
        tasks.append(Task(f"t{index}", {size: round(rng.uniform(0.2, 8), 2) for size in sizes}))
    initial = ()
    if rng.random() < 0.3:
        place = rng.choice(gpu.placements())
        initial = (LiveInstance(0, place.profile.name, place.start, round(rng.uniform(0, 3), 2)),)
    return Batch(tuple(tasks), gpu, gpus, initial=initial)


def true_times(batch: Batch, rng: random.Random, least: float, most: float) -> dict[str, dict[int, float]]:
    """The seconds that tasks take in truth, which are those of the batch times a factor of each."""
    factors = {task.name: rng.uniform(least, most) for task in batch.tasks}
    return {each.name: {size: time * factors[each.name] for size, time in each.times.items()} for each in batch.tasks}


def far_rest(batch: Batch, schedule: Schedule, _: float) -> Schedule | None:
    """Plan anew by the quickest method."""
    return solve(batch, "far", initial=schedule).schedule


class Execution:
    """An execution in a world, from a file that survives deaths."""

    def __init__(self, world: World, schedule: Schedule, path: Path, *, replan: float | None = None) -> None:
        commands = Commands({task.name: ("true",) for task in world.batch.tasks})
        gpus = tuple(map(Machine.uuid, range(world.batch.gpus)))
        self.world, self.path = world, path
        JournalFile(path, Journal(world.batch, schedule, commands, gpus, replan=replan)).close()

    def go(self, *, undo: bool = False, patience: Patience | None = None) -> Any:
        """Execute until the end or until death; return what the executor returns."""
        with Nvml(patience or Patience(limit=120), sleep=self.world.sleep) as driver, _File(self.path) as file:
            driver._nvml = _Bindings(driver._nvml, self.world)
            file.world = self.world
            executor = Executor(file, Simulated(self.world, driver), planner=far_rest)
            return executor.undo() if undo else executor.execute()


def random_faults(machine: Machine, gpus: int, rng: random.Random) -> None:
    """Give the GPUs some faults that pass."""
    for gpu in range(gpus):
        for name in ("in-use", "insufficient", "no-compute", "linger"):
            if rng.random() < 0.4:
                machine.fault(name, rng.randint(1, 4), rng.choice([0.5, 3.0, 10.0]), gpu)
    machine.set("same_uuids", rng.randint(0, 1))
    if gpus > 1 and rng.random() < 0.5:
        machine.renumber(*reversed(range(gpus)))
