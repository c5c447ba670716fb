"""The mixes of the memory-aware scheduler's paper (MIGM; its appendix, Tables 1 and 2).

Printed: how many jobs a mix has and in which ratio of memory classes (small 5 GB, medium 10 GB, large 20 GB, full
40 GB), which benchmarks and models they run, and for language models the iteration at which a 10 GB instance runs out
of memory, and two of the peaks. All jobs of a mix are there from the start.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from mig_opt.errors import InputError, Problem
from mig_opt.fleet.job import Job
from mig_opt.fleet.trace import PCIE_LIMIT
from mig_opt.instances.fleet.family import Parameter, Request, TraceFamily, numbered, to_ms

_CLASS_GB = {"small": 5.0, "medium": 10.0, "large": 20.0, "full": 40.0}
_SOURCE = "memory-aware MIG scheduler (MIGM), appendix A.1, Tables 1 and 2"
_ALONE_S = {"small": 4.0, "medium": 8.0, "large": 16.0, "full": 32.0}
"""Seconds on the whole GPU by memory class; assumed, but for the order: small jobs generally take less time."""

_LINK = (
    "Seconds are those of the last table: 0.523 on the whole GPU, 1.172 on 1g.5gb, where seven ran at once. How much"
    " of that is due to the link is not printed: pcie=0 (none) takes both figures as they are; with pcie=1 one job"
    " alone is as fast on 1g.5gb as on the whole GPU, and needs so much of the link that seven take 1.172 s."
)


@dataclass(frozen=True, slots=True)
class _JobKind:
    """Jobs of one kind in a mix: ``share`` is its part in the ratio of the mix.

    The label is a benchmark or model, or the memory class where the paper draws from a pool. ``stretch`` is how many
    times the seconds of the whole GPU (``alone_s``) it takes on one slice, which may be due to the PCIe link that it
    shares there. Memory that is not printed is a share of the class.
    """

    label: str
    memory: str
    share: int
    stretch: float
    alone_s: float
    memory_gb: float | None = None
    shares_link: bool = False


@dataclass(frozen=True, slots=True)
class _LanguageModel:
    """A language model whose memory grows past 10 GB at iteration ``fails_at`` and reaches ``peak_gb`` at the end."""

    label: str
    fails_at: int
    peak_gb: float
    iterations: int


def _pool(memory: str, share: int) -> _JobKind:
    return _JobKind(memory, memory, share, 1.5, _ALONE_S[memory])


_MIXES: Mapping[str, tuple[int, tuple[_JobKind, ...]]] = {
    # Table 3 prints 3.62 s on the whole GPU and 4.49 s on 1g.5gb; Hm4 gains 1.7x of the 2x that two halves can.
    "hm1": (50, (_JobKind("particlefilter", "small", 1, 4.488 / 3.616, 3.616),)),
    "hm2": (50, (_JobKind("gaussian", "small", 1, 7 / 6.2, 4.0),)),
    "hm3": (100, (_JobKind("myocyte", "small", 1, 7 / 6.2, 4.0),)),
    "hm4": (50, (_JobKind("euler3d", "large", 1, 2.08, 16.0),)),
    "ht1": (15, (_pool("small", 11), _pool("large", 2), _pool("full", 2))),
    "ht2": (18, (_pool("small", 1), _pool("large", 1), _pool("full", 1))),
    "ht3": (36, (_pool("small", 4), _pool("large", 1), _pool("full", 1))),
    "ml1": (14, (_JobKind("bert", "small", 1, 4.43, 60.0, 4.7), _JobKind("cnn", "large", 1, 3.4, 60.0))),
    "ml2": (21, (_JobKind("bert", "small", 1, 4.43, 60.0, 3.5), _JobKind("bert-long", "small", 1, 4.43, 60.0, 4.7))),
    "ml3": (18, tuple(_JobKind(label, "large", 1, 3.4, 60.0) for label in ("vgg16", "resnet50", "inceptionv3"))),
    # The last table: 523,406 us on the whole GPU, 1,171,507 us when seven ran at once (section 5.1: ~2.2 times).
    "nw": (21, (_JobKind("needleman-wunsch", "small", 1, 1_171_507 / 523_406, 0.523406, shares_link=True),)),
}
_SIGMA = {**dict.fromkeys(("hm1", "hm2", "hm3", "hm4", "nw"), 0.0), "ml2": 0.05}
"""Spread of the seconds where jobs are all the same, or their "runtimes similar" (section 5.2.1, of Ml2); else 0.3."""

_SMALL_INSTANCES = 7
"""Instances of 5 GB on the paper's A100."""

_LLMS: Mapping[str, tuple[int, _LanguageModel]] = {
    "flan-t5-train": (4, _LanguageModel("flan-t5-train", 41, 15.0, 80)),
    "flan-t5": (6, _LanguageModel("flan-t5", 27, 15.0, 60)),
    "qwen2": (1, _LanguageModel("qwen2", 94, 12.23, 150)),
    "llama3": (1, _LanguageModel("llama3", 72, 16.63, 150)),
}


def _stretched(request: Request, alone_s: float, stretch: float) -> dict[int, float]:
    """Return the seconds on each size: ``alone_s`` on the whole GPU, ``stretch`` times as many on one slice.

    Between them time is a constant and a part that goes with one over the size, as if a share of the work did not
    depend on the GPU.
    """
    whole = request.gpu.sizes[-1]
    if whole == 1:
        return {1: to_ms(alone_s)}
    growth = (stretch - 1) / (whole - 1)
    return {size: to_ms(alone_s * (1 + growth * (whole / size - 1))) for size in request.gpu.sizes}


def _mixed(name: str) -> TraceFamily:
    count, kinds = _MIXES[name]

    def make(request: Request) -> list[Job]:
        rng = request.rng
        wanted = _counts(request["jobs"], [kind.share for kind in kinds])
        drawn = [kind for kind, number in zip(kinds, wanted, strict=True) for _ in range(number)]
        seconds = [kind.alone_s * math.exp(request["sigma"] * float(rng.standard_normal())) for kind in drawn]
        if name == "ht1":
            seconds = _balanced(drawn, seconds)
        order = rng.permutation(len(drawn))
        largest = max(profile.memory_gb for profile in request.gpu.profiles)
        jobs = []
        for index, at in enumerate(int(place) for place in order):
            kind = drawn[at]
            memory = kind.memory_gb or request["fill"] * _CLASS_GB[kind.memory]
            shared = request["pcie"] if kind.shares_link else 0.0
            stretch = kind.stretch ** (1 - shared) * request["stretch"]
            times = _stretched(request, seconds[at] * request["slower"], stretch)
            link = PCIE_LIMIT / _SMALL_INSTANCES * kind.stretch**shared if shared else 0.0
            label = numbered(index, len(drawn), kind.label)
            # On a smaller GPU than the paper's the largest instance has to do.
            memory = min(memory, largest)
            jobs.append(Job(label, 0.0, times, memory_gb=memory, pcie_gbps=link, sensitivity=1.0 if link else 0.0))
        return jobs

    parts = [sum(kind.share for kind in kinds if kind.memory == memory) for memory in _CLASS_GB]
    ratio = ":".join(str(part // math.gcd(*parts)) for part in parts)
    bound, pcie = any(kind.shares_link for kind in kinds), "share of the printed slowdown that the link causes"
    return TraceFamily(
        f"migm-{name}",
        f"mix {name.capitalize()}: {', '.join(dict.fromkeys(kind.label for kind in kinds))} ({ratio})",
        _SOURCE,
        1,
        (
            Parameter("jobs", count, "number of jobs", "count"),
            Parameter("fill", 0.8, "memory of a job as a share of its class, where it is not printed", "share"),
            Parameter("sigma", _SIGMA.get(name, 0.3), "spread of the seconds (lognormal)", "not negative"),
            Parameter("slower", 1.0, "factor on all seconds"),
            Parameter("stretch", 1.0, "factor on how much longer a job takes on one slice"),
            *[Parameter("pcie", 0.0, f"{pcie} (as a power of it)", "share")] * bound,
        ),
        (
            "Seconds on the whole GPU are assumed: 4, 8, 16 and 32 by class, 60 for training; printed for Hm1 and"
            " Needleman-Wunsch only.",
            "How much longer a job takes on small instances is chosen so that the best printed throughput of its mix "
            "is met without any other loss (no evidence for it, therefore); 1.5 for jobs of the Rodinia pool.",
            "The classes of Ht1 are 11 small, 2 of 20 GB and 2 of 40 GB (called medium and large in the appendix); each"
            " class has the same total of seconds, as printed.",
            "The order is random.",
            *[_LINK] * bound,
        ),
        make,
    )


def _balanced(drawn: list[_JobKind], seconds: list[float]) -> list[float]:
    """Return seconds scaled so that every memory class has as many in total as the first one."""
    totals: defaultdict[str, float] = defaultdict(float)
    for kind, alone in zip(drawn, seconds, strict=True):
        totals[kind.memory] += alone
    wanted = totals[drawn[0].memory]
    return [alone * wanted / totals[kind.memory] for kind, alone in zip(drawn, seconds, strict=True)]


def _counts(total: int, shares: list[int]) -> list[int]:
    """Return ``total`` divided in a ratio; what is left over goes to the first ones."""
    counts = [total * share // sum(shares) for share in shares]
    left = total - sum(counts)  # less than one for each
    return [count + (index < left) for index, count in enumerate(counts)]


def _growing(name: str) -> TraceFamily:
    count, model = _LLMS[name]

    def make(request: Request) -> list[Job]:
        jobs = []
        largest = max(profile.memory_gb for profile in request.gpu.profiles)
        for index in range(request["jobs"]):
            growth = tuple(
                (step / request["iterations"], min(gb, largest)) for step, gb in enumerate(_memory(request, model))
            )
            times = _stretched(request, request["iterations"] * request["iteration_s"], request["stretch"])
            label = numbered(index, request["jobs"], model.label)
            jobs.append(Job(label, 0.0, times, memory_gb=max(gb for _, gb in growth), memory_growth=growth))
        return jobs

    return TraceFamily(
        f"migm-{name}",
        f"language model {model.label}: memory grows past 10 GB at iteration {model.fails_at}",
        _SOURCE,
        1,
        (
            Parameter("jobs", count, "number of jobs", "count"),
            Parameter("iterations", model.iterations, "iterations of a job", "count"),
            Parameter("fails_at", model.fails_at, "first iteration that needs more than 10 GB", "count"),
            Parameter("peak_gb", model.peak_gb, "GB in the last iteration"),
            Parameter("noise_gb", 0.05, "standard deviation of the memory around its line, in GB", "not negative"),
            Parameter("iteration_s", 1.0, "seconds of an iteration on the whole GPU"),
            Parameter("stretch", 1.5, "how many times the seconds of the whole GPU a job takes on one slice"),
        ),
        (
            f"The number of iterations ({model.iterations}) and their seconds are not printed.",
            "Memory grows by the same amount with every iteration, through 10 GB where it is printed to fail"
            + (", up to the printed peak." if name in ("qwen2", "llama3") else "; the peak of 15 GB is assumed."),
            "Noise is normal; it never moves the iteration that first needs more than 10 GB, nor the peak.",
        ),
        make,
    )


_LIMIT_GB = 10.0


def _memory(request: Request, model: _LanguageModel) -> list[float]:
    last, fails, peak = request["iterations"], request["fails_at"], request["peak_gb"]
    if fails >= last or peak <= _LIMIT_GB:
        message = f"{model.label} needs iterations > fails_at and peak_gb > {_LIMIT_GB:g}, or it would never fail"
        raise InputError([Problem("fails_at", message)])
    # The line passes 10 GB half an iteration before the one that fails.
    slope = (peak - _LIMIT_GB) / (last - fails + 0.5)
    noise = request.rng.normal(0.0, request["noise_gb"], last) if request["noise_gb"] else [0.0] * last
    found = []
    for step in range(1, last + 1):
        line = peak - slope * (last - step)
        gb = line + float(noise[step - 1])
        gb = min(gb, _LIMIT_GB) if step < fails else max(gb, _LIMIT_GB + slope / 4)
        found.append(round(max(min(gb, peak), 0.5), 4))
    found[-1] = peak
    return found


FAMILIES = (*map(_mixed, _MIXES), *map(_growing, _LLMS))
