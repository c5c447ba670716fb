"""Each function names the arguments that are something else altogether."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mig_opt
import mig_opt.studies
from mig_opt import Deployment, FleetState, InputError, Task, get_gpu, load, solve

face: Any = mig_opt  # of types that nobody checks
studies: Any = mig_opt.studies
TASKS, GPU, STATE, RODINIA = (Task("a", {1: 2.0}),), get_gpu("A30"), load("fleet-004xa100-1"), load("rodinia-a30")
PLAN, ARRAY = solve(RODINIA, "far").schedule, np.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: face.Batch((), GPU), ["tasks: needs at least one task, is empty"]),
        (lambda: face.Batch(TASKS, "A30"), ["gpu: must be a GpuModel, for example get_gpu('A100'), is 'A30'"]),
        (lambda: face.Batch(TASKS, GPU, operations=3), ["operations: must be OperationCosts, is 3 (int)"]),
        (lambda: face.Task("a", {1: 2.0, "2": 1.0, None: 3.0}), ["times.2: must be a whole number of", "times.None: "]),
        (lambda: face.Task("a", {"1": 2.0}), ["times.1: must be a whole number of compute slices, is '1' (str)"]),
        (lambda: face.validate(RODINIA, None), ["schedule: must be a Schedule, for example that of a"]),
        (lambda: face.validate(face.Day.__new__(face.Day), 3), ["plan: must be a DayPlan, for example deploy_day("]),
        (lambda: face.Schedule(None), ["runs: must be a tuple of runs"]),
        (lambda: face.Schedule((), 3), ["operations: must be a tuple of operations"]),
        (
            lambda: face.validate(RODINIA, face.Schedule([face.Run("a", "0", [], 0, None, 1.0)])),
            ["schedule.runs[0].gpu: ", ".profile: ", ".begin: "],
        ),
        (lambda: face.Batch(TASKS, GPU, initial=[face.LiveInstance("0", "1g.6gb", 0)]), ["initial[0].gpu: must be a"]),
        (lambda: face.Deployment(["A30"], [face.Segment("a", 0, "1g.6gb", 0, 1, None)]), ["segments[0].processes: "]),
        (lambda: face.validate(FleetState(GPU, 1, ()), [face.Migration(0, "x", 0, 0.5, 1)]), ["migrations[0].to_gpu"]),
        (lambda: face.FleetState(GPU, 1, (), kinds=3), ["kinds: must be a tuple, each entry a GpuModel"]),
        (lambda: face.Job("a", 0.0, {1: 1.0}, profile=3), ["profile: must be a text, is 3 (int)"]),
        (lambda: face.defragment(None, most_migrations=-1), ["state: must be a FleetState", "most_migrations: "]),
        (lambda: face.optimum(None), ["trace: must be a Trace"]),
        (lambda: face.declare_times(None, "x"), ["trace: must be a Trace", "knowledge: must be"]),
        (lambda: face.excess_fragmentation(None), ["log: must be a Log, for example simulate(trace, policy).log"]),
        (lambda: face.plan_stream(None), ["batches: must be a tuple, each entry a Batch"]),
        (lambda: face.concatenate("nix"), ["plans: must be a tuple, each entry a pair"]),
        (
            lambda: face.concatenate([(1, 2), (3,)]),
            ["plans[0].batch: ", "plans[0].schedule: ", "plans[1]: must"],
        ),
        (lambda: face.handover(3, 4, 5), ["batch: must be a Batch", "schedule: must be", "following: must be a Batch"]),
        *((lambda name=name: face.load(name), ["no bundled instance", "known: "]) for name in (3, [], ARRAY)),
        *((lambda name=name: face.generate_trace(name), ["known: "]) for name in (None, [], ARRAY)),
        *((lambda name=name: GPU.placement(name, 0), ["profile: A30-24GB has no profile"]) for name in ([], ARRAY)),
        *((lambda name=name: face.schema(name), ["kind: no kind of file is called"]) for name in ([], ARRAY)),
        *((lambda name=name: face.export(RODINIA, name), ["format: cannot be"]) for name in ([], ARRAY)),
        *((lambda name=name: face.solve(RODINIA, name), ["method: must be the name"]) for name in ([], ARRAY)),
        (lambda: face.defragment(STATE, free=ARRAY), ["free: must be gpus or nodes"]),
        (lambda: face.generate_batch(4, variant=ARRAY), ["variant: unknown array"]),
        (lambda: dataclasses.replace(GPU, operation_costs=3), ["operation_costs: must be OperationCosts, is 3 (int)"]),
        (lambda: face.simulate(face.generate_trace("pcie-4"), observer="x"), ["observer: must be a function of"]),
        (lambda: face.run_schedule(RODINIA, PLAN, {}, journal="x"), ["commands: must be a Commands, for example read"]),
        (
            lambda: dataclasses.replace(face.prove(RODINIA, PLAN), claim=3, slice_load=None, tick=ARRAY, versions="x"),
            ["claim: must be a Claim", "slice_load: must be a SliceLoad", "tick: must be a text", "versions: must be"],
        ),
        (lambda: face.plot(RODINIA, to="x.png", title=3), ["title: must be a str, is 3 (int)"]),
        (lambda: studies.compare({}, "far"), ["methods: must be a tuple, each entry the name of a method, is 'far'"]),
        *((lambda b=b: studies.compare(b), ["batches: must be batches or traces by their names"]) for b in (None, [1])),
        (lambda: studies.run_study(None), ["study: must be a Study"]),
        (
            lambda: face.generate_batch(2.5, scaling=None, times=[], seed=10**5000, gpus=[10**5000]),
            ["n: must be", "times: must be", "scaling: ", "seed: must be from", "gpus: must be"],
        ),
        (lambda: face.generate_batch(4, variant=None, seed="x", decimals="x"), ["variant", "seed: ", "decimals: "]),
        (lambda: face.generate_batch(4, pools="nix"), ["pools: must be a tuple, each entry a Pool"]),
        (lambda: face.generate_trace("normal-25", pools=[3]), ["pools[0]: must be a Pool"]),
        (
            lambda: face.simulate_requests(load("parvagpu-s1"), Deployment(("A100-80GB",), ()), batching=3),
            ["batching: must be a Batching"],
        ),
        (
            lambda: face.plan_change(Deployment(("A30",), ()), Deployment(("A30",), ()), operations=3),
            ["operations: must be OperationCosts by the names of GPUs"],
        ),
    ],
)
def test_each_argument_is_named(call: Callable[[], Any], named: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert [name for name in named if name not in str(caught.value)] == []


def test_costs_that_are_none_are_those_of_the_gpu() -> None:
    assert face.Batch(TASKS, GPU, operations=None).operations == GPU.operation_costs
