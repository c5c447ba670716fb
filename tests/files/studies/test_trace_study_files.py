"""Study files with schedulers and traces: what they mean, and what is wrong with them."""

from study_parts import problems, trace_document, two_jobs

from mig_opt import Study, run_study
from mig_opt.studies import GeneratedTraces, PolicySettings, TraceFromFile, read_study, study_from_json


def test_json_and_toml_say_the_same(tmp_path):
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


def test_studies_made_in_python_are_checked_too():
    wrong = Study(
        traces=(GeneratedTraces(()), GeneratedTraces(("normal-25",), parameters={"jobs": 5})),
        policies=(PolicySettings(3), PolicySettings("first-fit", {"backfill": True})),
    )
    assert set(problems(lambda: run_study(wrong))) == {
        "policies[0].policy",
        "policies[1].options.backfill",
        "traces[0].family",
        "traces[1].parameters.jobs",
    }
