"""The study of the memory-aware scheduler runs, and its figures are what they are said to be."""

from statistics import fmean

import pytest

from bench.fleet import memory as online_memory
from mig_opt import generate_trace


@pytest.mark.deep
def test_scheme_a_beats_b_where_runtimes_are_similar() -> None:
    """Sorted by memory, the longer jobs come last and are dealt equally; in any order B ends with one of them."""
    found = online_memory.similar_throughputs(20, 0.0, 1.25)
    assert fmean(found["A"]) > fmean(found["B"]) + 0.02
    assert fmean(found["A"]) >= fmean(found["A, one queue"])
    drawn = generate_trace("migm-ml2", seed=1, sigma=0.0)
    longer = online_memory.second_kind(drawn, 1.5)
    for one, other in zip(drawn.jobs, longer.jobs, strict=True):
        assert other.times[7] == pytest.approx(one.times[7] * (0.8 if one.memory_gb == 3.5 else 1.2))


def test_the_energy_of_jobs_is_the_formula_of_the_printed_pairs() -> None:
    """With a share c of the power constant, the energy is 1 / (c / throughput + 1 - c) of that of the whole GPU."""
    measured = online_memory.outcomes("ml2", 1, "A")[0].throughput
    wanted = 1 / (0.29 / measured + 0.71)
    assert online_memory.own_energy("ml2", "A", 1, 0.29) == pytest.approx(wanted, rel=1e-3)
