"""Pictures of simulations on fleets without a queue."""

import pytest
from charts import artists, key
from online_worlds import job, trace

from mig_opt import Job, Trace, generate_trace, get_gpu
from mig_opt.errors import InputError
from mig_opt.models.fleet.admission import acceptance_bound
from mig_opt.simulation import simulate
from mig_opt.views import plot
from mig_opt.views.fleet.fleets import acceptance_steps


def test_acceptance_of_many_jobs_keeps_its_end() -> None:
    done = simulate(generate_trace("normal-25", jobs=2000, gpus=1, seed=1), "first-fit", reject=True)
    steps = acceptance_steps(done.log)
    assert len(steps.moments) == 800
    assert steps.levels[-1] == pytest.approx(100 * done.metrics.acceptance.jobs)


def test_the_bound_holds_for_all_that_are_drawn() -> None:
    jobs = Job("a", 0.0, {2: 10.0, 4: 1.0}, "2g.12gb"), Job("b", 5.0, {4: 5.0}, "4g.24gb")
    one, two = (simulate(Trace(jobs, get_gpu("A30")), name, reject=True) for name in ("first-fit", "whole-gpu"))
    whose = " that gives what is asked for"
    for shown, bound, of in (([one], 50.0, whose), ([one, two], 100.0, "")):
        figure = plot(shown)
        bars, limits = artists(figure, "bar:"), artists(figure, "upper-bound:")
        assert limits["upper-bound:0"].get_xdata()[0] == pytest.approx(bound)
        assert f"upper bound: no scheduler{of} accepts more" in key(figure)
        most = acceptance_bound(one.trace, as_asked=bool(of))
        for number, goal in enumerate(("jobs", "slices", "slice_seconds")):
            limit = limits[f"upper-bound:{number}"].get_xdata()[0]
            assert limit == pytest.approx(100 * getattr(most, goal))
            for index, each in enumerate(shown):
                width = bars[f"bar:{number}:{index}"].get_width()
                assert width == pytest.approx(100 * getattr(each.metrics.acceptance, goal))
                assert width <= limit + 1e-9


def test_simulations_with_and_without_a_queue_are_drawn_apart() -> None:
    world = trace(job("a", 0.0, "4g.20gb", 4.0))
    with pytest.raises(InputError, match="one turned jobs away, one let them wait"):
        plot([simulate(world, "first-fit", reject=True), simulate(world, "first-fit")])
