"""The workload of the PCIe-aware scheduler's paper (its section 5.1 and Table 2).

Printed: three kinds of jobs with their PCIe demand and sensitivity, the share of PCIe-bound jobs from 0 to 100 %, an
A100-40GB whose link reaches 30.08 GB/s, 4 GPUs, and 60 GPUs with 1400 jobs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mig_opt.errors import InputError, Problem
from mig_opt.fleet.trace import Job
from mig_opt.instances.fleet.family import Parameter, Request, TraceFamily, numbered, poisson_arrivals, to_ms

TABLE_2: Mapping[str, tuple[float, float]] = {
    "resnet50": (0.0, 0.0),
    "bloom560m": (5.7, 1.25),
    "bloom7b1": (17.65, 1.07),
}
"""PCIe demand in GB/s and sensitivity of each kind of job."""


def _jobs(request: Request) -> list[Job]:
    rng, count = request.rng, request["jobs"]
    sizes = _sizes(request)
    bound = round(request["pcie_share"] * count)
    heavy = round(request["bloom7b1_share"] * bound)
    kinds = ["bloom7b1"] * heavy + ["bloom560m"] * (bound - heavy) + ["resnet50"] * (count - bound)
    rng.shuffle(kinds)
    low, high = (request["mean_s"] * (1 + sign * request["spread"]) for sign in (-1, 1))
    seconds = [to_ms(rng.uniform(low, high)) for _ in kinds]
    asked = [sizes[int(rng.integers(len(sizes)))] for _ in kinds]
    slices = request.gpus * request.gpu.compute_slices
    gap = request["mean_s"] * sum(sizes) / len(sizes) / (request["load"] * slices)
    arrivals = poisson_arrivals(rng, count, gap)
    return [
        Job(
            numbered(index, count, kind),
            arrivals[index],
            {asked[index]: seconds[index]},
            request.base_profile(asked[index]).name,
            pcie_gbps=TABLE_2[kind][0],
            sensitivity=TABLE_2[kind][1],
        )
        for index, kind in enumerate(kinds)
    ]


def _sizes(request: Request) -> list[int]:
    text = request["sizes"]
    if not re.fullmatch(r"[1-9][0-9]?(,[1-9][0-9]?)*", text):
        message = f"must be numbers of compute slices with commas between them, like 1,2, is {text!r:.60}"
        raise InputError([Problem("sizes", message)])
    sizes = [int(size) for size in text.split(",")]
    for size in sizes:
        request.base_profile(size)
    return sizes


def _family(name: str, description: str, gpus: int, jobs: int) -> TraceFamily:
    return TraceFamily(
        name,
        description,
        "PCIe-aware MIG scheduler, section 5.1, Table 2",
        gpus,
        (
            Parameter("jobs", jobs, "number of jobs", "count"),
            Parameter("pcie_share", 0.6, "share of PCIe-bound jobs", "share"),
            Parameter("bloom7b1_share", 0.5, "share of Bloom7b1 among the PCIe-bound jobs", "share"),
            Parameter("load", 0.9, "compute slices that arriving work asks for, as a share of those that there are"),
            Parameter("mean_s", 50.0, "mean seconds of a job alone on its GPU"),
            Parameter(
                "spread", 0.5, "seconds are uniform from mean_s * (1 - spread) to mean_s * (1 + spread)", "share"
            ),
            Parameter("sizes", "1", "compute slices that jobs ask for, equally likely, like 1,2", "text"),
        ),
        (
            "Arrivals are not printed: a Poisson process whose gap gives the load on the fleet.",
            "Seconds per job are not printed beyond 'around 50': uniform, the same for all three kinds.",
            "Requested sizes are not printed: 1g, as the paper's GPUs are first divided.",
            "PCIe-bound jobs are half Bloom560m and half Bloom7b1; the numbers of jobs of each kind are exact.",
            *(() if jobs == 1400 else ("The number of jobs on 4 GPUs is not printed: 93, 1400 for 60 GPUs in scale.",)),
        ),
        _jobs,
    )


FAMILIES = (
    _family("pcie-4", "PCIe-bound and other inference jobs at 4 GPUs", 4, 93),
    _family("pcie-60", "the same, 1400 jobs at 60 GPUs", 60, 1400),
)
