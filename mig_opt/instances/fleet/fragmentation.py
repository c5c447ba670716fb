"""The workloads of the fragmentation-aware scheduler's paper (its section V-A2 and Table II).

Printed: tasks arrive as a Poisson process with a mean gap of 25 or 50 s; each asks for one of 1g, 2g, 3g and 4g and
runs one of four language models, the two smaller ones on 1g or 2g, the two larger ones on 3g or 4g; *normal* tasks have
lengths drawn from BurstGPT, *long* ones from the top half of these lengths.
"""

from __future__ import annotations

import math

from mig_opt.errors import InputError, Problem
from mig_opt.fleet.trace import Job
from mig_opt.instances.fleet.family import Parameter, Request, TraceFamily, numbered, poisson_arrivals, to_ms

_SMALL, _LARGE = ("opt-6.7b", "bloom-1b7"), ("opt-13b", "bloom-7b1")
_MOST_OF_SMALL = 2
"""Compute slices up to which the smaller models run."""


def _jobs(request: Request) -> list[Job]:
    rng, count = request.rng, request["jobs"]
    sizes = [size for size in request.gpu.sizes[:-1] if size <= 4]
    if not sizes:
        message = f"{request.gpu.name} has one size of instances only; the workloads need several"
        raise InputError([Problem("gpu", message)])
    arrivals = poisson_arrivals(rng, count, request["mean_gap"])
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


def _family(lengths: str, gap: int) -> TraceFamily:
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
        _jobs,
    )


FAMILIES = tuple(_family(lengths, gap) for gap in (25, 50) for lengths in ("normal", "long"))
