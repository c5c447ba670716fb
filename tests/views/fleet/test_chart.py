"""Pictures of simulations."""

import dataclasses

import numpy as np
import pytest
from charts import artists, assert_texts_apart, key
from documents import refused
from matplotlib.lines import Line2D
from online_worlds import NO_COSTS, Scripted, job, place, trace

from mig_opt import Job, Trace, generate_trace, get_gpu, plot
from mig_opt.models.fleet.admission import acceptance_bound
from mig_opt.simulation import Policy, Simulation, simulate
from mig_opt.views.fleet.fleets import StepFunction, acceptance_steps, wait_steps

NAME = "a very long name of a job that nobody can read/{}-$x^2$ _ {{"


def two_jobs() -> Trace:
    """Without costs, first fit: a on 4g@0 from 0 to 4, b on 4g@0 from 4 to 6, as 4g has one place."""
    return trace(job("a", 0.0, "4g.20gb", 4.0), job("b", 1.0, "4g.20gb", 2.0), costs=NO_COSTS)


def moved() -> Simulation:
    """A job on GPU 0 that goes on at GPU 1 after 3 of its 10 seconds."""
    steps = [(3.0, lambda cluster: cluster.migrate(0, 1, place("2g.10gb@2")))]
    policy = Scripted({"a": (0, "2g.10gb@0")}, steps)
    return simulate(trace(job("a", 0.0, "2g.10gb", 10.0), gpus=2, costs=NO_COSTS), policy)


class Lazy(Policy):
    """Starts the first job and no other."""

    def arrived(self, cluster, job):
        if job == 0:
            cluster.start(0, 0, place("4g.20gb@0"))


def test_many_steps_become_fewer_with_the_same_mean():
    levels = np.arange(5000.0) % 7
    steps = StepFunction(np.arange(5000.0), levels)
    thin = steps.thinned(5000.0)
    assert len(thin.levels) < 500
    assert thin.levels.mean() == pytest.approx(levels.mean())


def test_waits_of_many_jobs_keep_their_ends():
    log = simulate(generate_trace("long-25", jobs=3000, mean_gap=5.0), "first-fit").log
    waits = sorted(at - each.arrival for at, each in zip(log.scheduled, log.trace.jobs, strict=True))
    steps = wait_steps(log)
    assert len(steps.moments) <= 801
    assert steps.moments[-1] == pytest.approx(waits[-1])
    assert steps.levels[-1] == 100.0
    assert steps.at(np.array([waits[1500]]))[0] == pytest.approx(50.0, abs=0.5)


def test_many_migrations_are_counted():
    done = simulate(generate_trace("long-25", jobs=700, mean_gap=20.0), "fragmentation-aware")
    figure = plot(done)
    assert "migrations" in [axes.get_label() for axes in figure.axes]
    (line,) = artists(figure, "migrations:").values()
    assert isinstance(line, Line2D)
    counts = np.asarray(line.get_ydata())
    assert counts[:-1].sum() == done.metrics.migrations > 150
    assert_texts_apart(figure)


def test_who_leaves_jobs_waiting_is_said_to():
    figure = plot(simulate(two_jobs(), Lazy()))
    (heading,) = artists(figure, "heading:fleet").values()
    assert "1 of 2 jobs done" in heading.get_text()
    texts = [artist.get_text() for artist in artists(figure, "value:").values()]
    assert texts == ["0 s of 1 of 2 jobs", "4 s of 1 of 2 jobs", "4 s of 1 of 2 jobs"]


def test_names_that_do_not_fit_are_in_the_key():
    jobs = tuple(
        dataclasses.replace(each, name=NAME.format(number))
        for number, each in enumerate(generate_trace("long-25", jobs=20).jobs)
    )
    figure = plot(simulate(generate_trace("long-25").replace(jobs=jobs), "first-fit"))
    texts = {artist.get_text() for artist in artists(figure, "label:").values()}
    numbers = {text for text in texts if text.startswith("#")}
    explained = {entry.split()[0] for entry in key(figure) if entry.startswith("#")}
    assert numbers
    assert numbers <= explained
    assert all("a very long name" in entry for entry in key(figure) if entry.startswith("#"))
    assert_texts_apart(figure)


def test_policies_that_differ_in_the_middle_of_their_names_have_different_names():
    """From 44 characters on the middle is left out, which would be the threshold here."""
    world, rest = generate_trace("long-25", jobs=12), {"migration": False, "backfill": True}
    done = [simulate(world, "fragmentation-aware", threshold=share, **rest) for share in (0.2, 0.25)]
    figure = plot(done)
    names = [entry for entry in key(figure) if entry.startswith("fragmentation-aware")]
    assert len(set(names)) == 2
    assert_texts_apart(figure)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("jobs", "gpus", "policies"),
    [
        (1, 1, ["first-fit"]),
        (50, 4, ["fragmentation-aware", "static"]),
        (50, 8, ["fragmentation-aware"]),
        (600, 40, ["fragmentation-aware", "first-fit", "best-fit", "load-balancing", "static"]),
    ],
)
def test_texts_are_apart(jobs, gpus, policies):
    world = generate_trace("long-25", jobs=jobs, gpus=gpus, mean_gap=100 / gpus)
    assert_texts_apart(plot([simulate(world, name) for name in policies]))


def test_nothing_is_left_on_the_screen_when_nothing_runs():
    """The default partition has no 7g, which comes first and holds up everybody."""
    world = trace(job("a", 0.0, "4g.20gb", 4.0))
    assert_texts_apart(plot(simulate(world, "static", partition="7")))


def test_what_cannot_be_drawn_is_refused(tmp_path):
    done = simulate(two_jobs(), "first-fit")
    refused(plot, [], match="there is no picture of list")
    refused(plot, [done, 7], match=r"simulations\[1\]: must be what simulate\(\) returned")
    refused(plot, [done, moved()], match=r"simulations\[1\]: is of another trace")
    refused(plot, done, match=r"written as .png, .pdf, .svg or .html", to=tmp_path / "a.gif")


def test_acceptance_of_many_jobs_keeps_its_end():
    done = simulate(generate_trace("normal-25", jobs=2000, gpus=1, seed=1), "first-fit", reject=True)
    steps = acceptance_steps(done.log)
    assert len(steps.moments) == 800
    assert steps.levels[-1] == pytest.approx(100 * done.metrics.acceptance.jobs)


def test_the_bound_holds_for_all_that_are_drawn():
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


def test_simulations_with_and_without_a_queue_are_drawn_apart():
    world = trace(job("a", 0.0, "4g.20gb", 4.0))
    shown = [simulate(world, "first-fit", reject=True), simulate(world, "first-fit")]
    refused(plot, shown, match="one turned jobs away, one let them wait")
