"""Time and memory of a simulation, as they grow with the fleet and the number of jobs.

Run: python -m bench.fleet.speed. It takes about a quarter of an hour; with --cut 10 (a tenth of the jobs) two minutes.
"""

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence

from bench.report import Page, parser_of, start, timed
from mig_opt import Job, Trace, get_gpu, methods, simulate

SIZES = {"1g.5gb": 1, "2g.10gb": 2, "3g.20gb": 3, "4g.20gb": 4}
GROWTH = (10, 100, 1_000, 10_000)  # fleets on which a tenth of the most jobs run
MOST_JOBS, MOST_GPUS = 1_000_000, 10_000
PLANNED_JOBS, PLANNED_GPUS = 10_000, 100
BOUND = 0.5  # share of PCIe-bound jobs
LOAD = 0.85


def make_trace(jobs: int, gpus: int) -> Trace:
    """Return Poisson arrivals of jobs of 20 to 100 s on four sizes that keep 85 % of the fleet's slices busy."""
    draw = random.Random(1)
    rate = LOAD * gpus * 7 / (2.5 * 60.0)
    now, made = 0.0, []
    for number in range(jobs):
        now += draw.expovariate(rate)
        profile = draw.choice(list(SIZES))
        pcie = 9.0 if draw.random() < BOUND else 0.0
        times = {SIZES[profile]: draw.uniform(20, 100)}
        made.append(Job(f"j{number}", now, times, profile, pcie_gbps=pcie, sensitivity=0.9))
    return Trace(tuple(made), get_gpu("A100"), gpus)


def measure(jobs: int, gpus: int, policy: str) -> dict[str, float]:
    """Return the seconds for one simulation and for its metrics, and the memory of the process."""
    trace = make_trace(jobs, gpus)
    done, processor = timed(lambda: simulate(trace, policy))
    metrics, seconds = timed(lambda: done.metrics, time.perf_counter)
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found = {"seconds": done.runtime_s, "processor": processor, "metrics": seconds, "gib": gib}
    return found | {"migrations": metrics.migrations, "unfinished": len(done.unfinished)}


def measured(cases: Iterable[tuple[int, int, str]], cut: int) -> Iterator[list[str]]:
    """Measure simulations; each is given by its numbers of GPUs and jobs and its scheduler."""
    for gpus, jobs, policy in cases:
        many = jobs // cut
        # In a process of its own, where no other trace is in memory.
        command = [sys.executable, "-m", "bench.fleet.speed", "--one", str(many), str(gpus), policy]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        found: dict[str, float] = json.loads(answer.stdout)
        assert not found["unfinished"]
        yield [
            *(f"{gpus:,}", f"{many:,}", f"`{policy}`", f"{found['seconds']:.1f} s", f"{found['processor']:.1f} s"),
            *(f"{found['processor'] / many * 1e6:.0f} us", f"{found['metrics']:.1f} s"),
            *(f"{found['migrations']:,.0f}", f"{found['gib']:.2f} GiB"),
        ]


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    parser = parser_of(__doc__, "online_speed.md")
    parser.add_argument("--cut", type=int, default=1, help="divide the numbers of jobs by this (1)")
    parser.add_argument("--one", nargs=3, metavar=("JOBS", "GPUS", "POLICY"), help="measure one, as JSON")
    options = parser.parse_args(arguments)
    if options.one:
        jobs, gpus, policy = options.one
        print(json.dumps(measure(int(jobs), int(gpus), policy)))
        return
    names = [entry.name for entry in methods("simulate") if entry.name != "planner"]
    growing = [(gpus, MOST_JOBS // 10, policy) for policy in ("first-fit", "fragmentation-aware") for gpus in GROWTH]
    page = Page("online_speed", "Speed of the simulator", "mig-opt", folder=options.results)
    page.add("""Poisson arrivals on A100s, 85 % of the compute slices asked for, jobs of 20 to 100 s on 1g to 4g in
        equal parts, half of them PCIe-bound. Goals: a million jobs on 10,000 GPUs in under a minute for each simple
        scheduler; `planner` with 10,000 jobs on 100 GPUs in under ten minutes. The memory is that of the whole process,
        with trace and metrics. The machine is shared: seconds of the processor are the better measure, also per
        job.""")
    heads = ["GPUs", "jobs", "policy", "simulation", "processor", "per job", "metrics", "migrations", "memory"]
    for heading, cases in (
        ("A million jobs on 10,000 GPUs", [(MOST_GPUS, MOST_JOBS, name) for name in names]),
        ("The planner", [(PLANNED_GPUS, PLANNED_JOBS, "planner")]),
        ("Growth with the fleet", growing),
    ):
        page.section(heading)
        page.table(heads, measured(cases, options.cut), texts=(2,))
    page.save()
