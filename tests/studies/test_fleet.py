"""Studies of schedulers on traces: which runs they mean, what rows and tables say, and what goes wrong."""

import dataclasses
import itertools
import json

import pytest
from online_worlds import job, trace
from study_jobs import cluster_of_two
from study_parts import FAR, FIRST_FIT, resumed, trace_document, two_jobs

from mig_opt import Method, Study, Trace, run_study
from mig_opt.files.fleet.traces import TRACE
from mig_opt.fleet.bounds import TraceBounds, trace_bounds
from mig_opt.simulation import Policy, Simulation, simulate
from mig_opt.studies import GeneratedBatches, GeneratedTraces, PolicySettings, TraceFromFile, study_rows
from mig_opt.studies.studies import read_run, runs_of

SMALL = Study(
    traces=(GeneratedTraces(("normal-25", "migm-ht1"), seeds=(0, 1), parameters={"jobs": (6,)}),),
    policies=(FIRST_FIT, PolicySettings("best-fit")),
)


def test_every_combination_is_a_run(tmp_path):
    thresholds = PolicySettings("fragmentation-aware", {"threshold": (0.2, 0.4, 0.6), "migration": (False,)})
    study = Study(
        traces=(
            GeneratedTraces(("normal-25", "long-25"), (0, 1, 2), gpus=(None, 2), parameters={"jobs": (5, 6)}),
            GeneratedTraces(("pcie-4",), (7,), group="PCIe"),
        ),
        policies=(FIRST_FIT, thresholds, PolicySettings("static", {"partition": (("4+3", "7"), "7")}, label="S")),
    )
    runs = runs_of(study, tmp_path)
    assert len(runs) == len({run.key for run in runs}) == (2 * 3 * 2 * 2 + 1) * (1 + 3 + 2)
    own = (f"fragmentation-aware:threshold={share}:migration=false" for share in ("0.2", "0.4", "0.6"))
    assert {run.column for run in runs} == {"first-fit", *own, "S:partition=4+3/7", "S:partition=7"}
    drawn = itertools.product(("normal-25", "long-25"), ("usual GPUs", "2 GPUs"), ("jobs=5", "jobs=6"))
    assert {run.cell for run in runs} == {"PCIe", *map(", ".join, drawn)}
    assert runs[-1].label == "S:partition=7 on pcie-4 (PCIe), seed 7"
    assert runs[0].label == "first-fit on normal-25, usual GPUs, jobs=5, seed 0"
    assert all(read_run(json.loads(run.key)).key == run.key for run in runs)


def test_cells_say_what_differs(tmp_path):
    costs = GeneratedTraces(("normal-25",), gpu=("A30", "A100"), operation_costs=(True, False))
    study = Study(traces=(costs, GeneratedTraces(("long-25",), parameters={"jobs": (9,)})), policies=(FIRST_FIT,))
    each = [f"normal-25, {gpu}{costs}" for gpu in ("A30", "A100") for costs in ("", ", no operation costs")]
    assert [run.cell for run in runs_of(study, tmp_path)] == [*each, "long-25, A100, jobs=9"]


def test_jobs_that_wait_for_ever_are_a_result(tmp_path):
    TRACE.write(trace(job("a", 0.0, "1g.5gb", 10.0), job("b", 0.0, "7g.40gb", 5.0)), tmp_path / "t.json")
    static = PolicySettings("static", {"partition": ("4+3", "7")})
    study = Study(traces=(TraceFromFile("t.json"),), policies=(FIRST_FIT, static))
    found = run_study(study, folder=tmp_path)
    # On 4+3 there is room for neither, on 7 only for b, which waits behind a.
    assert [row.outcome.status for row in found.rows] == ["feasible", "unfinished", "unfinished"]
    figures = found.rows[1].outcome.figures
    assert (figures["unfinished"], figures["unfinished_names"], figures["gaps"]["makespan"]) == (2, ["a", "b"], None)
    assert not found.failures
    lines = found.trace_summary()
    assert [(line.complete, line.unfinished, line.makespan is None) for line in lines[1:]] == [(0, 2, True)] * 2
    assert [entry.policies for entry in found.winners()] == [("first-fit",)] * 2


def test_a_study_is_resumed(tmp_path):
    path = tmp_path / "rows.jsonl"
    found = resumed(SMALL, path)
    assert study_rows(SMALL, path).rows == found.rows
    more = Study(traces=SMALL.traces, policies=(*SMALL.policies, PolicySettings("first-fit", {"backfill": (True,)})))
    assert [run.column for run in study_rows(more, path).missing] == ["first-fit:backfill=true"] * 4


@pytest.mark.deep
def test_a_cluster_gives_the_same(tmp_path):
    study = Study(traces=(*two_jobs(tmp_path).traces, *SMALL.traces), policies=(FIRST_FIT,))
    here = run_study(study, folder=tmp_path)
    with cluster_of_two() as scheduler:
        there = run_study(study, folder=tmp_path, scheduler=scheduler)
    assert not there.failures
    assert [row.outcome.figures for row in there.rows] == [row.outcome.figures for row in here.rows]


def test_methods_and_schedulers_share_a_study(tmp_path):
    path = tmp_path / "rows.jsonl"
    study = Study((GeneratedBatches(n=(3,)),), (FAR,), 2, traces=SMALL.traces, policies=SMALL.policies)
    found = run_study(study, path)
    assert len(found.rows) == 2 + 8, "simulations are not repeated"
    assert [(line.method, line.runs) for line in found.summary()] == [("far", 2)]
    assert [line.policy for line in found.trace_summary()] == ["first-fit", "best-fit"] * 2
    assert study_rows(study, path).rows == found.rows
    kinds = ["figures" in json.loads(line)["outcome"] for line in path.read_text().splitlines()]
    assert kinds == [False] * 2 + [True] * 8, "rows of methods are what they were"


@dataclasses.dataclass
class Broken(Policy):
    def arrived(self, cluster: object, job: int) -> None:
        raise ZeroDivisionError("broken")


def test_a_scheduler_that_crashes_is_a_row(tmp_path, monkeypatch):
    monkeypatch.setattr(Method, "load", lambda entry: Broken)
    found = run_study(two_jobs(tmp_path), folder=tmp_path)
    assert found.failures == ["first-fit on two: ZeroDivisionError: broken"]
    (line,) = found.trace_summary()
    assert (line.runs, line.complete, line.failed, line.makespan) == (1, 0, 1, None)


def test_options_that_do_not_fit_the_trace_are_a_failure(tmp_path):
    one_for_each = PolicySettings("static", {"partition": (("4+3", "7"),)})
    found = run_study(Study(traces=two_jobs(tmp_path).traces, policies=(one_for_each,)), folder=tmp_path)
    assert "partition: must be one for all GPUs or one for each, has 2" in found.failures[0]


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (lambda log: log.run_begin.__setitem__(1, 0.5), "violations of the log: runs[1]: 'b' begins at 0.5, before 1"),
        (lambda log: log.operation_begin.__setitem__(0, 0.25), "violations: "),
    ],
)
def test_logs_are_checked(tmp_path, monkeypatch, tamper, message):
    def tampered(trace: Trace, policy: str, **options: object) -> Simulation:
        done = simulate(trace, policy, **options)
        tamper(done.log)
        return done

    monkeypatch.setattr("mig_opt.studies.fleet.simulate", tampered)
    (failure,) = run_study(two_jobs(tmp_path), folder=tmp_path).failures
    assert message in failure


def test_what_beats_a_lower_bound_is_a_failure(tmp_path, monkeypatch):
    def doubled(trace: Trace) -> TraceBounds:
        bounds = trace_bounds(trace)
        more = tuple(dataclasses.replace(bound, value=2 * bound.value) for bound in bounds.completion)
        return dataclasses.replace(bounds, completion=more)

    monkeypatch.setattr("mig_opt.studies.fleet._bounds", doubled)
    (failure,) = run_study(two_jobs(tmp_path), folder=tmp_path).failures
    assert failure == "first-fit on two: jobs end after 13 s on the average, which is below the lower bound of 21.5 s"


@pytest.mark.deep
def test_long_labels_in_a_narrow_terminal(narrow, tmp_path):
    """Lines of a label have 20 characters among the figures, and 40 in the last column. Both do the same to one job."""
    TRACE.write(trace(job("a", 0.0, "7g.40gb", 10.0)), tmp_path / "one.json")
    study = tmp_path / "study.json"
    options = {"threshold": [0.4, 0.125], "load_balancing": True, "migration": False}
    policies = [{"policy": "fragmentation-aware", "options": options}]
    study.write_text(json.dumps(trace_document(traces=[{"file": "one.json"}], policies=policies)))
    lines = narrow("bench", study).out.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    label = ["  fragmentation-aware", "   :threshold=0.4", "   :load_balancing=", "    true", "   :migration=false"]
    assert [line[:22].rstrip() for line in lines[3:9]] == [*label, label[0]]
    first = next(index for index, line in enumerate(lines) if line.startswith("one     flow time  "))
    more = ":load_balancing=true:migration=false"
    expected = [text for own in ("0.4", "0.125") for text in (f"fragmentation-aware:threshold={own}", more)]
    assert [line.removeprefix("one     flow time").strip() for line in lines[first : first + 4]] == expected
