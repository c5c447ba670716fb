"""Orders of operations, against all of them one by one."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mig_opt.batch.loads import operation_orders
from mig_opt.batch.loads.operation_orders import OperationOrders

FOOTPRINTS = ((0, 1, 2), (0, 1), (0,), (1,), (2,), (1, 2))


def orders_of(
    chosen: list[int], create: list[int], destroy: list[int], like: tuple[int, ...] = (0, 1, 2)
) -> OperationOrders:
    cover = np.array([[path in FOOTPRINTS[kind] for kind in chosen] for path in range(3)], np.bool_)
    conflicts = (cover.T.astype(int) @ cover.astype(int) > 0) & ~np.eye(len(chosen), dtype=np.bool_)
    return OperationOrders(np.array(create), np.array(destroy), conflicts, cover, np.array(like))


def all_idle(chosen: list[int], create: list[int], destroy: list[int], again: int) -> Iterator[tuple[int, ...]]:
    """Yield the idle time of each path in each order in which so many are created once more."""

    def go_on(
        live: frozenset[int], created: frozenset[int], again: int, idle: tuple[int, ...]
    ) -> Iterator[tuple[int, ...]]:
        if len(created) == len(chosen):
            yield idle
            return
        for at in range(len(chosen)):
            others = live - {at}
            without = {0, 1, 2} - {path for other in others for path in FOOTPRINTS[chosen[other]]}
            ticks = (destroy if at in live else create)[at]
            after = tuple(own + ticks * (path in without) for path, own in enumerate(idle))
            if at in live:
                yield from go_on(others, created, again, after)
            elif (at not in created or again) and all(
                set(FOOTPRINTS[chosen[at]]).isdisjoint(FOOTPRINTS[chosen[other]]) for other in live
            ):
                yield from go_on(live | {at}, created | {at}, again - (at in created), after)

    return go_on(frozenset(), frozenset(), again, (0, 0, 0))


@given(
    st.lists(st.integers(0, len(FOOTPRINTS) - 1), min_size=1, max_size=3),
    st.lists(st.integers(0, 5), min_size=6, max_size=6),
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
    st.integers(0, 20),
)
def test_the_least_and_all_good_orders_are_found(
    chosen: list[int], ticks: list[int], weights: list[int], more: int
) -> None:
    create, destroy = ticks[: len(chosen)], ticks[3 : 3 + len(chosen)]
    orders, known = orders_of(chosen, create, destroy), {*all_idle(chosen, create, destroy, 1)}
    least = min(int(np.dot(idle, weights)) for idle in known)
    assert np.dot(orders.least(np.array(weights)), weights) == least
    good = {idle for idle in known if not any(one != idle and all(np.array(one) <= idle) for one in known)}
    found = orders.within(np.array(weights), least + more)
    expected = {idle for idle in good if np.dot(idle, weights) <= least + more}
    assert len(found) == len(expected)
    assert {tuple(idle.tolist()) for idle in found} == expected
    values = [int(np.dot(idle, weights)) for idle in found]
    assert values == sorted(values)


@given(
    st.lists(st.sampled_from([0, 2, 2, 3, 3, 4]), min_size=1, max_size=4),
    st.lists(st.integers(0, 2), min_size=2, max_size=2),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 20),
)
def test_of_instances_that_are_alike_one_order_is_enough(
    chosen: list[int], ticks: list[int], weight: int, other: int, more: int
) -> None:
    # Paths 0 and 1 are alike: all instances on them are, too, or cover all paths.
    create, destroy = ([each] * len(chosen) for each in ticks)
    weights, known = np.array([weight, weight, other]), {*all_idle(chosen, create, destroy, 1)}
    if chosen.count(2) != chosen.count(3):
        return
    orders, least = orders_of(chosen, create, destroy, (0, 0, 2)), min(int(np.dot(idle, weights)) for idle in known)
    assert np.dot(orders.least(weights), weights) == least
    found = {(*sorted(idle[:2].tolist()), int(idle[2])) for idle in orders.within(weights, least + more)}
    good = {idle for idle in known if not any(one != idle and all(np.array(one) <= idle) for one in known)}
    assert {(*sorted(idle[:2]), idle[2]) for idle in good if np.dot(idle, weights) <= least + more} <= found


@pytest.mark.parametrize(("name", "value"), [("_MAX_PATHS", 2), ("_MAX_STATES", 7)])
def test_too_many_orders(name: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_orders, name, value)
    assert orders_of([0, 1, 4], [1, 1, 1], [1, 1, 1]).too_many


def test_too_many_parts_of_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_orders, "_MAX_PARTS", 3)
    assert orders_of([0, 1, 4], [1, 1, 1], [1, 1, 1]).within(np.ones(3, np.int64), 100) is None
