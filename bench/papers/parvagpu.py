"""The figures of the ParvaGPU paper (Lee et al., SC 2024), printed and measured.

The paper shows its counts in pictures only; what is printed are averages in its text. Counts of "theirs" are from the
published deployment files (5 processes) or recomputed with the authors' program: see printed_serving.toml.
"""

import dataclasses
import tomllib
from collections.abc import Sequence
from functools import partial

import numpy as np

from bench.papers import parvagpu_fleets as fleets
from bench.papers.claims import Group, Paper, Reading, held, listed, same
from bench.papers.parvagpu_scaling import GROUPS
from bench.report import there
from bench.serving.scenarios import PRINTED
from mig_opt import Deployment, deploy, get_gpu
from mig_opt.heuristics.serving.demand_match import Need, match
from mig_opt.heuristics.serving.fill import FilledGpus, PlannedSegment, put_all
from mig_opt.heuristics.serving.parvagpu import optimize
from mig_opt.method.control import Control
from mig_opt.serving.bounds import Relaxation


def figure1(_cut: bool) -> Group:
    """Figure 1, sections II-B, III-E, V: Partitions of a GPU."""
    a100 = get_gpu("A100-80GB")
    of_size = {profile.compute_slices: profile for profile in a100.profiles_of("base")}
    memory = ", ".join(f"{of_size[size].memory_gb:g}" for size in a100.sizes)
    large = ", ".join(f"{get_gpu(name).memory_gb:g}" for name in ("H200", "B200"))
    others = {name: len(get_gpu(name).maximal_partitions()) for name in ("H100", "H200", "B200", "A30", "RTX-PRO-6000")}
    counts = ", ".join(f"{name} {count}" for name, count in others.items())
    return Group(
        (
            same("configurations of an A100", "19", str(len(a100.maximal_partitions()))),
            same("sizes of instances", "1, 2, 3, 4, 7", ", ".join(map(str, a100.sizes))),
            same("GB of instances of these sizes", "10, 20, 40, 40, 80", memory),
            same("GB of H200 and B200", "141, 192", large),
            same("slots at which 2g may start", "0, 2, 4, 5", ", ".join(map(str, of_size[2].starts))),
            held("all GPUs with MIG have identical configurations", "19 each", counts, set(others.values()) == {19}),
        ),
        reason="NVIDIA's documents let 2g start at 0, 2 and 4 only; A30 and RTX PRO 6000 have 4 compute slices. The "
        "profiles of a B200 share 180 GB.",
        readings=(
            Reading("memory of a B200 as its largest instance has it", "7g.180gb"),
            Reading("2g at slot 5 beside something else", "its memory slices 5 and 6 are no placement of any profile"),
            Reading("GPUs with 7 compute slices only", "A100, H100, H200 and B200 have the same 19"),
        ),
    )


def section3b(_cut: bool) -> Group:
    """Section III-B: InceptionV3 by batch size and processes."""
    profiles = tomllib.loads(PRINTED.read_text(encoding="utf-8"))["profiles"]
    printed = {1: ((354, 444, 446), (11, 18, 27)), 4: ((786, 1695, 1810), (10, 9, 13))}
    claims = []
    for profile in profiles:
        size = profile["size"]
        throughputs, latencies = printed[size]
        found = [processes * one for processes, one in enumerate(profile["throughput"], 1)]
        at = f"{size} slice{'s' * (size > 1)}, batch {profile['batch']}, 1, 2 and 3 processes"
        equal = all(abs(one - other) < 1 for one, other in zip(throughputs, found, strict=True))
        claims.append(held(f"requests/s, {at}", listed(throughputs), listed(found), equal))
        claims.append(same(f"latency, {at}", f"{listed(latencies)} ms", f"{listed(profile['latency_ms'])} ms"))
    one, two, three = profiles[0]["latency_ms"]
    growth = [later / one for later in (two, three)]
    close = abs(growth[0] - 1.6) < 0.05 and abs(growth[1] - 2.45) < 0.005
    claims.append(held("growth of latency by a second and a third process", "1.6, 2.45", listed(growth, 2), close))
    return Group(
        tuple(claims),
        assumed="Measured are the published profiles; their throughput is that of one process, here it is that of all. "
        "Figures agree if they differ by less than 1.",
        reason="354 is 364 in the published profiles, a slip of a digit.",
        readings=(Reading("throughput of the three as rates of one process times processes", "all but 354 agree"),),
    )


def section3d(cut: bool) -> Group:
    """Section III-D2: Slices of demand matching."""
    fewest = services = 0
    for number in fleets.scenarios(cut):
        wanted = fleets.scenario(number, fleets.PROGRAM, 5)
        relaxation = Relaxation(wanted)
        slices = [profile.compute_slices for packer in relaxation.kinds.packers for profile in packer.profiles]
        best = relaxation.covers.cheapest(np.array(slices, dtype=float))
        for index, service in enumerate(wanted.services):
            need = Need(index, service.rate, service.min_replicas, wanted.options[index], wanted.pools[0].gpu)
            ours = sum(option.profile.compute_slices for option in match(need))
            services += 1
            fewest += ours == sum(count * size for count, size in zip(best[index], slices, strict=True))
    text = f"{fewest} of {services}"
    return Group(
        (held("services that get the fewest slices", "all", text, fewest == services, "S1 to S6"),),
        assumed="The fewest slices of any set of segments that serves the rate, which `exact` computes for its bound.",
        reason="The best throughput per slice is best for the bulk of a rate; the last segment may waste more than it "
        "gains.",
        readings=(Reading("slices of the optimal segments alone, without the last one", "fewest by definition"),),
    )


def section3e(cut: bool) -> Group:
    """Section III-E2: Threshold of allocation optimisation."""

    def planner(gpus: FilledGpus, needs: Sequence[Need], control: Control[Deployment], limit: int) -> None:
        segments = [PlannedSegment(need.service, option) for need in needs for option in match(need)]
        put_all(gpus, segments, avoiding=True)
        optimize(gpus, {need.service: need for need in needs}, control, threshold=limit)

    found = {
        limit: [fleets.used_by(partial(planner, limit=limit), number) for number in fleets.scenarios(cut)]
        for limit in range(1, 8)
    }
    least = min(sum(row) for row in found.values())
    best = [limit for limit, row in found.items() if sum(row) == least]
    what = "slices below which a GPU is taken apart, for the least fragmentation"
    return Group(
        (held(what, "4", listed(best), 4 in best),),
        assumed="GPUs of S1 to S6, the program's rule, 5 processes. "
        + "; ".join(f"{limit}: {listed(row)}" for limit, row in found.items())
        + ".",
    )


def section3f(cut: bool) -> Group:
    """Section III-F: Updating one service."""
    updates = others = more = 0
    for number in fleets.scenarios(cut):
        wanted = fleets.scenario(number, fleets.PROGRAM, 5)
        running = fleets.planned("parvagpu", number)
        for index, service in enumerate(wanted.services):
            services = list(wanted.services)
            services[index] = dataclasses.replace(service, rate=1.3 * service.rate)
            changed = wanted.replace(services=tuple(services))
            found = there(deploy(changed, running=running, only=[service.name]).deployment)
            anew = there(deploy(changed, "parvagpu").gpus)
            updates += 1
            others += any(one.service != service.name for one in {*running.segments} ^ {*found.segments})
            more += found.used_gpus - anew
    return Group(
        (held("updates that change segments of other services", "0", f"{others} of {updates}", others == 0),),
        assumed="Each service of S1 to S6 in turn gets 30 % more requests (`deploy(..., running=, only=)`). "
        f"All {updates} updates together need {more} GPUs more than planning everything anew.",
    )


def table4(_cut: bool) -> Group:
    """Table IV: Scenarios."""
    wanted = {number: fleets.scenario(number, fleets.PROGRAM, 5) for number in range(1, 7)}
    by = {number: {each.name: (each.slo, each.rate) for each in own.services} for number, own in wanted.items()}
    same_slo = all(by[3][name][0] == by[4][name][0] for name in by[3])
    rising = all(by[3][name][1] < by[4][name][1] for name in by[3])
    total = [sum(rate for _, rate in by[number].values()) for number in (4, 5, 6)]
    growing = total[0] < total[1] < total[2]
    return Group(
        (
            same("services of S1 and of S2", "6, 11", f"{len(by[1])}, {len(by[2])}"),
            same("S1 has services of S2, as they are there", "yes", "yes" if by[1].items() <= by[2].items() else "no"),
            held("S3 and S4 have the same SLOs", "yes", "yes" if same_slo else "no", same_slo),
            held("each rate of S4 is above that of S3", "yes", "yes" if rising else "no", rising),
            held("requests/s of S4, S5 and S6 rise", "yes", listed(total), growing),
        )
    )


PAPER = Paper(
    "parvagpu",
    "ParvaGPU: services on GPU segments",
    'M. Lee et al.: "ParvaGPU: Efficient Spatial GPU Sharing for Large-Scale DNN Inference in Cloud Environments", SC '
    "2024; its program and profiles: github.com/MunQ-Lee/ParvaGPU_SC24 (MIT).",
    (*(figure1, section3b, section3d, section3e, section3f, table4), *fleets.GROUPS, *GROUPS),
)
