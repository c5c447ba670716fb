"""The executor: does each step of a plan as soon as what it depends on is done, and notes everything in the journal.

On each GPU an instance is created when the instances before it on its slices are gone, and destroyed when its tasks
have ended; tasks of an instance follow each other. So every branch of the tree of instances is a lane of its own (FAR,
doi:10.1016/j.jpdc.2025.105128, Algorithm 3): a task that is late delays what depends on it, and nothing else. The
driver of a GPU does one operation at a time; of those that can be done, the one that is planned first. After deviations
what has not begun is planned anew from the instances and tasks that there are.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

from mig_opt.api.solve import solve
from mig_opt.batch.batch import Batch, LiveInstance
from mig_opt.batch.journal import Event, EventKind, Journal
from mig_opt.batch.schedule import Run, Schedule
from mig_opt.batch.timing import retimed_schedule, tidy
from mig_opt.errors import DriverError, InputError, MigOptError
from mig_opt.files.batch.journals import JournalFile
from mig_opt.heuristics.batch.far.concatenation import shifted
from mig_opt.operations.driver.instances import MigInstance
from mig_opt.operations.execute.attempts import Outcome, name_of_try
from mig_opt.operations.execute.lanes import Lane, follow_plan, lanes_of
from mig_opt.operations.execute.machines import Done, Machines, Observer, check_gpu
from mig_opt.texts import in_seconds

_MOST_TRIES = 3  # tries at a task that dies without an exit code, as when the memory of the machine is full
_LEFT = "some of its processes go on: they have left its group, or cannot be killed; end them before you go on"
_DIED = 137  # exit code of a task that has been killed by a signal that cannot be caught, as shells write it

_SHORTEST_S, _LONGEST_S, _LONGEST_SHARE = 0.1, 5.0, 0.02
"""Seconds that planning may take: a share of what is left to do, within these limits."""

_TICK = 1e-6  # seconds that are no gain
_LEAST_STEP = 0.1  # share by which, at least, a task that is late has to become later to be a reason once more

Planner = Callable[[Batch, Schedule, float], Schedule | None]
"""Returns a schedule of what has not begun; takes the batch, the schedule so far, and the seconds it may take."""


def plan_rest(batch: Batch, schedule: Schedule, seconds: float) -> Schedule | None:
    """Return a schedule that is no longer than the one so far, by one thread: tasks run beside it."""
    return solve(batch, initial=schedule, time_limit=seconds, workers=1).schedule


class Replanner:
    """Judges when there is reason to plan anew, and whether a new plan is worth it."""

    def __init__(self, journal: Journal, lanes: Sequence[Lane], planner: Planner) -> None:
        assert journal.replan is not None
        self._journal, self._lanes, self._share, self._planner = journal, lanes, journal.replan, planner
        self._tasks = {task.name: task for task in journal.batch.tasks}
        self._step = 1 + max(self._share, _LEAST_STEP)
        self._planning: tuple[float, int] | None = None  # second, since 1970, at which it began; events that there were
        self._late: dict[str, float] = {}  # multiples of their times at which tasks that run are a reason
        # After a resumption there is reason: nobody knows how long nothing was done.
        self._deviated = any(event.kind == "ran" for event in journal.events)

    def _planned(self, lane: Lane, task: str) -> float:
        """Return the seconds that a task was to take on an instance."""
        return self._tasks[task].time_on(lane.placement.profile) or math.inf

    def ended(self, lane: Lane, task: str, seconds: float) -> None:
        """Compare the seconds that a task has taken with what was planned."""
        planned = self._planned(lane, task)
        self._deviated = self._deviated or abs(seconds - planned) > self._share * planned

    def consider(self, machines: Machines, until: float | None) -> float | None:
        """Begin to plan anew if there is reason; return the second until which there is nothing to do but wait."""
        now = machines.now()
        for lane in self._lanes:
            if lane.running is None:
                continue
            planned, late = self._planned(lane, lane.running), self._late.get(lane.running, 1 + self._share)
            while lane.since + late * planned <= now:
                late *= self._step
                self._deviated = True
            self._late[lane.running] = late
            until = min(lane.since + late * planned, math.inf if until is None else until)
        settled = all(lane.state in ("planned", "live", "gone") for lane in self._lanes)
        if self._deviated and settled and not self._planning and any(lane.waiting for lane in self._lanes):
            self._planning, self._deviated = (now, len(self._journal.events)), False
            machines.later(partial(self._proposed, *self._rest(now)))
        return until

    def _rest(self, now: float) -> tuple[Batch, Sequence[Run]]:
        """Return what has not begun as a batch, beside the instances that there are, and the plan so far for it."""
        waiting = {task for lane in self._lanes for task in lane.waiting}
        live = (lane for lane in self._lanes if lane.state == "live")
        initial = tuple(LiveInstance(*lane.planned.location, tidy(self._left(lane, now))) for lane in live)
        tasks = tuple(task for task in self._journal.batch.tasks if task.name in waiting)
        batch = self._journal.batch.replace(tasks=tasks, initial=initial, spread={})
        return batch, [self._journal.planned_runs[task.name] for task in tasks]

    def _left(self, lane: Lane, now: float) -> float:
        """Return the seconds for which an instance is busy yet; a late task takes a share of its time more."""
        earlier = self._journal.began + lane.planned.ready - now if lane.planned.initial else 0.0
        if lane.running is None:
            return max(earlier, 0.0)
        left = lane.since + self._planned(lane, lane.running) - now
        return left if left > 0 else (self._step - 1) * (now - lane.since)

    def _proposed(self, batch: Batch, runs: Sequence[Run]) -> tuple[Schedule, float, float]:
        """Return a new plan in seconds from its moment on, its last end, and the seconds by which that is earlier."""
        before = schedule = retimed_schedule(batch, runs)
        seconds = min(_LONGEST_S, max(_SHORTEST_S, _LONGEST_SHARE * before.makespan))
        with contextlib.suppress(MigOptError):  # the plan so far goes on
            schedule = self._planner(batch, Schedule(tuple(runs)), seconds) or before
        busy = max((live.free for live in batch.initial), default=0.0)
        until = max(schedule.makespan, busy)
        return schedule, until, max(before.makespan, busy) - until

    def accepted(self, found: tuple[Schedule, float, float], time: float) -> tuple[Schedule, str] | None:
        """Return a proposed plan if it is worth it, in seconds since the execution began, and what it gains.

        It is worth it if it ends earlier by more than the seconds that went by meanwhile, and if nothing has begun or
        ended since; otherwise there is reason to plan once more.
        """
        assert self._planning is not None
        (moment, events), (schedule, until, gain), self._planning = self._planning, found, None
        if len(self._journal.events) != events:
            self._deviated = True
            return None
        if gain <= time - moment + _TICK:
            return None
        shift = moment - self._journal.began
        text = f"the last task ends at {in_seconds(until + shift)}, {in_seconds(gain)} earlier"
        return shifted(schedule, shift), text


class Executor:
    """The execution of one plan, from wherever its journal ends."""

    def __init__(
        self, journal: JournalFile, machines: Machines, observe: Observer | None = None, *, planner: Planner = plan_rest
    ) -> None:
        self._file, self._journal, self._machines, self._observe = journal, journal.journal, machines, observe
        self._uuids, self._driver = self._journal.gpus, machines.driver
        self._busy: set[int] = set()  # GPUs whose driver has something to do
        self._lanes = lanes_of(self._journal)
        machines.not_before(max((event.time for event in self._journal.events), default=0.0))
        self._replanner = None if self._journal.replan is None else Replanner(self._journal, self._lanes, planner)

    def _note(
        self,
        kind: EventKind,
        lane: int | None = None,
        time: float | None = None,
        *,
        told: bool = True,
        **details: object,
    ) -> None:
        """Note an event, and let the lane that it is about follow it."""
        when = self._machines.now() if time is None else time
        instance = lane if "task" not in details else None
        event = Event(when, kind, instance=instance, **details)  # type: ignore[arg-type]  # fields of an event
        self._file.append(event)
        if lane is not None:
            self._lanes[lane].take(event)
        elif kind == "replan":
            follow_plan(self._lanes, self._journal.batch, self._journal.lifetimes, event)
        if told and self._observe is not None:
            self._observe(self._journal, event)

    # The whole

    def execute(self) -> bool:
        """Go on until nothing can be done any more; return True if all of the plan has been done.

        After Ctrl-C tasks have been ended, and instances stay.
        """
        self._note("resume" if self._journal.began else "begin")
        try:
            self._settle()
            while True:
                until = self._dispatch()
                if self._replanner is not None and not self._busy:
                    until = self._replanner.consider(self._machines, until)
                if not self._busy and until is None and all(lane.running is None for lane in self._lanes):
                    break
                done = self._machines.next(until)
                if done is not None:
                    self._take(done)
        except KeyboardInterrupt:
            self._interrupt()
            raise
        if not all(lane.complete for lane in self._lanes):
            return False
        self._note("end")
        self._machines.tries.clear()
        return True

    def _interrupt(self) -> None:
        """End the tasks; let operations come to their end, so that the journal knows of them."""
        self._stop_tasks()
        while self._busy:
            done = self._machines.next(None)
            if done is not None and done.instance is not None:
                self._take(done)
        self._note("stop")

    def _stop_tasks(self) -> None:
        running = [(index, self._try(lane, lane.running)) for index, lane in enumerate(self._lanes) if lane.running]
        self._machines.stop(name for _, name in running)
        for index, name in running:
            outcome = self._machines.tries.outcome(name)
            text = "" if outcome else _LEFT
            # It has been told to stop, maybe before this process was: a failure is not an end of its own.
            self._note_end(index, outcome if outcome is not None and outcome.code == 0 else None, text)

    def _note_end(self, index: int, outcome: Outcome | None, text: str = "") -> None:
        """Note the end of the try that runs on an instance; without an exit code it has died."""
        lane = self._lanes[index]
        task = lane.running
        assert task is not None
        attempt = lane.attempts[task]
        if self._replanner is not None and outcome is not None:
            self._replanner.ended(lane, task, outcome.seconds)
        if outcome is None or outcome.code is None:
            self._note("died", index, task=task, attempt=attempt, text=text)
        else:
            ended = lane.since + outcome.seconds
            self._machines.not_before(ended)
            self._note("ran", index, ended, task=task, attempt=attempt, code=outcome.code)

    def undo(self) -> list[str]:
        """End tasks that run, destroy what the execution has made, and nothing else; return why some is still there."""
        self._note("resume")
        self._stop_tasks()
        refusals = []
        for index, lane in enumerate(self._lanes):
            if lane.state in ("planned", "gone") or (lane.planned.initial and lane.state != "destroying"):
                continue
            try:
                there = self._there(index)
                mine = lane.half_made(there) if lane.state == "creating" else lane.own(there)
                if lane.planned.initial and mine is not None and mine.computes:
                    continue  # its destruction has not begun: it is as it was before the execution
                if lane.state == "live":
                    self._note("destroy", index)
                if mine is not None:
                    self._driver.destroy(self._uuids[lane.planned.gpu], mine.number)
                self._note("lost" if lane.state == "creating" else "destroyed", index)
            except DriverError as error:
                refusals.append(str(error))
                self._refuse(index, error)
        if not refusals:
            self._note("undo")
            self._machines.tries.clear()
        return list(dict.fromkeys(refusals))

    # Going on after a crash

    def _settle(self) -> None:
        """Find out what has become of everything that the journal leaves open."""
        for index, lane in enumerate(self._lanes):
            if lane.planned.initial and lane.state in ("planned", "refused"):
                found = next((one for one in self._there(index) if one.at(lane.placement) and one.uuid), None)
                if found is None:
                    missing = f"{lane.placement} does not exist, but should from the beginning"
                    self._refuse(index, DriverError("not found", missing))
                else:
                    self._note("found", index, uuid=found.uuid, number=found.number)
            elif lane.state == "creating":
                self._settle_creation(index, lane)
            elif lane.state in ("live", "destroying"):
                if lane.own(self._there(index)) is None:
                    self._note("lost" if lane.state == "live" else "destroyed", index)
                else:
                    lane.state = "live"
        for index, lane in enumerate(self._lanes):
            if lane.running is None:
                continue
            tries, name = self._machines.tries, self._try(lane, lane.running)
            outcome = tries.outcome(name)
            if outcome is None:
                self._machines.later(partial(tries.wait, name), task=lane.running)
            else:
                self._note_end(index, outcome)

    def _settle_creation(self, index: int, lane: Lane) -> None:
        made = lane.half_made(self._there(index))
        if made is not None and made.uuid:
            self._note("created", index, uuid=made.uuid, number=made.number)
            return
        if made is not None:
            self._driver.destroy(self._uuids[lane.planned.gpu], made.number)
        lane.state = "planned"

    # Steps

    def _there(self, index: int) -> tuple[MigInstance, ...]:
        lane = self._lanes[index]
        uuid = self._uuids[lane.planned.gpu]
        if self._journal.batch.has_mig(lane.planned.gpu):
            return self._driver.instances(uuid)
        whole = lane.placement.profile  # which nobody has created, and has the UUID of the GPU
        return (MigInstance(uuid, 0, whole.name, lane.placement.start, whole.memory_slices, uuid),)

    def _try(self, lane: Lane, task: str) -> str:
        """Return the name of the files of the last try at a task."""
        return name_of_try(self._journal.batch, task, lane.attempts[task])

    def _dispatch(self) -> float | None:
        """Begin everything that can begin; return the second at which more will, if that is known."""
        later: list[float] = []
        operations: dict[int, list[tuple[float, int]]] = defaultdict(list)
        for index, lane in enumerate(self._lanes):
            each = lane.planned
            if lane.state == "live" and each.initial and self._journal.began + each.ready > self._machines.now():
                later.append(self._journal.began + each.ready)  # it is still busy with earlier work
            elif lane.state == "live" and lane.waiting and lane.running is None:
                self._run(index, lane, lane.waiting[0])
            elif lane.state == "live" and lane.idle and each.destroyed is not None:
                operations[each.gpu].append((each.close, index))
            elif lane.state == "planned" and lane.has_room(self._lanes):
                operations[each.gpu].append((each.begin, index))
        for gpu, possible in operations.items():
            if gpu not in self._busy:
                self._operate(min(possible)[1])
        return min(later, default=None)

    def _run(self, index: int, lane: Lane, task: str) -> None:
        self._note("run", index, task=task, attempt=lane.attempts.get(task, 0) + 1)
        environment = {"CUDA_VISIBLE_DEVICES": lane.uuid, "MIG_OPT_TASK": task}
        environment["MIG_OPT_HOST"] = os.environ.get("MIG_OPT_HOST", "")  # an engine says it
        place = zip(("MIG_OPT_GPU", "MIG_OPT_PROFILE", "MIG_OPT_START"), lane.planned.location, strict=True)
        environment |= {name: str(value) for name, value in place}
        self._machines.begin(task, self._try(lane, task), self._journal.commands.tasks[task], environment)

    def _operate(self, index: int) -> None:
        lane = self._lanes[index]
        gpu = lane.planned.gpu
        driver, uuid = self._driver, self._uuids[gpu]
        if lane.state == "planned":
            try:
                others = tuple(one.number for one in self._there(index))
            except DriverError as error:
                self._refuse(index, error)
                return
            self._note("create", index, others=others)
        else:
            self._note("destroy", index)

        def operate() -> MigInstance | None:
            if lane.state == "creating":
                return driver.create(uuid, lane.placement)
            mine = lane.own(driver.instances(uuid))
            if mine is not None:  # else it is gone, or something else has taken its place
                driver.destroy(uuid, mine.number)
            return None

        self._busy.add(gpu)
        self._machines.later(operate, instance=index)

    def _refuse(self, index: int, error: DriverError, time: float | None = None) -> None:
        lane = self._lanes[index]
        creating = lane.state == "creating"
        self._note("refused", index, time, text=str(error))
        with contextlib.suppress(DriverError):
            if creating and lane.half_made(self._there(index)) is None:  # it has certainly left nothing
                # What is at its place later was made by somebody else. Who watches has been told already.
                self._note("lost", index, told=False)
        lane.state = "refused"

    def _take(self, done: Done) -> None:
        index, gpus = done.instance, self._journal.batch.gpus
        if index is not None:
            self._busy.discard(self._lanes[index].planned.gpu)
        if index is not None and isinstance(done.error, DriverError):
            self._refuse(index, done.error, done.time)
        elif done.error is not None:
            raise done.error
        elif done.task is not None:
            at = self._journal.instance_of[done.task]
            last = self._lanes[at].attempts[done.task] >= _MOST_TRIES and done.value.code is None
            self._note_end(at, Outcome(done.time - self._lanes[at].since, _DIED) if last else done.value)
        elif index is None and self._replanner is not None:
            found = self._replanner.accepted(done.value, done.time)
            if found is not None and self._possible(found[0]):
                self._note("replan", others=tuple(range(gpus)), schedule=found[0], text=found[1])
        elif index is not None and self._lanes[index].state == "creating":
            self._note("created", index, done.time, uuid=done.value.uuid, number=done.value.number)
        else:
            self._note("destroyed", index, done.time)

    def _possible(self, schedule: Schedule) -> bool:
        """Return True if the driver can create what a new plan wants, since nothing of somebody else is in the way."""
        batch, made = self._journal.batch, [each for each in schedule.operations or () if each.kind == "create"]
        with contextlib.suppress(DriverError, InputError):
            for gpu, uuid in enumerate(self._uuids):
                wanted = [batch.placement(each) for each in made if each.gpu == gpu]
                own = [lane.placement for lane in self._lanes if lane.planned.gpu == gpu and lane.state == "live"]
                if batch.has_mig(gpu):
                    check_gpu(self._driver, uuid, wanted, own)
            return True
        return False
