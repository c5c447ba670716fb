"""Study files: what they say, everything wrong at once, and those of the documentation."""

from study_parts import SMALL, problems

from mig_opt import Study, run_study
from mig_opt.studies import BundledBatch, GeneratedBatches, MethodSettings, read_study


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
