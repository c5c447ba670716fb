"""The figures of the PCIe-aware scheduler's paper (HPC Asia 2025), printed and measured."""

import statistics
from functools import cache
from typing import Any

from bench.fleet import pcie as study
from bench.fleet.pcie import AWARE, DelayFigures, Plan, Sample
from bench.papers.claims import Claim, Group, Paper, Reading, Verdict, compare, held, listed
from mig_opt.fleet.trace import PCIE_LIMIT
from mig_opt.instances.fleet.poisson import TABLE_2

_TRACES = (
    "The traces are not public. Assumed: Poisson arrivals with a load of nine tenths of the compute slices; 25 to 75 s;"
    " all jobs ask for 1g; half of the PCIe-bound ones are Bloom7b1. The thresholds are not printed: a slowdown of 1.5"
    " and 60 s, chosen before anything was measured. The mean of {seeds} traces, lower mean flow time than"
    ' `pcie-unaware` in percent; "up to" is compared with the mean, within 3 points.'
)


def _plan(cut: bool) -> Plan:
    return Plan(2, 2, 10) if cut else Plan()


def figure1(_cut: bool) -> Group:
    """Figure 1, section 3.1: Two copy programs at once, on instances of any sizes."""
    pairs = [study.copies(sizes, PCIE_LIMIT, 1.0, 10.0) for sizes in ((1, 1), (1, 2), (1, 3), (2, 3))]
    equal = all(one == other for one, other in pairs)
    slower = min(one for one, _ in pairs) / 10
    return Group(
        (
            held("throughput is the same, whatever the sizes", "identical", "identical" if equal else "differs", equal),
            held("both lose performance", "yes", f"{slower:.1f} times as long", slower > 1),
            Claim("GB/s of each", "only in the figure", "", Verdict.CANNOT),
        ),
        assumed="The simulator's model is made of this observation, so agreement is no evidence. A copy program asks "
        "for the whole link, and has a sensitivity of 1.",
        reason="The throughputs are points of a picture, measured on a GPU.",
        readings=(Reading("Eq. 2 with equal parts of the link", "as in the table"),),
    )


def figure2(_cut: bool) -> Group:
    """Figure 2, section 3.2: Several Bloom560m on one GPU."""
    demand, sensitivity = TABLE_2["bloom560m"]
    first = _first_slower(demand, sensitivity)
    least = min(count for count in range(1, 8) if count * demand >= PCIE_LIMIT)
    share, sums = demand / PCIE_LIMIT, f"from job {least} on by the sum of the demands"
    alone = f"slower from job {_first_slower(0.3 * PCIE_LIMIT, 1.0)} on"
    return Group(
        (
            Claim("share of the link that one takes, %", *compare(30, 100 * share, within=2, digits=0)),
            held("throughput declines beyond four jobs", "from the fifth on", f"from job {first} on", first == 5),
            held("the link is saturated beyond four jobs", "from the fifth on", sums, least == 5, direction=True),
        ),
        assumed="Table 2: 5.7 GB/s with a sensitivity of 1.25, and 30.08 GB/s of the link.",
        reason="The text's 30 % of the link would be 9 GB/s, of which four jobs ask for 36; Table 2 has 5.7 GB/s, 19 "
        "%. The sensitivity of 1.25 lets jobs slow down before the sum of their demands reaches the link's limit.",
        readings=(
            Reading("5.7 GB/s of 30.08 (Table 2, section 5.1)", f"{share:.0%}; slower from job {first} on"),
            Reading("5.7 GB/s of 20 GB/s, if another link was meant", "28 %; but section 5.1 prints 30.08", True),
            Reading("30 % of 30.08 GB/s and a sensitivity of 1", alone),
        ),
    )


def _first_slower(demand: float, sensitivity: float) -> int:
    return min(count for count in range(1, 8) if study.copies((1,) * count, demand, sensitivity, 10.0)[0] > 10 * 1.001)


def figure4(cut: bool) -> Group:
    """Figure 4, Table 2: Sensitivity by regression on one to seven jobs at once."""
    claims, tried = [], []
    for kind, (_, alpha) in ((kind, TABLE_2[kind]) for kind in ("bloom560m", "bloom7b1")):
        fitted = study.profile(kind, 0.0, 0).sensitivity
        claims.append(Claim(f"{kind}: sensitivity", *compare(alpha, fitted, within=0.005)))
        for noise in (0.02, 0.1):
            fits = [study.profile(kind, noise, seed) for seed in range(_plan(cut).seeds)]
            alphas = [fit.sensitivity for fit in fits]
            text = f"{statistics.fmean(alphas):.3f} ({min(alphas):.3f} to {max(alphas):.3f})"
            tried.append(Reading(f"{kind}, runs measured with an error of {noise:.0%}", text))
    return Group(
        tuple(claims),
        assumed="The runs are simulated with the printed sensitivities and fitted by `fit_sensitivity`: that shows that"
        " the regression finds them, and not that GPUs behave so.",
        readings=tuple(tried),
    )


@cache
def _both(family: str, share: float, cut: bool) -> tuple[Sample, list[DelayFigures]]:
    """Return traces with a share of PCIe-bound jobs, and what the aware scheduler makes of them."""
    sample = Sample(_plan(cut), family, pcie_share=share)
    return sample, sample.runs(AWARE)


def _gains(family: str, printed: int, cut: bool) -> Group:
    both = {share: _both(family, share, cut) for share in study.SHARES}
    saved = {share: statistics.fmean(study.lower(aware, own.base)) for share, (own, aware) in both.items()}
    first = [saved[share] for share in (0.2, 0.4, 0.6)]
    claims = [
        held("20 % PCIe-bound", "slightly better", f"{saved[0.2]:.1f}", 0 < saved[0.2] < 8),
        Claim("60 % PCIe-bound", *compare(printed, saved[0.6], within=3, digits=1, direction=saved[0.6] > 0)),
        held("more gain with more PCIe-bound jobs", "up to 60 %", listed(first, 1), first == sorted(first)),
    ]
    sample, _ = both[0.6]
    tried = [Reading(f"{share:.0%} PCIe-bound", f"{saved[share]:.1f} %") for share in (0.8, 1.0)]
    for name in ("delay", "wait"):
        without: dict[str, Any] = {f"{name}_threshold": None}
        less = statistics.fmean(sample.lower(**without))
        tried.append(Reading(f"no {name} threshold", f"{less:.1f} % at 60 %"))
    return Group(
        tuple(claims),
        assumed=_TRACES.format(seeds=len(sample.traces)),
        reason="Beyond 60 % the links are asked for more than they have: then all jobs starve and ignore the"
        " delay threshold.",
        readings=tuple(tried),
    )


def figure6(cut: bool) -> Group:
    """Figures 6 and 7: Flow time on 4 GPUs, % lower than unaware."""
    return _gains("pcie-4", 18, cut)


def figure8(cut: bool) -> Group:
    """Figure 8: Flow time on 60 GPUs with 1400 jobs, % lower than unaware."""
    return _gains("pcie-60", 17, cut)


def figure7(_cut: bool) -> Group:
    """Figure 7, section 5.4: The paper's simulator against its testbed."""
    return Group(
        (Claim("correlation of flow times, both schedulers", "0.99", "", Verdict.CANNOT),),
        reason="It compares simulations with runs on four A100.",
    )


def figure5(cut: bool) -> Group:
    """Figure 5, section 5.3: PCIe-bound jobs that run for at most 50 s, 60 % PCIe-bound, 4 GPUs."""
    sample, aware = _both("pcie-4", 0.6, cut)
    few, many = (study.mean(own, "short") for own in (sample.base, aware))
    texts = compare(50, 100 * (many / few - 1), within=10, digits=0, direction=many > few)
    return Group(
        (Claim("more of them than unaware, %", *texts),),
        assumed=_TRACES.format(seeds=_plan(cut).seeds) + " They agree within 10 points.",
        readings=(Reading("share of the PCIe-bound jobs", f"{many:.0%} against {few:.0%}"),),
    )


def figure9(cut: bool) -> Group:
    """Figure 9: GPUs that can have more instances, 60 % PCIe-bound, % lower than unaware."""
    plan = _plan(cut)
    samples = [study.by_arrivals(plan, count, 0.6) for count in study.INSTANCES]
    grown, same = ([statistics.fmean(sample.lower()) for sample in own] for own in zip(*samples, strict=True))
    claims, tried = [], []
    for what, name, values in (
        ("most, arrivals grow with the instances", "arrivals grow too", grown),
        ("most, the same arrivals for all", "arrivals as for 7", same),
    ):
        top = max(values)
        claims.append(Claim(what, *compare(20, top, within=3, digits=1, direction=top > 0)))
        pairs = zip(study.INSTANCES, values, strict=True)
        tried.append(Reading(name, ", ".join(f"{count}: {value:.1f} %" for count, value in pairs)))
    rises, note = same == sorted(same), "no, if arrivals grow" if grown != sorted(grown) else ""
    text = "yes, if arrivals stay" if rises else "no"
    claims.append(held("the more instances, the more gain", "yes", text, False, note, direction=rises))
    return Group(
        tuple(claims),
        assumed=_TRACES.format(seeds=plan.large_seeds)
        + " GPUs have 7, 10, 14, 21 or 28 instances of 1g.5gb and no others."
        " Whether the arrivals grow with the instances is not printed.",
        readings=tuple(tried),
    )


def principle4(cut: bool) -> Group:
    """Section 4.2, principle 4: Starving jobs may run on larger instances."""
    plan = _plan(cut)
    tried, shorter, used = [], [], 0.0
    for sizes in study.LARGER_SIZES:
        means = {}
        for name, changes in study.LARGER.items():
            found = Sample(plan, sizes=sizes, **changes).runs(AWARE)
            means[name] = study.mean(found, "completion")
            share = study.mean(found, "larger")
            used = max(used, share) if changes else used
            tried.append(Reading(f"sizes {sizes}, {name}", f"{means[name]:.0f} s, {share:.0%} on larger instances"))
        base, *others = means.values()
        shorter += [100 * (1 - other / base) for other in others]
    text = f"up to {used:.0%} of the jobs; flow time {min(shorter):.0f} to {max(shorter):.0f} % lower"
    holds = used > 0 and max(shorter) > 0
    return Group(
        (held("best fit where a job waits too long", "a rule, no figures", text, holds),),
        assumed="4 GPUs, 60 % PCIe-bound; `larger=1` of the family gives all jobs seconds on all larger sizes. In the"
        " paper's evaluation sizes are not printed; where all jobs ask for 1g nothing larger ever exists.",
        readings=tuple(tried),
    )


PAPER = Paper(
    "pcie",
    "PCIe-aware scheduling",
    'Y.-M. Tang, M.-H. Chen, W.-F. Sun, I-H. Chung, H.-T. Ting, J. Chou: "PCIe Bandwidth-Aware Scheduling for'
    ' Multi-Instance GPUs", HPC Asia 2025. The schedulers are `pcie-aware` and `pcie-unaware`;'
    " [their rules](../pcie-aware.md).",
    (figure1, figure2, figure4, figure5, figure6, figure7, figure8, figure9, principle4),
)
