"""Instances and scores on a terminal: tables that fit, findings on record, what there is after Ctrl-C."""

import dataclasses
import re

import pytest

from mig_opt.instances.bundled import Finding, instance_info, library
from mig_opt.studies import scores
from mig_opt.studies.execution import run_missing

EASY = "far-1xa30-006-mixed-2"
LONGEST = max(library().infos, key=len)


@pytest.mark.parametrize("width", [60, 80])
def test_tables_fit(run, monkeypatch, tmp_path, width):
    monkeypatch.setenv("COLUMNS", str(width))
    plans = tmp_path / "plans"
    plans.mkdir()
    for name in (EASY, "services-005-1"):
        (plans / f"{name}.json").write_text(library().text("plans", name) or "")
    (plans / f"{LONGEST}.json").write_text("{}")
    lines = run("score", plans).out.splitlines()
    assert max(map(len, lines)) <= width
    assert lines[2].split() == [LONGEST, "best", "49.614", "0.000%"]
    assert lines[3].split()[-3:] == ["garbage", "-", "-"]
    assert [line.split()[-3:] for line in lines[4:6]] == [["best", "79.974", "0.000%"], ["valid", "79.974", "0.000%"]]
    (solver,) = (line.split() for line in lines if "2/3" in line)
    assert solver[-7:] == ["2/3", "2", "1.0000", "67%", "67%", "67%", "67%"]
    assert "plans: 1 garbage." in lines


@pytest.mark.parametrize("done", [0, 1])
def test_what_is_known_at_ctrl_c_is_shown_and_said_to_be_partial(run, monkeypatch, tmp_path, done):
    def interrupted(runs, *arguments, **options):
        run_missing(runs[:done], *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(scores, "run_missing", interrupted)
    command = ["score", "--command", "true {instance} {plan}", "--instance", EASY, "--instance", LONGEST]
    outcome = run(*command, "-o", tmp_path)
    assert (outcome.code, outcome.err) == (130, "")
    assert (EASY in outcome.out, LONGEST in outcome.out) == (bool(done), False)
    assert f"Interrupted after {done} of 2 runs: all figures are of these alone.\nTable written to" in outcome.out
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 1 + done
    found = run(*command, "-o", tmp_path, "--json").json
    assert (found["interrupted"], found["missing"], len(found["scores"])) == (True, 2 - done, done)


def test_instances_show_the_fewest_gpus_on_record(run, monkeypatch):
    found, bound = (Finding(value, "exact", "me", "2025-01-01", "mig_opt 0.1.0", "why") for value in (13, 12))
    known = dataclasses.replace(instance_info("parvagpu-s5"), best=found, lower_bound=bound, difficulty="open")
    monkeypatch.setattr(library(), "infos", {known.name: known})
    assert re.search(r"^parvagpu-s5 +demand +13 +12 +7\.692% +open$", run("instances").out, re.MULTILINE)
    shown = run("instances", "parvagpu-s5").out
    assert re.search(r"^best known +feasible$", shown, re.MULTILINE)
    assert re.search(r"^GPUs +13 \(exact, me, 2025-01-01, mig_opt 0.1.0\): why$", shown, re.MULTILINE)
    assert re.search(r"^lower bound +12 \(", shown, re.MULTILINE)
