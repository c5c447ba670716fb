"""A plan of several nodes as one plan for each node, and the journals of the nodes as one.

GPUs never wait for each other. So each node carries out its own part with a journal of its own, whatever starts it
there, and what happened on a node is told by the clock of that node, in seconds since its own beginning.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate, repeat
from operator import itemgetter
from pathlib import Path
from shlex import quote
from typing import Any, NoReturn

from mig_opt.batch.journal import Commands, Event, Journal
from mig_opt.batch.schedule import on_gpus
from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.batch.journals import COMMANDS, read_journal, write_journal
from mig_opt.files.batch.schedules import SCHEDULE
from mig_opt.files.documents import make_folder, write_folder, writing_to
from mig_opt.operations.rollout.layouts import addresses, hosts_of

JOURNAL = "run.journal"  # name of the journal in the folder of a part
_PLAN, _NODES = "plan.journal", "nodes"

_SCRIPT = """#!/bin/sh
# Carries out the part of {host} there: begins it, or goes on with it; a second start waits for the first.
# Commands run in the folder from which this is started. To take back what it has made: mig-opt run --undo run.journal
here=$(dirname "$0")
exec mig-opt run {words} "$@"
"""


def cut(whole: Journal) -> dict[str, Journal]:
    """Return the plan of each node, as a journal in which nothing has happened, by the name of the node.

    If something is known to have happened on the node, its journal has the beginning of the whole.
    The GPUs of the whole are ``host/index``, ``host/UUID`` or ``host/address``. One without a host is refused, and a
    node with operations but without a task.

    Examples
    --------
    >>> from mig_opt import Batch, Commands, Task, get_gpu, solve
    >>> batch = Batch((Task("a", {4: 2.0}), Task("b", {4: 3.0})), get_gpu("A30"), 2)
    >>> commands = Commands({"a": ("./a",), "b": ("./b",)})
    >>> parts = cut(Journal(batch, solve(batch).schedule, commands, ("n1/0", "n2/0")))
    >>> {host: (len(part.batch.tasks), part.gpus) for host, part in parts.items()}
    {'n1': (1, ('0',)), 'n2': (1, ('0',))}
    """
    places = addresses(whole.batch.gpus, whole.gpus)
    wrong = "names no node; write it before the GPU, as in node-1/"
    problems = [Problem(f"devices[{gpu}]", f"{wrong}{place}") for gpu, place in enumerate(places) if not place.host]
    found = {}
    begun = {whole.lifetimes[at].gpu for event in whole.events if (at := _place_of(whole, event)) is not None}
    for host, gpus in hosts_of(places).items():
        number = {gpu: at for at, gpu in enumerate(gpus)}
        schedule = on_gpus(whole.schedule, number)
        names = {run.task for run in schedule.runs}
        if not names:
            if schedule.operations:
                problems.append(Problem("schedule", f"changes instances on {host}, but has no task there"))
            continue
        batch = whole.batch.replace(
            tasks=tuple(task for task in whole.batch.tasks if task.name in names),
            gpus=len(gpus),
            initial=tuple(replace(each, gpu=number[each.gpu]) for each in whole.batch.initial if each.gpu in number),
            spread={name: spread for name, spread in whole.batch.spread.items() if name in names},
            devices=tuple(whole.batch.devices[gpu] for gpu in gpus if gpu < len(whole.batch.devices)),
        )
        words = Commands({name: whole.commands.tasks[name] for name in whole.commands.tasks if name in names})
        devices = tuple(places[gpu].identifier for gpu in gpus)
        events = [Event(whole.began, "begin")] if begun.intersection(gpus) else []
        found[host] = replace(whole, batch=batch, schedule=schedule, commands=words, gpus=devices, events=events)
    raise_any(problems)
    return found


def _place_of(journal: Journal, event: Event) -> int | None:
    """Return the instance that an event is about, or the task that it is about runs on; None for others."""
    return event.instance if event.task is None else journal.instance_of[event.task]


class Gathering:
    """A journal of a whole that is told what the journals of its nodes tell; each event is taken once."""

    def __init__(self, whole: Journal) -> None:
        self._whole, places = whole, list(enumerate(whole.lifetimes))
        self._count = len(places)
        self._gpus = hosts_of(addresses(whole.batch.gpus, whole.gpus))
        # Lifetimes are listed by GPU first, so those of a node have the same order here and there.
        self._instances = {host: [at for at, each in places if each.gpu in own] for host, own in self._gpus.items()}
        about = Counter(map(self._gpu, whole.events))
        self._taken = {host: sum(about[gpu] for gpu in own) for host, own in self._gpus.items()}

    def _gpu(self, event: Event) -> int | None:
        """Return a GPU that an event is about; None if it is about the whole."""
        if event.kind == "replan":
            return event.others[0]
        at = _place_of(self._whole, event)
        return None if at is None else self._whole.lifetimes[at].gpu

    def news(self, host: str, part: Journal) -> list[Event]:
        """Return the events of a node that are new, as those of the whole, which is told them in this order."""
        return [self.of_whole(host, event) for event in self.raw_news(host, part)]

    def raw_news(self, host: str, part: Journal) -> list[Event]:
        """Return the events of a node that are new, at their times in the whole."""
        shift = self._whole.began - part.began
        events = [e for e in part.events if e.instance is not None or e.task is not None or e.kind == "replan"]
        new = events[self._taken[host] :]
        self._taken[host] = len(events)
        return [replace(event, time=event.time + shift) for event in new]

    def of_whole(self, host: str, event: Event) -> Event:
        """Return an event of a node as one of the whole; new plans add instances, so that the order counts."""
        if event.schedule is None:
            return replace(event, instance=None if event.instance is None else self._instances[host][event.instance])
        gpus = self._gpus[host]
        schedule = on_gpus(event.schedule, dict(enumerate(gpus)))
        new = sum(each.kind == "create" for each in schedule.operations or ())
        self._instances[host] += range(self._count, self._count + new)
        self._count += new
        return replace(event, others=tuple(gpus[gpu] for gpu in event.others), schedule=schedule)


def merged(whole: Journal, parts: Mapping[str, Journal]) -> Journal:
    """Return the journal of the whole from those of the nodes that have begun, as if they had begun together.

    A journal of another plan is refused.
    """
    plans = cut(whole)
    runs = {host: plan.schedule.runs for host, plan in plans.items()}
    wrong = [host for host, part in parts.items() if part.schedule.runs != runs.get(host)]
    raise_any(Problem(host, "is the journal of another plan") for host in wrong)
    places = addresses(whole.batch.gpus, whole.gpus)
    gpus = list(map(str, places))
    for host, those in hosts_of(places).items():
        for gpu, uuid in zip(those, parts[host].gpus if host in parts else (), strict=False):
            gpus[gpu] = f"{host}/{uuid}"
    began = min((part.began for part in parts.values() if part.began), default=0.0)
    found = replace(whole, gpus=tuple(gpus), events=[Event(began, "begin")] if began else [])
    gathering = Gathering(found)
    news: list[tuple[float, str, Event]] = []
    for host, part in parts.items():
        own = gathering.raw_news(host, part)
        # Events of a node stay in their order, also where its clock has been set back.
        news += zip(accumulate((event.time for event in own), max), repeat(host), own, strict=False)
    for _, host, event in sorted(news, key=itemgetter(0)):
        found.append(gathering.of_whole(host, event))
    found.events += common_ends(found, plans, parts)
    return found


def common_ends(whole: Journal, plans: Mapping[str, Journal], parts: Mapping[str, Journal]) -> list[Event]:
    """Return the ends (``end``, ``undo``) that all nodes have come to, and the journal of the whole has not."""
    last = max((event.time for event in whole.events), default=0.0)
    kinds = [{event.kind for event in parts[host].events} if host in parts else set() for host in plans]
    known = {event.kind for event in whole.events}
    return [Event(last, kind) for kind in ("end", "undo") if kind not in known and all(kind in own for own in kinds)]


def arguments_of(part: Journal, folder: str) -> list[str]:
    """Return the arguments of ``mig-opt run`` for a part with its files in a folder; it may be started again."""
    user = ["--user", part.user] if part.user else []
    files = [f"{folder}/{name}" for name in ("batch.json", "schedule.json", "commands.json", JOURNAL)]
    options = ["--commands", files[2], "--devices", ",".join(part.gpus), *user, "--journal", files[3]]
    options += [] if part.replan is None else [f"--replan={part.replan:g}"]
    return [*files[:2], *options, "--restartable"]


def write_part(part: Journal, folder: Path) -> None:
    """Write the batch, the schedule and the commands of a part."""
    BATCH.write(part.batch, folder / "batch.json")
    SCHEDULE.write(part.schedule, folder / "schedule.json")
    COMMANDS.write(part.commands, folder / "commands.json")


def split(whole: Journal, folder: Path) -> list[str]:
    """Write a plan as one plain part for each node; return the names of the nodes.

    The folder ``nodes/NAME`` has the batch, the schedule and the commands of a node, and ``run.sh``, which carries them
    out there by ``mig-opt run``. :func:`gather` reads the journals that these leave. The folder is made with those
    that it is in; one with something in it is refused.
    """
    plans, beside = cut(whole), folder.absolute().parent
    make_folder(beside)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=beside, ignore_cleanup_errors=True) as name:
            made = Path(name)
            write_journal(replace(whole, run=""), made / _PLAN)
            for host, part in plans.items():
                words = arguments_of(part, "$here")
                shown = " ".join(f'"{one}"' if re.fullmatch(r"\$here/[a-z.]+", one) else quote(one) for one in words)
                write_folder(made / _NODES / host, {"run.sh": _SCRIPT.format(host=host, words=shown)})
                write_part(part, made / _NODES / host)
            made.rename(folder)
    except OSError as error:
        message = f"cannot be written: {error.strerror}; name a folder that does not exist, or is empty"
        raise InputError([Problem("", message)], str(folder)) from None
    return list(plans)


def gather(folder: Path) -> Journal:
    """Return the journal of a plan that :func:`split` has written, from those of its nodes as far as they are there."""
    whole = read_journal(folder / _PLAN)
    paths = {host: folder / _NODES / host / JOURNAL for host in cut(whole)}
    parts = {host: read_journal(path) for host, path in paths.items() if path.exists()}
    if not parts:
        message = f"has no journal of any node yet; bring them to {next(iter(paths.values()))} and so on"
        raise InputError([Problem("", message)], str(folder))
    return merged(whole, parts)


def lock_of(journal: Path) -> Path:
    """Return the file that is locked while a process carries out the plan of a journal; it has the process's number."""
    return journal.with_name(f"{journal.name}.lock")


@contextlib.contextmanager
def alone(journal: Path) -> Iterator[None]:
    """Wait until no other process carries out the plan of a journal; meanwhile, SIGTERM does what Ctrl-C does.

    A journal whose first line is not complete, since its process was killed just then, is removed: nothing had begun.
    """

    def interrupt(*_: Any) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        raise KeyboardInterrupt

    try:
        lock = os.open(lock_of(journal), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise InputError([Problem("", f"cannot be opened: {error.strerror}")], str(lock_of(journal))) from None
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with writing_to(lock_of(journal), "; mend that, and then go on"):
            os.pwrite(lock, b"%20d\n" % os.getpid(), 0)  # always as long, so that a full disk has room for it
        if journal.exists() and b"\n" not in journal.read_bytes():
            journal.unlink()
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is interrupt:  # else it is ignored until this process has ended
            signal.signal(signal.SIGTERM, before)
        os.close(lock)
