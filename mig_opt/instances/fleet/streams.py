"""Streams of FAR's synthetic batches: one after the other, the tasks of a batch all at once."""

from __future__ import annotations

from mig_opt.fleet.trace import Job
from mig_opt.instances import generate_batch
from mig_opt.instances.batch import SCALINGS, TIME_RANGES
from mig_opt.instances.fleet.family import Parameter, Request, TraceFamily, poisson_arrivals


def _jobs(request: Request) -> list[Job]:
    count = request["batches"]
    arrivals = [0.0, *poisson_arrivals(request.rng, count - 1, request["mean_gap"])]
    seeds = request.rng.integers(2**31, size=count)
    width = max(2, len(str(count)))
    jobs = []
    for index, (arrival, seed) in enumerate(zip(arrivals, seeds, strict=True), 1):
        batch = generate_batch(
            request["tasks"],
            scaling=request["scaling"],
            times=request["times"],
            p_sup=request["p_sup"],
            gpu=request.gpu,
            seed=int(seed),
        )
        jobs += [Job(f"b{index:0{width}}-{task.name}", arrival, task.times) for task in batch.tasks]
    return jobs


FAMILIES = (
    TraceFamily(
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
        _jobs,
    ),
)
