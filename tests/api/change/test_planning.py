"""Plans of changes: feasible at every step, no better order exists, and the arithmetic of cases done by hand."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, permutations, product
from random import Random

import pytest
from documents import refused
from fleets import deployments
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Deployment, InputError, OperationCosts, Segment, align, deploy, get_gpu, load, plan_change
from mig_opt.api.change.greedy import greedy
from mig_opt.gpu.model import KNOWN
from mig_opt.serving.change_plan import ChangePlan, needs_during, operation_costs
from mig_opt.serving.change_problem import ChangeProblem, Timetable
from mig_opt.serving.demand import Demand, GpuPool, Service
from mig_opt.serving.profile_table import Point, ProfileTable
from mig_opt.validation import validate_change, validate_deployment

A30 = get_gpu("A30")
FREE = {"A30": OperationCosts.zero(A30)}
UNEVEN = OperationCosts({1: 1, 2: 2, 4: 4}, {1: 3, 2: 1, 4: 1})


def on(gpu: int, profile: str, start: int, service: str = "a", throughput: float = 10.0, batch: int = 1) -> Segment:
    return Segment(service, gpu, profile, start, batch, 1, throughput, 0.1)


def fleet(*segments: Segment, gpus: int = 1) -> Deployment:
    return Deployment(("A30-24GB",) * gpus, segments)


def planned(running: Deployment, deployment: Deployment, **options: object) -> ChangePlan:
    plan = plan_change(running, deployment, **options).plan
    options.pop("time_limit", None)
    validation = validate_change(running, deployment, plan, **options)
    assert validation.valid, validation
    assert validation.duration == pytest.approx(plan.duration)
    return plan


def shown(plan: ChangePlan) -> list[tuple[object, ...]]:
    return [(step.kind, step.gpu, step.start, round(step.begin, 9), round(step.end, 9)) for step in plan.steps]


SWAP = (
    fleet(on(0, "4g.24gb", 0, "a"), on(1, "2g.12gb", 0, "b"), on(1, "2g.12gb", 2, "b"), gpus=2),
    fleet(on(0, "2g.12gb", 0, "b"), on(0, "2g.12gb", 2, "b"), on(1, "4g.24gb", 0, "a"), gpus=2),
)


def test_two_that_change_places_interrupt_one() -> None:
    running, new = SWAP
    # An A30 creates 1g / 2g / 4g in 0.11 / 0.12 / 0.13 s and destroys any of them in 0.1 s.
    # a has to go first (one interruption); both b can come there before they end here, and then a comes.
    plan = planned(running, new)
    assert [segment.service for segment in plan.interrupted] == ["a"]
    # 0.1 destroyed, 0.12 + 0.12 created; each b here is destroyed once enough is there: 0.22-0.32, 0.34-0.44; 4g 0.57.
    assert plan.duration == pytest.approx(0.1 + 0.12 + 0.12 + 0.1 + 0.13)
    assert plan.proven == ("interruptions", "duration")
    # If b has ten times the throughput in each, one of them is enough in neither order.
    assert len(planned(*(align(running, one) for one in SWAP)).interrupted) == 0


def test_a_switch_need_not_wait_for_the_driver() -> None:
    # s1 comes to GPU 2 after 10 s, while GPU 0 still creates 2g; then s1's old instance becomes s2's.
    running = fleet(on(0, "1g.6gb", 0, "s1"), on(1, "1g.6gb", 0, "s2"), on(2, "2g.12gb", 0, "w"), gpus=3)
    new = fleet(
        *(on(0, "1g.6gb", 0, "s2"), on(0, "1g.6gb", 1, "z"), on(0, "2g.12gb", 2, "z"), on(2, "1g.6gb", 0, "s1")), gpus=3
    )
    costs = OperationCosts({1: 4.0, 2: 12.0, 4: 1.0}, {1: 6.0, 2: 6.0, 4: 1.0})
    plan = planned(running, new, operations={"A30": costs})
    assert (plan.interrupted, plan.duration) == ((), 16.0)
    assert plan.proven == ("interruptions", "duration")


@pytest.mark.parametrize("throughput", [3e3, 12345.0, 1e5, 1e9, 1e15])
def test_a_service_that_needs_a_trifle_of_what_it_had_is_not_interrupted(throughput: float) -> None:
    running = fleet(on(0, "2g.12gb", 0, throughput=throughput))
    result = plan_change(running, fleet(on(0, "2g.12gb", 2, throughput=1.0)))
    assert (result.plan.interrupted, result.lower_bound) == ((), 0)


def test_thousands_of_segments_are_enough_together() -> None:
    """The share of the need that each has is no whole number of units."""
    running, new = (fleet(*(on(at + first, "4g.24gb", 0) for at in range(3500)), gpus=7000) for first in (0, 3500))
    problem = ChangeProblem.of(running, new, None, {A30.name: A30.operation_costs})
    assert problem.interrupted(sorted(range(7000), key=lambda index: problem.moves[index].kind)) == ()


def test_switches_one_after_the_other_help_each_other() -> None:
    # a has 30 and needs 20: 2g@2 becomes b's only when 1g@1 is a's.
    running = fleet(on(0, "1g.6gb", 0, "a"), on(0, "1g.6gb", 1, "b", 5.0), on(0, "2g.12gb", 2, "a", 20.0))
    new = fleet(on(0, "1g.6gb", 0, "a"), on(0, "1g.6gb", 1, "a"), on(0, "2g.12gb", 2, "b", 5.0))
    plan = planned(running, new)
    assert [segment.service for segment in plan.interrupted] == ["b"]
    assert [step.start for step in plan.steps] == [1, 2]


def test_the_rate_is_what_is_needed() -> None:
    running = fleet(on(0, "2g.12gb", 0, throughput=10.0), on(0, "2g.12gb", 2, throughput=10.0))
    new = fleet(on(0, "4g.24gb", 0, throughput=25.0))
    points = (Point(2, 1, 1, 10.0, 0.1), Point(4, 1, 1, 25.0, 0.1))

    def demand(rate: float) -> Demand:
        return Demand((Service("a", 1.0, rate),), (ProfileTable("a", "A30", points),), (GpuPool(A30),))

    assert needs_during(running, new) == {"a": 20.0}
    assert needs_during(running, new, demand(7.0)) == {"a": 7.0}
    assert needs_during(running, new, demand(99.0)) == {"a": 20.0}
    assert len(planned(running, new).interrupted) == 2
    assert len(planned(running, new, demand=demand(7.0)).interrupted) == 1
    # A billionth is rounding.
    close = demand(10.0 * (1 + 1e-10))
    assert len(planned(running, new, demand=close).interrupted) == 1


def test_gpus_that_come_and_go() -> None:
    running, new = fleet(on(0, "2g.12gb", 0)), fleet(on(1, "2g.12gb", 0), gpus=2)
    assert planned(running, new).gpus == ("A30-24GB",) * 2
    assert planned(new, running).gpus == ("A30-24GB",) * 2
    assert planned(Deployment((), ()), new).kept == ()
    assert planned(new, Deployment((), ())).interrupted == ()


def test_wrong_arguments_are_refused() -> None:
    good, bad = fleet(on(0, "2g.12gb", 0)), fleet(on(0, "2g.12gb", 1))
    refused(plan_change, bad, good, match=r"running.segments\[0\].start")
    with pytest.raises(InputError, match=r"deployment.gpus\[0\]: is A100-40GB, but GPU 0 of the running fleet is A30"):
        plan_change(good, Deployment(("A100-40GB",), ()))
    refused(plan_change, good, good, time_limit=0, match="time_limit")
    wrong = {"A31": A30.operation_costs, "A30": OperationCosts({1: 0.1}, {}), "H100": 3}
    paths = refused(plan_change, good, good, operations=wrong)
    assert paths == [f"operations.{path}" for path in ("A31", "A30.create", "A30.destroy", "H100")]
    refused(plan_change(good, good).plan.state_after, 1, match="steps: must be from 0 to 0, is 1")


def test_no_profile_is_there_more_often_than_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    small, *others = A30.profiles
    monkeypatch.setitem(KNOWN, "own", replace(A30, name="OWN", profiles=(replace(small, max_count=2), *others)))
    both = ((on(0, small.name, one), on(0, small.name, two)) for one, two in ((0, 1), (2, 3)))
    plan = planned(*(Deployment(("OWN",), segments) for segments in both))
    assert [(step.kind, step.start) for step in plan.steps[1::2]] == [("create", 2), ("create", 3)]
    assert (len(plan.interrupted), plan.proven) == (2, ("interruptions", "duration"))


def test_ctrl_c_keeps_the_best_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object) -> bool:
        raise KeyboardInterrupt

    # In the second stage: what the first one has found and proven stays.
    monkeypatch.setattr("mig_opt.models.serving.change_order.least_duration", pressed)
    monkeypatch.setattr("mig_opt.api.change.plans.greedy", clumsy)
    running, new = SWAP
    plan = planned(running, new)
    assert plan.method == "exact"
    assert plan.proven == ("interruptions",)
    assert len(plan.interrupted) == 1
    monkeypatch.setattr("mig_opt.models.serving.change_order.fewest_interruptions", pressed)
    assert planned(running, new).proven == ()


def clumsy(problem: ChangeProblem, gpus: Sequence[int]) -> Timetable:
    """Destroy everything, and then create everything."""
    moves = [index for gpu in gpus for index in problem.by_gpu[gpu]]
    return problem.timetable(sorted(moves, key=lambda index: problem.moves[index].kind == "create"))


def test_throughput_that_is_none_is_refused() -> None:
    wrong = fleet(on(0, "2g.12gb", 0, throughput=math.nan), on(0, "2g.12gb", 2, throughput=-1.0))
    for function in (plan_change, lambda one, two: validate_change(one, two, ChangePlan((), (), (), (), 0.0))):
        paths = refused(function, fleet(), wrong)
        assert paths == [f"deployment.segments[{at}].throughput" for at in (0, 1)]


def best_by_brute_force(problem: ChangeProblem) -> tuple[int, int]:
    """The least cost over every order of the moves and, for each, the earliest times."""
    orders: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for order in permutations(range(len(problem.moves))):
        position = {index: at for at, index in enumerate(order)}
        if all(position[other] < position[index] for index in order for other in problem.moves[index].after):
            orders[len(problem.interrupted(order))].append(order)
    fewest = min(orders)
    # All moments follow each other here, also those of services that never lack.
    drivers = driver_orders(problem)
    times = (earliest(problem, order, each) for order in orders[fewest] for each in drivers)
    return fewest, min(ticks for ticks in times if ticks is not None)


def driver_orders(problem: ChangeProblem) -> list[dict[int, tuple[int, ...]]]:
    choices = [[(gpu, order) for order in permutations(moves)] for gpu, moves in problem.by_gpu.items()]
    return [dict(choice) for choice in product(*choices)]


def earliest(problem: ChangeProblem, order: tuple[int, ...], drivers: dict[int, tuple[int, ...]]) -> int | None:
    """The earliest end if segments change in one order and drivers work in another; None if that is impossible."""
    begins = dict.fromkeys(order, 0)
    for _ in range(len(order) + 2):
        known = dict(begins)
        for moves in drivers.values():
            for one, two in pairwise(moves):
                begins[two] = max(begins[two], begins[one] + problem.moves[one].ticks)
        for one, two in pairwise(order):
            moment = begins[one] + problem.moves[one].delay
            begins[two] = max(begins[two], moment - problem.moves[two].delay)
        for index in order:
            for other in problem.moves[index].after:
                begins[index] = max(begins[index], begins[other] + problem.moves[other].ticks)
        if begins == known:
            return max(begins[index] + problem.moves[index].ticks for index in order)
    return None


@pytest.mark.deep
@given(st.data())
@settings(max_examples=150)
def test_no_order_is_better(data: st.DataObject) -> None:
    kinds = ("A30-24GB",) * data.draw(st.integers(1, 2))
    running = data.draw(deployments(kinds, "ab"))
    new = align(running, data.draw(deployments(kinds, "ab")))
    costs = data.draw(st.sampled_from([A30.operation_costs, FREE["A30"], UNEVEN]))
    problem = ChangeProblem.of(running, new, None, {A30.name: costs})
    if not 0 < len(problem.moves) <= 6:
        return
    plan = planned(running, new, operations={A30.name: costs})
    interruptions, ticks = best_by_brute_force(problem)
    assert len(plan.interrupted) == interruptions
    assert plan.duration == pytest.approx(float(ticks * problem.tick))
    assert plan.proven == ("interruptions", "duration")


@pytest.mark.deep
@given(st.data())
@settings(max_examples=80)
def test_every_plan_is_feasible_and_no_worse_than_greedy(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(("A30-24GB", "A100-80GB", "RTX-PRO-6000")), min_size=1, max_size=4))
    running = data.draw(deployments(kinds))
    new = data.draw(deployments(kinds))
    if data.draw(st.booleans()):
        new = align(running, new)
    plan = planned(running, new, time_limit=5)
    costs = operation_costs(kinds)
    problem = ChangeProblem.of(running, new, None, costs)
    plans = [greedy(problem, gpus) for gpus in problem.parts]
    assert len(plan.interrupted) <= sum(each.interruptions for each in plans)
    if len(plan.interrupted) == sum(each.interruptions for each in plans):
        assert plan.duration <= max((float(each.ticks * problem.tick) for each in plans), default=0.0) + 1e-9
    for steps in range(len(plan.steps) + 1):
        between = plan.state_after(steps)
        for gpu, kind in enumerate(kinds):
            places = [get_gpu(kind).placement(s.profile, s.start) for s in between.on(gpu)]
            assert not any(one.conflicts(two) for at, one in enumerate(places) for two in places[:at])
    assert {s.identity for s in plan.state_after(len(plan.steps)).segments} == {s.identity for s in new.segments}
    assert len(plan.steps) <= running.changes_to(new)


@pytest.mark.parametrize("numbers", [range(1, 7), range(6, 0, -1)])
def test_from_scenario_to_scenario(numbers: range) -> None:
    """Nothing that a plan does may be illegal or badly told."""
    running = Deployment((), ())
    for demand in (load(f"parvagpu-s{number}") for number in numbers):
        new = deploy(demand, "first-fit").deployment
        aligned = align(running, new)
        assert validate_deployment(demand, aligned).valid
        plan = planned(running, aligned, demand=demand, time_limit=0.2)
        running = plan.state_after(len(plan.steps))
        assert running.changes_to(aligned) == 0


def test_more_than_the_solver_takes() -> None:
    """Greedy rounds alone, which is said."""
    gpu = get_gpu("A100-80GB")
    random = Random(1)

    def drawn() -> Deployment:
        places = ((at, place) for at in range(60) for place in random.choice(gpu.maximal_partitions()))
        held = ((at, p.profile, p.start, random.choice("abc")) for at, p in places)
        segments = (on(at, size.name, *where, 10.0 * size.compute_slices) for at, size, *where in held)
        return Deployment((gpu.name,) * 60, tuple(segments))

    plan = planned(drawn(), drawn())
    assert plan.method == "heuristic"
    assert len(plan.steps) > 300
