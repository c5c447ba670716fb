"""Division of tasks among instances of the same size."""

import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt.batch.loads import division
from mig_opt.batch.loads.division import bits_of_division, divide, divide_exactly


@pytest.mark.parametrize(
    "limits", [(30, 4, 99, 99), (3, 1, 99, 99), (0, 0, 99, 99), (30, 4, 1, 99), (30, 4, 2, 99), (30, 4, 99, 1)]
)
@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(0, 2)), min_size=2, max_size=7),
    st.lists(st.integers(-1, 2), min_size=1, max_size=3),
    st.integers(0),
)
@settings(max_examples=120)
def test_no_instance_has_more_than_room_for(
    limits: tuple[int, ...], tasks: list[tuple[int, int]], room: list[int], seed: int
) -> None:
    ticks = [own for own, _ in tasks]
    # Instances are filled nearly.
    for own, at in tasks:
        room[at % len(room)] += own
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in zip(("_MAX_JOINED", "_FEW", "_MAX_STEPS", "_MAX_FILLING"), limits, strict=True):
            patch.setattr(division, name, limit)
        exactly = divide_exactly(ticks, room, random.Random(seed))
        found = divide(ticks, room, random.Random(seed))

    def fits(instances: Sequence[int]) -> bool:
        loads = [0] * len(room)
        for own, at in zip(ticks, instances, strict=True):
            loads[at] += own
        return all(load <= most for load, most in zip(loads, room, strict=True))

    possible = any(map(fits, itertools.product(range(len(room)), repeat=len(ticks))))
    for some in (found, exactly.instances):
        assert some is None or fits(some)
    assert found is not None or not possible or len(room) > 1
    assert not exactly.complete or (exactly.instances is not None) == possible
    assert exactly.complete or limits != (30, 4, 99, 99)


def test_many_tasks_fill_all_instances_to_the_tick() -> None:
    draw = random.Random(1)
    ticks = [draw.randrange(1_000, 90_000) for _ in range(60)]
    whole, rest = divmod(sum(ticks), 5)
    assert divide(ticks, [whole + rest, *[whole] * 4], draw)
    assert divide(ticks, [whole + rest - 1, *[whole] * 4], draw) is None


def test_instances_with_room_for_few_tasks_decide() -> None:
    draw = random.Random(3)
    ticks = [draw.randrange(1_000, 90_000) for _ in range(50)]
    short = [sum(ticks[:2]), sum(ticks[2:5])]
    whole, rest = divmod(sum(ticks[5:]), 5)
    room = [whole + rest, *short, *[whole] * 4]
    found = divide_exactly(ticks, room, draw).instances
    assert found is not None
    assert [sum(own for own, at in zip(ticks, found, strict=True) if at == one) for one in range(7)] == room
    # Two tasks are never as short as that.
    assert divide_exactly(ticks, [*room, min(ticks) - 1], draw).complete
    assert divide_exactly(ticks, [room[0] - min(ticks) + 1, *room[1:], min(ticks) - 1], draw) == (None, True)


def test_hundreds_of_tasks_fill_all_instances_to_the_tick() -> None:
    draw = random.Random(2)
    ticks = [draw.randrange(1_000, 90_000) for _ in range(700)]
    whole, rest = divmod(sum(ticks), 7)
    room = [whole + rest, *[whole] * 6]
    found = divide(ticks, room, draw)
    assert found is not None
    loads = [sum(own for own, at in zip(ticks, found, strict=True) if at == instance) for instance in range(7)]
    assert loads == room
    assert bits_of_division(ticks, whole) < bits_of_division(ticks[:64], whole) * 2


def test_tasks_for_many_instances_are_listed_where_no_drawn_order_divides_them() -> None:
    draw = random.Random(5)
    ticks = [draw.randrange(10_000, 90_000) for _ in range(33)]
    room = [sum(ticks[at::7]) for at in range(7)]
    found = divide_exactly(ticks, room, draw)
    loads = [sum(own for own, at in zip(ticks, found.instances or (), strict=True) if at == one) for one in range(7)]
    assert found.complete
    assert loads == room
