"""CSV files."""

from __future__ import annotations

from pathlib import Path

import pytest
from documents import complaints, seconds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mig_opt.batch.batch import Task
from mig_opt.files.batch.batches import read_batch


def csv_file(folder: Path, text: str, name: str = "tasks.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_csv(tmp_path: Path) -> None:
    text = '\ufefft4_s,task,memory_gb,t1_s\r\n6.39,gaussian,3.2,22.31\r\n\r\n3,"l,\nu",,\r\n , ,,\r\n'
    batch = read_batch(csv_file(tmp_path, text, "mine.CSV"), gpu="A30")
    assert batch.tasks == (Task("gaussian", {1: 22.31, 4: 6.39}, 3.2), Task("l,\nu", {4: 3.0}))
    assert (batch.name, batch.gpu.name, batch.gpus) == ("mine", "A30-24GB", 1)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.from_regex(r"\A[a-z,\" ]*[a-z]\Z"), seconds, min_size=1, max_size=5))
def test_csv_says_what_json_says(tmp_path: Path, times: dict[str, float]) -> None:
    times = {name.strip(): value for name, value in times.items()}
    rows = ['"' + name.replace('"', '""') + f'",{value!r},' for name, value in times.items()]
    batch = read_batch(csv_file(tmp_path, "\n".join(["task,t1_s,t2_s", *rows])), gpu="A30")
    assert batch.tasks == tuple(Task(name, {1: value}) for name, value in times.items())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["is empty; a line with the columns is wanted: task,t1_s,..."]),
        ("task,t1_s\n\n", ["has no rows; add at least one task below the header"]),
        ("name,t1_s\na,1", ["line 1: has no column task", "line 1, name: unknown column \"name\"; known: task, t1_s"]),
        (
            "job,1g.6gb,MIG 2g,t4_ms,mem\na,1,1,1,1",
            [
                'line 1: has no column task; give this name to the one with the names of the tasks (perhaps "job")',
                "line 1: has no column with times; a row is a task, with its seconds on 1, 2, ... compute slices",
                'line 1, 1g.6gb: unknown column "1g.6gb"; the seconds on 1 compute slice are in the column t1_s',
                'line 1, MIG 2g: unknown column "MIG 2g"; the seconds on 2 compute slices are in the column t2_s',
                'line 1, job: unknown column "job"; known: task, t1_s, t2_s, t4_s, memory_gb',
                'line 1, mem: unknown column "mem"; did you mean memory_gb?',
                'line 1, t4_ms: unknown column "t4_ms"; the seconds on 4 compute slices are in the column t4_s',
            ],
        ),
        ("task,t1_s\na,OOM", ['line 2, t1_s: must be a number, is "OOM"; leave the cell empty where there is no time']),
        ("task,memory_gb\na,1", ["line 1: has no column with times; a row is a task, with its seconds"]),
        ("task;t1_s\na;1", ["line 1: has one column only; separate the columns by commas"]),
        ("task,t1_s,t2\na,1,2", ["line 1, t2: unknown column \"t2\"; the seconds on 2 compute slices are in the"]),
        ("task,t1_s,t3_s\na,1,2\nb,1,2", ["line 1, t3_s: A30-24GB has no instances of 3 compute slices; its sizes"]),
        ("task,t1_s,t1_s\na,1,2", ["line 1, t1_s: this column is given more than once"]),
        ("task,t1_s\na,1\nb\nc,1,2", ["line 3: has 1 cells, the header has 2", "line 4: has 3 cells, the header"]),
        ("task,t1_s\na", ["line 2: has 1 cells, the header has 2"]),
        ("task,t1_s,t2_s\n\na,1,2\nb,3,-1", ["line 4, t2_s: must be > 0 seconds, is -1.0"]),
        ("task,t1_s\na,nan\nb,inf", ["line 2, t1_s: must be a finite number", "line 3, t1_s: must be a finite number"]),
        ('task,t1_s\na,"1,5"\nb,1_0', ["line 2, t1_s: must be a number, is \"1,5\"", "line 3, t1_s: must be a number"]),
        ("task,t1_s\na,1\n,2", ["line 3, task: must not be empty"]),
        ("task,t1_s\na,\nb,1", ["line 2: needs the seconds on at least one instance size, is empty"]),
        ("task,t1_s\nb,1\n\na,1\na,1", ["line 5, task: 'a' is the name of line 4 already; give each task its own"]),
        (
            "task,t1_s\nof tasks[9] already,1\nof tasks[9] already,1",
            ["line 3, task: 'of tasks[9] already' is the name of line 2 already"],
        ),
        ("task,t1_s,memory_gb\na,1,99", ["line 2, memory_gb: 99 GB is more than any profile of A30-24GB has"]),
        ("task,t1_s,memory_gb\na,1,x", ["line 2, memory_gb: must be a number, is \"x\""]),
        ('task,t1_s\na,1\n"b,1\n', ["line 3: not valid CSV: unexpected end of data"]),
    ],
)  # fmt: skip
def test_wrong_csv(tmp_path: Path, text: str, expected: list[str]) -> None:
    found = complaints(read_batch, csv_file(tmp_path, text), gpu="A30")
    assert len(found) == len(expected)
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True)), found


@pytest.mark.parametrize("name", ["runs.tsv", "runs.txt", "runs.xlsx"])
def test_tables_by_other_names_are_told_what_to_be_called(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("task\tt1_s\na\t1\n")
    (found,) = complaints(read_batch, path, gpu="A30")
    assert found.endswith("not valid JSON: Expecting value; save a table as CSV, in a file whose name ends in .csv")


def test_csv_without_gpu_and_with_unknown_gpu(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "task,t1_s\na,-1")
    for gpu, expected in ((None, "gpu: a CSV file does not name its GPU; give it"), ("A31", "gpu: unknown GPU 'A31'")):
        first, second = complaints(read_batch, path, gpu=gpu)
        assert first.startswith(expected)
        assert second == "line 2, t1_s: must be > 0 seconds, is -1.0"
