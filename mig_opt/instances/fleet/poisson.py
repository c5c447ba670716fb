"""Families of traces whose jobs arrive as a Poisson process.

*Fragmentation* (the fragmentation-aware scheduler's paper, its section V-A2 and Table II). Printed: tasks arrive with
a mean gap of 25 or 50 s; each asks for one of 1g, 2g, 3g and 4g and runs one of four language models, the two smaller
ones on 1g or 2g, the two larger ones on 3g or 4g; *normal* tasks have lengths drawn from BurstGPT, *long* ones from the
top half of these lengths.

*PCIe* (the PCIe-aware scheduler's paper, its section 5.1 and Table 2). Printed: three kinds of jobs with their PCIe
demand and sensitivity, the share of PCIe-bound jobs from 0 to 100 %, an A100-40GB whose link reaches 30.08 GB/s, 4
GPUs, and 60 GPUs with 1400 jobs.

*Streams* of FAR's synthetic batches: one after the other, the tasks of a batch all at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from mig_opt.errors import InputError, Problem
from mig_opt.fleet.job import Job
from mig_opt.instances.batch import SCALINGS, TIME_RANGES, generate_batch
from mig_opt.instances.fleet.family import Parameter, Request, TraceFamily, numbered, to_ms


def _poisson_arrivals(rng: np.random.Generator, count: int, mean_gap: float) -> list[float]:
    """Return the arrivals of a Poisson process: independent exponential gaps, the first one from second 0."""
    return [round(float(at), 3) for at in np.cumsum(rng.exponential(mean_gap, count))]


_SMALL, _LARGE = ("opt-6.7b", "bloom-1b7"), ("opt-13b", "bloom-7b1")
_MOST_OF_SMALL = 2  # compute slices up to which the smaller models run


def _sized_jobs(request: Request) -> list[Job]:
    rng, count = request.rng, request["jobs"]
    sizes = [size for size in request.gpu.sizes[:-1] if size <= 4]
    if not sizes:
        message = f"{request.gpu.name} has one size of instances only; the workloads need several"
        raise InputError([Problem("gpu", message)])
    arrivals = _poisson_arrivals(rng, count, request["mean_gap"])
    jobs = []
    for index, arrival in enumerate(arrivals):
        size = sizes[int(rng.integers(len(sizes)))]
        models = _SMALL if size <= _MOST_OF_SMALL else _LARGE
        model = models[int(rng.integers(len(models)))]
        deviate = float(rng.standard_normal())
        if request["lengths"] == "long":
            # The top half of a symmetric distribution is its absolute value: of the lognormal, all above the median.
            deviate = abs(deviate)
        seconds = request["median_s"] * math.exp(request["sigma"] * deviate)
        profile = request.base_profile(size)
        jobs.append(Job(numbered(index, count, model), arrival, {size: to_ms(seconds)}, profile.name))
    return jobs


def _fragmentation_family(lengths: str, gap: int) -> TraceFamily:
    return TraceFamily(
        f"{lengths}-{gap}",
        f"language-model tasks on 1g to 4g, {lengths} lengths, one every {gap} s",
        "fragmentation-aware MIG scheduler, section V-A2, Table II",
        4,
        (
            Parameter("jobs", 100, "number of jobs", "count"),
            Parameter("mean_gap", float(gap), "seconds between arrivals, mean of the exponential gaps"),
            Parameter("lengths", lengths, "normal (all lengths) or long (the top half)", "text", ("normal", "long")),
            Parameter("median_s", 90.0, "median seconds of a normal task on the profile that it asks for"),
            Parameter("sigma", 1.0, "spread of the lengths: standard deviation of their logarithm", "not negative"),
        ),
        (
            "The number of tasks is not printed: 100 by default.",
            "Lengths in seconds are not printed: lognormal with median_s and sigma, the same on every profile; long "
            "ones are those above the median. The defaults load 4 A100 to about a half (normal-25) and nine tenths"
            " (long-25).",
            "Profiles and models are equally likely, as far as the printed rules allow.",
            "Memory is what the profile has; parameters beyond it are offloaded, and that traffic is not counted.",
        ),
        _sized_jobs,
    )


TABLE_2: Mapping[str, tuple[float, float]] = {
    "resnet50": (0.0, 0.0),
    "bloom560m": (5.7, 1.25),
    "bloom7b1": (17.65, 1.07),
}
"""PCIe demand in GB/s and sensitivity of each kind of job."""


def _pcie_jobs(request: Request) -> list[Job]:
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
    arrivals = _poisson_arrivals(rng, count, gap)
    flexible = set(rng.permutation(count)[: round(request["larger"] * count)].tolist())

    def times(index: int) -> dict[int, float]:
        own = asked[index]
        sizes = [size for size in request.gpu.sizes if size == own or (index in flexible and size > own)]
        return {size: to_ms(seconds[index] * (own / size) ** request["larger_gain"]) for size in sizes}

    jobs = []
    for index, kind in enumerate(kinds):
        name, profile = numbered(index, count, kind), request.base_profile(asked[index]).name
        demand, sensitivity = TABLE_2[kind]
        jobs.append(Job(name, arrivals[index], times(index), profile, pcie_gbps=demand, sensitivity=sensitivity))
    return jobs


def _sizes(request: Request) -> list[int]:
    text = request["sizes"]
    if not re.fullmatch(r"[1-9][0-9]?(,[1-9][0-9]?)*", text):
        message = f"must be numbers of compute slices with commas between them, like 1,2, is {text!r:.60}"
        raise InputError([Problem("sizes", message)])
    sizes = [int(size) for size in text.split(",")]
    for size in sizes:
        request.base_profile(size)
    return sizes


def _pcie_family(name: str, description: str, gpus: int, jobs: int) -> TraceFamily:
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
            Parameter("larger", 0.0, "share of the jobs that have seconds for all larger sizes too", "share"),
            Parameter(
                "larger_gain", 0.0, "seconds there go with (size asked for / size) to this power; 0: no gain", "share"
            ),
        ),
        (
            "Arrivals are not printed: a Poisson process whose gap gives the load on the fleet.",
            "Seconds per job are not printed beyond 'around 50': uniform, the same for all three kinds.",
            "Requested sizes are not printed: 1g, as the paper's GPUs are first divided.",
            "PCIe-bound jobs are half Bloom560m and half Bloom7b1; the numbers of jobs of each kind are exact.",
            *(() if jobs == 1400 else ("The number of jobs on 4 GPUs is not printed: 93, 1400 for 60 GPUs in scale.",)),
        ),
        _pcie_jobs,
    )


def _stream_jobs(request: Request) -> list[Job]:
    count = request["batches"]
    arrivals = [0.0, *_poisson_arrivals(request.rng, count - 1, request["mean_gap"])]
    seeds = request.rng.integers(2**31, size=count)
    width = max(2, len(str(count)))
    jobs = []
    for index, (arrival, seed) in enumerate(zip(arrivals, seeds, strict=True), 1):
        kinds = {name: request[name] for name in ("scaling", "times", "p_sup")}
        batch = generate_batch(request["tasks"], **kinds, gpu=request.gpu, seed=int(seed))
        jobs += [Job(f"b{index:0{width}}-{task.name}", arrival, task.times) for task in batch.tasks]
    return jobs


_FAR_STREAM = TraceFamily(
    "far-stream",
    "synthetic batches one after the other, times for every size",
    "FAR, section 6.3 (batches); streams of batches: its section 4",
    1,
    (
        Parameter("batches", 5, "number of batches", "count"),
        Parameter("tasks", 15, "tasks of each batch", "count"),
        Parameter("mean_gap", 120.0, "seconds between batches, mean of the exponential gaps"),
        Parameter("scaling", "MixedScaling", "how tasks scale with size", "text", SCALINGS),
        Parameter("times", "WideTimes", "range of the seconds on one slice", "text", tuple(TIME_RANGES)),
        Parameter("p_sup", 0.5, "share of super-linear tasks among those that can be", "share"),
    ),
    (
        "Gaps are exponential, the first batch arrives at second 0; in the paper all batches are there already.",
        "The numbers of batches and tasks are those of a small stream.",
    ),
    _stream_jobs,
)

FAMILIES = (
    *(_fragmentation_family(lengths, gap) for gap in (25, 50) for lengths in ("normal", "long")),
    _pcie_family("pcie-4", "PCIe-bound and other inference jobs at 4 GPUs", 4, 93),
    _pcie_family("pcie-60", "the same, 1400 jobs at 60 GPUs", 60, 1400),
)
STREAMS = (_FAR_STREAM,)
