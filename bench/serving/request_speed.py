"""Speed of the simulation of requests: a hundred million requests of the scenario S5 on one core.

Run: python -m bench.serving.request_speed. It takes about a minute; with --cut, 1 % of the requests, a second.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence

from bench.report import describe, parser_of, save
from mig_opt import deploy, simulate_requests
from mig_opt.instances.bundled import load_demand

CASES = (
    ("even", "least-work", 20_000_000),
    ("bursty", "least-work", 20_000_000),
    ("poisson", "round-robin", 20_000_000),
    ("poisson", "random", 20_000_000),
    ("poisson", "least-work", 20_000_000),
    ("poisson", "least-work", 100_000_000),
)
"""Pattern of arrivals, router, and requests."""
GOAL = 2_000_000
"""Requests in a second of one core."""


def main(arguments: Sequence[str]) -> None:
    """Run the study."""
    parser = parser_of(__doc__, "request_speed.md", "a hundredth of the requests, in a second")
    options = parser.parse_args(arguments)
    demand = load_demand("parvagpu-s5")
    deployment = deploy(demand).deployment
    assert deployment is not None
    rate = sum(service.rate for service in demand.services)
    lines = [
        "# Speed of the simulation of requests",
        "",
        describe("mig-opt", "numpy"),
        "",
        f"Requests at the deployment of `exact` for S5: {len(demand.services)} services, {len(deployment.segments)}",
        "segments. Seconds of the processor, one thread, which makes the arrivals too. Memory: the most that the",
        f"process has had until then. The goal is {GOAL / 1e6:g} million requests a second.",
        "",
        "| arrivals | router | requests | processor | requests a second | memory |",
        "|---|---|---|---|---|---|",
    ]
    for arrivals, router, requests in CASES:
        seconds = requests / (100 if options.cut else 1) / rate
        begin = time.process_time()
        found = simulate_requests(
            demand, deployment, arrivals=arrivals, router=router, seconds=seconds, warm_up=0.0, seed=1
        )
        processor = time.process_time() - begin
        speed = found.requests / processor
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        cells = f"{found.requests:,} | {processor:.1f} s | {speed / 1e6:.1f} million | {memory:.0f} MiB"
        lines.append(f"| {arrivals} | {router} | {cells} |")
        print(lines[-1], flush=True)
        assert options.cut or speed >= GOAL, "slower than the goal"
    save("request_speed", "\n".join(lines), options.results)


if __name__ == "__main__":
    main(sys.argv[1:])
