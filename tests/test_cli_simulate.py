"""mig-opt simulate."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Command, called, refuses

from mig_opt import Job, Trace, get_gpu, write_trace
from mig_opt.online import simulate


@pytest.fixture
def mig_opt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write_trace(trace(), tmp_path / "t.json")
    return lambda *arguments: called(capsys, "simulate", *arguments)


def trace(*more: Job) -> Trace:
    """Two jobs that cannot run at once on one GPU, the second one a second later."""
    return Trace((Job("a", 0.0, {7: 10.0}, "7g.40gb"), Job("b", 1.0, {4: 5.0}, "4g.20gb"), *more), get_gpu("A100"))


def test_policies_are_compared_in_a_table(mig_opt: Command) -> None:
    code, out, err = mig_opt("t.json")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    for name in ("fragmentation-aware", "first-fit", "best-fit", "load-balancing", "lower bound"):
        assert f"\n{name} " in out
    assert "1 x A100-40GB" in out


def test_json_has_the_metrics_of_the_library(mig_opt: Command) -> None:
    document = mig_opt("t.json", "--policy", "first-fit", "--json").json
    expected = simulate(trace(), "first-fit").metrics
    (found,) = document["policies"]
    assert (found["policy"], found["unfinished"]) == ("first-fit", [])
    assert found["makespan"] == pytest.approx(expected.makespan)
    assert found["wait"]["mean"] == pytest.approx(expected.wait.mean)
    assert document["lower_bounds"]["makespan"] <= found["makespan"]
    assert document["lower_bounds"]["mean_completion"] <= found["completion"]["mean"]


def test_more_gpus_than_the_trace_names(mig_opt: Command) -> None:
    one, two = (mig_opt("t.json", "--policy", "first-fit", "--gpus", gpus, "--json").json for gpus in (1, 2))
    assert two["policies"][0]["makespan"] < one["policies"][0]["makespan"]


def test_jobs_left_waiting_are_named_and_the_answer_is_no(mig_opt: Command, tmp_path: Path) -> None:
    """The default partition of `static` has no 7g."""
    waiting = simulate(trace(), "static").unfinished
    code, out, _ = mig_opt("t.json", "--policy", "static")
    assert code == (1 if waiting else 0)
    assert waiting
    assert f"static leaves {len(waiting)} job" in out


def test_everything_wrong_is_told_at_once(mig_opt: Command) -> None:
    refuses(
        mig_opt("none.json", "--policy", "first-fit,bestfit"),
        "--policy: unknown policy 'bestfit'; did you mean best-fit",
        "none.json: no such file",
    )
    refuses(mig_opt("t.json", "--policy", ","), "--policy: names no policy")
