"""Text to documents, and files on the disk."""

import json
import math
import os
import stat
from pathlib import Path
from unittest.mock import Mock

import pytest
from documents import BATCH, DOCUMENTS, READERS, SCHEDULE, changed, complaints, refused

from mig_opt import InputError, Run, Schedule
from mig_opt.files.batch.batches import BATCH as BATCH_FILE
from mig_opt.files.batch.schedules import RESULT
from mig_opt.files.batch.schedules import SCHEDULE as SCHEDULE_FILE
from mig_opt.files.documents import check_writable
from mig_opt.verbs import files

DENIED = Mock(side_effect=PermissionError(13, "Permission denied"))


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        (
            SCHEDULE_FILE,
            changed(SCHEDULE, ("runs/0/begin", json.loads("[" * 400 + "]" * 400))),
            "runs[0].begin: cannot be read: recursion limit",
        ),
        (BATCH_FILE, json.dumps(BATCH).replace('"lu"', '"\\ud800"'), "tasks[1].name: cannot be read: "),
        (BATCH_FILE, {"schema": {1, 2}}, "is not made of what JSON can hold"),
    ],
)
def test_what_cannot_be_read_has_one_complaint(kind, content, said):
    (complaint,) = complaints(kind.from_json, content)
    assert complaint.startswith(said)


def test_numbers_that_json_cannot_hold_are_not_written():
    run = Run("a", 0, "1g.6gb", 0, math.nan, math.inf)
    assert complaints(SCHEDULE_FILE.to_json, Schedule((run,))) == [
        "makespan: must be a finite number, is inf",
        "runs[0].begin: must be a finite number, is nan",
        "runs[0].end: must be a finite number, is inf",
    ]


def test_options_that_a_kind_does_not_have():
    with pytest.raises(TypeError, match="files of the kind batch are read without 'gpus'"):
        BATCH_FILE.from_json(BATCH, gpus=2)
    with pytest.raises(TypeError, match="files of the kind batch are written without 'gpu'"):
        BATCH_FILE.to_json(BATCH_FILE.from_json(BATCH), gpu=2)


def test_unreadable_files(tmp_path, monkeypatch):
    with pytest.raises(InputError) as caught:
        BATCH_FILE.read(tmp_path / "none.json")
    assert str(caught.value) == f"{tmp_path / 'none.json'}:\n  no such file"
    assert complaints(SCHEDULE_FILE.read, tmp_path) == ["is a folder, a file is wanted"]
    assert complaints(SCHEDULE_FILE.read, "a\0b")[0].startswith("cannot be read: ")
    (tmp_path / "latin.csv").write_bytes("task,t1_s\ncafé,1".encode("latin-1"))
    expected = "is not UTF-8 text (byte 0xe9 at 13); save it as UTF-8"
    assert complaints(BATCH_FILE.read, tmp_path / "latin.csv", gpu="A30") == [expected]
    (tmp_path / "latin.csv").write_bytes("task,t1_s\ncafé,1".encode("utf-16")[:-1])
    assert complaints(BATCH_FILE.read, tmp_path / "latin.csv", gpu="A30")[0].startswith("is not UTF-16 text (byte ")

    monkeypatch.setattr(Path, "read_bytes", DENIED)
    assert complaints(RESULT.read, tmp_path / "secret.json") == ["may not be read; ask for permission"]


EMPTY = Schedule(())


def test_unwritable_paths(tmp_path):
    for write in (lambda path: SCHEDULE_FILE.write(EMPTY, path), check_writable):
        assert complaints(write, tmp_path) == ["cannot be written: is a folder; name a file in it"]
        told = [f"cannot be written: there is no folder {tmp_path / 'none'}; create it first"]
        assert complaints(write, tmp_path / "none" / "s.json") == told
        (loop := tmp_path / "loop").symlink_to(tmp_path / "loop")
        for path in (tmp_path / ("x" * 300), "a\0b", loop):
            assert complaints(write, path)[0].startswith("cannot be written: ")
        loop.unlink()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def old(tmp_path):
    old = tmp_path / "s.json"
    old.write_text("old")
    yield old
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]


def test_no_permission(old, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        assert complaints(check_writable, old) == ["cannot be written: the file is write-protected"]

    monkeypatch.setattr(Path, "touch", DENIED)
    with pytest.raises(InputError) as caught:
        check_writable(old)
    assert str(caught.value) == f"{old}:\n  cannot be written: Permission denied"
    assert complaints(SCHEDULE_FILE.write, EMPTY, old) == ["cannot be written: Permission denied"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_nothing_is_half_written(old, monkeypatch, step, error):
    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), Mock(side_effect=error))
    with pytest.raises((InputError, KeyboardInterrupt)) as caught:
        SCHEDULE_FILE.write(EMPTY, old)
    if isinstance(error, OSError):
        assert str(caught.value) == f"{old}:\n  cannot be written: No space left on device"


def test_content_that_cannot_be_written_leaves_the_old_file(old):
    for run in (Run("a", 0, "1g.6gb", 0, 0.0, math.inf), Run("\ud800", 0, "1g.6gb", 0, 0.0, 1.0)):
        refused(SCHEDULE_FILE.write, Schedule((run,)), old)


def test_links_and_modes_are_kept(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    SCHEDULE_FILE.write(EMPTY, link)
    assert link.is_symlink()
    assert SCHEDULE_FILE.read(real) == EMPTY
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    (tmp_path / "plain").write_text("")
    SCHEDULE_FILE.write(EMPTY, tmp_path / "new.json")
    assert (tmp_path / "new.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_writable(pipe)
        SCHEDULE_FILE.write(EMPTY, pipe)
        assert SCHEDULE_FILE.from_json(os.read(reader, 10_000)) == EMPTY
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("kind", ["batch", "profiles", "services", "state"])
def test_json_is_not_written_under_a_name_from_which_tables_are_read(tmp_path, kind):
    content = READERS[kind](DOCUMENTS[kind])
    (found,) = complaints(files.write, content, tmp_path / "mine.CSV")
    assert found == "is written as JSON, which is not read from a file .csv; name one that ends in .json"
    assert list(tmp_path.iterdir()) == []
