"""Pictures of simulated requests: the share of each service's requests that takes longer than any time."""

from __future__ import annotations

import numpy as np

from mig_opt.simulation.serving.outcome import RequestSimulation, ServiceLatencies
from mig_opt.views.scene import Axis, Line, Panel, Rule, Scene
from mig_opt.views.texts import BOUND, colour_of, elide, one_line

_MOST_LINES = 20  # services whose latencies are drawn
_FARTHEST, _LEAST_SHARE = 2.0, 1e-3  # ends of the axes: a multiple of the SLO, and a percentage of the requests


def latency_title(simulation: RequestSimulation) -> str:
    """Return the title of a picture: arrivals, requests and the late share."""
    return f"{simulation.requests:,} requests ({simulation.arrivals}), {100 * simulation.late_share:.3g} % late"


def latency_scene(simulation: RequestSimulation, promise: float | None = None) -> Scene:
    """Return the picture of how many requests of each service take longer than any share of its SLO.

    Each service has a falling line; at 1, the SLO, it shows the share of late requests. Of more than 20 services those
    with most late requests are drawn.

    Parameters
    ----------
    simulation : RequestSimulation
        What :func:`mig_opt.simulate_requests` returned.
    promise : float, optional
        Share of the requests that should be in time: a horizontal line at the rest.

    Returns
    -------
    Scene
        Its title is arrivals, requests and the late share.
        The group ids of the lines of a figure are ``service:<index>``, ``slo`` and ``promise``.

    Examples
    --------
    >>> from mig_opt import deploy, load, plot, simulate_requests
    >>> demand = load("parvagpu-s1")
    >>> figure = plot(simulate_requests(demand, deploy(demand).deployment, seconds=1))
    >>> figure.axes[0].get_xlabel()
    'latency as a multiple of the SLO'
    """
    marks: list[Line | Rule] = [Rule("slo", 1.0, "the SLO", colour=BOUND)]
    if promise is not None:
        rest = 100 * (1 - promise)
        marks.append(Rule("promise", rest, "the promise", colour=BOUND, dashed=True, level=True))
    worst = sorted(enumerate(simulation.services), key=lambda entry: -entry[1].late_share)[:_MOST_LINES]
    hidden = len(simulation.services) - len(worst)
    marks += [_line(number, service) for number, service in sorted(worst, key=lambda entry: entry[0])]
    x = Axis("latency as a multiple of the SLO", (0, _FARTHEST))
    y = Axis("% of requests that take longer", (_LEAST_SHARE, 100), scale="log")
    panel = Panel("latencies", marks, x, y, height=3.6, pixels=460, grid="both", zoom="both")
    remarks = [f"{hidden} more not drawn"] if hidden else []
    return Scene(latency_title(simulation), [panel], 8.0, left=0.75, remarks=remarks)


def _line(number: int, service: ServiceLatencies) -> Line:
    """Return which share of a service's requests takes longer than which multiples of its SLO."""
    edges, shares = np.array([0.0]), np.array([0.0])
    if service.requests:
        edges = np.array([0.0, *(edge for edge, _ in service.bins)]) / service.slo_s
        counts = np.array([0, *(count for _, count in service.bins)])
        shares = 100 * (1 - np.cumsum(counts) / service.requests)
    # A logarithm has no zero: the line ends below the picture.
    shares = np.maximum(shares, _LEAST_SHARE / 100)
    label = f"{elide(one_line(service.name), 24)}: {100 * service.late_share:.3g} % late"
    hover = [
        ("service", one_line(service.name)),
        ("longer than", "@x{0.000} times the SLO"),
        ("are", "@y{0.0000} % of the requests"),
    ]
    return Line(f"service:{number}", edges, shares, colour_of(number), label, width=1.6, hover=hover)
