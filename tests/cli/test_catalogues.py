"""The commands that list and make things: catalogues, generate, schema, export."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import get_args

import pytest
from command_line import BATCH, Outcome, refuses

from mig_opt._version import __version__
from mig_opt.files.batch.batches import read_batch
from mig_opt.files.shapes import Kind
from mig_opt.gpu.catalogue import catalogue, get_gpu
from mig_opt.instances.batch import generate_batch
from mig_opt.instances.bundled import FewestGpus, Finding, instance_info, instance_names
from mig_opt.method.registry import methods
from mig_opt.method.result import Status
from mig_opt.simulation.fleet.simulator import policy_options


@pytest.mark.deep
def test_instances(run):
    text, as_json = run("instances"), run("instances", "--json")
    names = [*instance_names("batch"), *instance_names("demand")]
    assert [entry["name"] for entry in as_json.json["instances"]] == names
    for name in names:
        info = instance_info(name)
        assert re.search(rf"^{name} +{info.kind} +{info.n} +{info.gpu} ", text.out, re.MULTILINE)
        one = run("instances", name)
        assert one.code == 0
        assert info.licence in one.out
        assert run("instances", name, "--json").json["derivation"] == info.derivation
    refuses(run("instances", "miso"), "error: NAME: no bundled instance 'miso'; did you mean miso-a100-32?")


def test_instances_show_the_fewest_gpus_on_record(run, monkeypatch):
    found, bound = (Finding(value, "exact", "me", "2025-01-01", "mig_opt 0.1.0", "why") for value in (13, 12))
    known = dataclasses.replace(
        instance_info("parvagpu-s5"), fewest_gpus=FewestGpus(Status.FEASIBLE, gpus=found, lower_bound=bound)
    )
    monkeypatch.setattr("mig_opt.instances.bundled.instance_info", lambda name: known)
    assert re.search(r"^parvagpu-s5 +demand +11 +A100-80GB +13 +12$", run("instances").out, re.MULTILINE)
    shown = run("instances", "parvagpu-s5").out
    assert re.search(r"^best known +feasible$", shown, re.MULTILINE)
    assert re.search(r"^GPUs +13 \(exact, me, 2025-01-01, mig_opt 0.1.0\): why$", shown, re.MULTILINE)
    assert re.search(r"^lower bound +12 \(", shown, re.MULTILINE)


def test_gpus(run):
    text, as_json = run("gpus"), run("gpus", "--json")
    assert [entry["name"] for entry in as_json.json["gpus"]] == [model.name for model in catalogue()]
    for model in catalogue():
        assert model.name in text.out
    one = run("gpus", "a100")
    for profile in get_gpu("A100").profiles:
        assert f"{profile.name} " in one.out
    assert "4g.20gb@0 + 3g.20gb@4\n" in one.out
    assert "maximal partitions (14 distinct)" in one.out
    described = run("gpus", "A100", "--json").json
    assert len(described["maximal_partitions"]) == 19
    assert len(described["distinct_partitions"]) == 14
    assert described["operations_assumed"] is False
    refuses(run("gpus", "A31"), "error: NAME: unknown GPU 'A31'; did you mean A30")


def test_methods(run):
    text, as_json = run("methods"), run("methods", "--json")
    assert [entry["name"] for entry in as_json.json["methods"]] == [method.name for method in methods()]
    assert as_json.json["auto"] == "cp"
    assert all(f"\n{method.name} " in text.out for method in methods())
    assert [entry["name"] for entry in as_json.json["deploy_methods"]] == [method.name for method in methods("deploy")]
    assert as_json.json["deploy_auto"] == "exact"
    assert all(f"\n{method.name} " in text.out for method in methods("deploy"))
    assert [entry["name"] for entry in as_json.json["policies"]] == [policy.name for policy in methods("simulate")]
    assert all(f"\n{policy.name} " in text.out for policy in methods("simulate"))
    assert as_json.json["policies"][-1]["options"] == list(policy_options(methods("simulate")[-1]))


def test_versions(run):
    text, as_json = run("versions"), run("versions", "--json")
    assert as_json.json["mig-opt"] == __version__
    assert {"python", "ortools", "pulp", "networkx", "numpy", "pydantic", "typer", "rich"} <= set(as_json.json)
    assert f"ortools     {as_json.json['ortools']}\n" in text.out
    assert run("--version") == Outcome(0, f"mig-opt {__version__}\n", "")


def test_generate(run, tmp_path):
    path = tmp_path / "made.json"
    options = ("-n", 5, "--gpu", "A30", "--gpus", 2, "--seed", 7, "--scaling", "GoodScaling", "--times", "NarrowTimes")
    more = ("--p-sup", 0.25, "--decimals", 1, "--variant", "published-program")
    more += ("--memory-bound", 0.5, "--shuffle", "--decided-by", "size")
    printed = run("generate", *options, *more)
    written = run("generate", *options, *more, "-o", path)
    assert (printed.code, printed.err) == (0, "")
    assert written == Outcome(0, f"Batch written to {path}.\n", "")
    assert printed.out == path.read_text()
    assert read_batch(path) == generate_batch(
        5,
        gpu="A30",
        gpus=2,
        seed=7,
        scaling="GoodScaling",
        times="NarrowTimes",
        p_sup=0.25,
        decimals=1,
        variant="published-program",
        memory_bound=0.5,
        shuffle=True,
        decided_by="size",
    )


def test_generate_names_every_wrong_option(run, tmp_path):
    wrong = {"-n": 0, "--scaling": "mixed", "--times": "wide", "--p-sup": 2, "--gpu": "A31", "--gpus": 0, "--seed": -1}
    wrong |= {"--decimals": -1, "--memory-bound": 2, "--variant": "x", "--decided-by": "y"}
    outcome = run("generate", *(part for pair in wrong.items() for part in pair), "-o", tmp_path / "no" / "x.json")
    refuses(outcome, *(f"\n  {option}: " for option in wrong), "there is no folder")
    refuses(run("generate", "-n", 3, "--gpus", 2_000_000), "error: --gpus: must be from 1 to 1000000")


def test_a_demand_is_not_solved_but_deployed(run):
    for command in ("solve", "explain", "compare"):
        refuses(
            run(command, "parvagpu-s1"),
            "error: parvagpu-s1: is a demand of services, not a batch of tasks; its command is: mig-opt deploy parv",
        )


@pytest.mark.parametrize("kind", get_args(Kind))
def test_schema(run, kind):
    assert f"{kind}" in run("schema", "--help").out
    outcome = run("schema", kind)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json["title"] == f"mig-opt/{kind}/1"


def test_schema_of_what_is_no_kind_of_file(run):
    refuses(run("schema", "btch"), "error: KIND: no kind of file is called 'btch'; did you mean batch?")


def test_export(run, tmp_path):
    for path, more in ((tmp_path / "a.lp", []), (tmp_path / "a.mps", ["--strict", "--gpus", 2])):
        outcome = run("export", "rodinia-a30", path, *more)
        assert (outcome.code, outcome.out, outcome.err) == (0, f"Program written to {path}.\n", "")
    assert "(relaxed:" in (tmp_path / "a.lp").read_text()
    text = (tmp_path / "a.mps").read_text()
    assert "(strict:" in text
    assert "2 x A30-24GB" in text


def test_export_names_everything_that_is_wrong(run, tmp_path):
    outcome = run("export", "rodinia-a3", tmp_path / "no" / "a.txt")
    refuses(outcome, "did you mean rodinia-a30?", "not as '.txt'", "there is no folder")
    batch = tmp_path / "batch.json"
    batch.write_text(json.dumps(BATCH))
    assert run("export", batch, batch).code == 2
    assert json.loads(batch.read_text()) == BATCH
