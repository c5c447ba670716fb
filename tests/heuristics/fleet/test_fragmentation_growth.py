"""Least growth of fragmentation."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import NO_COSTS, TABLES, arrivals, first_places, job, place, trace

from mig_opt import InputError, catalogue, generate_trace, simulate
from mig_opt.gpu.geometry import geometry_of
from mig_opt.heuristics.fleet.fragmentation_growth import FragmentationGrowth, blocked_slices


def test_blocked_slices_by_hand() -> None:
    """3g@4 on an A100 overlaps 3g@4, 2g@4, 1g.10gb@4 and @6, 1g@4 to @6; 7g does not fit into 4 slices anyway."""
    assert blocked_slices(TABLES, 0) == 0
    assert blocked_slices(TABLES, TABLES.mask([place("3g.20gb@4")])) == 4 + 2 + 2 + 2 + 3
    assert blocked_slices(TABLES, TABLES.mask([place("3g.20gb@0")])) == 4 + 4 + 2 * 2 + 2 * 2 + 4
    assert blocked_slices(TABLES, TABLES.mask([place("7g.40gb@0")])) == 0


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


def test_it_takes_the_gpu_and_slices_of_least_growth() -> None:
    """On an empty A100 1g stands at slice 6; b stands beside it, where c and d leave room for nothing else."""
    done = simulate(trace(*arrivals("1g.5gb", "2g.10gb", "4g.20gb"), gpus=2), "fragmentation-growth")
    assert first_places(done) == {"a": "0:1g.5gb@6", "b": "0:2g.10gb@4", "c": "0:4g.20gb@0"}


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


def test_options() -> None:
    with pytest.raises(InputError, match="metric: unknown 'size'"):
        FragmentationGrowth(metric="size")  # type: ignore[arg-type]
    waits = (job("a", 0.0, "7g.40gb", 5.0), job("b", 1.0, "7g.40gb", 5.0), job("c", 2.0, "1g.5gb", 5.0))
    done = simulate(trace(*waits, costs=NO_COSTS), "fragmentation-growth")
    assert done.metrics.makespan == 15.0
