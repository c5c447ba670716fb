"""Jobs that say how much memory they need.

Without stated costs operations take no time. On an A100 1g has 5 GB, 2g 10 GB, 3g and 4g 20 GB, 7g 40 GB.
"""

import pytest
from online_worlds import A100, NO_COSTS, rows, trace

from mig_opt import Job, OperationCosts, Simulation, Trace

STEPS = 20


def sized(name: str, gb: float, times: dict[int, float], arrival: float = 0.0) -> Job:
    """A job that asks for no profile and says how much memory it needs."""
    return Job(name, arrival, times, memory_gb=gb)


def small(name: str, seconds: float, arrival: float = 0.0) -> Job:
    return sized(name, 4.0, {1: seconds, 2: seconds, 7: seconds}, arrival)


def half(name: str, seconds: float, arrival: float = 0.0) -> Job:
    return sized(name, 16.0, {3: seconds, 4: seconds, 7: seconds}, arrival)


def full(name: str, seconds: float, arrival: float = 0.0) -> Job:
    return sized(name, 32.0, {7: seconds}, arrival)


def growing(name: str, first: float, last: float, arrival: float = 0.0) -> Job:
    """A job of 20 iterations of a second on all sizes, that each need more memory than the one before."""
    rise = (last - first) / (STEPS - 1)
    growth = tuple((step / STEPS, first + rise * step) for step in range(STEPS))
    return Job(name, arrival, dict.fromkeys(A100.sizes, 20.0), memory_growth=growth)


def free(*jobs: Job, gpus: int = 1, costs: OperationCosts = NO_COSTS) -> Trace:
    return trace(*jobs, gpus=gpus, costs=costs)


def places(done: Simulation) -> dict[str, str]:
    """Instance on which each job ran last."""
    return {str(row[0]): f"{row[1]}:{row[2]}" for row in rows(done.log)}


BOTH = pytest.mark.parametrize("policy", ["memory-aware-a", "memory-aware-b"])
