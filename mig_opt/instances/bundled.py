"""The bundled instances: batches and demands with measured figures, and an index that says where each comes from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.method.result import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mig_opt.batch.batch import Batch
    from mig_opt.serving.demand import Demand
    from mig_opt.serving.profile_table import ProfileTable

InstanceKind = Literal["batch", "demand"]
"""Tasks to be scheduled, or services to be deployed."""

BatchName = Literal["rodinia-a30", "miso-a100-32", "miso-a100-100"]
DemandName = Literal[
    "parvagpu-s1", "parvagpu-s2", "parvagpu-s3", "parvagpu-s4", "parvagpu-s5", "parvagpu-s6", "mlperf-offline"
]
"""Names that tell a type checker what :func:`load` returns."""

_DATA = resources.files("mig_opt.instances").joinpath("data")


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


@dataclass(frozen=True, slots=True)
class InstanceInfo:
    """Facts about a bundled instance.

    Attributes
    ----------
    name : str
        What :func:`mig_opt.load` takes.
    kind : {"batch", "demand"}
        Whether it is a batch of tasks, for :func:`mig_opt.solve`, or a demand of services, for
        :func:`mig_opt.deploy`.
    title : str
        One line.
    n : int
        Number of tasks or services.
    gpu : str
        Name of the GPU that was measured, or of several.
    source, url : str
        Who measured, and where the figures were published; the URL is empty if there is none.
    licence : str
        Licence of the figures, with its copyright line.
    derivation : str
        How the figures were derived from what was published.
    notes : tuple of str
        Peculiarities of the data.
    best_known : BestKnown or None
        Of a batch, best makespan and lower bound so far; None if nobody has recorded any.
    fewest_gpus : FewestGpus or None
        Of a demand, fewest GPUs and lower bound so far; None if nobody has recorded any.
    """

    name: str
    kind: InstanceKind
    title: str
    n: int
    gpu: str
    source: str
    url: str
    licence: str
    derivation: str
    notes: tuple[str, ...]
    best_known: BestKnown | None = None
    fewest_gpus: FewestGpus | None = None


_Record = TypeVar("_Record", bound=BestKnown | FewestGpus)


def recorded(kind: type[_Record], entry: Mapping[str, Any] | None) -> _Record | None:
    """Return the best-known values in an entry of the index; None without an entry."""
    if entry is None:
        return None
    findings = {key: value and Finding(**value) for key, value in entry.items() if key != "status"}
    return kind(status=Status(entry["status"]), **findings)


@cache
def _index() -> Mapping[str, InstanceInfo]:
    entries = json.loads(_DATA.joinpath("index.json").read_text(encoding="utf-8"))["instances"]
    infos = (
        InstanceInfo(
            **{
                **entry,
                "notes": tuple(entry["notes"]),
                "best_known": recorded(BestKnown, entry.get("best_known")),
                "fewest_gpus": recorded(FewestGpus, entry.get("fewest_gpus")),
            }
        )
        for entry in entries
    )
    return MappingProxyType({info.name: info for info in infos})


def instance_names(kind: InstanceKind = "batch") -> tuple[str, ...]:
    """Return the names of the bundled instances of a kind, smallest first.

    Parameters
    ----------
    kind : {"batch", "demand"}
        Batches are solved, demands are deployed.

    Examples
    --------
    >>> instance_names()
    ('rodinia-a30', 'miso-a100-32', 'miso-a100-100')
    >>> instance_names("demand")[:2]
    ('parvagpu-s1', 'mlperf-offline')
    """
    found = (info for info in _index().values() if info.kind == kind)
    return tuple(info.name for info in sorted(found, key=lambda info: info.n))


def instance_info(name: str) -> InstanceInfo:
    """Return source, licence, peculiarities and best-known values of a bundled instance of either kind.

    Raises
    ------
    InputError
        If there is none of that name; the message offers the nearest.

    Examples
    --------
    >>> instance_info("rodinia-a30").licence
    'MIT, Copyright (c) 2025 Jorge Villarrubia'
    """
    try:
        return _index()[name]
    except KeyError:
        raise InputError([Problem("name", f"no bundled instance {name!r}; {nearest(name, _index())}")]) from None


@overload
def load(name: BatchName) -> Batch: ...
@overload
def load(name: DemandName) -> Demand: ...
@overload
def load(name: str) -> Batch | Demand: ...
def load(name: str) -> Batch | Demand:
    """Return a bundled instance: a batch of tasks, or a demand of services.

    Raises
    ------
    InputError
        If there is none of that name; the message offers the nearest.

    Examples
    --------
    >>> batch, demand = load("rodinia-a30"), load("parvagpu-s1")
    >>> len(batch.tasks), batch.tasks[0].times[2], len(demand.services)
    (8, 1.1136, 6)
    """
    return _load_batch(name) if instance_info(name).kind == "batch" else _load_demand(name)


@cache
def _load_batch(name: str) -> Batch:
    from mig_opt.files.batch.batches import BATCH

    return BATCH.from_json(_text(name), name=name)


@cache
def _load_demand(name: str) -> Demand:
    from mig_opt.files.serving.demands import DEMAND

    tables = _tables("parvagpu-profiles") if name.startswith("parvagpu") else ()
    demand = DEMAND.from_json(_text(name), tables=tables, name=name)
    models = {service.model for service in demand.services}
    return demand.replace(tables=tuple(table for table in demand.tables if table.model in models))


@cache
def _tables(name: str) -> tuple[ProfileTable, ...]:
    from mig_opt.files.serving.profiles import PROFILES

    return PROFILES.from_json(_text(name))


def _text(name: str) -> str:
    return _DATA.joinpath(f"{name}.json").read_text(encoding="utf-8")
