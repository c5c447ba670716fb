"""Files with the program of a batch: other programs read them, and find the same optimum."""

import tempfile
from pathlib import Path

import highspy
import pulp
import pytest
import tiny
from block_models import GAPS
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import tiny_batches

from mig_opt import Schedule, load, solve
from mig_opt.files.batch.programs import export_model
from mig_opt.method.control import Control
from mig_opt.models.solvers.backend import solve_program
from mig_opt.models.solvers.cbc import Cbc


def optimum(path: Path) -> float:
    """The optimum of a file, by HiGHS on its own."""
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    assert model.readModel(str(path)) == highspy.HighsStatus.kOk
    model.setOptionValue("mip_rel_gap", 0.0)
    model.run()
    assert model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(model.getInfo().objective_function_value)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("suffix", [".lp", ".mps", ".MPS"])
def test_the_optimum_of_a_file_is_that_of_solve(suffix, strict, tmp_path):
    path = tmp_path / f"tiny{suffix}"
    export_model(tiny.BATCH, path, strict=strict)
    if suffix != ".MPS":  # HiGHS knows the suffix in small letters only
        assert optimum(path) == pytest.approx(tiny.OPTIMUM)
    text = path.read_text(encoding="utf-8")
    assert text.splitlines()[0].endswith("3 tasks on A30-24GB")
    assert ("strict" if strict else "relaxed") in text.splitlines()[1]
    assert "run_right_on_1g_6gb_at_2" in text
    assert "6.34" in text  # FAR's makespan limits the time, in seconds
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_pulp_reads_it_back(tmp_path):
    path = tmp_path / "rodinia.mps"
    export_model(load("rodinia-a30"), path)
    variables, program = pulp.LpProblem.fromMPS(str(path))
    assert "run_gaussian_on_2g_12gb_at_0" in variables
    outcome = solve_program(program, Cbc(), Control[Schedule]())
    assert outcome.objective == pytest.approx(28.43392)


@pytest.mark.parametrize(("batch", "relaxed", "true"), GAPS)
def test_the_two_forms_may_differ(batch, relaxed, true, tmp_path):
    export_model(batch, tmp_path / "relaxed.mps")
    export_model(batch, tmp_path / "strict.mps", strict=True)
    assert optimum(tmp_path / "relaxed.mps") == pytest.approx(relaxed)
    assert optimum(tmp_path / "strict.mps") == pytest.approx(true)


@pytest.mark.deep
@given(tiny_batches, st.sampled_from([".lp", ".mps"]))
@settings(max_examples=15)
def test_the_relaxed_optimum_is_a_bound_and_the_strict_one_a_makespan(batch, suffix):
    true, far = solve(batch, "brute-force").makespan, solve(batch, "far").makespan
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        export_model(batch, folder / f"relaxed{suffix}")
        export_model(batch, folder / f"strict{suffix}", strict=True)
        near = 1e-6 * max(1.0, far)
        assert optimum(folder / f"relaxed{suffix}") <= true + near
        assert true - near <= optimum(folder / f"strict{suffix}") <= far + near


def test_an_existing_file_is_replaced_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "tiny.lp"
    path.write_text("mine", encoding="utf-8")
    with monkeypatch.context() as broken:
        broken.setattr(pulp.LpProblem, "writeLP", lambda self, path: (_ for _ in ()).throw(OSError("no space left")))
        with pytest.raises(OSError, match="no space left"):
            export_model(tiny.BATCH, path)
    assert path.read_text(encoding="utf-8") == "mine"
    export_model(tiny.BATCH, path)
    assert "Minimize" in path.read_text(encoding="utf-8")
