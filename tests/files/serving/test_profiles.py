"""Profile tables as files, and those of ParvaGPU's layout."""

import json
from pathlib import Path
from unittest.mock import Mock

import pytest
from documents import DELETE, PROFILES, changed, complaints, round_trip, text_file
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_files import gpus, names, tables

from mig_opt import InputError, Point, ProfileTable
from mig_opt.files.serving.profiles import PROFILES as PROFILES_FILE
from mig_opt.files.serving.profiles import import_profiles

HEADER = "Mig instance,Batch size,Workload Number,Throughput,Latency"
BERT = ProfileTable("bert", "A100-80GB", (Point(1, 8, 2, 128.69, 0.124),), 9.5)


@pytest.mark.deep
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_round_trip(data):
    keys = data.draw(st.lists(st.tuples(names, gpus), min_size=1, max_size=4, unique_by=lambda k: (k[0], k[1].name)))
    drawn = tuple(data.draw(tables(*key)) for key in keys)
    round_trip(PROFILES_FILE, drawn)


def test_a_table_without_gpu_is_of_the_one_at_the_top():
    first, second = PROFILES_FILE.from_json(PROFILES)
    assert first == BERT
    assert (second.gpu, second.memory_gb) == ("A30-24GB", None)
    bare = changed(PROFILES, ("gpu", DELETE))
    assert complaints(PROFILES_FILE.from_json, bare) == [
        "profiles[0].gpu: is missing; name the GPU that was measured, here or for all profiles at the top of the file"
    ]
    assert PROFILES_FILE.from_json(bare, gpu="A100-80GB") == (first, second)


def test_points_come_last_on_lines_of_their_own():
    two = ProfileTable("bert", "A30", (Point(1, 1, 1, 74.4, 0.013), Point(2, 1, 1, 80.0, 0.012)))
    lines = PROFILES_FILE.to_json([BERT, two]).splitlines()
    assert '        {"size": 2, "batch": 1, "processes": 1, "throughput": 80.0, "latency": 0.012}' in lines
    assert '      "gpu": "A100-80GB",' in lines
    assert len(lines) == 21
    assert [list(table) for table in json.loads(PROFILES_FILE.to_json([BERT]))["profiles"]] == [
        ["model", "memory_gb", "points"]
    ]


def test_what_cannot_be_written():
    assert complaints(PROFILES_FILE.to_json, []) == ["tables: needs at least one entry, is empty"]
    assert complaints(PROFILES_FILE.to_json, [BERT, BERT])[0].startswith(
        "tables[1]: 'bert on A100-80GB' is that of tables[0]"
    )


def test_import(tmp_path):
    text = f"\ufeff{HEADER}\r\n1,1,1,74.408,0.013\r\n\r\n1,1,3,39.917,0.025\r\n1,1,4,0,0\r\n7,256,2,1e2,.5"
    path = text_file(tmp_path, text, "bert.csv")
    (table,) = import_profiles(path, "A100-80GB", memory_gb=8)
    assert (table.model, table.gpu, table.memory_gb) == ("bert", "A100-80GB", 8)
    assert table.points == (Point(1, 1, 1, 74.408, 0.013), Point(1, 1, 3, 119.751, 0.025), Point(7, 256, 2, 200.0, 0.5))
    assert import_profiles(str(path), "A100-80GB", "big")[0].model == "big"
    assert PROFILES_FILE.read(path, gpu="A100-80GB") == import_profiles(path, "A100-80GB")


def test_wrong_arguments_of_an_import(tmp_path):
    path = text_file(tmp_path, f"{HEADER}\n1,1,1,-1,1")
    found = complaints(import_profiles, path, None)
    assert found[0].startswith("gpu: a CSV file does not name its GPU; give it, for example")
    assert found[1].startswith("line 2, Throughput: must be")
    found = complaints(import_profiles, path, "A31", " ", -1)
    assert [line.partition(":")[0] for line in found] == ["gpu", "line 2, Throughput", "memory_gb", "model"]
    assert complaints(import_profiles, tmp_path, "A30", "bert")[0].startswith("model: ")
    assert complaints(import_profiles, tmp_path / "no.csv", "A30") == ["no such file"]


def test_a_folder(tmp_path):
    text_file(tmp_path, f"{HEADER}\n1,1,1,2,1", "b.csv")
    text_file(tmp_path, f"{HEADER}\n1,1,1,3,1", "a.CSV")
    text_file(tmp_path, "not read", "README.md")
    (tmp_path / "folder.csv").mkdir()
    found = import_profiles(tmp_path, "A100-80GB", memory_gb=4)
    assert [(table.model, table.points[0].throughput, table.memory_gb) for table in found] == [("a", 3, 4), ("b", 2, 4)]
    PROFILES_FILE.write([BERT], tmp_path / "c.json")
    assert [table.model for table in import_profiles(tmp_path, "A100-80GB")] == ["a", "b"]
    assert [table.model for table in PROFILES_FILE.read(tmp_path, gpu="A100-80GB")] == ["a", "b", "bert"]
    assert PROFILES_FILE.read(str(tmp_path / "c.json")) == (BERT,)


def test_every_problem_of_a_folder(tmp_path):
    assert "has no file whose name ends in .json or .csv" in complaints(PROFILES_FILE.read, tmp_path)[0]
    text_file(tmp_path, f"{HEADER}\n1,1,1,-1,1", "a.csv")
    text_file(tmp_path, "", "b.csv")
    text_file(tmp_path, "{", "c.json")
    PROFILES_FILE.write([BERT], tmp_path / "d.json")
    PROFILES_FILE.write([BERT], tmp_path / "e.json")
    with pytest.raises(InputError) as caught:
        PROFILES_FILE.read(tmp_path, gpu="A100-80GB")
    assert caught.value.source == str(tmp_path)
    assert [problem.path for problem in caught.value.problems] == [
        "a.csv, line 2, Throughput",
        "b.csv",
        "c.json, line 1, column 2",
        "e.json",
    ]
    assert caught.value.problems[-1].message == "has a table of 'bert' on A100-80GB, as d.json has; keep one of them"
    # What is wrong with all of them is said once.
    found = complaints(PROFILES_FILE.read, tmp_path)
    assert [line.partition(":")[0] for line in found] == ["c.json, line 1, column 2", "e.json", "gpu"]


def test_a_folder_that_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "iterdir", Mock(side_effect=PermissionError(13, "Permission denied")))
    assert complaints(PROFILES_FILE.read, tmp_path) == ["cannot be read: Permission denied"]
