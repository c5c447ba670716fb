"""Drawn batches on several kinds of GPUs, demands with pools and costs, and days of rates."""

import json
from typing import Any

from documents import refused

from mig_opt import Pool, RateTable, deploy_day, generate_batch, get_gpu
from mig_opt.files.documents import rendered
from mig_opt.files.serving.days import day_document, day_plan_from_json
from mig_opt.instances.bundled import library, load
from mig_opt.instances.goals import day_of
from mig_opt.instances.serving import generate_demand, generate_rates
from mig_opt.serving.day import Day, DayPlan
from mig_opt.studies.scores import score
from mig_opt.validation.serving.days import validate_day

A30, A100 = get_gpu("A30"), get_gpu("A100")
DAY = "day-04x12-1"


def test_tasks_on_several_kinds_are_those_of_the_largest_with_other_times_on_the_others():
    batch = generate_batch(20, pools=(Pool(A30, 2), Pool(A100, 1), Pool(A30, 1, mig=False)), seed=3)
    alone = generate_batch(20, gpu="A100", seed=3)
    assert batch.label == "2 x A30-24GB + 1 x A100-40GB + 1 x A30-24GB without MIG"
    for task, like in zip(batch.tasks, alone.tasks, strict=True):
        times: Any = task.times
        assert times["A100-40GB"] == like.times
        assert set(times) == {"A100-40GB", "A30-24GB"}
        for size, seconds in times["A30-24GB"].items():
            assert 0.69 < seconds / like.times[size] < 1.61
    assert generate_batch(20, pools=(Pool(A30, 2), Pool(A100, 1)), seed=3).tasks == batch.tasks
    refused(generate_batch, 3, match=r"pools\[0\].count", pools=(Pool(A30), Pool(A100, 1)))


def test_services_of_mlperf_have_pools_and_costs():
    pools = (Pool(A30, 4), Pool(get_gpu("A100-80GB"), cost=2.2))
    demand = generate_demand(30, seed=2, models="mlperf-offline", pools=pools)
    base = {service.model: service for service in load("mlperf-offline").services}
    assert demand.pools == pools
    assert demand.unservable() == ()
    assert all(1 <= service.rate <= base[service.model].rate for service in demand.services)


def test_rates_of_a_day_are_below_those_of_the_demand():
    demand = load("parvagpu-s4")
    table = generate_rates(demand, 48, seed=5)
    assert (table.steps, table.times[-1]) == (48, 86_400)
    for service in demand.services:
        row = table.rates[service.name]
        assert 0.09 * service.rate <= min(row) < 0.2 * service.rate
        assert 0.85 * service.rate < max(row) <= service.rate


def test_a_day_is_exported_planned_by_the_command_line_and_scored(run, tmp_path):
    exported = run("instances", "export", tmp_path, "--kind", "demand")
    assert exported.out.split()[:2] == ["instances", str(len(list(tmp_path.glob("*.json"))) - 1)]  # and an index
    services, rates = tmp_path / f"{DAY}.json", tmp_path / f"{DAY}.csv"
    outcome = run("deploy", services, "--rates", rates, "--margin", "10%", "--json")
    (tmp_path / "plan.json").write_text(outcome.out)
    mine = score(DAY, tmp_path / "plan.json").scores[0]
    assert (mine.valid, mine.value, mine.ratio) == (True, outcome.json["cost"], 1.0)
    document = outcome.json
    document["steps"][5]["deployment"]["segments"].pop()
    (tmp_path / "plan.json").write_text(json.dumps(document))
    broken = score(DAY, tmp_path / "plan.json").scores[0]
    assert (broken.status, broken.value) == ("invalid", None)
    assert "deployments[5]" in broken.reason
    told = run("instances", DAY)
    assert "least GPU-hours" in told.out
    assert "rates: 4 entries, see --json" in told.out


def crowded() -> tuple[Day, DayPlan]:
    """A day on one A30: at first one service needs the whole GPU, which a change to four instances interrupts."""
    base = load("mlperf-offline")
    services = tuple(service for service in base.services if service.name in ("3d-unet", "rnnt"))
    demand = base.replace(services=services, pools=(Pool(A30, 1),))
    day = Day(demand, RateTable((0, 3600, 7200), {"3d-unet": (30.2, 5.0), "rnnt": (0.0, 100.0)}))
    plan = deploy_day(demand, day.rates, time_limit=20).plan
    assert (plan.created, plan.interrupted) == (2, 1)
    return day, plan


def test_a_plan_of_a_day_comes_back_as_it_was():
    day = day_of(load(DAY), library().info(DAY).question)
    easy = deploy_day(day.demand, day.rates, margin=day.margin, time_limit=5).plan
    for given, plan in ((day, easy), crowded()):
        again = day_plan_from_json(rendered(day_document(plan)), given)
        assert again.deployments == plan.deployments
        assert [change.steps for change in again.changes] == [change.steps for change in plan.changes]
        assert [change.interrupted for change in again.changes] == [change.interrupted for change in plan.changes]
        assert (validate_day(given, again).violations, given.cost(again)) == ((), given.cost(plan))


def test_documents_that_are_no_plan_of_a_day():
    day, plan = crowded()
    good = day_document(plan)

    def broken(**changes: Any) -> str:
        return json.dumps({"steps": [good["steps"][0], {**good["steps"][1], **changes}]})

    step = {"kind": "create", "gpu": "0", "profile": "1g.6gb", "start": 0, "begin": 0.0}
    for text, wrong in (
        ("{}", "steps: must be a list of 2"),
        ('{"steps": [1]}', "steps: must be a list of 2"),
        ('{"steps": [1, 2]}', r"steps\[0\].deployment.schema: is missing"),
        (broken(deployment=None), r"steps\[1\].deployment.schema: is missing"),
        (broken(change=None), r"steps\[1\].change.steps: must be a list"),
        (broken(change={"steps": [7]}), r"steps\[1\].change.steps\[0\].kind: is missing"),
        (broken(change={"steps": [step]}), r"steps\[1\].change.steps\[0\].gpu: must be a whole number"),
        (broken(change={"steps": [step]}), r"steps\[1\].change.steps\[0\].end: is missing"),
    ):
        refused(day_plan_from_json, text, day, match=wrong, source="plan.json")
    nowhere = {**step, "gpu": 9, "end": 0.1, "begins": "nobody", "batch": 1, "processes": 1}
    odd = day_plan_from_json(broken(change={"steps": [nowhere]}), day)
    assert validate_day(day, odd).violations
