"""Journals of executions: read as they were written, whatever was killed in between; damaged lines are told."""

import pytest
import tiny
from documents import refused

from mig_opt.batch.journal import Commands, Event, Journal
from mig_opt.errors import InputError
from mig_opt.files.batch.journals import JournalFile, is_journal, read_journal
from mig_opt.validation import validate

COMMANDS = Commands({"big": ("./big", "-s", "4 096"), "left": ("true",), "right": ("./ü",)})
CREATED = {"uuid": "MIG-1", "number": 5}
EVENTS = [
    Event(100.0, "begin"),
    Event(100.0, "create", 0, others=(1, 2)),
    Event(100.2, "created", 0, **CREATED),
    Event(100.2, "run", task="big", attempt=1),
    Event(102.3, "ran", task="big", attempt=1, code=0),
    Event(102.3, "destroy", 0),
    Event(102.45, "destroyed", 0),
    Event(102.5, "create", 1),
    Event(102.61, "created", 1, **CREATED),
    Event(102.7, "run", task="right", attempt=1),
    Event(102.7, "create", 2),
    Event(102.9, "created", 2, **CREATED),
    Event(103.0, "run", task="left", attempt=1),
    Event(104.0, "died", task="left", attempt=1),
    Event(104.0, "run", task="left", attempt=2),
    Event(106.5, "ran", task="right", attempt=1, code=2),
    Event(107.5, "ran", task="left", attempt=2, code=0),
    Event(107.5, "end"),
]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "run.journal"
    with JournalFile(path, Journal(tiny.BATCH, tiny.BEST, COMMANDS, ("GPU-1",), "/work")) as file:
        for event in EVENTS:
            file.append(event)
    return path


def test_what_was_written_is_read(path):
    found = read_journal(path)
    assert (found.batch, found.batch.name, found.schedule) == (tiny.BATCH, "tiny", tiny.BEST)
    assert (found.commands, found.gpus, found.folder) == (COMMANDS, ("GPU-1",), "/work")
    assert found.events == EVENTS
    assert is_journal(path)
    assert found.ended


def test_the_schedule_as_it_was(path):
    journal = read_journal(path)
    batch, schedule = journal.measured()
    assert validate(batch, schedule).valid
    assert schedule.makespan == 7.5
    assert [(run.task, run.begin, run.end) for run in schedule.runs] == [
        ("big", 0.2, 2.3),
        ("right", 2.7, 6.5),
        ("left", 4.0, 7.5),
    ]
    assert journal.costs().create == {1: 0.11, 2: 0.2, 4: 0.2}
    assert journal.costs().destroy == {1: 0.1, 2: 0.1, 4: 0.15}
    assert journal.measured_batch().tasks[1].times == {1: 5.0, 2: 3.5}
    assert journal.measured_batch().tasks[2] == tiny.BATCH.tasks[2]  # which has failed


def test_a_plan_that_is_not_one_of_its_batch_is_told(path):
    path.write_text(path.read_text().replace('"name": "left"', '"name": "other"'))
    assert refused(read_journal, path) == ["commands.tasks", "schedule.runs[2].task", "schedule.tasks[1]"]


@pytest.mark.parametrize("line", [2, 4, 6, 13])
def test_ends_without_their_beginnings_are_told(path, line):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:line], *lines[line + 1 :]]))
    with pytest.raises(
        InputError, match=rf"line {line + 1}\.kind: is '.*' without a '.*' before it; put that line back"
    ):
        read_journal(path)


def test_a_run_that_ended_before_it_began_by_the_clock_of_files(path):
    journal = read_journal(path)
    journal.events[-2:] = [Event(103.9, "ran", task="left", attempt=2, code=0), Event(107.5, "end")]
    (run,) = (run for run in journal.runs() if run.task == "left")
    assert (run.begin, run.end) == (4.0, 4.000001)
    assert validate(*journal.measured()).valid


def test_a_line_that_was_not_finished_is_left_out_and_then_dropped(path):
    whole = path.read_bytes()
    for cut in (1, 20, len(whole.splitlines(keepends=True)[-1]) - 1):
        path.write_bytes(whole[:-cut])
        assert read_journal(path).events == EVENTS[:-1]
        with JournalFile(path) as file:
            file.append(EVENTS[-1])
        assert path.read_bytes() == whole


def test_files_that_are_there_or_not(path, tmp_path):
    refused(JournalFile, path, read_journal(path), match="exists already; go on with it by --resume")
    refused(JournalFile, tmp_path / "none", match="no such file")
    refused(JournalFile, tmp_path / "none" / "run.journal", read_journal(path), match="no such folder")
    with JournalFile(path), pytest.raises(InputError, match="is in use"):
        JournalFile(path)
    (tmp_path / "empty").touch()
    refused(read_journal, tmp_path / "empty", match="has no line that is complete")
    assert not is_journal(tmp_path / "empty")
    refused(Event, 1e18, "begin", match="time: must be a second since 1970, before the year 5000")


def test_a_last_line_that_ends_within_a_letter_is_left_out(path):
    path.write_bytes(path.read_bytes() + '{"kind": "run", "task": "ü'.encode()[:-1])
    assert read_journal(path).events == EVENTS
