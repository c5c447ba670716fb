"""The pages of the three papers about online schedulers: each group runs, and their own measures are what they say."""

import pytest
from online_worlds import PLAIN_COSTS, job, trace

from bench.fleet import fragmentation_worlds as tables
from bench.fleet import pcie as online_pcie
from bench.papers import measure as papers
from bench.papers.claims import Verdict
from mig_opt import simulate


@pytest.mark.deep
@pytest.mark.parametrize("name", ["migm", "fragmentation", "pcie"])
def test_a_cut_of_every_group(name: str) -> None:
    for key, measure in papers.load(name).groups.items():
        claims = measure(True).claims
        assert all(bool(claim.measured) == (claim.verdict is not Verdict.CANNOT) for claim in claims), key


def test_desired_and_actual_instances() -> None:
    """Created from 0 to 1 for a, which ends at 6; b wants one from 2 on and waits until 6; c needs its place at 20."""
    wanted = trace(job("a", 0, "4g.20gb", 5), job("b", 2, "4g.20gb", 5), job("c", 20, "7g.40gb", 5), costs=PLAIN_COSTS)
    log = simulate(wanted, "first-fit").log
    counts = tables.instance_counts(log)
    # b uses the same instance from 6 to 11; it stays until 20.5, when it has been destroyed for c.
    assert counts["4g.20gb"][-1] == (20.5, 0, 0)
    assert (6.0, 1, 1) in counts["4g.20gb"]
    assert max(desired for _, desired, _ in counts["4g.20gb"]) == 2
    shares = tables.surplus_shares(log)
    assert shares["4g.20gb"] == pytest.approx((20.5 - 11) / 26.5)
    assert shares["7g.40gb"] == 0


def test_concurrent_tasks_are_held_up_by_their_neighbours() -> None:
    found = tables.slowdowns(4, 2)
    assert set(found) == {"fragmentation-aware", *tables.RIVALS}
    assert all(value >= 1 - 1e-9 for own in found.values() for values in own.values() for value in values)
    drawn = tables.concurrent_tasks(6, 1)
    assert len(drawn.jobs) == 6
    assert sum(next(iter(one.times)) for one in drawn.jobs) <= 21
    assert all(one.arrival == 0 and one.pcie_gbps == 17.65 for one in drawn.jobs)


def test_starving_jobs_use_larger_instances() -> None:
    """Only where they have seconds for them, and where larger instances exist."""
    none, some = (
        online_pcie.Sample(online_pcie.Plan(seeds=3), sizes="1,2,3,4,7", **online_pcie.LARGER[name]).runs("pcie-aware")
        for name in ("no other size", "all larger sizes, as fast")
    )
    assert {one.larger for one in none} == {0.0}
    assert max(one.larger for one in some) > 0
