"""Pictures of latencies."""

import dataclasses

import pytest
from charts import assert_texts_apart
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mig_opt.simulation.serving.outcome import RequestSimulation, ServiceLatencies
from mig_opt.views import plot


def simulation(services: int) -> RequestSimulation:
    def service(number: int) -> ServiceLatencies:
        bins = ((0.02, 50), (0.05 + 0.001 * number, 40), (0.2, 10))
        figures = (0.03, 0.02, 0.15, 0.2, 0.2, 0.2)
        return ServiceLatencies(f"s{number}", 0.1, 100, 10, 0.1, (0.05, 0.2), 10, 2, 0, *figures, bins)

    return RequestSimulation(tuple(map(service, range(services))), (), "poisson", "least-work", 10.0, 1.0, 0, 0.1)


def line_of(figure: Figure, gid: str) -> Line2D:
    return next(line for line in figure.axes[0].lines if line.get_gid() == gid)


def test_a_line_falls_to_the_late_share_at_the_limit() -> None:
    figure = plot(simulation(2), promise=0.99)
    line = line_of(figure, "service:0")
    times, shares = line.get_data()
    assert times[0] == 0
    assert shares[0] == 100
    assert shares[times <= 1][-1] == pytest.approx(10)
    assert line_of(figure, "promise").get_ydata() == pytest.approx([1.0, 1.0])
    assert_texts_apart(figure)


def test_many_services_are_cut() -> None:
    figure = plot(simulation(30))
    assert len([line for line in figure.axes[0].lines if str(line.get_gid()).startswith("service:")]) == 20
    assert any("10 more not drawn" in text.get_text() for text in figure.findobj() if hasattr(text, "get_text"))


def test_services_without_requests_are_drawn() -> None:
    idle = dataclasses.replace(simulation(1).services[0], requests=0, late=0, late_share=0.0, bins=())
    assert plot(dataclasses.replace(simulation(1), services=(idle,)))
