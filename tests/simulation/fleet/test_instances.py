"""Ranking of the GPUs of a fleet by their states."""

from hypothesis import given
from hypothesis import strategies as st
from online_worlds import TABLES, place

from mig_opt.gpu.geometry import GpuState
from mig_opt.simulation.fleet.instances import Ranking


def busy(*names: str) -> int:
    return TABLES.mask(map(place, names))


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["", "1g.5gb@0", "4g.20gb@0", "7g.40gb@0"])), max_size=60))
def test_ranking_against_a_search(changes: list[tuple[int, str]]) -> None:
    """After any changes, asked now and then: the least key, then the least index; refused ones stay in the order."""
    pool = TABLES
    states = [pool.state(0, 0)] * 6

    def key(state: GpuState, profile: int) -> int | None:
        return state.usage.used_compute if state.usage.available[profile] else None

    ranking = Ranking(states, key)
    for number, (gpu, name) in enumerate(changes):
        states[gpu] = pool.state(busy(name) if name else 0, 0)
        ranking.changed.add(gpu)
        profile = number % 6
        order = sorted((found, gpu) for gpu, state in enumerate(states) if (found := key(state, profile)) is not None)
        if number % 3 == 0:
            assert ranking.best(profile) == (order[0][1] if order else None)
        elif number % 3 == 1:
            seen: list[int] = []
            assert ranking.first(profile, lambda gpu, seen=seen: bool(seen.append(gpu)), below=4) is None
            assert seen == [gpu for found, gpu in order if found < 4]
        else:
            odd = [gpu for _, gpu in order if gpu % 2]
            assert ranking.first(profile, lambda gpu: gpu % 2 == 1, below=100) == (odd[0] if odd else None)


def test_a_ranking_does_not_grow_without_end() -> None:
    pool = TABLES
    states = [pool.state(0, 0)] * 2
    ranking = Ranking(states, lambda state, profile: state.usage.used_compute)
    for _ in range(5000):
        for mask in (busy("1g.5gb@0"), 0):
            states[1] = pool.state(mask, 0)
            ranking.changed.add(1)
            assert ranking.best(5) == 0
    assert len(ranking._orders[5][0]) < 2000
