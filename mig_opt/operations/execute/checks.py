"""The checks before an execution: of its plan, of its commands, and of the machine; nothing is changed."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from mig_opt.batch.batch import Batch, wrong_batch
from mig_opt.batch.journal import Commands
from mig_opt.batch.schedule import Schedule
from mig_opt.errors import DriverError, InputError, Problem, problems_of, raise_any
from mig_opt.gpu.model import Placement
from mig_opt.operations.driver.instances import Patience
from mig_opt.operations.driver.nvml import Nvml
from mig_opt.operations.driver.surroundings import owner_of_partitions, slurm_in_the_way
from mig_opt.operations.execute.attempts import account_of
from mig_opt.operations.execute.machines import Machines
from mig_opt.operations.rollout.layouts import address_of, addresses
from mig_opt.validation import validate

ELSEWHERE = "is on {}, which is another machine: carry the plan out by --engine, or in parts (--split)"


def check_plan(
    batch: Batch, schedule: Schedule, commands: Commands, devices: Sequence[str] | None, user: str = ""
) -> tuple[Schedule, list[Problem]]:
    """Return a schedule with operations, and everything that is wrong with the plan and its commands.

    Programs, and the user as whom they are to run, are looked for if all GPUs are in this machine.
    """
    raise_any(wrong_batch(batch))
    found = validate(batch, schedule)
    problems = [violation.problem() for violation in found.violations]
    problems += commands.missing(batch)
    if not any("/" in name for name in device_names(batch, devices)):
        problems += problems_of(account_of, user)
        for task in batch.tasks:
            problems += missing_program(task.name, commands.tasks[task.name]) if task.name in commands.tasks else ()
    return found.schedule, problems


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
    here = socket.gethostname()
    for index, address in enumerate(addresses(batch.gpus, devices, batch.devices)):
        path = f"devices[{index}]"
        if address.host not in ("", here, here.partition(".")[0]):
            problems.append(Problem(path, ELSEWHERE.format(address.host)))
            continue
        try:
            made = (each for each in schedule.operations or () if each.kind == "create")
            wanted, initial = (
                [batch.placement(each) for each in those if each.gpu == index] for those in (made, batch.initial)
            )
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
        if any("/" not in name for name in device_names(batch, devices) or [""]):
            machines.driver.devices()
        return check_machines(machines, batch, schedule, devices)[1]
