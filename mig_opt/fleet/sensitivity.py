"""Sensitivity of a job to PCIe contention, fitted to runs in which its bandwidth was measured.

*PCIe Bandwidth-Aware Scheduling for Multi-Instance GPUs* (section 4.1) runs ``n`` instances of a job side by side.
Each has the ``n``-th part of the link, and Eq. (1) says how long they take: ``runtime / runtime alone = sensitivity x
demand / bandwidth``. The scheduler predicts with Eq. (2), which is the same but never below 1, and that is what is
fitted here: runs that do not compete yet must not pull the slope down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.fleet.trace import PCIE_LIMIT
from mig_opt.rules import Checked, wrong_number
from mig_opt.rules.vocabulary import Number, Seconds, Whole

_UNTOUCHED = 1e-9  # slowdowns up to this share count as none


@dataclass(frozen=True, slots=True)
class ProfiledRun(Checked):
    """Run of a job whose share of the PCIe link is known.

    Attributes
    ----------
    seconds : float
        Length of the run.
    competitors : int, optional
        Number of instances of the job on the GPU, itself included; each has an equal part of the link.
    bandwidth : float, optional
        GB/s that it could have, in place of ``competitors``.

    Raises
    ------
    InputError
        With every problem of the run.
    """

    seconds: Seconds
    competitors: Annotated[int, Whole(1, 10**6)] | None = None
    bandwidth: Annotated[float, Number("GB/s", above=0)] | None = None

    def _problems(self) -> Iterator[Problem]:
        if (self.competitors is None) == (self.bandwidth is None):
            yield Problem("competitors", "give either competitors or bandwidth")


@dataclass(frozen=True, slots=True)
class SensitivityFit:
    """Sensitivity that fits profiled runs, and the quality of the fit.

    Attributes
    ----------
    sensitivity : float
        The paper's alpha, as ``sensitivity`` of :class:`mig_opt.Job` takes it.
    r_squared : float
        Share of the variance of the slowdowns that the fit explains, at most 1. Below 0.9 do not trust it.
    error : float
        Root of the mean squared error of the slowdowns.
    contended : int
        Number of runs on the slope; the others ran as if alone.
    """

    sensitivity: float
    r_squared: float
    error: float
    contended: int

    def slowdown(self, demand: float, competitors: int, pcie_limit: float = PCIE_LIMIT) -> float:
        """Return Eq. (2): by how much a job is slower than alone when ``competitors``, with itself, share the link."""
        return max(1.0, self.sensitivity * demand * competitors / pcie_limit)


def fit_sensitivity(
    runs: Sequence[ProfiledRun], demand: float, *, alone: float | None = None, pcie_limit: float = PCIE_LIMIT
) -> SensitivityFit:
    """Return the sensitivity that fits profiled runs of a job best, by least squares of the slowdowns.

    Parameters
    ----------
    runs : sequence of ProfiledRun
        In any order; at least one must be slowed down.
    demand : float
        GB/s that the job uses alone.
    alone : float, optional
        Seconds that it takes alone; by default the mean of the runs with one competitor, itself.
    pcie_limit : float
        GB/s of the link.

    Returns
    -------
    SensitivityFit
        The fit by least squares.

    Raises
    ------
    InputError
        With every problem of the arguments, or if no run is slowed down.

    Examples
    --------
    The Bloom7b1 of the paper on an A100, up to three of them on one GPU:

    >>> from mig_opt.simulation import ProfiledRun, fit_sensitivity
    >>> runs = [ProfiledRun(50.0, 1), ProfiledRun(62.8, 2), ProfiledRun(94.2, 3)]
    >>> fit = fit_sensitivity(runs, demand=17.65)
    >>> round(fit.sensitivity, 2), round(fit.r_squared, 4), fit.contended
    (1.07, 1.0, 2)
    """
    problems = [
        *wrong_number("demand", demand, "a finite number of GB/s > 0", above=0),
        *wrong_number("pcie_limit", pcie_limit, "a finite number of GB/s > 0", above=0),
    ]
    single = [run.seconds for run in runs if run.competitors == 1]
    if alone is not None:
        problems += wrong_number("alone", alone, "a finite number of seconds > 0", above=0)
    elif not single:
        problems.append(Problem("alone", "say how long the job takes alone, or add a run with one competitor, itself"))
    raise_any(problems)
    base = math.fsum(single) / len(single) if alone is None else alone
    points = [(demand / (run.bandwidth or pcie_limit / (run.competitors or 1)), run.seconds / base) for run in runs]
    if all(slower <= 1 + _UNTOUCHED for _, slower in points):
        raise InputError([Problem("runs", "no run is slowed down; profile the job beside more instances of itself")])
    sensitivity = _slope(points)
    mean = math.fsum(slower for _, slower in points) / len(points)
    variance = math.fsum((slower - mean) ** 2 for _, slower in points)
    unexplained = math.fsum((slower - max(1.0, sensitivity * share)) ** 2 for share, slower in points)
    explained = 1 - unexplained / variance if variance else float(unexplained <= _UNTOUCHED)
    contended = sum(sensitivity * share > 1 for share, _ in points)
    return SensitivityFit(sensitivity, explained, math.sqrt(unexplained / len(points)), contended)


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the ``a`` for which ``max(1, a x)`` is nearest to the points.

    The ``k`` points of largest ``x`` are on the slope exactly if ``1 / x_k < a <= 1 / x_(k+1)``. Within these limits
    the error is a parabola, so the best ``a`` is its vertex or the nearer limit, and the best of all ``k`` is the best.
    """
    falling = sorted(points, reverse=True)
    best = (math.inf, 0.0)
    products = squares = 0.0
    for count, (share, slower) in enumerate(falling, 1):
        products += share * slower
        squares += share * share
        most = 1 / falling[count][0] if count < len(falling) else math.inf
        slope = min(max(products / squares, 1 / share), most)
        best = min(best, (math.fsum((seen - max(1.0, slope * x)) ** 2 for x, seen in falling), slope))
    return best[1]
