"""The machine of an execution: its driver, tries at tasks, one clock, and the checks before anything is changed there.

A thread waits for the driver of each GPU that has something to do, and one for each task that runs.
"""

from __future__ import annotations

import contextlib
import pwd
import queue
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from mig_opt.batch.batch import Batch, wrong_batch
from mig_opt.batch.journal import Commands, Event, Journal
from mig_opt.batch.schedule import Schedule
from mig_opt.errors import DriverError, InputError, Problem, problems_of, raise_any
from mig_opt.gpu.model import Placement
from mig_opt.operations.driver.instances import Patience
from mig_opt.operations.driver.nvml import Nvml
from mig_opt.operations.driver.surroundings import owner_of_partitions, slurm_in_the_way
from mig_opt.operations.execute.attempts import Attempts, account_of, uptime
from mig_opt.operations.rollout.layouts import addresses, device_names
from mig_opt.operations.rollout.shell import name_problems
from mig_opt.rules import wrong_class
from mig_opt.validation import validate

T = TypeVar("T")

Observer = Callable[[Journal, Event], object]
"""Is told each event, after it has been noted."""

_LONGEST_WAIT_S = 60.0  # seconds that are waited at once: what is planned may be for the end of time
ELSEWHERE = "is on {}, which is another machine: carry the plan out by --engine, or in parts (--split)"


@dataclass(frozen=True, slots=True)
class Done:
    """Something has come to its end: an operation by its instance, a try at a task by its name, or planning."""

    instance: int | None
    task: str | None
    time: float  # seconds since 1970
    value: Any = None  # what the operation has returned, or the outcome of the try
    error: BaseException | None = None


class Machines(contextlib.ExitStack):
    """The driver of this machine, and the tries at tasks.

    Commands run in the folder ``working``, as the user with ``account``; tries have their files in ``folder``.
    """

    def __init__(
        self, folder: Path, working: str, patience: Patience | None, account: pwd.struct_passwd | None = None
    ) -> None:
        super().__init__()
        self._patience = patience or Patience()
        self.tries = Attempts(folder, Path(working), account)
        self._done: queue.Queue[Done] = queue.Queue()
        self._shift = time.time() - uptime()

    @cached_property
    def driver(self) -> Nvml:
        """The driver, which is asked from here on."""
        return self.enter_context(Nvml(self._patience))

    def now(self) -> float:
        """Return seconds since 1970, as the clock was when this began: it may be set meanwhile."""
        return self._shift + uptime()

    def not_before(self, moment: float) -> None:
        """Let it be no earlier than a second of which a journal tells: the clock may have been set back since."""
        self._shift += max(moment - self.now(), 0.0)

    def begin(self, task: str, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a try, whose files have a name, at a task; a DriverError says why the machine refuses to."""
        begun = uptime()
        try:
            process = self.tries.begin(name, command, environment)
        except OSError as error:
            reason = f"task {task!r} cannot be started: {error.strerror}; mend that, and then go on"
            raise DriverError("start", reason) from error
        self.later(lambda: self.tries.wait(name, process, begun), task=task)

    def later(self, act: Callable[[], Any], *, instance: int | None = None, task: str | None = None) -> None:
        """Have something done beside everything else, and its end told, as that of an instance or a task if it is."""

        def ended(answer: Future[Any]) -> None:
            error = answer.exception()
            self._done.put(Done(instance, task, self.now(), None if error else answer.result(), error))

        in_background(act).add_done_callback(ended)

    def next(self, until: float | None) -> Done | None:
        """Return what ends next; None if nothing does until that second, or for long."""
        try:
            return self._done.get(timeout=None if until is None else min(max(until - self.now(), 0.0), _LONGEST_WAIT_S))
        except queue.Empty:
            return None

    def stop(self, names: Iterable[str]) -> None:
        """End some tries, all at the same time."""
        wait([in_background(partial(self.tries.stop, name)) for name in names])


def in_background(call: Callable[[], T]) -> Future[T]:
    """Begin a call that may take for ever, beside everything else; return what becomes of it."""
    answer: Future[T] = Future()

    def work() -> None:
        try:
            answer.set_result(call())
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return answer


def check_plan(
    batch: Batch, schedule: Schedule, commands: Commands, devices: Sequence[str] | None, user: str = ""
) -> tuple[Schedule, list[Problem]]:
    """Return a schedule with operations, and everything that is wrong with the plan and its commands.

    Programs, and the user as whom they are to run, are looked for if all GPUs are in this machine.
    """
    raise_any([*wrong_batch(batch), *wrong_class("commands", commands, Commands, "read(Commands, 'commands.json')")])
    found = validate(batch, schedule)
    problems = [violation.problem() for violation in found.violations]
    problems += commands.missing(batch)
    if not any("/" in name for name in device_names(devices, batch.devices)):
        problems += problems_of(account_of, user)
        for task in batch.tasks:
            problems += missing_program(task.name, commands.tasks[task.name]) if task.name in commands.tasks else ()
    return found.schedule, problems


def missing_program(name: str, words: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem if no program can be given the name of a task or its command, or there is no such program."""
    wrong = list(name_problems((f"commands.{name}", text) for text in (name, *words)))
    yield from wrong[:1]
    if not wrong and shutil.which(words[0]) is None:
        message = f"there is no program {words[0]!r}, or it may not be run; give its path, or chmod +x"
        yield Problem(f"commands.{name}", message)


def check_machines(
    machines: Machines, batch: Batch, schedule: Schedule, devices: Sequence[str] | None
) -> tuple[tuple[str, ...], list[Problem]]:
    """Return the UUIDs of the GPUs of a plan, and everything on their machines that keeps it from being executed."""
    problems: list[Problem] = []
    gpus: list[str] = []
    here = socket.gethostname()
    both = [each for each in schedule.operations or () if each.kind == "create"], batch.initial
    for index, address in enumerate(addresses(batch.gpus, devices, batch.devices)):
        path = f"devices[{index}]"
        if address.host not in ("", here, here.partition(".")[0]):
            problems.append(Problem(path, ELSEWHERE.format(address.host)))
            continue
        try:
            wanted, initial = ([batch.placement(each) for each in those if each.gpu == index] for those in both)
            if batch.has_mig(index):
                gpus.append(check_gpu(machines.driver, address.identifier, wanted, initial))
            else:
                gpus.append(_check_whole_gpu(machines.driver, address.identifier))
        except InputError as error:
            problems += [problem.below(path) for problem in error.problems]
        except DriverError as error:
            problems.append(Problem(path, str(error)))
    problems += [Problem("", text) for text in (owner_of_partitions(), slurm_in_the_way()) if text]
    if len(set(gpus)) < len(gpus):
        problems.append(Problem("devices", "name the same GPU twice"))
    return tuple(gpus), problems


def check_gpu(driver: Nvml, identifier: str, wanted: Sequence[Placement], initial: Sequence[Placement]) -> str:
    """Return the UUID of a GPU on which instances may be created among those that are the plan's; raise if not."""
    device = driver.device(identifier)
    if device.trouble():
        raise DriverError("no mig", device.trouble())
    messages = driver.check(device.uuid, wanted)
    there = driver.instances(device.uuid)
    for placement in initial:
        if not any(one.at(placement) and one.uuid for one in there):
            messages.append(f"the batch begins with an instance {placement}, which does not exist")
    for one in there:
        if any(map(one.overlaps, wanted)) and not any(map(one.at, initial)):
            messages.append(f"an instance is in the way, and is left alone: {one}; destroy it, or choose another GPU")
    raise_any(Problem("", message) for message in dict.fromkeys(messages))
    return device.uuid


def _check_whole_gpu(driver: Nvml, identifier: str) -> str:
    device = driver.device(identifier)
    if device.mig:
        mend = f"turn it off with: nvidia-smi -i {device.uuid} -mig 0"
        raise DriverError("mig", f"MIG mode is on, but the plan takes the whole GPU; {mend}")
    return device.uuid


def check_this_machine(batch: Batch, schedule: Schedule, devices: Sequence[str] | None) -> list[Problem]:
    """Return everything on this machine that keeps a plan from being executed; raise if it cannot be asked."""
    with Machines(Path(), ".", Patience(limit=0)) as machines:
        if any("/" not in name for name in device_names(devices, batch.devices) or [""]):
            machines.driver.devices()
        return check_machines(machines, batch, schedule, devices)[1]
