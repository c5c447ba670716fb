"""Agents outside of their environments: the same decisions give the same schedule and the same simulation."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import assert_sound, audit, columns, traces

from mig_opt import InputError, Task, Trace, generate_batch, generate_trace, load, simulate
from mig_opt.environments import BatchAgent, FleetAgent
from mig_opt.environments.masked import Choice, Mask, Observation
from mig_opt.studies import compare


def scorer(seed: int) -> Choice:
    """A model without memory: a random line through what it sees, so that it decides by that alone."""

    def choose(observation: Observation, mask: Mask) -> int:
        rng = np.random.default_rng(seed)
        seen = np.concatenate([np.asarray(part, dtype=float).ravel() for part in observation.values()])
        level = float(np.cos(seen @ rng.normal(size=len(seen))))
        allowed = mask.nonzero()[0]
        return int(allowed[int((level + 1) / 2 * (len(allowed) - 1))])

    return choose


def played(env: Any, choose: Choice, **reset: Any) -> dict[str, Any]:
    info: dict[str, Any]
    seen, info = env.reset(**reset)
    over = False
    while not over:
        seen, _, over, _, info = env.step(choose(seen, info["action_mask"]))
    return info


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("family", ["normal-25", "pcie-4", "migm-ht1"])
def test_the_same_simulation_inside_and_outside(family: str, seed: int) -> None:
    trace = generate_trace(family, jobs=15, gpus=2, seed=seed)
    env = gymnasium.make("mig_opt/Fleet-v0", window=3, instance=trace).unwrapped
    inside = played(env, scorer(seed))["simulation"]
    outside = simulate(trace, FleetAgent(scorer(seed), window=3))
    assert columns(inside.log) == columns(outside.log)
    assert (inside.metrics, inside.events) == (outside.metrics, outside.events)


@pytest.mark.deep
@settings(max_examples=40, deadline=None)
@given(traces(), st.integers(0, 1000), st.booleans())
def test_an_agent_is_a_scheduler_like_others(trace: Trace, seed: int, reject: bool) -> None:
    done = simulate(trace, FleetAgent(scorer(seed)), observer=audit, reject=reject, failure_limit=5)
    assert_sound(done.log)
    assert done.metrics.finished + len(done.rejected) + len(done.unfinished) == len(trace.jobs)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_schedule_inside_and_outside(seed: int) -> None:
    batch = generate_batch(7, gpus=2, seed=seed)
    env = gymnasium.make("mig_opt/Batch-v0", tasks=7, gpus=2).unwrapped
    info = played(env, scorer(seed), options={"instance": batch})
    assert info["schedule"] == BatchAgent(scorer(seed))(batch)


def test_slots_that_are_empty_change_nothing_but_the_shapes() -> None:
    batch = generate_batch(4, seed=1)
    first: Choice = lambda _, mask: int(mask.argmax())  # noqa: E731
    assert BatchAgent(first)(batch) == BatchAgent(first, tasks=9)(batch)


def last(_: Observation, mask: Mask) -> int:
    return int(mask.nonzero()[0][-1])


agent = BatchAgent(last)


def test_a_batch_agent_is_compared_like_a_method() -> None:
    comparison = compare({"rodinia": load("rodinia-a30")}, ["far", agent])
    assert comparison.failures == []
    assert {run.run.column: run.outcome.makespan for run in comparison.runs}["BatchAgent"] == pytest.approx(
        agent(load("rodinia-a30")).makespan
    )


def test_a_task_that_fits_nowhere_is_refused() -> None:
    batch = generate_batch(3, seed=1)
    heavy = batch.replace(tasks=(*batch.tasks, Task("heavy", {1: 3.0}, memory_gb=30.0)))
    with pytest.raises(InputError, match=r"tasks\[3\]: fits on no instance"):
        agent(heavy)
