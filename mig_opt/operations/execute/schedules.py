"""The entry points: run a schedule on the GPUs of this machine, go on after a crash, take back what was made."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from mig_opt.batch.batch import Batch, wrong_batch
from mig_opt.batch.journal import Commands, Journal
from mig_opt.batch.schedule import Schedule
from mig_opt.errors import DriverError, InputError, Problem
from mig_opt.files.batch.journals import JournalFile
from mig_opt.gpu.model import Placement
from mig_opt.operations.driver import Nvml, Patience, owner_of_partitions
from mig_opt.operations.execute.executor import Executor, Observer
from mig_opt.operations.execute.machines import Machines
from mig_opt.operations.execute.remote import Remote
from mig_opt.operations.execute.report import Execution
from mig_opt.operations.rollout.layouts import address_of, addresses
from mig_opt.validation import validate


def run_schedule(
    batch: Batch,
    schedule: Schedule,
    commands: Commands,
    *,
    journal: str | os.PathLike[str],
    devices: Sequence[str] | None = None,
    patience: Patience | None = None,
    observe: Observer | None = None,
) -> Execution:
    """Run a schedule on the GPUs of this machine: create instances, run the tasks on them, destroy instances.

    Everything is checked before anything is changed. Instances are created at the places of the plan. Each task runs
    with ``CUDA_VISIBLE_DEVICES`` set to the UUID of its instance; ``MIG_OPT_TASK``, ``MIG_OPT_HOST``,
    ``MIG_OPT_GPU``, ``MIG_OPT_PROFILE`` and ``MIG_OPT_START`` say where it is. Steps do not wait for the times of the
    plan, only for what they depend on. What a task prints is in the folder with the name of the journal and
    ``.tasks``, or in another machine in ``~/.mig-opt``.

    Parameters
    ----------
    batch : Batch
        The batch that was planned.
    schedule : Schedule
        A valid schedule; operations that it leaves out are looked for.
    commands : Commands
        The command of each task.
    journal : path-like
        The file that is told everything; it must not exist.
    devices : sequence of str, optional
        Index, UUID or PCI address of each GPU, after ``host/`` if it is in another machine. By default they are the
        batch's ``devices``; without them GPU 3 of the plan is number 3 of this machine.
    patience : Patience, optional
        How long to wait for what the driver refuses for a while; by default a minute for each operation.
    observe : callable, optional
        Is given the journal and each new event.

    Returns
    -------
    Execution
        Planned against measured; whether it is complete.

    Raises
    ------
    InputError
        With everything that speaks against the execution; nothing has been changed then.
    DriverError
        If the driver does not answer.
    KeyboardInterrupt
        After Ctrl-C: tasks have been ended, instances stay; :func:`resume_schedule` goes on.
    """
    schedule, problems = check_plan(batch, schedule, commands, devices)
    path, folder, name = Path(journal), str(Path.cwd()), secrets.token_hex(8)
    with Machines(name, tasks_folder(path), folder, patience) as machines:
        gpus, refused = check_machines(machines, batch, schedule, devices)
        if problems or refused:
            raise InputError([*problems, *refused])
        plan = Journal(batch, schedule, commands, gpus, folder, name)
        with JournalFile(path, plan) as file:
            Executor(file, machines, observe).execute()
    return Execution(plan)


def resume_schedule(
    journal: str | os.PathLike[str],
    *,
    patience: Patience | None = None,
    observe: Observer | None = None,
    ended: bool = False,
) -> Execution:
    """Go on with an execution that was interrupted, killed, or could not be completed.

    Tasks that still run are waited for, those that have ended meanwhile are noted, and none is run twice to its end.
    Instances that were lost, as after a restart of the machine, are created again if they are needed.

    Parameters
    ----------
    journal : path-like
        The journal.
    patience, observe
        As for :func:`run_schedule`.
    ended : bool
        True if the execution may have come to its end already; nothing is done then.

    Returns
    -------
    Execution
        Planned against measured, from the first beginning on.

    Raises
    ------
    InputError
        If the journal is damaged or in use, or the execution has come to its end.
    DriverError
        If the driver does not answer.
    KeyboardInterrupt
        After Ctrl-C, as for :func:`run_schedule`.
    """
    with JournalFile(Path(journal)) as file:
        if file.journal.ended and ended:
            return Execution(file.journal)
        if file.journal.ended:
            message = "this execution has come to its end; there is nothing to go on with"
            raise InputError([Problem("", message)], str(journal))
        with _machines(file, patience) as machines:
            Executor(file, machines, observe).execute()
        return Execution(file.journal)


def undo_schedule(
    journal: str | os.PathLike[str], *, patience: Patience | None = None, observe: Observer | None = None
) -> list[str]:
    """End the tasks of an execution that still run, and destroy the instances that it has made, and no others.

    Parameters
    ----------
    journal : path-like
        The journal.
    patience, observe
        As for :func:`run_schedule`.

    Returns
    -------
    list of str
        Why some instances are still there; empty if none is.

    Raises
    ------
    InputError
        If the journal is damaged or in use.
    DriverError
        If the driver does not answer.
    """
    with JournalFile(Path(journal)) as file, _machines(file, patience) as machines:
        return Executor(file, machines, observe).undo()


def tasks_folder(journal: Path) -> Path:
    """Return the folder for what the tasks of an execution print."""
    return journal.with_name(f"{journal.name}.tasks")


def _machines(file: JournalFile, patience: Patience | None) -> Machines:
    return Machines(file.journal.run, tasks_folder(file.path), file.journal.folder, patience)


def check_plan(
    batch: Batch, schedule: Schedule, commands: Commands, devices: Sequence[str] | None
) -> tuple[Schedule, list[Problem]]:
    """Return a schedule with operations, and everything that is wrong with the plan and its commands.

    Programs are looked for if all GPUs are in this machine.
    """
    problems = list(wrong_batch(batch))
    if problems:
        raise InputError(problems)
    found = validate(batch, schedule)
    problems = [violation.problem() for violation in found.violations]
    problems += commands.missing(batch)
    for task in batch.tasks:
        if task.name in commands.tasks and not any("/" in name for name in device_names(batch, devices)):
            problems += missing_program(task.name, commands.tasks[task.name])
    return found.schedule, problems


def plan_of_nodes(batch: Batch, schedule: Schedule, commands: Commands, devices: Sequence[str] | None) -> Journal:
    """Return a plan for GPUs of other machines as a journal in which nothing has happened.

    Raises
    ------
    InputError
        With everything that is wrong with the plan and its commands.
    """
    schedule, problems = check_plan(batch, schedule, commands, devices)
    if problems:
        raise InputError(problems)
    gpus = tuple(map(str, addresses(batch.gpus, devices, batch.devices)))
    return Journal(batch, schedule, commands, gpus, str(Path.cwd()), secrets.token_hex(8))


def device_names(batch: Batch, devices: Sequence[str] | None) -> list[str]:
    """Return what finds the GPUs of a batch, as far as that is given or known."""
    return [address_of(device) for device in batch.devices] if devices is None else list(devices)


def missing_program(name: str, words: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem if the program of a command does not exist, or no program can be given its arguments."""
    if any("\0" in word for word in words):
        yield Problem(f"commands.{name}", "has the character \\0, which no program can be given; remove it")
        return
    if shutil.which(words[0]) is None:
        message = f"there is no program {words[0]!r}, or it may not be run; give its path, or chmod +x"
        yield Problem(f"commands.{name}", message)


def check_machines(
    machines: Machines, batch: Batch, schedule: Schedule, devices: Sequence[str] | None
) -> tuple[tuple[str, ...], list[Problem]]:
    """Return the UUIDs of the GPUs of a plan, and everything on their machines that keeps it from being executed."""
    problems: list[Problem] = []
    gpus: list[str] = []
    owners: dict[str, str] = {}
    here = socket.gethostname()
    for index, address in enumerate(addresses(batch.gpus, devices, batch.devices)):
        path = f"devices[{index}]"
        host = "" if address.host in (here, here.partition(".")[0]) else address.host
        try:
            driver = machines.driver(host)
            if host not in owners:
                owners[host] = driver.owner() if isinstance(driver, Remote) else owner_of_partitions()
            made = (each for each in schedule.operations or () if each.kind == "create")
            wanted, initial = (
                [batch.gpu.placement(each.profile, each.start) for each in those if each.gpu == index]
                for those in (made, batch.initial)
            )
            gpu = _check_gpu(driver, address.identifier, wanted, initial)
            gpus.append(f"{host}/{gpu}" if host else gpu)
        except InputError as error:
            problems += [problem.below(path) for problem in error.problems]
        except DriverError as error:
            problems.append(Problem(path, str(error)))
    problems += [Problem(host, owner) for host, owner in owners.items() if owner]
    if len(set(gpus)) < len(gpus):
        problems.append(Problem("devices", "name the same GPU twice"))
    return tuple(gpus), problems


def _check_gpu(
    driver: Nvml | Remote, identifier: str, wanted: Sequence[Placement], initial: Sequence[Placement]
) -> str:
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
    if messages:
        raise InputError(Problem("", message) for message in dict.fromkeys(messages))
    return device.uuid
