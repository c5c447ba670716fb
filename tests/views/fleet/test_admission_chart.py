"""Pictures of simulations on fleets without a queue."""

from __future__ import annotations

import pytest
from charts import artists
from online_worlds import job, trace

from mig_opt import Job, Trace, generate_trace, get_gpu
from mig_opt.errors import InputError
from mig_opt.models.fleet.admission import acceptance_bound
from mig_opt.simulation import Simulation, simulate
from mig_opt.views import plot
from mig_opt.views.fleet.fleets import acceptance_steps
from mig_opt.views.fleet.simulations import ASKED_SIGN, UPPER_SIGN, comparisons


def rejecting() -> list[Simulation]:
    """a is accepted, b turned away, c accepted."""
    jobs = (job("a", 0.0, "4g.20gb", 4.0), job("b", 1.0, "4g.20gb", 2.0), job("c", 3.0, "3g.20gb", 2.0))
    return [simulate(trace(*jobs), name, reject=True) for name in ("first-fit", "whole-gpu")]


def test_acceptance_of_many_jobs_keeps_its_end() -> None:
    done = simulate(generate_trace("normal-25", jobs=2000, gpus=1, seed=1), "first-fit", reject=True)
    steps = acceptance_steps(done.log)
    assert len(steps.moments) == 800
    assert steps.levels[-1] == pytest.approx(100 * done.metrics.acceptance.jobs)


def test_the_bound_holds_for_all_that_are_drawn() -> None:
    jobs = Job("a", 0.0, {2: 10.0, 4: 1.0}, "2g.12gb"), Job("b", 5.0, {4: 5.0}, "4g.24gb")
    one, two = (simulate(Trace(jobs, get_gpu("A30")), name, reject=True) for name in ("first-fit", "whole-gpu"))
    for shown, bound, sign in (([one], 50.0, ASKED_SIGN), ([one, two], 100.0, UPPER_SIGN)):
        (first, *_) = comparisons(shown, None)
        assert (first.bound, first.sign) == (pytest.approx(bound), sign)
        assert max(first.values) <= bound


def test_panels_and_bounds_without_a_queue() -> None:
    done = rejecting()
    figure = plot(done)
    labels = [axes.get_label() for axes in figure.axes]
    assert labels[2:] == ["fragmentation", "acceptance", "accepted jobs", "accepted slices", "accepted slice-seconds"]
    bars = artists(figure, "bar:")
    assert bars["bar:0:0"].get_width() == pytest.approx(100 * done[0].metrics.acceptance.jobs)
    assert bars["bar:2:1"].get_width() == pytest.approx(100 * done[1].metrics.acceptance.slice_seconds)
    limits = artists(figure, "upper-bound:")
    bound = acceptance_bound(done[0].trace)
    assert [limit.get_xdata()[0] for limit in limits.values()] == pytest.approx(
        [100 * ratio for ratio in (bound.jobs, bound.slices, bound.slice_seconds)]
    )
    assert "2 of 3 jobs accepted" in artists(figure, "heading:")["heading:fleet 0"].get_text()
    with pytest.raises(InputError, match="one turned jobs away, one let them wait"):
        plot([done[0], simulate(done[0].trace, "first-fit")])
