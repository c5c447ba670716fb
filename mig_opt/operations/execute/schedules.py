"""The entry points: run a schedule on GPUs, go on after a crash, take back what was made."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mig_opt.batch.batch import Batch
from mig_opt.batch.journal import Commands, Journal
from mig_opt.batch.schedule import Schedule
from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.files.batch.journals import JournalFile
from mig_opt.files.documents import file_path
from mig_opt.operations.driver.instances import Patience
from mig_opt.operations.driver.surroundings import slurm_in_the_way
from mig_opt.operations.execute.attempts import account_of, own_folder
from mig_opt.operations.execute.engines import Conductor, Engine
from mig_opt.operations.execute.executor import Executor
from mig_opt.operations.execute.machines import ELSEWHERE, Machines, Observer, check_machines, check_plan
from mig_opt.operations.execute.parts import cut
from mig_opt.operations.execute.report import Execution
from mig_opt.operations.rollout.layouts import addresses
from mig_opt.rules import wrong_share, wrong_type

_IN_PARTS = (
    "is of parts (--split), each of which goes on where it is: start run.sh there again, or take it back there by "
    "mig-opt run --undo run.journal; then --gather"
)


def run_schedule(
    batch: Batch,
    schedule: Schedule,
    commands: Commands,
    *,
    journal: str | os.PathLike[str],
    devices: Sequence[str] | None = None,
    user: str = "",
    engine: str | Engine = "",
    patience: Patience | None = None,
    observe: Observer | None = None,
    replan: float | None = None,
) -> Execution:
    """Run a schedule on GPUs: create instances, run the tasks on them, destroy instances.

    Everything is checked before anything is changed. Instances are created at the places of the plan. Each task runs
    with ``CUDA_VISIBLE_DEVICES`` set to the UUID of its instance; ``MIG_OPT_TASK``, ``MIG_OPT_HOST``,
    ``MIG_OPT_GPU``, ``MIG_OPT_PROFILE`` and ``MIG_OPT_START`` say where it is. Steps do not wait for the times of the
    plan, only for what they depend on. What a task prints is in the folder with the name of the journal and
    ``.tasks``.

    GPUs of other machines need an ``engine``: it carries out a part of the plan on each node, which goes on whatever
    becomes of this process. The journal is then told what those of the nodes are.

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
        Index, UUID or PCI address of each GPU, after ``host/`` for an engine. By default they are the batch's
        ``devices``; without them GPU 3 of the plan is number 3 of this machine.
    user : str
        The user as whom the tasks run, where this process (or that of a node) is root's; ``root`` is one.
    engine : str or Engine
        What carries out the parts of the nodes: ``dask://HOST:PORT`` or ``slurm``. By default the GPUs are in this
        machine.
    patience : Patience, optional
        How long to wait for what the driver refuses for a while; by default a minute for each operation.
    observe : callable, optional
        Is given the journal and each new event.
    replan : float, optional
        Share of its planned time by which a task has to deviate, or to be late, for what has not begun to be planned
        anew, beside what goes on. A new plan is taken while no operation runs, if it ends earlier by more than the
        seconds that planning took. By default the plan stays.

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
    path = file_path(journal, "journal")
    wrong = [*_wrong_helpers(patience, observe, engine), *(() if replan is None else wrong_share("replan", replan))]
    if engine:
        raise_any(wrong)
        plan = plan_of_nodes(batch, schedule, commands, devices, user=user, engine=engine, replan=replan)
        with checked_engine(engine, cut(plan), begun=False) as known, JournalFile(path, plan) as file:
            Conductor(file, known, observe).execute()
        return Execution(plan)
    schedule, problems = check_plan(batch, schedule, commands, devices, user)
    problems += wrong
    folder = str(Path.cwd())
    account = None if problems else account_of(user)
    with Machines(tasks_folder(path), folder, patience, account) as machines:
        gpus, refused = check_machines(machines, batch, schedule, devices)
        raise_any([*problems, *refused])
        own = account.pw_name if account else ""
        plan = Journal(batch, schedule, commands, gpus, folder, secrets.token_hex(8), own, replan=replan)
        with JournalFile(path, plan) as file:
            Executor(file, machines, observe).execute()
    return Execution(plan)


def resume_schedule(
    journal: str | os.PathLike[str],
    *,
    patience: Patience | None = None,
    observe: Observer | None = None,
    user: str = "",
    engine: str | Engine = "",
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
    user, engine
        In place of those with which it was begun.
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
    raise_any(_wrong_helpers(patience, observe, engine))
    with JournalFile(file_path(journal, "journal")) as file:
        if file.journal.ended and not ended:
            message = "this execution has come to its end; there is nothing to go on with"
            raise InputError([Problem("", message)], str(journal))
        if not file.journal.ended:
            with _executor(file, engine, patience, observe, user) as executor:
                executor.execute()
        return Execution(file.journal)


def undo_schedule(
    journal: str | os.PathLike[str],
    *,
    patience: Patience | None = None,
    observe: Observer | None = None,
    engine: str | Engine = "",
) -> list[str]:
    """End the tasks of an execution that still run, and destroy the instances that it has made, and no others.

    Parameters
    ----------
    journal : path-like
        The journal.
    patience, observe
        As for :func:`run_schedule`.
    engine : str or Engine
        In place of the one with which it was begun.

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
    raise_any(_wrong_helpers(patience, observe, engine))
    with JournalFile(file_path(journal, "journal")) as file, _executor(file, engine, patience, observe) as executor:
        return executor.undo()


def _wrong_helpers(patience: object, observe: object, engine: object) -> Iterator[Problem]:
    """Yield a problem for each of what helps with an execution that is something else altogether."""
    if not isinstance(patience, Patience | None):
        yield wrong_type("patience", patience, "a Patience (or left out)")
    if observe is not None and not callable(observe):
        yield wrong_type("observe", observe, "a function of a Journal and an Event")
    if not isinstance(engine, str | Engine | None):
        yield wrong_type("engine", engine, "dask://HOST:PORT or slurm, or an Engine")


def tasks_folder(journal: Path) -> Path:
    """Return the folder for what the tasks of an execution print; refuse one of another user, or open to others."""
    folder = journal.with_name(f"{journal.name}.tasks")
    return own_folder(folder, 0o755) if os.path.lexists(folder) else folder


def engine_of(name: str) -> Engine:
    """Return the engine that a name stands for: ``dask://HOST:PORT`` or ``slurm``."""
    if found := re.fullmatch(r"dask://(.+):([0-9]+)", name):
        from mig_opt.operations.execute.dask_engine import DaskEngine

        return DaskEngine(*found.groups())
    if name == "slurm":
        from mig_opt.operations.execute.slurm_engine import SlurmEngine

        return SlurmEngine()
    raise InputError([Problem("engine", f"must be dask://HOST:PORT or slurm, is {name!r:.60}")])


@contextlib.contextmanager
def checked_engine(engine: str | Engine, parts: Mapping[str, Journal], *, begun: bool) -> Iterator[Engine]:
    """Give an engine that finds nothing that keeps parts from being carried out; at the end it is closed."""
    with contextlib.closing(engine_of(engine) if isinstance(engine, str) else engine) as known:
        raise_any(known.check(parts, begun=begun))
        yield known


@contextlib.contextmanager
def _executor(
    file: JournalFile,
    engine: str | Engine,
    patience: Patience | None,
    observe: Observer | None,
    user: str | None = None,
) -> Iterator[Executor | Conductor]:
    """Give what goes on with an execution that has begun: as a ``user``, or that of its tasks if it is empty."""
    journal = file.journal
    places = list(enumerate(addresses(journal.batch.gpus, journal.gpus)))
    if not journal.run and any(place.host for _, place in places):
        raise InputError([Problem("", _IN_PARTS)], str(file.path))
    chosen = engine or journal.engine
    if chosen:
        with checked_engine(chosen, cut(journal), begun=True) as known:
            yield Conductor(file, known, observe)
        return
    problems = [Problem(f"gpus[{index}]", ELSEWHERE.format(place.host)) for index, place in places if place.host]
    problems += [Problem("", text) for text in [slurm_in_the_way()] if text]
    raise_any(problems, file.path)
    account = None if user is None else account_of(user or journal.user)
    with Machines(tasks_folder(file.path), journal.folder, patience, account) as machines:
        yield Executor(file, machines, observe)


def plan_of_nodes(
    batch: Batch,
    schedule: Schedule,
    commands: Commands,
    devices: Sequence[str] | None,
    *,
    user: str = "",
    engine: str | Engine = "",
    replan: float | None = None,
) -> Journal:
    """Return a plan for GPUs of other machines as a journal in which nothing has happened; refuse a wrong one."""
    schedule, problems = check_plan(batch, schedule, commands, devices)
    raise_any(problems)
    gpus = tuple(map(str, addresses(batch.gpus, devices, batch.devices)))
    name = engine if isinstance(engine, str) else ""
    return Journal(batch, schedule, commands, gpus, str(Path.cwd()), secrets.token_hex(8), user, name, replan)
