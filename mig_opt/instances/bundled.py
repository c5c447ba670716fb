"""The bundled instances: problems of every kind, measured or drawn, and an index that says all about each."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

from mig_opt.batch.problems import repeated_names
from mig_opt.errors import InputError, Problem, nearest, raise_any
from mig_opt.files import KINDS
from mig_opt.files.documents import parsed, read_text
from mig_opt.files.values import Findings, read_value
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.pools import Pool
from mig_opt.method.functions import imported
from mig_opt.method.result import RESOLUTION, Status, relative_gap
from mig_opt.rules import is_among, wrong_choice

if TYPE_CHECKING:
    from mig_opt.batch.batch import Batch
    from mig_opt.serving.demand import Demand
    from mig_opt.serving.profile_table import ProfileTable

InstanceKind = Literal["batch", "demand", "trace", "state"]
"""Tasks to be scheduled, services to be deployed, jobs that arrive over time, or a fleet to be defragmented."""

Difficulty = Literal["1 s", "10 s", "10 min", "1 h", "closed", "open"]
"""Class of an instance: the least limit within which our own methods have solved it; ``closed`` if others have,
``open`` if nobody has."""

Evidence = Literal["recomputed", "second proof", "claimed"]
"""Evidence for a lower bound: it follows without any solver, another method has proved it and left a certificate that
``check`` accepts, or there is nothing but the word of one method."""

BatchName = Literal["rodinia-a30", "rodinia-a30-made-up-a100", "miso-a100-32", "miso-a100-100"]
DemandName = Literal[
    "parvagpu-s1", "parvagpu-s2", "parvagpu-s3", "parvagpu-s4", "parvagpu-s5", "parvagpu-s6", "mlperf-offline"
]
"""Names that tell a type checker what :func:`load` returns."""

FILE_KINDS: Mapping[InstanceKind, str] = {"batch": "batch", "demand": "services", "trace": "trace", "state": "state"}
"""The kind of file that holds an instance."""

_GENERATORS = {
    "batch": "mig_opt.instances.batch:generate_batch",
    "demand": "mig_opt.instances.serving:generate_demand",
    "trace": "mig_opt.instances.fleet.registry:generate_trace",
    "state": "mig_opt.instances.fleet.states:generate_state",
}
"""The function that draws instances of a kind."""

_ASKED = {"room": tuple[str, ...], "times": tuple[float, ...], "rates": dict[str, tuple[float, ...]]}
"""Types of that for which states and days ask."""

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class Finding:
    """The value of a plan or a lower bound, and where it comes from.

    Attributes
    ----------
    value : float
        In the unit of the goal: seconds, GPUs, jobs or migrations.
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
    seconds : float or None
        For how long it ran; None if that is not on record.
    """

    value: float
    method: str
    found_by: str
    date: str
    versions: str
    proof: str
    seconds: float | None = None


@dataclass(frozen=True)
class InstanceInfo:
    """Facts about a bundled instance.

    Attributes
    ----------
    name : str
        What :func:`mig_opt.load` takes.
    kind : {"batch", "demand", "trace", "state"}
        Whether it is a batch of tasks, a demand of services, a trace of jobs, or the state of a fleet.
    title : str
        One line.
    n : int
        Number of tasks, services, jobs or instances.
    gpu : str
        Name of the GPU; of several kinds all names, for a batch with their numbers.
    source, url : str
        Who measured, and where the figures were published, or the function that draws them; the URL is empty if there
        is none.
    licence : str
        Licence of the figures, with its copyright line.
    derivation : str
        How the figures were derived from what was published.
    notes : tuple of str
        Peculiarities of the data.
    gpus : int or None
        Number of GPUs; None if it is what is asked for.
    goal : str
        What is to be least, see :mod:`mig_opt.instances.goals`.
    question : mapping
        What belongs to the goal: for a state the profiles for which there is to be ``room``, for a day ``times`` and
        ``rates``, ``margin`` and prices of changes.
    spec : mapping or None
        Arguments of the function that draws the instance; None if it is a file.
    sha256 : str
        Digest of the instance, see :func:`mig_opt.instances.goals.content_digest`.
    difficulty : str
        Class, see :data:`Difficulty`; empty if nothing was tried yet.
    tried_s : float
        Seconds of the longest run so far.
    machine : str
        Where that was.
    best, lower_bound : Finding or None
        The best plan on record and the best lower bound.
    evidence : str
        For the lower bound, see :data:`Evidence`; empty if there is none.
    certified : float or None
        The greatest lower bound that follows without any solver.
    plan_sha256, certificate_sha256 : str
        Digests of the files of the plan and of the certificate; empty if there is none.
    seal : str
        Digest of all of the above.
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
    notes: tuple[str, ...] = ()
    gpus: int | None = None
    goal: str = ""
    question: Mapping[str, Any] = field(default_factory=dict, hash=False)
    spec: Mapping[str, Any] | None = field(default=None, hash=False)
    sha256: str = ""
    difficulty: str = ""
    tried_s: float = 0.0
    machine: str = ""
    best: Finding | None = None
    lower_bound: Finding | None = None
    evidence: str = ""
    certified: float | None = None
    plan_sha256: str = ""
    certificate_sha256: str = ""
    seal: str = ""

    @property
    def fleet(self) -> str:
        """Number and kind of the GPUs in words."""
        return self.gpu if self.gpus in (None, 1) or " + " in self.gpu else f"{self.gpus} x {self.gpu}"

    @property
    def solved(self) -> bool:
        """True if value and bound on record meet, but for a millionth."""
        return self.gap is not None and self.gap <= RESOLUTION

    @property
    def gap(self) -> float | None:
        """``(best - lower bound) / best``; None where one is missing."""
        if self.best is None or self.lower_bound is None:
            return None
        return relative_gap(self.best.value, self.lower_bound.value)

    @property
    def status(self) -> Status:
        """``OPTIMAL`` if the two values meet, ``NO_SOLUTION`` if there is no plan."""
        return Status.OPTIMAL if self.solved else Status.NO_SOLUTION if self.best is None else Status.FEASIBLE

    def computed_seal(self) -> str:
        """Return the digest that follows from the other attributes."""
        return digest_of(json.dumps({**dataclasses.asdict(self), "seal": ""}, sort_keys=True))


def digest_of(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_text(kind: InstanceKind, problem: Any) -> str:
    """Return the file of an instance."""
    text: str = imported(KINDS[FILE_KINDS[kind]].place).to_json(problem)
    return text


class Library:
    """Instances with best plans and bounds in a folder: ``index.json``, instances, ``plans`` and ``certificates``.

    Examples
    --------
    >>> library = Library()
    >>> info = library.info("rodinia-a30")
    >>> info.best.value, len(library.load(info.name).tasks)
    (28.43392, 8)
    """

    def __init__(self, folder: Path = DATA) -> None:
        self.folder = folder
        self._loaded: dict[str, Any] = {}

    @cached_property
    def infos(self) -> Mapping[str, InstanceInfo]:
        """The entries of the index by name."""
        source = str(self.folder / "index.json")
        document, repeated = parsed(read_text(source), source)
        findings = Findings(source)
        findings.extend(repeated)
        # In place of bytes that are no text, which names may have, are question marks: values are checked here.
        clean = json.loads(json.dumps(document.get("instances"), ensure_ascii=False).encode("utf-8", "replace"))
        entries = read_value(tuple[InstanceInfo, ...], clean, "instances", findings)
        findings.check()
        for index, entry in enumerate(entries):
            of_day = entry.goal == "GPU-hours" or not entry.question.keys().isdisjoint(("times", "rates"))
            for key in ("room",) if entry.kind == "state" else ("times", "rates") if of_day else ():
                read_value(_ASKED[key], entry.question.get(key), f"instances[{index}].question.{key}", findings)
        findings.extend(repeated_names("instances", entries))
        findings.check()
        return MappingProxyType({entry["name"]: _info(entry) for entry in document["instances"]})

    def info(self, name: str) -> InstanceInfo:
        """Return the entry of an instance; refuse a name that none has."""
        if not is_among(name, self.infos):
            raise InputError([Problem("name", f"no bundled instance {name!r:.60}; {nearest(name, self.infos)}")])
        return self.infos[name]

    def chosen(self, kind: str | None = None, difficulty: str | None = None) -> list[InstanceInfo]:
        """Return the instances of a kind and a class; refuse a choice without any."""
        words = {"kind": (kind, tuple(FILE_KINDS)), "difficulty": (difficulty, get_args(Difficulty))}
        raise_any(one for key, (word, known) in words.items() if word for one in wrong_choice(key, word, known))
        of_kind = [info for info in self.infos.values() if kind in (None, info.kind)]
        found = [info for info in of_kind if difficulty in (None, info.difficulty)]
        if not found:
            there = [name for name in get_args(Difficulty) if any(info.difficulty == name for info in of_kind)]
            message = f"there is no {kind or 'instance'} of the class {difficulty}"
            raise InputError([Problem("difficulty", f"{message}; there are some of: {', '.join(there) or 'none'}")])
        return found

    def load(self, name: str) -> Any:
        """Return an instance."""
        info = self.info(name)
        if name not in self._loaded:
            self._loaded[name] = self._read(info) if info.spec is None else _drawn(info)
        return self._loaded[name]

    def _read(self, info: InstanceInfo) -> Any:
        kind, source = imported(KINDS[FILE_KINDS[info.kind]].place), self.folder / f"{info.name}.json"
        text = read_text(source)
        if info.kind != "demand" or '"profiles"' in text:
            return kind.from_json(text, name=info.name, source=str(source))
        demand = kind.from_json(text, tables=_tables(), name=info.name, source=str(source))
        models = {service.model for service in demand.services}
        return demand.replace(tables=tuple(table for table in demand.tables if table.model in models))

    def packed(self, part: Literal["plans", "certificates"], name: str) -> Path:
        """Return the file of the best plan of an instance, or of the certificate for its bound."""
        return self.folder / part / f"{name}.json.xz"

    def text(self, part: Literal["plans", "certificates"], name: str) -> str | None:
        """Return what is in that file; None if there is none."""
        path = self.packed(part, name)
        return lzma.decompress(path.read_bytes()).decode() if path.is_file() else None


def _info(entry: Mapping[str, Any]) -> InstanceInfo:
    """Return an entry, whose numbers stay as they are in the file: it is sealed with them."""
    findings = {key: Finding(**entry[key]) for key in ("best", "lower_bound") if entry.get(key)}
    return InstanceInfo(**{**entry, **findings, "notes": tuple(entry.get("notes", ()))})


def _drawn(info: InstanceInfo) -> Any:
    """Return the instance that follows from a spec."""
    spec, draw = dict(info.spec or {}), imported(_GENERATORS[info.kind])
    try:
        if "pools" in spec:
            spec["pools"] = tuple(Pool(**pool | {"gpu": get_gpu(pool["gpu"])}) for pool in spec["pools"])
        inspect.signature(draw).bind(**spec)
    except (TypeError, KeyError) as error:
        message = f"of {info.name!r} in index.json is none that {draw.__name__} can draw: {error}; correct it"
        raise InputError([Problem("spec", message)]) from None
    return dataclasses.replace(draw(**spec), name=info.name)


@cache
def library() -> Library:
    """Return the bundled instances."""
    return Library()


def instance_names(kind: InstanceKind = "batch", *, drawn: bool = False) -> tuple[str, ...]:
    """Return the names of the bundled instances of a kind, smallest first.

    Parameters
    ----------
    kind : {"batch", "demand", "trace", "state"}
        Batches are solved, demands are deployed, traces simulated, states defragmented.
    drawn : bool
        Whether to name those that are drawn at random, too, beside those that were measured.

    Returns
    -------
    tuple of str
        The names.

    Examples
    --------
    >>> instance_names()
    ('rodinia-a30', 'rodinia-a30-made-up-a100', 'miso-a100-32', 'miso-a100-100')
    >>> instance_names("demand")[:2]
    ('parvagpu-s1', 'mlperf-offline')
    """
    found = (info for info in library().infos.values() if info.kind == kind and (drawn or info.spec is None))
    return tuple(info.name for info in sorted(found, key=lambda info: info.n))


def instance_info(name: str) -> InstanceInfo:
    """Return source, licence, peculiarities and best-known values of a bundled instance of any kind.

    Raises
    ------
    InputError
        If there is none of that name; the message offers the nearest.

    Examples
    --------
    >>> instance_info("rodinia-a30").licence
    'MIT, Copyright (c) 2025 Jorge Villarrubia'
    """
    return library().info(name)


@overload
def load(name: BatchName) -> Batch: ...
@overload
def load(name: DemandName) -> Demand: ...
@overload
def load(name: str) -> Any: ...
def load(name: str) -> Any:
    """Return a bundled instance: a batch of tasks, a demand of services, a trace of jobs, or the state of a fleet.

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
    return library().load(name)


@cache
def _tables() -> tuple[ProfileTable, ...]:
    from mig_opt.files.serving.profiles import PROFILES

    return PROFILES.from_json((DATA / "parvagpu-profiles.json").read_text(encoding="utf-8"))
