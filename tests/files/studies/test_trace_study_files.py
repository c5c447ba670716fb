"""Study files with schedulers and traces: what they mean, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

from study_parts import problems, trace_document, two_jobs

from mig_opt.studies import (
    GeneratedTraces,
    PolicySettings,
    Study,
    TraceFromFile,
    read_study,
    run_study,
    study_from_json,
)


def test_json_and_toml_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'schema = "mig-opt/study/1"\n'
        '[[traces]]\nfamily = ["normal-25", "pcie-4"]\nseeds = 2\ngpus = 3\nparameters = { jobs = [5, 6] }\n'
        'group = "g"\n[[traces]]\nfile = "two.json"\n'
        '[[policies]]\npolicy = "static"\noptions = { partition = ["7", ["4+3", "7"]], backfill = true }\n'
        'label = "S"\n'
    )
    two_jobs(tmp_path)
    wanted = trace_document(
        traces=[
            {"family": ["normal-25", "pcie-4"], "seeds": [0, 1], "gpus": [3], "parameters": {"jobs": [5, 6]},
             "group": "g"},
            {"file": "two.json"},
        ],
        policies=[
            {"policy": "static", "options": {"partition": ["7", ["4+3", "7"]], "backfill": [True]}, "label": "S"}
        ],
    )  # fmt: skip
    expected = Study(
        traces=(
            GeneratedTraces(("normal-25", "pcie-4"), (0, 1), gpus=(3,), parameters={"jobs": (5, 6)}, group="g"),
            TraceFromFile("two.json"),
        ),
        policies=(PolicySettings("static", {"partition": ("7", ["4+3", "7"]), "backfill": (True,)}, "S"),),
    )
    assert read_study(tmp_path / "s.toml") == study_from_json(wanted, folder=tmp_path) == expected


def test_everything_wrong_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"schema": "mig-opt/trace/1", "gpu": "A31", "jobs": []}')
    wrong = trace_document(
        traces=[
            {"family": ["normal-25", "nrmal"], "seeds": 0, "gpu": ["A100", "A31"], "gpus": [1, 0]},
            {"family": "normal-25", "parameters": {"jobs": [5, 0], "batches": 3, "sigma": []}},
            {"family": ["normal-25", "far-stream"], "parameters": {"jobs": [1000000, 0]}},
            {"family": "migm-qwen2", "parameters": {"iterations": 10}},
            {"file": "nope.json"},
            {"file": "bad.json", "gpus": 0},
            {"file": "x", "family": "normal-25"},
            {"family": "normal-25", "colour": 1, "parameters": 3},
        ],
        policies=[
            {"policy": "first-fot"},
            {"policy": "fragmentation-aware", "options": {"threshold": [0.4, 7], "patition": "7"}},
            {"policy": "fragmentation-aware", "options": {"threshold": [0.4, 7], "migration": [True, 3]}},
            {"policy": "best-fit"},
            {"policy": "best-fit"},
            {"polcy": "best-fit"},
        ],
    )
    found = problems(lambda: study_from_json(wrong, folder=tmp_path))
    assert set(found) == {
        "policies[0].policy",
        "policies[1].options.patition",
        "policies[2].options.migration",
        "policies[2].options.threshold",
        "policies[4].label",
        "policies[5].polcy",
        "policies[5].policy",
        "traces[0].family[1]",
        "traces[0].gpu[1]",
        "traces[0].gpus[1]",
        "traces[0].seeds",
        "traces[1].parameters.sigma",
        "traces[2].parameters.jobs",
        "traces[3].parameters.fails_at",
        "traces[4].file",
        "traces[5].file",
        "traces[5].gpus",
        "traces[6]",
        "traces[7].colour",
        "traces[7].parameters",
    }
    assert found["traces[0].family[1]"].endswith("did you mean normal-50 or normal-25?")
    assert found["policies[0].policy"].endswith("did you mean first-fit or best-fit?")
    assert found["policies[2].options.threshold"] == "must be a share from 0 to 1 (0.01 is one percent), is 7"
    assert found["policies[4].label"].startswith("tables would call this 'best-fit', like policies[3]")
    wrong = trace_document(traces=[{"family": "normal-25", "parameters": {"jobs": [5, 0], "batches": 3}}])
    assert set(problems(lambda: study_from_json(wrong))) == {
        "traces[0].parameters.jobs",
        "traces[0].parameters.batches",
    }


def test_traces_need_schedulers_and_the_other_way_round() -> None:
    for key in ("traces", "policies"):
        for value in ([], 3):
            assert key in problems(lambda key=key, value=value: study_from_json(trace_document(**{key: value})))
        alone = trace_document()
        del alone[key]
        assert problems(lambda alone=alone: study_from_json(alone)) == {key: "needs at least one entry"}
    neither = problems(lambda: study_from_json({"schema": "mig-opt/study/1"}))
    assert neither == dict.fromkeys(
        ("batches", "methods"), "needs at least one entry, or the study needs traces and policies"
    )
    assert set(problems(lambda: study_from_json(trace_document(batches=[{"n": 3}])))) == {"methods"}


def test_studies_made_in_python_are_checked_too() -> None:
    wrong = Study(
        traces=(GeneratedTraces(()), GeneratedTraces(("normal-25",), parameters={"jobs": 5})),  # type: ignore[dict-item]
        policies=(PolicySettings(3), PolicySettings("first-fit", {"backfill": True})),  # type: ignore[arg-type,dict-item]
    )
    assert set(problems(lambda: run_study(wrong))) == {
        "policies[0].policy",
        "policies[1].options.backfill",
        "traces[0].family",
        "traces[1].parameters.jobs",
    }
