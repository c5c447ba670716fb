"""mig-opt trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Command, called, refuses

from mig_opt import generate_trace
from mig_opt.files.fleet.traces import read_trace, trace_to_json
from mig_opt.fleet.bounds import trace_bounds
from mig_opt.instances.fleet.registry import trace_families

FAMILIES = [family.name for family in trace_families()]


@pytest.fixture
def mig_opt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *arguments: called(capsys, "trace", *arguments)


def test_families_are_listed(mig_opt: Command) -> None:
    out = mig_opt("families").out
    assert [name for name in FAMILIES if f"\n{name} " not in out] == []
    assert max(map(len, out.splitlines())) <= 80
    assert [family["name"] for family in mig_opt("families", "--json").json["families"]] == FAMILIES


def test_a_family_says_what_is_assumed(mig_opt: Command) -> None:
    code, out, _ = mig_opt("families", "pcie-4")
    assert code == 0
    for text in ("pcie_share", "Assumed:", "Arrivals are not printed", "Table 2"):
        assert text in out
    document = mig_opt("families", "pcie-4", "--json").json
    assert document["gpus"] == 4
    assert {key: document["parameters"][3][key] for key in ("name", "default")} == {"name": "load", "default": 0.9}
    refuses(mig_opt("families", "pci"), "error: NAME: no family of traces is called 'pci'; did you mean pcie-4")


def test_generate(mig_opt: Command, tmp_path: Path) -> None:
    outcome = mig_opt("generate", "pcie-4", "-n", 7, "--set", "pcie_share=1", "--seed", 3, "--gpus", 2)
    assert outcome.out == trace_to_json(generate_trace("pcie-4", jobs=7, pcie_share=1, seed=3, gpus=2))
    code, out, err = mig_opt("generate", "far-stream", "--gpu", "A30", "--set", "times=NarrowTimes", "-o", "a.json")
    assert (code, out, err) == (0, "Trace written to a.json.\n", "")
    assert read_trace(tmp_path / "a.json") == generate_trace("far-stream", gpu="A30", times="NarrowTimes")
    # What looks like a number is a text where the family wants one.
    assert mig_opt("generate", "pcie-4", "--set", "sizes=2").out == trace_to_json(generate_trace("pcie-4", sizes="2"))
    assert mig_opt("generate", "normal-25", "-n", 3, "-o", "a.csv").code == 0
    assert read_trace(tmp_path / "a.csv", gpu="A100", gpus=4) == generate_trace("normal-25", jobs=3)


def test_generate_says_all_that_is_wrong_at_once(mig_opt: Command, tmp_path: Path) -> None:
    refuses(
        mig_opt("generate", "pcie-4", "-n", 0, "--set", "load=0", "--set", "spead=1", "--set", "x", "--gpu", "A101",
                "--seed", -1, "-o", "none/a.json"),
        "--set: must be NAME=VALUE, like jobs=50, is 'x'",
        "-n: must be from 1 to",
        "--set load: must be a finite number > 0, is 0",
        "--set spead: pcie-4 has no parameter of that name; did you mean spread?",
        "unknown GPU 'A101'",
        "--seed: must be from 0",
        "none/a.json: cannot be written: there is no folder",
    )  # fmt: skip
    refuses(
        mig_opt("generate", "pcie-4", "-n", 3, "--set", "jobs=4", "--set", "load=1", "--set", "load=2"),
        "--set: jobs is set more than once (by -n, too); keep one",
        "--set: load is set more than once; keep one",
    )
    refuses(mig_opt("generate", "pcie-4", "--set", "gpus=4"), "--set: gpus is no parameter of a family")
    refuses(mig_opt("generate", "pci-4"), "FAMILY: no family of traces is called 'pci-4'; did you mean pcie-4")
    refuses(mig_opt("generate", "migm-qwen2", "-o", "a.csv"), "a CSV file cannot hold how memory grows")
    assert list(tmp_path.iterdir()) == []


def described(mig_opt: Command, *arguments: object) -> Any:
    return mig_opt("describe", *arguments, "--json").json


def test_describe(mig_opt: Command, tmp_path: Path) -> None:
    header = "job,arrival_s,profile,work_s,memory_gb,pcie_gbps\n"
    table = f"{header}a,10,1g.5gb,10,4,\nb,20,2g.10gb,30,,15.04\nc,50,1g.5gb,20,,\n"
    (tmp_path / "a.csv").write_text(table)
    found = described(mig_opt, "a.csv", "--gpu", "A100", "--gpus", 2)
    assert (found["jobs"], found["gpus"], found["gpu"]) == (3, 2, "A100-40GB")
    assert (found["first_arrival"], found["last_arrival"], found["area"]) == (10, 50, 10 + 60 + 20)
    assert found["load"] == pytest.approx(70 / (14 * 40))
    assert found["profiles"] == {"1g.5gb": 2, "2g.10gb": 1}
    assert (found["gaps"], found["work"]) == ([10, 15, 20, 25, 29, 30], [10, 15, 20, 25, 29, 30])
    assert (found["memory"], found["memory_known"], found["memory_growing"]) == ([4] * 6, pytest.approx(1 / 3), 0)
    assert (found["pcie_bound"], found["pcie_demand"]) == (pytest.approx(1 / 3), pytest.approx(0.5))
    code, out, err = mig_opt("describe", "a.csv", "--gpu", "A100", "--gpus", 2)
    assert (code, err) == (0, "")
    for text in ("a (3 jobs)", "2 x A100-40GB", "12.5% of the compute slices", "66.7", "33.3% of the jobs, with 50.0%"):
        assert text in out
    assert max(map(len, out.splitlines())) <= 80


def test_describe_with_bounds(mig_opt: Command, tmp_path: Path) -> None:
    mig_opt("generate", "normal-25", "-n", 5, "-o", "a.json")
    bounds = trace_bounds(read_trace(tmp_path / "a.json"))
    found = described(mig_opt, "a.json", "--bounds")["bounds"]
    assert found["mean_completion"] == bounds.mean_completion
    assert [bound["value"] for bound in found["makespan"]] == [bound.value for bound in bounds.makespan]
    out = mig_opt("describe", "a.json", "--bounds").out
    assert f"{bounds.completion[0].value:.3f}" in out
    assert "latest job" in out


def test_describe_one_moment(mig_opt: Command) -> None:
    mig_opt("generate", "migm-llama3", "-o", "a.json")
    found = described(mig_opt, "a.json")
    assert (found["load"], found["gaps"], found["profiles"]) == (None, [], {"any": 1})
    assert found["memory_growing"] == 1
    assert "all arrive at once" in mig_opt("describe", "a.json").out


def test_describe_standard_input(mig_opt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    text = trace_to_json(generate_trace("normal-25", jobs=3))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert described(mig_opt, "-")["jobs"] == 3


def test_describe_what_is_wrong(mig_opt: Command, tmp_path: Path) -> None:
    refuses(mig_opt("describe", "a.json"), "error: a.json: no such file")
    (tmp_path / "a.csv").write_text("job,arrival_s,profile,work_s\na,-1,1g.5gb,0\n")
    refuses(mig_opt("describe", "a.csv"), "give it, for example", "line 2, arrival_s", "line 2, work_s")
    refuses(mig_opt("describe", "a.csv", "--gpu", "A101"), "--gpu: unknown GPU 'A101'")
    refuses(mig_opt("describe", "a.csv", "--gpu", "A100", "--gpus", 0), "--gpus: must be from 1")
    document = {"schema": "mig-opt/trace/1", "gpu": "A100", "jobs": [{"name": "a", "arrival": 0, "times": {"1": 1}}]}
    document["jobs"][0]["memory_gb"] = 99  # type: ignore[index]
    (tmp_path / "a.json").write_text(json.dumps(document))
    refuses(mig_opt("describe", "a.json"), "jobs[0]: job 'a' can run nowhere")


def test_import(mig_opt: Command, tmp_path: Path) -> None:
    header = "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
    (tmp_path / "pods.csv").write_text(f"{header}a,1,500,5,25,5\nb,0,0,6,9,6\nc,2,1000,9,19,9\nd,1,500,90,99,90\n")
    (tmp_path / "nodes.csv").write_text("sn,gpu\nn,8\n")
    code, out, err = mig_opt("import", "pods.csv", "--nodes", "nodes.csv", "--last-s", 50, "-o", "a.json")
    assert (code, out) == (0, "Trace written to a.json.\n")
    assert err.splitlines() == [
        "note: 4 pods became 3 jobs, 2 of them parts of larger pods",
        "note: left out 1 that ask for no GPU",
        "note: left out 1 that are outside of the window",
    ]
    trace = read_trace(tmp_path / "a.json")
    assert ([job.name for job in trace.jobs], trace.gpus) == (["a", "c/0", "c/1"], 8)
    assert mig_opt("import", "pods.csv").json["jobs"][0]["profile"] == "4g.20gb"
    refuses(mig_opt("import", "pods.csv", "--gpus", 0, "--cover", "x", "-o", "pods.csv"), "--gpus: must be", "--cover:",
            "is read as well (pods.csv)")  # fmt: skip
    refuses(mig_opt("import", "none.csv"), "error: none.csv: no such file")


def test_import_of_migbench(mig_opt: Command, tmp_path: Path) -> None:
    jobs = [
        {"jobID": "a", "arrivalMS": 0, "computeCoreMS": 28000, "memoryMB": 20480},
        {"jobID": "b", "arrivalMS": 250, "computeCoreMS": 14000, "memoryMB": 10240},
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, jobs)))
    (tmp_path / "s.csv").write_text("backend,jobs,makespan_ms,mean_wait_ms,p95_wait_ms\nhami,3,12000,1500,2500\n")
    code, out, err = mig_opt("import", "t.jsonl", "--published", "s.csv", "-o", "a.json")
    assert (code, out) == (0, "Trace written to a.json.\n")
    assert err.splitlines() == [
        "note: published: hami: makespan 12.000 s, wait 1.500 s on the mean, 2.500 s at 95 %",
        "note: these are results of 3 jobs, the trace has 2",
    ]
    trace = read_trace(tmp_path / "a.json")
    assert [(job.profile, job.arrival) for job in trace.jobs] == [("2g.20gb", 0.0), ("1g.10gb", 0.25)]
    assert trace.gpus == 8
    free = mig_opt("import", "t.jsonl", "--sizes", "any", "--gpus", 2).json
    assert free["jobs"][1]["times"] == {"1": 1.0, "2": 0.5, "3": 1 / 3, "7": 0.14}
    assert mig_opt("import", "t.jsonl", "--format", "migbench").json["jobs"][0]["profile"] == "2g.20gb"
    refuses(mig_opt("import", "t.jsonl", "--format", "x"), "--format: must be openb or migbench")
    refuses(
        mig_opt("import", "t.jsonl", "--cover", "both", "--sizes", "x"),
        "--cover: is for --format openb",
        "--sizes: must",
    )
    refuses(mig_opt("import", "t.jsonl", "--format", "openb", "--sizes", "any"), "--sizes: is for --format migbench")
    refuses(
        mig_opt("import", "t.jsonl", "--published", "none.csv", "--gpus", 0), "none.csv: no such file", "--gpus: must"
    )
