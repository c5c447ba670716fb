"""Best-known values of the bundled instances: who found them, when, how, and with what proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mig_opt.result import Status


@dataclass(frozen=True, slots=True)
class Finding:
    """A makespan, a number of GPUs or a lower bound, and where it comes from.

    Attributes
    ----------
    value : float
        Seconds, or GPUs.
    method : str
        Name of the method that found it.
    found_by : str
        Who ran the method.
    date : str
        Day, as YYYY-MM-DD.
    versions : str
        Versions of what ran, e.g. ``mig_opt 0.1.0, ortools 9.15.6755``.
    proof : str
        Why to believe it.
    """

    value: float
    method: str
    found_by: str
    date: str
    versions: str
    proof: str


@dataclass(frozen=True, slots=True)
class BestKnown:
    """The best makespan and the best lower bound on record.

    Attributes
    ----------
    status : Status
        ``OPTIMAL`` if a run proved the makespan optimal (within the resolution of its model) or the two values meet,
        ``FEASIBLE`` if there is a makespan without such a proof, ``NO_SOLUTION`` if there is only a bound.
    makespan, lower_bound : Finding or None
        The values; None where there is none.
    """

    status: Status
    makespan: Finding | None
    lower_bound: Finding | None


@dataclass(frozen=True, slots=True)
class FewestGpus:
    """The fewest GPUs and the best lower bound on record.

    Attributes
    ----------
    status : Status
        ``OPTIMAL`` if the two values meet, ``FEASIBLE`` if they do not, ``NO_SOLUTION`` if there is only a bound.
    gpus, lower_bound : Finding or None
        The values; None where there is none.
    """

    status: Status
    gpus: Finding | None
    lower_bound: Finding | None


def best_known_from_json(entry: Mapping[str, Any] | None) -> BestKnown | None:
    """Return the best-known values in an entry of the index."""
    if entry is None:
        return None
    return BestKnown(Status(entry["status"]), _finding(entry["makespan"]), _finding(entry["lower_bound"]))


def fewest_gpus_from_json(entry: Mapping[str, Any] | None) -> FewestGpus | None:
    """Return the fewest known GPUs in an entry of the index."""
    if entry is None:
        return None
    return FewestGpus(Status(entry["status"]), _finding(entry["gpus"]), _finding(entry["lower_bound"]))


def _finding(entry: Mapping[str, Any] | None) -> Finding | None:
    return Finding(**entry) if entry else None
