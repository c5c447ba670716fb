"""Simulations that start with the instances of a state."""

import pytest
from documents import refused

from mig_opt import FleetState, HeldInstance, InputError, Job, Trace, generate_trace, get_gpu, methods, simulate
from mig_opt.fleet.trace import Outage
from mig_opt.validation.fleet.logs import check_log

A100 = get_gpu("A100")
HELD = (
    HeldInstance(0, "3g.20gb", 4, "a"),
    HeldInstance(0, "1g.5gb", 1, "b"),
    HeldInstance(1, "2g.10gb", 2),
    HeldInstance(2, "4g.20gb", 0, idle=True),
    HeldInstance(2, "1g.5gb", 5, idle=True),
    HeldInstance(2, "1g.5gb", 6, "d"),
)
STATE = FleetState(A100, 3, HELD)
PARTITIONING = {"static", "memory-aware-a", "memory-aware-b", "pcie-aware", "pcie-unaware"}


@pytest.mark.parametrize("name", [policy.name for policy in methods("simulate")])
def test_every_scheduler_starts_from_a_state_or_says_that_it_cannot(name: str) -> None:
    trace = generate_trace("normal-25", jobs=30, gpus=3, seed=1)
    if name in PARTITIONING:
        refused(simulate, trace, name, state=STATE, busy_until=100, match="cannot start with instances of others")
        return
    done = simulate(trace, name, state=STATE, busy_until=100)
    assert check_log(done.log) == []
    assert done.unfinished == ()
    first = sorted((run for run in done.log.runs() if run.job < 4), key=lambda run: run.job)
    places = [(run.gpu, run.placement.profile.name, run.placement.start) for run in first]
    busy = [(held.gpu, held.profile, held.start) for held in HELD if not held.idle]
    # A scheduler may migrate them later, but they begin where they are.
    assert places[: len(busy)] == busy or len(first) > len(busy)
    assert [job.name for job in done.trace.jobs[:4]] == ["a", "b", "2g.10gb@2 of 1", "d"]
    if len(first) == len(busy):
        assert [run.end for run in first] == pytest.approx([100] * 4)


def test_idle_instances_are_used() -> None:
    trace = Trace((Job("x", 1.0, {4: 10.0}, "4g.20gb"),), A100, 3)
    done = simulate(trace, "first-fit", state=STATE, busy_until=50)
    run = next(run for run in done.log.runs() if done.trace.jobs[run.job].name == "x")
    assert (run.gpu, run.placement.start, run.begin) == (2, 0, 1.0)
    media = FleetState(A100, 1, (HeldInstance(0, "1g.5gb+me", 0, idle=True),))  # which no job asks for
    assert simulate(trace, "first-fit", state=media).unfinished == ()


def test_mistakes() -> None:
    trace = Trace((Job("x", 1.0, {4: 10.0}, "4g.20gb"),), A100, 3)
    refused(simulate, trace, state=STATE, match="busy_until: say after how many seconds the 4 instances")
    with pytest.raises(InputError, match="is of A30-24GB, and the trace of A100-40GB"):
        simulate(trace, state=FleetState(get_gpu("A30"), 1, ()))
    refused(simulate, trace, busy_until=3.0, match="busy_until: is for a state")
    refused(simulate, trace, state="fleet.json", match="state: must be a FleetState")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="state: has jobs on GPU 1, which leaves at second 0; leave them out"):
        simulate(trace.replace(outages=(Outage(1, 0.0, 5.0),)), state=STATE, busy_until=50)
