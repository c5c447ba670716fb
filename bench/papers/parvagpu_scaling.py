"""Scheduling delays, and fleets for more and more services (Figures 9 to 11 of the ParvaGPU paper)."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Sequence

from bench.papers.claims import Claim, Group, Reading, Verdict, held
from bench.papers.parvagpu_measures import (
    PROGRAM,
    RIVALS_DIFFER,
    SETTING,
    TOLERANCE,
    listed,
    percent,
    saving,
    scenario,
    scenarios,
    small_batches,
    used_gpus,
)
from bench.serving.scenarios import copies
from mig_opt import Demand, Deployment
from mig_opt.method.control import Control
from mig_opt.method.registry import get_deploy_method

REPEATS = 15


def delays(wanted: Demand, methods: Sequence[tuple[str, int]], repeats: int) -> list[float]:
    """Return the least milliseconds of methods, each with a number of processes, from a demand to a deployment."""
    found = []
    for name, processes in methods:
        method = get_deploy_method(name).load()
        taken = []
        for _ in range(repeats):
            fresh = dataclasses.replace(wanted, max_processes=processes)  # its best triplets are not known yet
            begin = time.process_time()
            method(fresh, Control[Deployment](judge=Deployment.goals))
            taken.append(time.process_time() - begin)
        found.append(1000 * min(taken))
    return found


def _longer(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Return True if our times are longer by more than noise."""
    return statistics.mean(ours) > 1.05 * statistics.mean(theirs)


_TIMED = (
    ("parvagpu", 3),
    ("parvagpu-single", 3),
    ("gpulet", 1),
    ("mig-serving-fast", 1),
    ("igniter", 1),
    ("parvagpu-unoptimized", 3),
)


def figure9(cut: bool) -> Group:
    """Return scheduling delays (Figure 9)."""
    rows = [delays(scenario(number, PROGRAM, 3), _TIMED, 3 if cut else REPEATS) for number in scenarios(cut)]
    ours, single, gpulet, fast, igniter, before = zip(*rows, strict=True)
    few = min(4, len(rows))
    return Group(
        "Figure 9",
        "Scheduling delay, S1 to S6",
        (
            percent("less than gpulet, mean", 80.0, saving(ours, gpulet)),
            percent("less than MIG-serving, mean", 97.2, saving(ours, fast)),
            percent("iGniter less than ParvaGPU, mean", 35.0, saving(igniter[:few], ours[:few]), "S1 to S4"),
            Claim(
                "more than ParvaGPU-single, mean",
                "1.1 ms",
                f"{statistics.mean(ours) - statistics.mean(single):.1f} ms",
                Verdict.DIRECTION if _longer(ours, single) else Verdict.DOES_NOT,
            ),
            Claim("MIG-serving's slow algorithm", "about 6 hours", "", Verdict.CANNOT, "genetic, not built here"),
        ),
        assumed="The methods of this package in Python, not the authors' programs in C: processor time from a demand "
        f"whose best triplets are not known yet to the deployment, the least of {REPEATS} runs. ParvaGPU with 3 "
        f"processes. In ms, ParvaGPU {listed(ours, 1)}; gpulet {listed(gpulet, 1)}; MIG-serving {listed(fast, 1)}; "
        f"iGniter {listed(igniter, 1)}.",
        reason="The rivals are other programs. MIG-serving's looks at every configuration of services on a GPU; as its "
        "score is a sum over instances, the best one is found here without that. gpulet's and iGniter's evaluate their "
        "models of interference. ParvaGPU and gpulet here plan twice each and keep the better deployment. Where such "
        "figures agree, they do so by chance.",
        readings=(
            Reading(
                "ParvaGPU without its last stage",
                f"{saving(before, gpulet):.1f} % less than gpulet, {saving(before, fast):.1f} % less than MIG-serving",
            ),
        ),
    )


def _multiples(cut: bool) -> range:
    return range(1, 3 if cut else 11)


def figure10(cut: bool) -> Group:
    """Return the GPUs for copies of S5 (Figure 10)."""
    methods = {"gpulet": ("gpulet", 1), "MIG-serving": ("mig-serving-fast", 1), "ParvaGPU-single": ("parvagpu", 1)}
    base = scenario(5, PROGRAM, 5)
    batches: list[int] = []
    found: dict[str, list[int]] = {"ParvaGPU": [], **{name: [] for name in methods}, "stronger": [], "exact": []}
    everyone = {"ParvaGPU": ("parvagpu", 5), **methods, "stronger": ("mig-serving", 1), "exact": ("exact", 5)}
    for number in _multiples(cut):
        wanted = copies(base, number)
        for name, (method, processes) in everyone.items():
            found[name].append(used_gpus(wanted.replace(max_processes=processes), method))
        batches.append(used_gpus(small_batches(wanted.replace(max_processes=1)), "gpulet"))
    printed = {"gpulet": 45.2, "MIG-serving": 30.0, "ParvaGPU-single": 7.4}
    ours = found["ParvaGPU"]
    return Group(
        "Figure 10",
        "GPUs for 1 to 10 copies of S5",
        tuple(percent(f"fewer than {name}, mean", value, saving(ours, found[name])) for name, value in printed.items()),
        assumed=f"{SETTING}Means agree within {TOLERANCE:g} percentage points. "
        + "; ".join(f"{name} {listed(found[name])}" for name in ("ParvaGPU", *methods))
        + f"; the proven fewest {listed(found['exact'])}.",
        reason=RIVALS_DIFFER,
        readings=(
            Reading(
                "gpulet with batches of 32 at most, as in its program",
                f"{listed(batches)} GPUs, {saving(ours, batches):.1f} %",
            ),
            Reading(
                "MIG-serving with the stronger score (`mig-serving`)",
                f"{saving(ours, found['stronger']):.1f} %",
            ),
        ),
    )


def figure11(cut: bool) -> Group:
    """Return scheduling delays for copies of S5 (Figure 11)."""
    base = scenario(5, PROGRAM, 3)
    rows = [delays(copies(base, number), _TIMED[:4], 1 if cut else 5) for number in _multiples(cut)]
    ours, single, gpulet, fast = zip(*rows, strict=True)
    more = _longer(ours, single)
    return Group(
        "Figure 11",
        "Scheduling delay for 1 to 10 copies of S5",
        (
            percent("less than gpulet, mean", 15.8, saving(ours, gpulet)),
            percent("less than MIG-serving, mean", 99.9, saving(ours, fast)),
            held(
                "ParvaGPU takes longer than ParvaGPU-single",
                "slightly",
                f"{listed(ours, 1)} against {listed(single, 1)} ms",
                more,
            ),
        ),
        assumed="As in Figure 9, the least of 5 runs. In ms, "
        f"ParvaGPU {listed(ours, 1)}; gpulet {listed(gpulet, 1)}; MIG-serving {listed(fast, 1)}.",
        reason="As in Figure 9.",
        readings=(
            Reading(
                "ten copies alone",
                f"{100 * (1 - ours[-1] / gpulet[-1]):.1f} % and {100 * (1 - ours[-1] / fast[-1]):.1f} %",
            ),
        ),
    )
