"""Environments: gymnasium's own checker, seeds, masks, vectors, random episodes; and agents outside of them."""

import copy
import pickle
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from documents import refused
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import assert_sound, audit, columns, traces

from mig_opt import (
    Batch,
    Job,
    Pool,
    Simulation,
    Task,
    Trace,
    generate_batch,
    generate_trace,
    get_gpu,
    simulate,
    validate,
)
from mig_opt.environments import BatchAgent, FleetAgent
from mig_opt.environments.masked import MOST_FORBIDDEN, Choice, Mask, Observation
from mig_opt.fleet.trace import Outage
from mig_opt.simulation import check_log

IDS = ["mig_opt/Batch-v0", "mig_opt/Fleet-v0"]
SMALL: dict[str, dict[str, Any]] = {"mig_opt/Batch-v0": {"tasks": 6}, "mig_opt/Fleet-v0": {"jobs": 8}}


def episode(env: Any, rng: np.random.Generator, **reset: Any) -> tuple[float, dict[str, Any]]:
    """Play at random; return the sum of the rewards, and the last info."""
    _, info = env.reset(**reset)
    total, over = 0.0, False
    while not over:
        (allowed,) = info["action_mask"].nonzero()
        seen, reward, over, cut, info = env.step(rng.choice(allowed))
        assert env.observation_space.contains(seen)
        assert not cut
        total += reward
    assert env.step(info["action_mask"].argmax())[1:3] == (0, True)  # it is over
    return total, info


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_own_checker(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(name).unwrapped)


@pytest.mark.deep
def test_a_thousand_random_episodes_of_batches():
    rng = np.random.default_rng(1)
    worlds = [("A100", 1, 7), ("A30", 2, 6), ("H100-80GB", 2, 5), ("A100", 3, 9)]
    for gpu, gpus, tasks in worlds:
        env = gymnasium.make("mig_opt/Batch-v0", tasks=tasks, gpu=gpu, gpus=gpus).unwrapped
        for seed in range(250):
            total, info = episode(env, rng, seed=seed)
            verdict = validate(info["batch"], info["schedule"])
            assert verdict.valid, str(verdict)
            assert info["makespan"] == info["schedule"].makespan == pytest.approx(-total)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("family", "gpus", "goal"),
    [("normal-25", 2, "flow"), ("long-50", 1, "wait"), ("pcie-4", 2, "flow"), ("migm-flan-t5", 1, "flow")],
)
def test_a_thousand_random_episodes_of_fleets(family, gpus, goal):
    rng = np.random.default_rng(1)
    env = gymnasium.make("mig_opt/Fleet-v0", family=family, gpus=gpus, goal=goal, jobs=8).unwrapped
    for seed in range(250):
        total, info = episode(env, rng, seed=seed)
        done: Simulation = info["simulation"]
        assert check_log(done.log) == []
        assert validate(*done.log.as_schedule()).valid
        assert done.unfinished == ()
        if goal == "flow":
            flow = sum(end - job.arrival for end, job in zip(done.log.finished, done.trace.jobs, strict=True))
            assert -total == pytest.approx(flow)
        elif not done.metrics.failures:
            wait = sum(begin - job.arrival for begin, job in zip(done.log.scheduled, done.trace.jobs, strict=True))
            assert -total == pytest.approx(wait)


@pytest.mark.parametrize("name", IDS)
def test_seeds(name):
    env = gymnasium.make(name, **SMALL[name]).unwrapped
    plays = [episode(env, np.random.default_rng(5), seed=seed) for seed in (3, 3, 4)]
    assert plays[0][0] == plays[1][0] != plays[2][0]
    assert plays[0][1]["schedule"] == plays[1][1]["schedule"]
    # Without a seed the next episode has another problem.
    again = episode(env, np.random.default_rng(5))
    assert again[0] != plays[2][0]


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_alike(name: str, copied: Callable[[Any], Any]) -> None:
    """In the middle of an episode, and with what is drawn for the next one."""
    env: Any = gymnasium.make(name, **SMALL[name]).unwrapped
    _, info = env.reset(seed=3)
    for _ in range(3):
        *_, info = env.step(info["action_mask"].argmax())
    ends = []
    for each in (copied(env), env):
        over, seen = False, info
        while not over:
            *_, over, _, seen = each.step(seen["action_mask"].argmax())
        ends += [seen["schedule"], episode(each, np.random.default_rng(5))[0]]
    assert ends[:2] == ends[2:]


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector_environments(name, mode):
    """Each of three environments ends two episodes with its own schedule, and begins anew by itself."""
    environments = gymnasium.make_vec(name, num_envs=3, vectorization_mode=mode, **SMALL[name])
    try:
        rng, found = np.random.default_rng(2), Counter[int]()
        _, info = environments.reset(seed=7)
        while len(found) < 3 or min(found.values()) < 2:
            actions = [rng.choice(mask.nonzero()[0]) for mask in info["action_mask"]]
            _, rewards, over, _, info = environments.step(np.array(actions))
            assert rewards.shape == (3,)
            for number in over.nonzero()[0]:
                assert info["schedule"][number].runs
                found[int(number)] += 1
    finally:
        environments.close()


@pytest.mark.parametrize("name", IDS)
def test_a_forbidden_action_changes_nothing_and_costs(name):
    env: Any = gymnasium.make(name, penalty=3.0, **SMALL[name]).unwrapped
    before, info = env.reset(seed=1)
    for _ in range(4):  # until something is forbidden
        if (info["action_mask"] == 0).any():
            break
        before, _, _, _, info = env.step(info["action_mask"].argmax())
    for number in (-1, len(info["action_mask"]), "x", 1.5, True, [0, 0]):
        refused(env.step, number, match=r"action: must be .*from 0 to \d+, is")
    forbidden = info["action_mask"].argmin()
    assert not env.action_masks()[forbidden]
    for number in range(MOST_FORBIDDEN):
        seen, reward, over, cut, info = env.step(forbidden)
        assert (reward, over, cut, info["forbidden"]) == (-3.0, False, number + 1 == MOST_FORBIDDEN, True)
    assert all((seen[key] == before[key]).all() for key in seen)


@pytest.mark.parametrize("name", IDS)
def test_observations_are_not_reused(name):
    env: Any = gymnasium.make(name, **SMALL[name]).unwrapped
    seen, info = env.reset(seed=1)
    kept, mask = copy.deepcopy(seen), info["action_mask"].copy()
    env.step(info["action_mask"].argmax())
    assert all((seen[key] == kept[key]).all() for key in seen)
    assert (info["action_mask"] == mask).all()


def test_instances():
    env: Any = gymnasium.make("mig_opt/Batch-v0", tasks=9, gpu="A30").unwrapped
    _, info = episode(env, np.random.default_rng(1), options={"instance": "rodinia-a30"})
    assert info["batch"].name == "rodinia-a30"
    batch = generate_batch(5, gpu="A30", seed=8)
    assert episode(env, np.random.default_rng(1), options={"instance": batch})[1]["batch"] == batch
    fixed: Any = gymnasium.make("mig_opt/Batch-v0", tasks=8, gpu="A30", instance="rodinia-a30").unwrapped
    assert episode(fixed, np.random.default_rng(1), seed=3)[1]["batch"] == info["batch"]
    trace = generate_trace("normal-25", jobs=5, gpus=2, seed=8)
    fleet: Any = gymnasium.make("mig_opt/Fleet-v0", instance=trace).unwrapped
    assert episode(fleet, np.random.default_rng(1))[1]["simulation"].trace == trace


def test_a_batch_on_several_kinds_of_gpus():
    tasks = tuple(Task(name, {"A100": {1: 9.0, 7: 3.0}, "A30": {1: 10.0, 4: 4.0}}) for name in "abcd")
    batch = Batch(tasks, pools=(Pool(get_gpu("A100"), 1), Pool(get_gpu("A30"), 2)))
    env: Any = gymnasium.make("mig_opt/Batch-v0", instance=batch).unwrapped
    for seed in range(5):
        total, info = episode(env, np.random.default_rng(seed))
        assert info["batch"] is batch
        assert validate(batch, info["schedule"]).valid
        assert info["makespan"] == pytest.approx(-total)


def test_what_does_not_fit_is_refused():
    env: Any = gymnasium.make("mig_opt/Batch-v0", tasks=6).unwrapped
    refused(env.reset, match="instance: has no room.*; give it to make", options={"instance": "rodinia-a30"})
    refused(env.reset, match="instance: must be a Batch, or the name of one", options={"instance": "parvagpu-s1"})
    refused(env.reset, match="instance: no .*; did you mean rodinia-a30", options={"instance": "rodinia"})
    refused(env.reset, match=r"options.instanc: is unknown; did you mean instance", options={"instanc": "rodinia-a30"})
    for wrong in ({"goal": "speed"}, {"window": 0}, {"penalty": -1}, {"penalty": "1 s"}, {"windw": 3}, {"family": []}):
        refused(gymnasium.make, "mig_opt/Fleet-v0", match=f"{next(iter(wrong))}: ", **wrong)
    for wrong in ({"tasks": 0}, {"tasks": "8", "instance": "rodinia-a30"}, {"taskz": 6}, {"seed": 1}):
        refused(gymnasium.make, "mig_opt/Batch-v0", match=f"{next(iter(wrong))}: ", **wrong)
    trace = generate_trace("normal-25", jobs=5, gpus=3, gpu=get_gpu("A30"), seed=8)
    refused(gymnasium.make("mig_opt/Fleet-v0").reset, match="instance: has no room", options={"instance": trace})
    _, info = episode(gymnasium.make("mig_opt/Fleet-v0", instance=trace), np.random.default_rng(1))
    assert info["simulation"].trace == trace


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
def test_the_same_simulation_inside_and_outside(family, seed):
    trace = generate_trace(family, jobs=15, gpus=2, seed=seed)
    env = gymnasium.make("mig_opt/Fleet-v0", window=3, instance=trace).unwrapped
    inside = played(env, scorer(seed))["simulation"]
    outside = simulate(trace, FleetAgent(scorer(seed), window=3))
    assert columns(inside.log) == columns(outside.log)
    assert (inside.metrics, inside.events) == (outside.metrics, outside.events)


@pytest.mark.deep
@settings(max_examples=40, deadline=None)
@given(traces(), st.integers(0, 1000), st.booleans())
def test_an_agent_is_a_scheduler_like_others(trace, seed, reject):
    done = simulate(trace, FleetAgent(scorer(seed)), observer=audit, reject=reject, failure_limit=5)
    assert_sound(done.log)
    assert done.metrics.finished + len(done.rejected) + len(done.unfinished) == len(trace.jobs)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_schedule_inside_and_outside(seed):
    batch = generate_batch(7, gpus=2, seed=seed)
    env = gymnasium.make("mig_opt/Batch-v0", tasks=7, gpus=2).unwrapped
    info = played(env, scorer(seed), options={"instance": batch})
    assert info["schedule"] == BatchAgent(scorer(seed))(batch)


def test_slots_that_are_empty_change_nothing_but_the_shapes():
    batch = generate_batch(4, seed=1)
    first: Choice = lambda _, mask: int(mask.argmax())  # noqa: E731
    assert BatchAgent(first)(batch) == BatchAgent(first, tasks=9)(batch)


@pytest.mark.parametrize("action", [0, -1, 10**6, None, 1.5, "x"])
def test_an_agent_that_does_what_the_mask_forbids_is_told(action):
    bad: Choice = lambda _, mask: action if action != 0 else int(mask.argmin())  # noqa: E731
    for call in (
        lambda: BatchAgent(bad)(generate_batch(3)),
        lambda: simulate(generate_trace("pcie-4"), FleetAgent(bad)),
    ):
        refused(call, match=r"choose: must return an action that the mask allows, returned")


def test_a_task_that_fits_nowhere_is_refused():
    batch = generate_batch(3, seed=1)
    heavy = batch.replace(tasks=(*batch.tasks, Task("heavy", {1: 3.0}, memory_gb=30.0)))
    refused(BatchAgent(scorer(1)), heavy, match=r"tasks\[3\]: fits on no instance")


@pytest.mark.parametrize("goal", ["flow", "wait"])
def test_jobs_that_wait_before_the_agent_is_asked_count(goal):
    jobs = Job("a", 10.0, {1: 20.0}), Job("b", 12.0, {1: 5.0})
    trace = Trace(jobs, get_gpu("A30"), outages=(Outage(0, 0.0, 100.0),))
    env: Any = gymnasium.make("mig_opt/Fleet-v0", instance=trace, goal=goal).unwrapped
    for seed in range(3):
        total, info = episode(env, np.random.default_rng(seed))
        metrics = info["simulation"].metrics
        mean = metrics.completion.mean if goal == "flow" else metrics.wait.mean
        assert mean > 80
        assert -total == pytest.approx(2 * mean)


def test_seconds_are_seen_only_where_something_can_run():
    batch = Batch((Task("a", {1: 4.0, 2: 2.5}, memory_gb=10), Task("b", {1: 3.0})), get_gpu("A30"))
    seen, _ = gymnasium.make("mig_opt/Batch-v0", instance=batch).reset()
    assert seen["tasks"][:2].tolist() == [[0.0, 2.5, 0.0, 1.0], [3.0, 0.0, 0.0, 1.0]]
    trace = Trace((Job("a", 0.0, {1: 4.0, 2: 2.5}, "2g.12gb"),), get_gpu("A30"))
    seen, _ = gymnasium.make("mig_opt/Fleet-v0", instance=trace, window=1).reset()
    assert seen["jobs"][0, :3].tolist() == [0.0, 2.5, 0.0]
