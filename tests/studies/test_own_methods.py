"""Heuristics and schedulers of one's own, as they are: in solve, deploy, comparisons, studies and scores."""

from typing import Any

import numpy as np
import pytest
from documents import refused
from study_parts import problems

from mig_opt import (
    Batch,
    RateTable,
    Study,
    compare,
    deploy_day,
    deploy_with_promise,
    generate_batch,
    generate_trace,
    load,
    plan_stream,
    prove,
    run_study,
    simulate,
    solve,
    write,
)
from mig_opt.api.deploy.deployment import deploy
from mig_opt.batch.schedule import Schedule
from mig_opt.environments import BatchAgent, FleetAgent
from mig_opt.errors import InputError, SolverError
from mig_opt.heuristics.fleet.queues import FirstFit
from mig_opt.instances.bundled import library
from mig_opt.method.result import Status
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment
from mig_opt.studies import BundledBatch, GeneratedBatches, GeneratedTraces, MethodSettings, PolicySettings
from mig_opt.studies.comparison import comparison_rows, comparison_to_csv, default_methods
from mig_opt.studies.scores import score

SMALL = "far-1xa30-006-mixed-2"
TRACE = "normal-25-2xa100-012-1"


def worst_first(batch: Batch) -> Schedule | None:
    """A heuristic of somebody."""
    return solve(batch, "list").schedule


def never(_: Batch) -> None:
    """A heuristic without an answer."""


def first(_: Any, mask: Any) -> int:
    return int(mask.argmax())


agent = FleetAgent(first)
planner = BatchAgent(first)


def test_a_function_is_a_method_with_the_whole_batch_and_the_time():
    batch, seen = load("rodinia-a30"), list[Any]()

    def mine(given: Batch, seconds: float) -> Schedule | None:
        seen.append((given, seconds))
        return worst_first(given)

    found = solve(batch, mine, time_limit=7)
    assert (found.method, found.makespan) == ("mine", solve(batch, "list").makespan)
    assert found.lower_bound > 0
    ((given, seconds),) = seen
    assert given == batch
    assert 6 < seconds <= 7
    assert solve(batch, never).status is Status.NO_SOLUTION


def test_functions_that_return_something_else():
    batch = load("rodinia-a30")
    refused(solve, batch, lambda given: given, match="returns a Schedule, but it returned one of type Batch")
    with pytest.raises(SolverError, match="invalid schedule"):
        solve(batch, lambda _: Schedule(()))
    with pytest.raises(ZeroDivisionError):
        solve(batch, lambda _: 1 / 0)


def test_a_function_of_a_demand_is_a_method_of_deploy():
    def mine(demand: Demand) -> Deployment | None:
        return deploy(demand, "igniter").deployment

    found = deploy(load("parvagpu-s1"), mine)
    assert (found.method, found.gpus) == ("mine", deploy(load("parvagpu-s1"), "igniter").gpus)


def test_functions_are_compared_as_they_are():
    batches = {"rodinia": load("rodinia-a30"), "mixed": load("far-1xa100-1xa30-008-mixed-1")}

    def broken(_: Batch) -> Schedule:
        return Schedule(())

    found = compare(batches, ["cp", worst_first, planner, never, broken], time_limit=10)
    lines = {line.method: line for line in found.methods}
    assert [lines[name].answered for name in ("cp", "worst_first", "BatchAgent", "never", "broken")] == [2, 2, 2, 0, 0]
    assert lines["cp"].best == 2
    assert [failure.partition(":")[0] for failure in found.failures] == ["broken on rodinia", "broken on mixed"]
    assert comparison_rows(found)[1]["method"] == "worst_first"
    assert comparison_rows(found)[-1]["gpu"] == "A100-40GB + A30-24GB"
    twice = problems(lambda: compare(batches, [lambda batch: None, lambda batch: None]))
    assert "two of them are called '<lambda>'" in twice["methods"]
    assert problems(lambda: compare(batches, [5])) == {
        "methods": "must be the name of a method, or a function, is 5 (int)"
    }


def test_schedulers_are_compared_on_traces():
    traces = {str(seed): generate_trace("normal-25", gpus=2, jobs=12, seed=seed) for seed in range(2)}
    found = compare(traces, ["first-fit", agent])
    assert [(line.policy, line.complete) for line in found.schedulers] == [("first-fit", 2), ("FleetAgent", 2)]
    assert (found.failures, found.contradictions) == ([], [])
    rows = comparison_rows(found)
    assert [row["policy"] for row in rows] == ["first-fit", "FleetAgent"] * 2
    assert all(row["flow_bound_s"] <= row["flow_s"] <= row["makespan_s"] for row in rows)
    text = comparison_to_csv(found)
    assert text.startswith("trace,gpu,gpus,jobs,policy,status,flow_s,flow_bound_s,wait_s,makespan_s,")
    assert "planner" in default_methods(traces=True)
    mixed: dict[str, Any] = {**traces, "batch": generate_batch(3)}
    assert "all batches, or all traces" in problems(lambda: compare(mixed, ["far"]))["batches"]
    assert "a Batch or a Trace" in problems(lambda: compare({"s1": load("parvagpu-s1")}))["batches.s1"]
    assert "first-fit" in problems(lambda: compare(traces, ["fist-fit"]))["methods"]
    assert "methods of Policy" in problems(lambda: compare(traces, [FirstFit]))["methods"]
    assert "partition" in problems(lambda: compare(traces, [agent], partition="4"))


@pytest.mark.parametrize("jobs", [None, 2])
def test_own_methods_and_schedulers_take_part_in_studies(jobs, tmp_path):
    study = Study(
        (
            GeneratedBatches(n=np.array([4]), operation_costs=(True, False)),
            BundledBatch("far-1xa100-1xa30-008-mixed-1"),
        ),
        (MethodSettings("far"), MethodSettings(worst_first), MethodSettings(planner, label="agent")),
        traces=(GeneratedTraces(("normal-25",), parameters={"jobs": (8,)}, gpus=(2,)),),
        policies=(PolicySettings("first-fit"), PolicySettings(agent)),
    )
    found = run_study(study, tmp_path / "rows.jsonl", jobs=jobs)
    assert found.failures == []
    assert {line.method for line in found.summary()} == {"far", "worst_first", "agent"}
    assert {line.policy: line.complete for line in found.trace_summary()} == {"first-fit": 1, "FleetAgent": 1}
    assert f'"method": "{__name__}:worst_first"' in (tmp_path / "rows.jsonl").read_text()
    again = run_study(study, tmp_path / "rows.jsonl", jobs=jobs)
    assert [row.date for row in again.rows] == [row.date for row in found.rows]
    with pytest.raises(InputError, match=r"(?s)methods\.method: worst_first is no name.*policies\.policy: FleetAgent"):
        write(study, tmp_path / "study.json")


def test_studies_refuse_what_other_processes_do_not_find():
    batches, traces, far = (GeneratedBatches(n=(4,)),), (GeneratedTraces(("normal-25",)),), (MethodSettings("far"),)
    for study, path, message in (
        (Study(batches, (MethodSettings(lambda batch: None),)), "methods[0].method", "at the top of a file"),
        (Study(traces=traces, policies=(PolicySettings(FleetAgent(first)),)), "policies[0].policy", "at the top of"),
        (Study(traces=traces, policies=(PolicySettings(agent, {"a": (1,)}),)), "policies[0].options.a", "given by"),
        (Study(batches, (MethodSettings("far", time_limit=5),)), "methods[0].time_limit", "a tuple of values"),
        (Study((GeneratedBatches((4,), 3, gpu=5),), (MethodSettings("far"),)), "batches[0].seeds", "a tuple of values"),
        (Study((GeneratedBatches((4,), scaling=({1: 1.0},)),), far), "batches[0].scaling", "a name"),
        (Study(batches, ("far",)), "methods[0]", "such as MethodSettings"),
        (Study(batches[0], (MethodSettings("far"),)), "batches", "must be a tuple"),
    ):
        assert message in problems(lambda study=study: run_study(study))[path]
    refused(run_study, Study(batches, (MethodSettings("os:abort"),)), match="unknown method 'os:abort'")


def test_entry_points_that_need_a_method_of_the_package_say_so():
    """Those that ask for a proof, or for a method that plans from what is running."""
    batch, demand = load("rodinia-a30"), load("parvagpu-s1")
    schedule = worst_first(batch)
    rates = RateTable((0, 3600), {service.name: (service.rate,) for service in demand.services})
    own: Any = never
    for call in (
        lambda: prove(batch, schedule, own),
        lambda: plan_stream([batch], method=own),
        lambda: deploy_day(demand, rates, own),
        lambda: deploy_with_promise(demand, method=own),
    ):
        refused(call, match="method: must be the name of a method, is <function never")


def test_a_file_with_text_of_a_place_runs_nothing(tmp_path):
    """Places are for processes that this package begins; a name in a file is one of the package, or none."""
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef method(batch): pass\n")
    for name in (f"{tmp_path}/evil.py:method", "os:abort"):
        refused(solve, load("rodinia-a30"), name, match="unknown method")
    assert not (tmp_path / "ran").exists()


def test_trained_models_are_scored():
    names = [TRACE, "reject-normal-25-1xa100-060-1"]
    flow, rejected = score(agent, names=names, time_limit=60).scores
    assert (flow.status, flow.solver) == ("valid", "agent")
    assert flow.value == pytest.approx(simulate(load(TRACE), agent).metrics.completion.mean)
    assert rejected.status == "valid"
    assert rejected.value >= rejected.lower_bound
    (batch,) = score(planner, names=[SMALL], time_limit=30, methods=[]).scores
    assert batch.status == "valid"
    assert batch.value == pytest.approx(planner(load(SMALL)).makespan)


@pytest.mark.deep
def test_a_scheduler_is_scored_on_all_traces():
    found = score(agent, difficulty="1 s", time_limit=60, jobs=2)
    assert {library().info(one.instance).kind for one in found.scores} == {"trace"}
    assert all(one.valid for one in found.scores)
