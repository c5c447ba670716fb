"""Least growth of fragmentation."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import TABLES

from mig_opt import catalogue, generate_trace, simulate
from mig_opt.gpu.geometry import geometry_of
from mig_opt.heuristics.fleet.fragmentation_growth import blocked_slices


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([model.name for model in catalogue()]), st.data())
def test_blocked_slices_from_the_definition(name: str, data: st.DataObject) -> None:
    gpu = next(model for model in catalogue() if model.name == name)
    state = data.draw(st.sampled_from(sorted(gpu.placed_states("double-memory"), key=str)))
    tables = geometry_of(gpu)
    mask = tables.mask(tables.index(there.profile.name, there.start) for there in state)
    free = gpu.memory_slices - sum(there.profile.memory_slices for there in state)
    assert blocked_slices(tables, mask) == sum(
        placement.profile.memory_slices
        for placement in gpu.placements("double-memory")
        if placement.profile.memory_slices <= free and any(placement.excludes(there) for there in state)
    )


@pytest.mark.parametrize("metric", ["blocked", "unavailable"])
def test_no_other_place_grows_less(metric: str) -> None:
    def fragmentation(busy: int) -> int:
        return blocked_slices(TABLES, busy) if metric == "blocked" else TABLES.usage(busy).cost

    done = simulate(
        generate_trace("normal-25", jobs=60, gpus=3, seed=2), "fragmentation-growth", metric=metric, reject=True
    )
    runs = sorted(done.log.runs(), key=lambda run: done.log.scheduled[run.job])
    moments = {run.job: (done.log.scheduled[run.job], done.log.finished[run.job]) for run in runs}
    for run in runs:
        now = moments[run.job][0]
        busy = [
            TABLES.mask(
                TABLES.index(other.placement.profile.name, other.placement.start)
                for other in runs
                if other.gpu == gpu and moments[other.job][0] < now < moments[other.job][1]
            )
            for gpu in range(3)
        ]
        chosen = TABLES.index(run.placement.profile.name, run.placement.start)
        growths = {
            (gpu, where): fragmentation(busy[gpu] | 1 << where) - fragmentation(busy[gpu])
            for gpu, where in itertools.product(range(3), TABLES.placements_of[TABLES.profile_of[chosen]])
            if not TABLES.conflicts[where] & busy[gpu]
        }
        assert min(growths, key=lambda each: (growths[each], each)) == (run.gpu, chosen)
