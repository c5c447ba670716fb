"""Division of tasks among instances of the same size."""

import random

from hypothesis import given
from hypothesis import strategies as st

from mig_opt.batch.loads.division import bits_of_division, divide


@given(st.lists(st.integers(0, 50), max_size=8), st.lists(st.integers(-5, 80), min_size=1, max_size=4), st.integers(0))
def test_no_instance_has_more_than_room_for(ticks: list[int], room: list[int], seed: int) -> None:
    found = divide(ticks, room, random.Random(seed))
    if found is None:
        assert len(room) > 1 or sum(ticks) > room[0]
        return
    loads = [sum(own for own, at in zip(ticks, found, strict=True) if at == instance) for instance in range(len(room))]
    assert len(found) == len(ticks)
    assert all(load <= most for load, most in zip(loads, room, strict=True))


def test_many_tasks_fill_all_instances_to_the_tick() -> None:
    draw = random.Random(1)
    ticks = [draw.randrange(1_000, 90_000) for _ in range(60)]
    whole, rest = divmod(sum(ticks), 5)
    assert divide(ticks, [whole + rest, *[whole] * 4], draw)
    assert divide(ticks, [whole + rest - 1, *[whole] * 4], draw) is None


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
