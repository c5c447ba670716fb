"""Rows in plain and in compressed files, and what becomes of them when they are packed."""

import lzma
from pathlib import Path

import pytest
from documents import refused
from places import BENCH
from study_jobs import Job

from mig_opt.studies.rows import Outcome, Records, pack, packed, plain

FINE = Outcome("feasible", 1.0, 5.0)
BETTER = Outcome("feasible", 1.0, 4.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.jsonl"


def add(path: Path, number: int, outcome: Outcome = FINE, sources: str = "f") -> None:
    Records(path, Job.read).add(Job(number), outcome, {}, sources)


def known(path: Path, number: int, sources: str = "f") -> Outcome | None:
    row = Records(path, Job.read).find(Job(number), sources)
    return row.outcome if row else None


@pytest.mark.parametrize("name", [plain, packed])
def test_packed_rows_are_read_and_new_ones_are_written_beside_them(path, name):
    """Either name stands for both files."""
    add(name(path), 1)
    add(name(path), 2)
    assert path.exists()
    assert pack(name(path)) == 2
    assert not path.exists()
    assert [known(name(path), number) for number in (1, 2, 3)] == [FINE, FINE, None]
    before = packed(path).read_bytes()
    add(path, 3, BETTER)
    assert packed(path).read_bytes() == before
    assert [known(path, number) for number in (1, 2, 3)] == [FINE, FINE, BETTER]
    assert pack(path) == 3
    assert [known(path, number) for number in (1, 2, 3)] == [FINE, FINE, BETTER]


def test_rows_of_two_places_are_merged(path, tmp_path):
    """Those of the other place are decompressed to the end of the plain file, whichever of the two is younger."""
    other = tmp_path / "other.jsonl"
    for number in (2, 1):
        add(other, number, BETTER)
    older, same_run = other.read_text().splitlines(keepends=True)
    other.write_text(older.replace('"date": "20', '"date": "10') + same_run.replace('"date": "20', '"date": "30'))
    for number in (1, 2, 3):
        add(path, number)
    for file in (path, other):
        pack(file)
    path.write_bytes(lzma.decompress(packed(other).read_bytes()))
    assert pack(path) == 3
    assert [known(path, number) for number in (1, 2, 3)] == [BETTER, FINE, FINE]


def test_nothing_to_pack(path):
    assert pack(path) == 0
    assert not packed(path).exists()
    add(path, 1)
    pack(path)
    before = packed(path).stat().st_mtime_ns
    assert pack(path) == 1
    assert packed(path).stat().st_mtime_ns == before, "without new rows the file is not written again"


@pytest.mark.parametrize(
    ("data", "message"), [(b"no xz", "is no xz file"), (lzma.compress(b"{}\n"), "line 1: is no row")]
)
def test_a_packed_file_of_something_else_is_refused_and_kept(path, data, message):
    packed(path).write_bytes(data)
    for use in (lambda: Records(path, Job.read), lambda: pack(path)):
        refused(use, match=message)
    assert packed(path).read_bytes() == data
    refused(add, packed(path) / "rows.jsonl", 1, match="cannot be written")


@pytest.mark.skipif(not BENCH.is_dir(), reason="the tests run without the checkout")
def test_committed_results_are_small():
    """Together below what a clone should have to fetch for them; plain rows of a study that runs do not count."""
    sizes = {path.name: path.stat().st_size for path in (BENCH / "results").rglob("*") if path.is_file()}
    committed = {name: size for name, size in sizes.items() if not name.endswith(".jsonl")}
    assert sum(committed.values()) < 1_800_000, dict(sorted(committed.items(), key=lambda item: -item[1])[:8])
