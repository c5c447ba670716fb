"""Speed of the simulation of requests: a hundred million requests of the scenario S5 on one core.

Run: python -m bench.serving.request_speed. It takes about a minute; with --cut, 1 % of the requests, a second.
"""

import resource
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from bench.report import Page, parser_of, start, there, timed
from mig_opt import Demand, Deployment, deploy, load, simulate_requests

CASES = (
    ("even", "least-work", 20_000_000),
    ("bursty", "least-work", 20_000_000),
    ("poisson", "round-robin", 20_000_000),
    ("poisson", "random", 20_000_000),
    ("poisson", "least-work", 20_000_000),
    ("poisson", "least-work", 100_000_000),
)
"""Pattern of arrivals, router, and requests."""
GOAL = 2_000_000  # requests in a second of one core


def measured(demand: Demand, deployment: Deployment, *, cut: bool) -> Iterator[list[str]]:
    """Simulate the requests of each case."""
    rate = sum(service.rate for service in demand.services)
    for arrivals, router, requests in CASES:
        settings: dict[str, Any] = {"arrivals": arrivals, "router": router, "warm_up": 0.0, "seed": 1}
        seconds = requests / (100 if cut else 1) / rate
        found, processor = timed(partial(simulate_requests, demand, deployment, seconds=seconds, **settings))
        speed = found.requests / processor
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        cells = [f"{processor:.1f} s", f"{speed / 1e6:.1f} million", f"{memory:.0f} MiB"]
        yield [arrivals, router, f"{found.requests:,}", *cells]
        assert cut or speed >= GOAL, "slower than the goal"


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    parser = parser_of(__doc__, "request_speed.md", "a hundredth of the requests, in a second")
    options = parser.parse_args(arguments)
    demand = load("parvagpu-s5")
    deployment = there(deploy(demand).deployment)
    page = Page("request_speed", "Speed of the simulation of requests", "mig-opt", "numpy", folder=options.results)
    page.add(f"""Requests at the deployment of `exact` for S5: {len(demand.services)} services,
        {len(deployment.segments)} segments. Seconds of the processor, one thread, which makes the arrivals too. Memory:
        the most that the process has had until then. The goal is {GOAL / 1e6:g} million requests a second.""")
    head = ["arrivals", "router", "requests", "processor", "requests a second", "memory"]
    page.table(head, measured(demand, deployment, cut=options.cut), range(6))
    page.save()
