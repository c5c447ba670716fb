"""The families of traces by name, and traces drawn from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from mig_opt.errors import InputError, Problem, nearest, problems_of
from mig_opt.fleet.job import Job
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.catalogue import gpu_noting, with_mig
from mig_opt.gpu.model import GpuModel
from mig_opt.gpu.pools import Pool
from mig_opt.instances.batch import SPEEDS
from mig_opt.instances.fleet import memory, poisson
from mig_opt.instances.fleet.family import Request, TraceFamily, to_ms
from mig_opt.rules import entries_of, is_among, wrong_integer
from mig_opt.rules.vocabulary import MOST_GPUS
from mig_opt.serving.profile_table import smallest_profile

_FAMILIES: dict[str, TraceFamily] = {
    family.name: family for family in (*poisson.FAMILIES, *memory.FAMILIES, *poisson.STREAMS)
}


def trace_families() -> tuple[TraceFamily, ...]:
    """Return every family of traces that can be generated.

    Examples
    --------
    >>> [family.name for family in trace_families()][:5]
    ['normal-25', 'long-25', 'normal-50', 'long-50', 'pcie-4']
    """
    return tuple(_FAMILIES.values())


def get_trace_family(name: str) -> TraceFamily:
    """Return the family called ``name``; refuse a name that no family has."""
    if not is_among(name, _FAMILIES):
        raise InputError([Problem("family", f"no family of traces is called {name!r:.60}; {nearest(name, _FAMILIES)}")])
    return _FAMILIES[name]


def generate_trace(
    family: str,
    *,
    gpu: str | GpuModel = "A100",
    gpus: int | None = None,
    seed: int = 0,
    pools: Sequence[Pool] = (),
    **parameters: float | int | str,
) -> Trace:
    """Return a trace of a family, drawn at random.

    Parameters
    ----------
    family : str
        A name that ``mig-opt trace families`` lists.
    gpu : str or GpuModel
        The kind of GPU.
    gpus : int, optional
        How many; by default as many as the family is for.
    seed : int
        The same arguments and seed give the same trace everywhere.
    pools : sequence of Pool
        In place of ``gpu`` and ``gpus``: several kinds of GPUs. Jobs are drawn for the largest, for a fleet of it with
        as many compute slices; on each other kind the times of a job are a multiple of those there, which is uniform
        from 0.7 to 1.6, and on a whole GPU without MIG that of its largest size. A job that asks for a profile asks for
        one of this size everywhere.
    **parameters
        Figures of the family in place of its defaults: its ``parameters``, most often ``jobs``, the number of jobs.

    Returns
    -------
    Trace
        Times are in seconds, rounded to milliseconds.

    Raises
    ------
    InputError
        With every argument that is wrong.

    Examples
    --------
    >>> trace = generate_trace("normal-25", jobs=3, seed=1)
    >>> for job in trace.jobs:
    ...     print(job.name, job.arrival, job.profile, job.work)
    001-opt-6.7b 26.826 1g.5gb 140.637
    002-bloom-1b7 34.537 2g.10gb 160.923
    003-bloom-7b1 168.923 3g.20gb 120.777
    """
    pools = entries_of("pools", pools, Pool, "a Pool")
    problems = list(problems_of(get_trace_family, family))
    found = None if problems else get_trace_family(family)
    if pools and gpus is not None:
        problems.append(Problem("gpus", "is said by the pools; leave it out"))
    largest = max((with_mig(pool.gpu) for pool in pools), key=lambda kind: kind.sizes[-1], default=gpu)
    model = gpu_noting(largest, problems)
    problems += wrong_integer("seed", seed, 0, 2**63 - 1)
    if gpus is not None:
        problems += wrong_integer("gpus", gpus, 1, MOST_GPUS)
    known = {parameter.name: parameter for parameter in found.parameters} if found else {}
    for name, value in parameters.items() if found else ():
        if name not in known:
            problems.append(Problem(name, f"{family} has no parameter of that name; {nearest(name, known)}"))
        else:
            problems += known[name].problems(value)
    if problems or found is None or model is None:
        raise InputError(problems)
    values = {name: parameter.default for name, parameter in known.items()} | parameters
    count = found.gpus if gpus is None else gpus
    if pools:
        slices = sum((pool.count or 1) * pool.gpu.compute_slices for pool in pools)
        count = max(1, round(slices / model.compute_slices))
    rng = np.random.Generator(np.random.PCG64(seed))
    try:
        jobs = found.make(Request(model, count, rng, values))
    except OverflowError:
        message = f"these figures of {family} make seconds that are no number of a computer; choose smaller ones"
        raise InputError([Problem("", message)]) from None
    name = f"{family}, seed={seed}"
    if not pools:
        return Trace(tuple(jobs), model, count, name=name)
    speeds = np.random.Generator(np.random.PCG64((seed, 1)))  # jobs are those that they are without pools
    return Trace(tuple(_on_kinds(job, model, pools, speeds) for job in jobs), pools=tuple(pools), name=name)


def _on_kinds(job: Job, drawn: GpuModel, pools: Sequence[Pool], speeds: np.random.Generator) -> Job:
    """Return a job that was drawn for one kind of GPU with times on all kinds that have one of its sizes."""
    times, asked = dict[str, dict[int, float]](), dict[str, str]()
    gpus = dict.fromkeys(with_mig(pool.gpu) for pool in pools)
    factors = {gpu: 1.0 if gpu == drawn else float(speeds.uniform(*SPEEDS)) for gpu in gpus}
    for kind in dict.fromkeys(pool.kind for pool in pools):
        factor = factors[with_mig(kind)]
        known = job.times if kind.mig else {kind.compute_slices: job.times[max(job.times)]}
        own = {size: to_ms(seconds * factor) for size, seconds in known.items() if size in kind.sizes}
        if job.profile is not None and kind.mig:
            wanted = drawn.profile(job.profile)
            found = wanted if kind == drawn else smallest_profile(kind, wanted.compute_slices, job.most_gb)
            own, asked[kind.name] = (own, found.name) if found and found.compute_slices in own else ({}, "")
        if own:
            times[kind.name] = own
    return dataclasses.replace(job, times=times, profile={kind: asked[kind] for kind in times if kind in asked} or None)
