"""The bundled instances: batch files with measured times, and an index that says where each comes from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.instances.best_known import BestKnown, best_known_from_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mig_opt.batch import Batch

_DATA = resources.files("mig_opt.instances").joinpath("data")


@dataclass(frozen=True, slots=True)
class InstanceInfo:
    """What is known about a bundled instance.

    Attributes
    ----------
    name : str
        What :func:`load_instance` takes.
    title : str
        One line.
    n : int
        Number of tasks.
    gpu : str
        Name of the GPU that the times belong to.
    source, url : str
        Who measured, and where the figures were published; the URL is empty if there is none.
    licence : str
        Licence of the figures, with its copyright line.
    derivation : str
        How the seconds and GB were derived from what was published.
    notes : tuple of str
        Peculiarities of the data.
    best_known : BestKnown or None
        Best makespan and lower bound so far; None if nobody has recorded any.
    """

    name: str
    title: str
    n: int
    gpu: str
    source: str
    url: str
    licence: str
    derivation: str
    notes: tuple[str, ...]
    best_known: BestKnown | None


@cache
def _index() -> Mapping[str, InstanceInfo]:
    entries = json.loads(_DATA.joinpath("index.json").read_text(encoding="utf-8"))["instances"]
    infos = (
        InstanceInfo(
            **{
                **entry,
                "notes": tuple(entry["notes"]),
                "best_known": best_known_from_json(entry["best_known"]),
            }
        )
        for entry in entries
    )
    return MappingProxyType({info.name: info for info in infos})


def instance_names() -> tuple[str, ...]:
    """Return the names of the bundled instances, smallest first.

    Examples
    --------
    >>> instance_names()
    ('rodinia-a30', 'miso-a100-32', 'miso-a100-100')
    """
    return tuple(sorted(_index(), key=lambda name: _index()[name].n))


def instance_info(name: str) -> InstanceInfo:
    """Return source, licence, peculiarities and best-known values of a bundled instance.

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
        message = f"no bundled instance {name!r}; {nearest(name, instance_names())}"
        raise InputError([Problem("name", message)]) from None


def load_instance(name: str) -> Batch:
    """Return a bundled instance.

    Raises
    ------
    InputError
        If there is none of that name; the message offers the nearest.

    Examples
    --------
    >>> batch = load_instance("rodinia-a30")
    >>> batch.gpu.name, len(batch.tasks), batch.tasks[0].times[2]
    ('A30-24GB', 8, 1.1136)
    """
    return _load(instance_info(name).name)


@cache
def _load(name: str) -> Batch:
    from mig_opt.files import batch_from_json

    return batch_from_json(_DATA.joinpath(f"{name}.json").read_text(encoding="utf-8"), name=name)
