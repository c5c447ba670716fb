"""Study files: what they say, everything wrong at once, and those of the documentation."""

import re
import tomllib

import pytest
from places import DOCS
from study_parts import SMALL, problems

from mig_opt import Study, run_study
from mig_opt.studies import BundledBatch, GeneratedBatches, MethodSettings, read_study, study_from_json
from mig_opt.studies.studies import runs_of


def test_toml_that_is_none(tmp_path):
    (tmp_path / "s.toml").write_text("a = \n")
    assert "not valid TOML" in problems(lambda: read_study(tmp_path / "s.toml"))[""]
    (tmp_path / "s.toml").write_text("schema = 2026-01-01\n")
    assert problems(lambda: read_study(tmp_path / "s.toml"))


def test_studies_made_in_python_are_checked_too():
    wrong = Study((GeneratedBatches(n=(0,)), BundledBatch("x")), (MethodSettings("cp", time_limit=()),), repetitions=0)
    assert set(problems(lambda: run_study(wrong))) == {
        "batches[0].n",
        "batches[1].instance",
        "methods[0].time_limit",
        "repetitions",
    }
    assert set(problems(lambda: run_study(Study((), ())))) == {"batches", "methods"}
    assert set(problems(lambda: run_study(SMALL, jobs=0))) == {"jobs"}


PAGE = DOCS / "how-to" / "run-a-study.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(not PAGE.is_file(), reason="the tests run without the checkout")
def test_the_studies_of_the_page_are_one_and_the_same():
    (as_json,), (as_toml, _) = blocks("json"), blocks("toml")
    study = study_from_json(as_json)
    assert study == study_from_json(tomllib.loads(as_toml))
    assert len(runs_of(study, PAGE.parent)) == (3 * 30 * 3 + 1) * 3


@pytest.mark.skipif(not PAGE.is_file(), reason="the tests run without the checkout")
def test_the_study_of_traces_on_the_page():
    study = study_from_json(tomllib.loads(blocks("toml")[1]))
    runs = runs_of(study, PAGE.parent)
    assert len(runs) == (2 * 10 * 2 + 2) * (1 + 3)
    assert {run.cell for run in runs} >= {"normal-25, jobs=50", "PCIe"}
