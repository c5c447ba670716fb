"""The scenarios, profiles and deployments that ParvaGPU's authors published; they are data beside the checkout."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from places import SHARED

from mig_opt.gpu.catalogue import get_gpu
from mig_opt.serving.demand import Demand, GpuPool, Service, SloRule
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.serving.profile_table import Point, ProfileTable

FOLDER = SHARED / "parvagpu"
SCENARIOS = ("S1", "S2", "S3", "S4", "S5", "S6")
GPU = get_gpu("A100-80GB")
GPUS_OF_A_SERVER = 8  # "Num instance" counts servers of Amazon EC2, "Num GPU" the GPUs within
NAMES = {profile.compute_slices: profile.name for profile in GPU.profiles_of("base")}


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


@cache
def tables() -> tuple[ProfileTable, ...]:
    """Published measurements; there throughput is that of one process, and zeros did not run."""
    found = []
    for path in sorted((FOLDER / "profiles").glob("*.csv")):
        points = []
        for row in _rows(path):
            size, batch, processes = (int(row[key]) for key in ("Mig instance", "Batch size", "Workload Number"))
            throughput, latency = float(row["Throughput"]), float(row["Latency"])
            if throughput and latency:
                points.append(Point(size, batch, processes, throughput * processes, latency))
        found.append(ProfileTable(path.stem, GPU.name, tuple(points)))
    return tuple(found)


@cache
def demand(scenario: str) -> Demand:
    """The demand of a scenario, with the SLO rule of the published program."""
    services = tuple(
        Service(row["model"], float(row["slo_latency_ms"]) / 1000, float(row["request_rate_rps"]))
        for row in _rows(FOLDER / "scenarios.csv")
        if row["scenario"] == scenario
    )
    rule = SloRule(0.45, whole_ms=True)
    return Demand(services, tables(), (GpuPool(GPU),), rule, max_processes=5, name=scenario)


def deployment(scenario: str) -> Deployment:
    """The published deployment of a scenario, with throughput and latency from the profiles."""
    points = {(t.model, p.size, p.batch, p.processes): p for t in tables() for p in t.points}
    segments: dict[int, list[Segment]] = defaultdict(list)
    (path,) = (FOLDER / "published_deployments" / f"SLO{scenario[1:]}").glob("*.csv")
    for row in _rows(path):
        server, number, start, size, batch, processes = (
            int(row[key]) for key in ("Num instance", "Num GPU", "Placement", "Instance size", "Batch size", "Num proc")
        )
        gpu = server * GPUS_OF_A_SERVER + number
        point = points[row["Model"], size, batch, processes]
        segments[gpu].append(
            Segment(row["Model"], gpu, NAMES[size], start, batch, processes, point.throughput, point.latency)
        )
    return Deployment((GPU.name,) * (max(segments) + 1), tuple(s for gpu in sorted(segments) for s in segments[gpu]))
