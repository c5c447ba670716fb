"""Pictures of simulations."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from charts import artists, assert_texts_apart, key
from matplotlib.lines import Line2D
from online_worlds import NO_COSTS, Scripted, job, place, trace

from mig_opt import Trace, generate_trace
from mig_opt.errors import InputError
from mig_opt.simulation import Policy, Simulation, simulate
from mig_opt.views import plot
from mig_opt.views.fleet.fleets import StepFunction, wait_steps

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

    def arrived(self, cluster, job):  # type: ignore[no-untyped-def]
        if job == 0:
            cluster.start(0, 0, place("4g.20gb@0"))


# The figures


def test_many_steps_become_fewer_with_the_same_mean() -> None:
    levels = np.arange(5000.0) % 7
    steps = StepFunction(np.arange(5000.0), levels)
    thin = steps.thinned(5000.0)
    assert len(thin.levels) < 500
    assert thin.levels.mean() == pytest.approx(levels.mean())


def test_waits_of_many_jobs_keep_their_ends() -> None:
    log = simulate(generate_trace("long-25", jobs=3000, mean_gap=5.0), "first-fit").log
    waits = sorted(at - each.arrival for at, each in zip(log.scheduled, log.trace.jobs, strict=True))
    steps = wait_steps(log)
    assert len(steps.moments) <= 801
    assert steps.moments[-1] == pytest.approx(waits[-1])
    assert steps.levels[-1] == 100.0
    assert steps.at(np.array([waits[1500]]))[0] == pytest.approx(50.0, abs=0.5)


# The picture


def test_many_migrations_are_counted() -> None:
    done = simulate(generate_trace("long-25", jobs=700, mean_gap=20.0), "fragmentation-aware")
    figure = plot(done)
    assert "migrations" in [axes.get_label() for axes in figure.axes]
    (line,) = artists(figure, "migrations:").values()
    assert isinstance(line, Line2D)
    counts = np.asarray(line.get_ydata())
    assert counts[:-1].sum() == done.metrics.migrations > 150
    assert_texts_apart(figure)


def test_who_leaves_jobs_waiting_is_said_to() -> None:
    figure = plot(simulate(two_jobs(), Lazy()))
    (heading,) = artists(figure, "heading:fleet").values()
    assert "1 of 2 jobs done" in heading.get_text()  # type: ignore[attr-defined]
    texts = [artist.get_text() for artist in artists(figure, "value:").values()]  # type: ignore[attr-defined]
    assert texts == ["0 s of 1 of 2 jobs", "4 s of 1 of 2 jobs", "4 s of 1 of 2 jobs"]


def test_names_that_do_not_fit_are_in_the_key() -> None:
    jobs = tuple(
        dataclasses.replace(each, name=NAME.format(number))
        for number, each in enumerate(generate_trace("long-25", jobs=20).jobs)
    )
    figure = plot(simulate(generate_trace("long-25").replace(jobs=jobs), "first-fit"))
    texts = {artist.get_text() for artist in artists(figure, "label:").values()}  # type: ignore[attr-defined]
    numbers = {text for text in texts if text.startswith("#")}
    explained = {entry.split()[0] for entry in key(figure) if entry.startswith("#")}
    assert numbers
    assert numbers <= explained
    assert all("a very long name" in entry for entry in key(figure) if entry.startswith("#"))
    assert_texts_apart(figure)


def test_policies_that_differ_in_the_middle_of_their_names_have_different_names() -> None:
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
def test_texts_are_apart(jobs: int, gpus: int, policies: list[str]) -> None:
    world = generate_trace("long-25", jobs=jobs, gpus=gpus, mean_gap=100 / gpus)
    assert_texts_apart(plot([simulate(world, name) for name in policies]))


def test_nothing_is_left_on_the_screen_when_nothing_runs() -> None:
    """The default partition has no 7g, which comes first and holds up everybody."""
    world = trace(job("a", 0.0, "4g.20gb", 4.0))
    assert_texts_apart(plot(simulate(world, "static", partition="7")))


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    done = simulate(two_jobs(), "first-fit")
    with pytest.raises(InputError, match="there is no picture of list"):
        plot([])
    with pytest.raises(InputError, match=r"simulations\[1\]: must be what simulate\(\) returned"):
        plot([done, 7])
    with pytest.raises(InputError, match=r"simulations\[1\]: is of another trace"):
        plot([done, moved()])
    with pytest.raises(InputError, match=r"written as .png, .pdf, .svg or .html"):
        plot(done, to=tmp_path / "a.gif")
