"""CSV files."""

import pytest
from documents import complaints, seconds, text_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mig_opt.batch.batch import Task
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.fleet.traces import TRACE
from mig_opt.files.locations import place_of
from mig_opt.files.recognition import document_kind
from mig_opt.files.serving.deployments import DEPLOYMENT


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


@pytest.mark.parametrize("kind", [BATCH, DEPLOYMENT, TRACE])
def test_a_header_that_is_too_long_is_no_defect(tmp_path, kind):
    path, text = tmp_path / "long.csv", "x" * 200_000 + "\n1\n"
    path.write_text(text)
    (found,) = complaints(kind.read, path, gpu="A30")
    assert found == "line 1: not valid CSV: field larger than field limit (131072)"
    assert document_kind(text, table=True) == "batch"
    assert place_of("line 2", text) == (2, 1, 1, "1")
    assert place_of("line 2", "a\u2028b\nc") == (2, 1, 1, "c")


def test_a_line_may_be_blank_above_a_header_with_kinds(tmp_path):
    batch = BATCH.read(text_file(tmp_path, "\ntask,gpu,t1_s\na,A30,4\na,A100,3\n"))
    assert batch.label == "1 x A30-24GB + 1 x A100-40GB"
