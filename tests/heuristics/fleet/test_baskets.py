"""Two baskets of GPUs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import assert_sound, job, trace, traces

from mig_opt import Trace, simulate
from mig_opt.gpu.geometry import members
from mig_opt.heuristics.fleet.baskets import Baskets
from mig_opt.simulation import Cluster


def test_a_refusal_defragments_the_worst_gpu() -> None:
    """b on 2g@2 is in the way of 4g@0 once a has ended; 4 slices are free, and 2g@4 is one of them."""
    jobs = [job("a", 0.0, "2g.10gb", 5.0), job("b", 1.0, "2g.10gb", 50.0), job("c", 6.0, "4g.20gb", 9.0)]
    for defragmentation, rejected in ((True, ()), (False, ("c",))):
        done = simulate(trace(*jobs), "baskets", defragmentation=defragmentation, reject=True)
        assert done.rejected == rejected
        assert done.metrics.migrations == (1 if defragmentation else 0)


def test_consolidation_empties_gpus() -> None:
    """a and b keep GPU 0 full until 5 s; c and d then share a GPU, and e finds the other one."""
    jobs = [job("a", 0.0, "4g.20gb", 5.0), job("b", 0.0, "3g.20gb", 90.0), job("c", 1.0, "4g.20gb", 90.0)]
    jobs.append(job("e", 20.0, "7g.40gb", 5.0))
    for seconds, rejected in ((10.0, ()), (None, ("e",))):
        done = simulate(trace(*jobs, gpus=2), "baskets", consolidate_s=seconds, quota=1.0, reject=True)
        assert done.rejected == rejected


class Watched(Baskets):
    """Notes the most GPUs that each kind had at once."""

    def __init__(self, **options: float) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.most = [0, 0]

    def look(self, cluster: Cluster) -> None:
        places = cluster.geometry.placements
        there = [{places[at].profile.compute_slices for at in members(state.busy)} for state in cluster.states]
        assert all(sizes == {7} or 7 not in sizes for sizes in there)
        kinds = [7 in sizes for sizes in there if sizes]
        self.most = [max(most, kinds.count(kind)) for most, kind in zip(self.most, (False, True), strict=True)]


@pytest.mark.deep
@settings(max_examples=30, deadline=None)
@given(traces(max_gpus=4), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.sampled_from([0.3, 0.7, 1.0]), st.booleans())
def test_quotas_are_kept(trace: Trace, quota: float, small_quota: float, reject: bool) -> None:
    policy = Watched(quota=quota, small_quota=small_quota, consolidate_s=3.0)
    done = simulate(trace, policy, observer=policy.look, reject=reject, failure_limit=5)
    assert_sound(done.log)
    small, large = (max(int(share * trace.gpus + 0.5), 1) for share in (small_quota, quota))
    assert policy.most[0] <= small
    assert policy.most[1] <= large
