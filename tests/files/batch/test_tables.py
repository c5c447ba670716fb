"""CSV files."""

import pytest
from documents import complaints, seconds, text_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mig_opt.batch.batch import Task
from mig_opt.files.batch.batches import BATCH


def test_csv(tmp_path):
    text = '\ufefft4_s,task,memory_gb,t1_s\r\n6.39,gaussian,3.2,22.31\r\n\r\n3,"l,\nu",,\r\n , ,,\r\n'
    batch = BATCH.read(text_file(tmp_path, text, "mine.CSV"), gpu="A30")
    assert batch.tasks == (Task("gaussian", {1: 22.31, 4: 6.39}, 3.2), Task("l,\nu", {4: 3.0}))
    assert (batch.name, batch.gpu.name, batch.gpus) == ("mine", "A30-24GB", 1)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.from_regex(r"\A[a-z,\" ]*[a-z]\Z"), seconds, min_size=1, max_size=5))
def test_csv_says_what_json_says(tmp_path, times):
    times = {name.strip(): value for name, value in times.items()}
    rows = ['"' + name.replace('"', '""') + f'",{value!r},' for name, value in times.items()]
    batch = BATCH.read(text_file(tmp_path, "\n".join(["task,t1_s,t2_s", *rows])), gpu="A30")
    assert batch.tasks == tuple(Task(name, {1: value}) for name, value in times.items())


@pytest.mark.parametrize("name", ["runs.tsv", "runs.txt", "runs.xlsx"])
def test_tables_by_other_names_are_told_what_to_be_called(tmp_path, name):
    (found,) = complaints(BATCH.read, text_file(tmp_path, "task\tt1_s\na\t1\n", name), gpu="A30")
    assert found.endswith("not valid JSON: Expecting value; save a table as CSV, in a file whose name ends in .csv")
