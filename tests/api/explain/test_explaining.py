"""Reasons why a batch is infeasible, or its makespan not below a target."""

import dataclasses
import math
from collections.abc import Collection
from unittest.mock import Mock

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import A30, whole_seconds

import mig_opt.api.explain.conflicts as oracle_module
from mig_opt import Batch, LiveInstance, OperationCosts, Task, generate_batch, get_gpu, solve
from mig_opt.api.explain import Conflict, Explanation, Requirement, RequirementKind, Verdict, explain
from mig_opt.api.explain.conflicts import in_time
from mig_opt.api.explain.requirements import Requirements
from mig_opt.batch.integer_batch import Ticks
from mig_opt.validation import validate


def batch_of(*tasks: Task, **changes: object) -> Batch:
    return Batch(tasks, A30).replace(**changes)


def paths(conflict: Conflict) -> list[str]:
    return [requirement.path for requirement in conflict.requirements]


def left(batch: Batch, kept: Collection[Requirement]) -> Batch | None:
    """The reference: what is left of a batch under some requirements, written down independently of the package."""
    at = {requirement.path for requirement in kept}
    tasks = []
    for index, task in enumerate(batch.tasks):
        if f"tasks[{index}]" not in at:
            continue
        times = dict(task.times)
        if f"tasks[{index}].times" not in at:
            for size in batch.gpu.sizes:
                if size not in task.times:
                    smaller = [known for known in task.times if known < size]
                    near = smaller[-1] if smaller else min(task.times)
                    times[size] = max(round(task.times[near] * near / size, 3), 0.001)
        needed = task.memory_gb if f"tasks[{index}].memory_gb" in at else None
        tasks.append(Task(task.name, times, needed))
    if not tasks:
        return None
    initial = tuple(
        live if f"initial[{index}].free" in at else dataclasses.replace(live, free=0.0)
        for index, live in enumerate(batch.initial)
    )
    costs = batch.operations if "operations" in at else OperationCosts.zero(batch.gpu)
    parallel = batch.parallel_operations or "parallel_operations" not in at
    gpus = batch.gpus if "gpus" in at else batch.gpus + len(tasks)
    return batch.replace(tasks=tuple(tasks), initial=initial, operations=costs, parallel_operations=parallel, gpus=gpus)


def possible(batch: Batch | None, target: float) -> bool:
    if batch is None:
        return True
    # Brute force shares nothing with what finds the explanation; with several GPUs it takes too long.
    result = solve(batch, "brute-force" if batch.gpus == 1 else "cp", workers=1)
    assert result.status == "optimal"
    return in_time(Ticks.of(batch), result.makespan, target)


def check(batch: Batch, explanation: Explanation) -> None:
    """The requirements are impossible together, and possible without any one of them."""
    (conflict,) = explanation.conflicts
    assert conflict.minimal
    requirements = [entry for entry in conflict.requirements if entry.kind is not RequirementKind.TARGET]
    assert len(requirements) == len(conflict.requirements) - 1
    assert not possible(left(batch, requirements), conflict.target)
    for dropped in requirements:
        rest = [entry for entry in requirements if entry is not dropped]
        assert possible(left(batch, rest), conflict.target), dropped
    assert conflict.target < conflict.lower_bound <= conflict.makespan


@st.composite
def small_batches(draw: st.DrawFn) -> Batch:
    """One A30, up to three tasks, everything that can be required."""
    tasks = []
    for index in range(draw(st.integers(1, 3))):
        sizes = draw(st.lists(st.sampled_from(A30.sizes), min_size=1, unique=True))
        most = max(profile.memory_gb for profile in A30.profiles_of("double-memory") if profile.compute_slices in sizes)
        memory = draw(st.one_of(st.none(), st.just(float(most)), st.just(most / 2)))
        tasks.append(Task(f"t{index}", {size: draw(whole_seconds) for size in sizes}, memory))
    initial: tuple[LiveInstance, ...] = ()
    if draw(st.booleans()):
        live = draw(st.sampled_from([("1g.6gb", 0), ("2g.12gb", 2), ("4g.24gb", 0)]))
        initial = (LiveInstance(0, *live, draw(st.sampled_from([0.0, 1.5, 4.0]))),)
    costs = draw(st.sampled_from([A30.operation_costs, OperationCosts.zero(A30)]))
    return Batch(tuple(tasks), A30, 1, costs, initial, draw(st.booleans()))


@pytest.mark.deep
@given(small_batches(), st.floats(0.3, 1.1))
@settings(max_examples=40)
def test_a_conflict_is_impossible_and_minimal(batch: Batch, share: float) -> None:
    optimum = solve(batch, "brute-force").makespan
    target = round(optimum * share, 2)
    assume(target > 0)
    explanation = explain(batch, target, time_limit=None, workers=1)
    if possible(batch, target):
        assert explanation.verdict is Verdict.POSSIBLE
        assert explanation.conflicts == ()
    else:
        assert explanation.verdict is Verdict.IMPOSSIBLE
        check(batch, explanation)
        assert explanation.makespan == pytest.approx(optimum)
    assert explanation.lower_bound <= optimum + 1e-9
    assert validate(batch, explanation.schedule).valid


@given(small_batches())
@settings(max_examples=20)
def test_without_a_target_the_conflict_is_just_below_the_optimum(batch: Batch) -> None:
    explanation = explain(batch, time_limit=None, workers=1)
    assert explanation.verdict is Verdict.POSSIBLE
    assert explanation.makespan == pytest.approx(explanation.lower_bound)
    check(batch, explanation)
    target = explanation.conflicts[0].target
    tick = float(Ticks.of(batch).length)
    assert explanation.lower_bound - target == pytest.approx(tick)


@given(small_batches(), st.floats(0.3, 0.99))
@settings(max_examples=20)
def test_remedies_mend(batch: Batch, share: float) -> None:
    optimum = solve(batch, "brute-force").makespan
    explanation = explain(batch, max(round(optimum * share, 2), 0.01), time_limit=None, workers=1)
    assume(explanation.verdict is Verdict.IMPOSSIBLE)
    target = explanation.target
    everything = Requirements(batch, target).all
    first, *others = explanation.remedies
    assert (first.path, first.makespan) == ("target", pytest.approx(optimum))
    for remedy in others:
        if remedy.path == "gpus":
            changed: Batch | None = batch.replace(gpus=int(remedy.text.partition(" ")[0]))
        else:
            changed = left(batch, [entry for entry in everything if entry.path != remedy.path])
        assert possible(changed, target), remedy


def test_an_instance_that_is_busy_is_a_reason() -> None:
    batch = batch_of(Task("a", {1: 4.0, 2: 4.0, 4: 4.0}), initial=(LiveInstance(0, "4g.24gb", 0, 12.5),))
    explanation = explain(batch, 10.0)
    (conflict,) = explanation.conflicts
    assert paths(conflict) == ["target", "gpus", "initial[0].free", "tasks[0]"]
    assert "instance 4g.24gb@0 on GPU 0 exists and is busy until 12.5 s" in map(str, conflict.requirements)
    assert conflict.lower_bound == 16.5
    assert {remedy.path for remedy in explanation.remedies} == set(paths(conflict))
    check(batch, explanation)


def test_the_driver_is_too_slow() -> None:
    """Two instances are created one after the other: the second one is there after 0.22 s, not after 0.11 s."""
    batch = batch_of(*(Task(name, {1: 4.0, 2: 4.0, 4: 4.0}) for name in "abcd"))
    explanation = explain(batch, 4.2)
    # Any two of the tasks, which are all alike.
    found = paths(explanation.conflicts[0])
    assert found[:4] == ["target", "gpus", "operations", "parallel_operations"]
    assert len({path for path in found[4:] if path.startswith("tasks[")}) == len(found) - 4 == 2
    assert explanation.conflicts[0].lower_bound == 4.22
    # Without a task there are three of them still.
    assert {remedy.path for remedy in explanation.remedies} == {"target", "gpus", "operations", "parallel_operations"}
    check(batch, explanation)


@pytest.mark.parametrize("scale", [1e3, 1e-3])
def test_times_of_many_decimals(scale: float) -> None:
    """If makespans cannot be counted in ticks, a millionth below the bound is ruled out, and no more is claimed."""
    tasks = Task("a", {4: math.pi * scale}), Task("b", {4: math.e * scale})
    batch = batch_of(*tasks, operations=OperationCosts.zero(A30))
    explanation = explain(batch)
    optimum = (math.pi + math.e) * scale
    (conflict,) = explanation.conflicts
    assert paths(conflict) == ["target", "gpus", "tasks[0]", "tasks[1]"]
    assert conflict.minimal
    assert optimum * (1 - 1e-5) < conflict.target < optimum
    assert explain(batch, optimum * 1.001).verdict is Verdict.POSSIBLE
    assert explain(batch, optimum * 0.999).verdict is Verdict.IMPOSSIBLE


def test_a_makespan_is_possible_though_it_is_rounded_to_nanoseconds() -> None:
    batch = Batch((Task("a", {4: 2723.240415553179}),), A30, operations=OperationCosts.zero(A30))
    assert explain(batch, solve(batch).makespan, workers=1).verdict is Verdict.POSSIBLE


def test_tasks_that_fit_nowhere_are_explained_all_at_once() -> None:
    batch = batch_of(Task("ok", {1: 1.0}), Task("big", {1: 2.0}, 20.0), Task("mid", {1: 2.0, 2: 2.0}, 13.0))
    explanation = explain(batch, 100.0)
    assert explanation.verdict is Verdict.IMPOSSIBLE
    assert explanation.lower_bound == math.inf
    expected = [[f"tasks[{at}]{key}" for key in ("", ".times", ".memory_gb")] for at in (1, 2)]
    assert [paths(conflict) for conflict in explanation.conflicts] == expected
    assert all(conflict.minimal and conflict.target is None for conflict in explanation.conflicts)
    texts = "task {} with at most {} GB", "a time for task {} on 4 slices: 4g.24gb has 24 GB"
    texts += ("the GPU A100-80GB, where task {} fits into 1g.20gb",)
    expected = [text.format(*given) for given in (("'big'", 6), ("'mid'", 12)) for text in texts]
    assert list(map(str, explanation.remedies)) == expected
    assert explanation.remedies[1].path == "tasks[1].times.4"
    mended = [Task("big", {1: 2.0}, 6.0), Task("big", {1: 2.0, 4: 1.0}, 20.0)]
    assert not any(batch_of(task).unplaceable() for task in mended)
    assert not Batch((batch.tasks[1],), get_gpu("A100-80GB")).unplaceable()


def test_a_large_batch_is_explained_within_the_limit() -> None:
    """The machine decides how far the work gets, not whether it is right."""
    batch = generate_batch(300, seed=2)
    explanation = explain(batch, 1000.0, time_limit=1.0)
    (conflict,) = explanation.conflicts
    assert explanation.verdict is Verdict.IMPOSSIBLE
    assert conflict.lower_bound > 1000.0
    assert set(conflict.open) <= set(conflict.requirements)
    assert conflict.minimal == (not conflict.open)


def test_tasks_that_stand_in_for_each_other_are_proven_needed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Mock(wraps=solve)
    monkeypatch.setattr(oracle_module, "solve", asked)
    tasks = (Task(f"t{index}", {1: 4.0, 2: 2.0, 4: 1.0}) for index in range(40))
    (conflict,) = explain(batch_of(*tasks, operations=OperationCosts.zero(A30)), 39.5, time_limit=None).conflicts
    assert conflict.minimal
    assert len(conflict.requirements) == 2 + 40
    assert asked.call_count < 30
