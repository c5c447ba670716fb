"""Commands of tasks as JSON, and journals of executions: lines of JSON, each written before anything else is done."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from mig_opt.batch.batch import Batch
from mig_opt.batch.journal import Commands, Event, Journal
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.errors import InputError, Problem, problems_of, raise_any
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.batch.schedules import SCHEDULE
from mig_opt.files.documents import decoded, file_path, parsed, read_bytes, write_text, writing_to
from mig_opt.files.kinds import FileKind
from mig_opt.files.values import EXAMPLES, Findings, Raw, encoded, read_value
from mig_opt.method.report import data_of
from mig_opt.rules.vocabulary import Share
from mig_opt.validation import validate

_ADVICE = "; mend that, and then go on"
_BEGINNINGS = {"created": "create", "destroyed": "destroy", "ran": "run", "died": "run"}
"""Events that come after another one about the same, by their kinds."""

EXAMPLES[Event] = {"time": 1750000000.0, "kind": "begin"}

COMMANDS: FileKind[Commands] = FileKind(
    "commands",
    Commands,
    {Commands: {"tasks": {"gaussian": ["./gaussian", "-s", "4096"]}}},
    whole={"anyOf": [{"required": ["tasks"]}, {"required": ["models"]}]},
)


def _head(values: Raw, _: Raw, _path: str, findings: Findings) -> Journal:
    name, batch, gpus = values.pop("name"), values["batch"], values["gpus"]
    if not findings.problems and len(gpus) != batch.gpus:
        findings.add("gpus", f"has {len(gpus)} entries for {batch.gpus} GPUs; give one for each GPU")
    findings.check()
    found = validate(batch, values["schedule"])
    findings.extend((violation.problem() for violation in found.violations), "schedule")
    findings.extend(values["commands"].missing(batch), "commands")
    findings.check()
    return Journal(**{**values, "batch": batch.replace(name=name), "schedule": found.schedule})


_HEAD: FileKind[Journal] = FileKind(
    "journal",
    Journal,
    {
        Journal: {
            "batch": EXAMPLES[Batch],
            "schedule": EXAMPLES[Schedule],
            "commands": {"schema": "mig-opt/commands/1", "tasks": {"lu": ["./lu"]}},
            "gpus": ["GPU-8c5a3d6e-1f2b-4c3d-9e8f-0a1b2c3d4e5f"],
        }
    },
    ("batch", "schedule", "commands", "gpus", "folder", "run", "user", "engine", "replan", "name"),
    {"replan": Share | None, "name": str},
    defaults={"name": ""},
    build=_head,
)
"""The first line of a journal: the plan."""


def is_journal(path: str | Path) -> bool:
    """Return True if a file begins as a journal does."""
    try:
        with Path(path).open("rb") as file:
            return _HEAD.title.encode() in file.read(100)
    except OSError:
        return False


def read_journal(path: str | Path) -> Journal:
    """Read a journal of an execution.

    A last line without an end is one that was being written when the program was killed: it is left out.

    Raises
    ------
    InputError
        With the first line that is damaged.
    """
    data = read_bytes(path)
    journal, _ = take_lines(None, data, str(path))
    if journal is None:
        raise InputError([Problem("", "is no journal: has no line that is complete")], str(path))
    return journal


def take_lines(journal: Journal | None, data: bytes, source: str) -> tuple[Journal | None, int]:
    """Add what lines of a journal tell to what is known of it; return it, and the number of bytes that were taken.

    ``data`` goes on after what has been taken so far; what follows its last end of a line is left for later.
    """
    end = data.rfind(b"\n") + 1
    lines = decoded(data[:end], source).split("\n")[:-1]
    findings = Findings(source)
    first = 2 if journal is None else len(journal.events) + 2
    if journal is None and lines:
        raw = _line(lines.pop(0), 1, source)
        if raw.get("schema") != _HEAD.title:
            raise InputError([Problem("line 1", f'is no journal: "schema" must be "{_HEAD.title}"')], source)
        journal = _HEAD.part(raw, "", findings)
    for number, line in enumerate(lines, first):
        assert journal is not None
        event = read_value(Event, _line(line, number, source), f"line {number}", findings)
        findings.check()
        _check_event(event, journal, number, findings)
        findings.check()
        journal.append(event)
    return journal, end


def write_journal(journal: Journal, path: str | Path) -> None:
    """Write a journal as a whole, whatever was in the file; an InputError says why it cannot be written."""
    lines = [_encoded_head(journal), *map(encoded, journal.events)]
    write_text(Path(path), "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def _line(text: str, number: int, path: str | Path) -> Raw:
    try:
        raw, repeated = parsed(text, "")
    except InputError as error:
        problems = [Problem(f"line {number}", problem.message) for problem in error.problems]
        raise InputError(problems, str(path)) from None
    raise_any((problem.below(f"line {number}") for problem in repeated), path)
    return raw


def _check_event(event: Event, journal: Journal, number: int, findings: Findings) -> None:
    where = f"line {number}"
    if event.instance is not None and not 0 <= event.instance < len(journal.lifetimes):
        most = len(journal.lifetimes) - 1
        findings.add(f"{where}.instance", f"must be from 0 to {most}, is {event.instance}")
    if event.task is not None and event.task not in journal.instance_of:
        findings.add(f"{where}.task", f"the plan has no task {event.task!r}")
    if before := _BEGINNINGS.get(event.kind):
        about = event.instance, event.task, event.attempt
        alike = (one for one in reversed(journal.events) if (one.instance, one.task, one.attempt) == about)
        if next((one.kind for one in alike if one.kind != "refused"), "") != before:
            message = f"is {event.kind!r} without a {before!r} before it; put that line back, or remove this one"
            findings.add(f"{where}.kind", message)
    if event.kind == "replan" and event.schedule is None:
        findings.add(f"{where}.schedule", "is missing; the line is damaged")
    if event.schedule is not None:
        _check_schedule(event.schedule, journal, f"{where}.schedule", findings)


def _check_schedule(schedule: Schedule, journal: Journal, where: str, findings: Findings) -> None:
    """Note what a new plan names that there is not."""
    lists: dict[str, Sequence[Run | Operation]] = {"runs": schedule.runs, "operations": schedule.operations or ()}
    for key, parts in lists.items():
        for index, part in enumerate(parts):
            path = f"{where}.{key}[{index}]"
            if isinstance(part, Run) and part.task not in journal.instance_of:
                findings.add(f"{path}.task", f"the plan has no task {part.task!r}")
            if not 0 <= part.gpu < journal.batch.gpus:
                findings.add(f"{path}.gpu", f"must be from 0 to {journal.batch.gpus - 1}, is {part.gpu}")
            findings.extend(problems_of(journal.batch.placement, part), path)


class JournalFile(contextlib.AbstractContextManager["JournalFile"]):
    """A journal that is open for more events; nobody else can open it at the same time.

    With a ``journal`` a new file is begun; without it, an existing file is gone on with.

    Raises
    ------
    InputError
        If a new file exists already, an old one is damaged or in use, or the file cannot be written.
    """

    def __init__(self, path: str | Path, journal: Journal | None = None) -> None:
        self.path, self._closed = file_path(path), False
        self._news, self._syncer = threading.Event(), threading.Thread(target=self._keep_synced, daemon=True)
        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT | os.O_EXCL if journal else 0)
        try:
            self._file = os.open(self.path, flags, 0o644)
        except OSError as error:
            there = "exists already; go on with it by --resume, take back what it made by --undo, or name another"
            absent = "there is no such folder; create it first" if journal else "no such file"
            known: dict[type, str] = {FileExistsError: there, FileNotFoundError: absent}
            message = known.get(type(error), f"cannot be opened: {error.strerror}")
            raise InputError([Problem("", message)], str(path)) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            message = "is in use: the execution still goes on in another process; end that one first"
            raise InputError([Problem("", message)], str(path)) from None
        try:
            self.journal = journal or read_journal(self.path)
            if journal:
                self._append(_encoded_head(journal))
        except InputError:
            os.close(self._file)
            if journal:
                self.path.unlink()
            raise
        if not journal:  # what was being written when the program was killed is dropped
            os.ftruncate(self._file, self.path.read_bytes().rfind(b"\n") + 1)

    def append(self, event: Event) -> None:
        """Add an event, so that it survives the death of this process; it is on disk soon.

        A crash of this machine is survived by no instance and no task of it, so that nothing has to wait for the disk.
        """
        self.journal.append(event)
        self._append(encoded(event))
        if not self._syncer.is_alive():
            self._syncer.start()
        self._news.set()

    def _keep_synced(self) -> None:
        """Bring to the disk what is new, beside whatever else goes on."""
        while self._news.wait() and not self._closed:
            self._news.clear()
            with contextlib.suppress(OSError):  # reported when the file is closed
                os.fdatasync(self._file)

    def _append(self, raw: Raw) -> None:
        data = json.dumps(raw, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        with writing_to(self.path, _ADVICE):
            while data:
                data = data[os.write(self._file, data) :]

    def close(self) -> None:
        """Close the file, with everything on disk, so that others may open it."""
        self._closed = True
        self._news.set()
        if self._syncer.is_alive():
            self._syncer.join()
        try:
            with writing_to(self.path, _ADVICE):
                os.fdatasync(self._file)
        finally:
            os.close(self._file)

    def __exit__(self, *_: object) -> None:
        self.close()


def _encoded_head(journal: Journal) -> Raw:
    plan: Raw = {"batch": BATCH.document(journal.batch), "schedule": SCHEDULE.document(journal.schedule)}
    plan |= {"commands": COMMANDS.document(journal.commands), "gpus": list(journal.gpus), "folder": journal.folder}
    known = {"name": journal.batch.name, **plan, **data_of(journal, "run", "user", "engine", "replan")}
    return {"schema": _HEAD.title, **{key: value for key, value in known.items() if value not in ("", None)}}
