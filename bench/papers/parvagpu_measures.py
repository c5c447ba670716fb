"""Scenarios, deployments and comparisons for the page of the ParvaGPU paper."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from functools import cache

from bench.papers.claims import Claim, compare, held
from bench.serving.scenarios import SCENARIOS
from mig_opt import Demand, Deployment, SloRule, deploy
from mig_opt.instances.bundled import load_demand

PROGRAM, TEXT = SloRule(0.45, whole_ms=True), SloRule()
RIVALS = {"gpulet": "gpulet", "iGniter": "igniter", "MIG-serving": "mig-serving-fast"}
"""Our method for each rival; each runs one process in an instance."""
TOLERANCE = 2.0
"""Percentage points within which averages agree."""
SETTING = (
    "The published program's rule (latency below 0.45 of the SLO in whole ms). ParvaGPU with 5 processes, as in its "
    "published files; its rivals with one, as in their papers, on MIG instances in place of shares of MPS. "
)
RIVALS_DIFFER = (
    "The rivals of the paper predict interference with fitted models whose coefficients are not public for these "
    "services; without interference and without the room that they leave for it, they need fewer GPUs."
)


@cache
def scenario(number: int, rule: SloRule, processes: int) -> Demand:
    """Return a scenario, S1 to S6, under a rule."""
    return load_demand(SCENARIOS[number - 1]).replace(rule=rule, max_processes=processes)


@cache
def planned(method: str, number: int, rule: SloRule = PROGRAM, processes: int = 5) -> Deployment:
    """Return the deployment of a method for a scenario."""
    found = deploy(scenario(number, rule, processes), method).deployment
    assert found is not None
    return found


def counts(method: str, numbers: Sequence[int], rule: SloRule = PROGRAM, processes: int = 5) -> list[int]:
    """Return the GPUs of a method for scenarios."""
    return [planned(method, number, rule, processes).used_gpus for number in numbers]


def used_gpus(wanted: Demand, method: str) -> int:
    """Return the GPUs of a method for a demand."""
    found = deploy(wanted, method, time_limit=20).gpus
    assert found is not None
    return found


def small_batches(wanted: Demand, most: int = 32) -> Demand:
    """Return a demand without the batch sizes beyond ``most``."""
    tables = (
        dataclasses.replace(table, points=tuple(point for point in table.points if point.batch <= most))
        for table in wanted.tables
    )
    return wanted.replace(tables=tuple(tables))


def listed(values: Sequence[float], digits: int = 0) -> str:
    """Return figures with commas between them."""
    return ", ".join(f"{value:.{digits}f}" for value in values)


def saving(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the mean of the percentages that are saved."""
    return 100 * statistics.mean(1 - one / other for one, other in zip(ours, theirs, strict=True))


def scenarios(cut: bool) -> range:
    """Return the numbers of the scenarios."""
    return range(1, 3 if cut else 7)


def percent(what: str, printed: float, measured: float, note: str = "", *, unit: str = "%", digits: int = 1) -> Claim:
    """Return a claim about a percentage, or percentage points: it agrees in direction if it has the same sign."""
    pair = compare(printed, measured, within=TOLERANCE, digits=digits, direction=printed * measured > 0)
    return Claim(what, f"{pair[0]} {unit}", f"{pair[1]} {unit}", pair[2], note)


def same(what: str, printed: str, measured: str) -> Claim:
    """Return a claim whose two texts should be the same."""
    return held(what, printed, measured, printed == measured)
