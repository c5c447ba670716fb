"""Inference services, and the instances that serve them.

A *service* has requests to answer at some rate, each within a limit of latency (its service level objective, SLO). A
*profile table* says what its model achieves on an instance: throughput and latency for each instance size, batch size
and number of processes that share the instance. A *segment* is an instance in which processes of one service run,
and a *deployment* places segments on GPUs. The terms are those of ParvaGPU (Lee et al., SC 2024), section III.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from mig_opt.errors import Problem, nearest, raise_any
from mig_opt.gpu.model import Profile
from mig_opt.gpu.pools import Pool, pool_problems
from mig_opt.rules import Checked, check_values, checked_value, wrong_type
from mig_opt.rules.vocabulary import Count, Name, NotEmpty, Number, OfType, PerSecond, Seconds, Wanted, Whole
from mig_opt.serving.costs import Costs
from mig_opt.serving.profile_table import LATENCIES, Point, ProfileTable, front, smallest_profile

ENOUGH = 1 - 5e-10
"""Share of a rate that methods take for all of it: sums of throughputs are rounded."""
NEEDED = 1 - 2e-9
"""Share of a rate that bounds count on: a little less than the validator insists on."""

DEMAND_WANTED = "a Demand, for example load('parvagpu-s1')"
TABLE_WANTED = "a ProfileTable, for example one of read(ProfileTable, ...)"
"""Descriptions of arguments that have to be given."""

_HEADROOM = Annotated[float, Number(at_least=0, at_most=100, words="a share of the rates from 0 to 100 (0.2 is 20 %)")]
_SOME = NotEmpty("at least one entry")
_MS = 1000
MOST_SEGMENTS = 1_000_000
"""Segments of a deployment: more are taken for a slip of the pen."""
MOST_REPLICAS = 10_000
"""Segments that a service may need at least; more is taken for a slip of the pen."""


@dataclass(frozen=True, slots=True)
class Service:
    """Requests that have to be answered in time.

    Attributes
    ----------
    name : str
        Unique in its demand.
    slo : float
        Seconds within which a request must be answered.
    rate : float
        Requests per second.
    model : str
        Model of the profile tables; by default the one called like the service.
    min_replicas : int
        Segments that it needs at least, for example so that one may fail.
    slo_ttft : float, optional
        Seconds within which the first token of an answer must come.
    slo_itl : float, optional
        Seconds within which each further token must follow.

    Raises
    ------
    InputError
        If a name is empty or a figure is not finite and > 0.

    Examples
    --------
    >>> Service("chat", slo=6.434, rate=19, model="bert").model
    'bert'
    """

    name: Name
    slo: Seconds
    rate: PerSecond
    model: str = ""
    min_replicas: Annotated[int, Whole(1, MOST_REPLICAS)] = 1
    slo_ttft: Seconds | None = None
    slo_itl: Seconds | None = None

    def __post_init__(self) -> None:
        check_values(self)
        object.__setattr__(self, "model", self.model or self.name)

    @property
    def slos(self) -> dict[str, float]:
        """The SLO in seconds on each latency that has one, by its name: ``latency``, ``ttft``, ``itl``."""
        known = dict(zip(LATENCIES, (self.slo, self.slo_ttft, self.slo_itl), strict=True))
        return {name: slo for name, slo in known.items() if slo is not None}


GpuPool = Pool
"""The name that :class:`~mig_opt.Pool` had where only demands knew it."""

SloShare = Annotated[float, Number(above=0, at_most=1, words="a share of the SLO, > 0 and at most 1")]


@dataclass(frozen=True, slots=True)
class SloRule:
    """Rule for the share of an SLO that the latency of a segment may take; the rest is for the wait for a batch.

    The time to the first token has the same share of its SLO, since it has the same wait. The time from token to token
    has none: it may take its whole SLO.

    Attributes
    ----------
    share : float
        Latency must be at most this share of the SLO (ParvaGPU, section IV: one half).
    whole_ms : bool
        Whether the rule is that of ParvaGPU's published program: the SLO is cut to whole milliseconds first, and
        latency must be *below* the share (there: 0.45).

    Examples
    --------
    >>> SloRule().limit(0.4185), SloRule(0.45, whole_ms=True).limit(0.4185)
    (0.20925, 0.1881)
    """

    share: SloShare = 0.5
    whole_ms: bool = False

    def __post_init__(self) -> None:
        problems: list[Problem] = []
        checked_value(SloShare, self.share, "slo_share", problems)
        checked_value(bool, self.whole_ms, "whole_ms", problems)
        raise_any(problems)

    def limit(self, slo: float) -> float:
        """Return the seconds that latency may take."""
        # Nine decimals more than a millisecond are noise of the multiplication, not part of anybody's figures.
        slo_ms = round(slo * _MS, 9)
        return round(self.share * (math.floor(slo_ms) if self.whole_ms and slo_ms < math.inf else slo_ms) / _MS, 12)

    def allows(self, latency: float, slo: float) -> bool:
        """Return True if a segment of some latency serves a service in time.

        Parameters
        ----------
        latency : float
            Of the segment, in seconds.
        slo : float
            Of the service, in seconds.

        Returns
        -------
        bool
            True if the latency is within the limit.
        """
        limit = self.limit(slo)
        return latency < limit if self.whole_ms else latency <= limit

    def too_slow(self, point: Point, service: Service) -> Iterator[tuple[str, float | None, float]]:
        """Return each latency with which a point does not serve a service in time.

        Parameters
        ----------
        point : Point
            What was measured.
        service : Service
            Whose SLOs have to be met.

        Returns
        -------
        iterator of tuple of str, float or None, and float
            Its name, its seconds (None where it was not measured), and the limit.

        Examples
        --------
        >>> chat = Service("chat", slo=8.0, rate=5, slo_ttft=0.4, slo_itl=0.03)
        >>> list(SloRule().too_slow(Point(1, 16, 1, 2.9, 3.9, ttft=0.31, itl=0.028), chat))
        [('ttft', 0.31, 0.2)]
        """
        for name, slo in service.slos.items():
            seconds = getattr(point, name)
            if name == "itl":
                if seconds is None or seconds > slo:
                    yield name, seconds, slo
            elif seconds is None or not self.allows(seconds, slo):
                yield name, seconds, self.limit(slo)

    def serves(self, point: Point, service: Service) -> bool:
        """Return True if a point serves a service within all its SLOs.

        Parameters
        ----------
        point : Point
            What was measured.
        service : Service
            Whose SLOs have to be met.

        Returns
        -------
        bool
            True if :meth:`too_slow` has none.
        """
        return next(self.too_slow(point, service), None) is None


@dataclass(frozen=True, slots=True)
class Option:
    """Best triplet (size, batch, processes) of a service for one instance size."""

    pool: int  # index of the pool of GPUs
    profile: Profile  # the instance: of those with the size, the one of least memory that is enough
    point: Point  # of those in time, the one of greatest throughput there


@dataclass(frozen=True)
class Demand(Checked):
    """Services that have to be served with GPUs that cost as little as possible.

    Attributes
    ----------
    services : tuple of Service
        At least one; names are unique.
    tables : tuple of ProfileTable
        One for each model and kind of GPU; a kind of GPU without a table for a model cannot serve it.
    pools : tuple of Pool
        At least one, of different kinds.
    rule : SloRule
        How much of the SLO latency may take.
    max_processes : int, optional
        Most processes that may share an instance; by default all that the tables have.
    name : str
        For display only.
    options : tuple of tuple of Option
        How each service can be served: the best way for each pool and instance size.

    Raises
    ------
    InputError
        With every problem of the demand, each with its path.

    Examples
    --------
    >>> from mig_opt.gpu.catalogue import get_gpu
    >>> table = ProfileTable("bert", "A100-80GB", (Point(1, 1, 1, 74.4, 0.013), Point(2, 8, 1, 230.0, 0.034)))
    >>> demand = Demand((Service("chat", 0.05, 300, "bert"),), (table,), (Pool(get_gpu("A100-80GB")),))
    >>> [(option.profile.name, option.point.throughput) for option in demand.options[0]]
    [('1g.10gb', 74.4)]
    """

    services: Annotated[tuple[Service, ...], _SOME]
    tables: Annotated[tuple[Annotated[ProfileTable, Wanted(TABLE_WANTED)], ...], _SOME]
    pools: Annotated[tuple[Annotated[Pool, Wanted("a Pool, for example Pool(get_gpu('A100'))")], ...], _SOME]
    rule: Annotated[SloRule, OfType(SloRule, "an SloRule")] = SloRule()
    max_processes: Count | None = None
    name: str = dataclasses.field(default="", compare=False)

    def _problems(self) -> Iterator[Problem]:
        yield from demand_problems(self.services or (), self.tables or (), self.pools or ())

    @cached_property
    def costs(self) -> Costs:
        """Costs of the GPUs of the pools."""
        return Costs.of(pool.cost for pool in self.pools)

    @cached_property
    def measured(self) -> tuple[ProfileTable, ...]:
        """The tables, and those of GPUs without MIG, on which a model does what it does on the whole GPU with MIG."""
        own = {(table.model, table.gpu) for table in self.tables}
        found = list(self.tables)
        for table in self.tables:
            for pool in self.pools:
                if pool.gpu.name == table.gpu and not pool.mig and (table.model, pool.kind.name) not in own:
                    points = tuple(point for point in table.points if point.size in pool.kind.sizes)
                    if points:
                        found.append(dataclasses.replace(table, gpu=pool.kind.name, points=points))
        return tuple(found)

    @cached_property
    def options(self) -> tuple[tuple[Option, ...], ...]:
        """Best triplets (size, batch, processes) of each service, one for each pool and instance size.

        ParvaGPU calls these the optimal triplets (its Algorithm 1).
        """
        found: dict[object, tuple[Option, ...]] = {}  # services often share model and SLOs
        keys = [(service.model, *service.slos.items()) for service in self.services]
        for key, service in zip(keys, self.services, strict=True):
            if key not in found:
                found[key] = tuple(self._best_options(service))
        return tuple(found[key] for key in keys)

    def _best_options(self, service: Service) -> Iterator[Option]:
        for pool, profile, points in self._fronts.get(service.model, ()):
            in_time = [point for point in points if self.rule.serves(point, service)]
            if in_time:
                yield Option(pool, profile, max(in_time, key=lambda point: point.throughput))

    @cached_property
    def _fronts(self) -> dict[str, list[tuple[int, Profile, tuple[Point, ...]]]]:
        """Return for each model the instances that can run it, with the pool, and what it can achieve there."""
        fronts: dict[str, list[tuple[int, Profile, tuple[Point, ...]]]] = {}
        for number, pool in enumerate(self.pools):
            for table in self.measured:
                if table.gpu == pool.kind.name:
                    for size in pool.kind.sizes:
                        profile = smallest_profile(pool.kind, size, table.memory_gb)
                        points = front(table, size, self.max_processes)
                        if points and profile is not None:
                            fronts.setdefault(table.model, []).append((number, profile, points))
        return fronts

    def unservable(self) -> tuple[int, ...]:
        """Return the indices of the services that no instance can serve. With one of them there is no deployment."""
        return tuple(index for index, options in enumerate(self.options) if not options)

    def best_latency(self, service: Service, name: str = "latency") -> tuple[float, Profile] | None:
        """Return the least latency that a service can have, and where.

        Parameters
        ----------
        service : Service
            One of the demand.
        name : str
            Which latency: ``latency``, ``ttft`` or ``itl``.

        Returns
        -------
        tuple of float and Profile, or None
            Seconds, and the instance; None if it can run nowhere, or was not measured.
        """
        reachable = [
            (seconds, profile)
            for _, profile, points in self._fronts.get(service.model, ())
            for point in points
            if (seconds := getattr(point, name)) is not None
        ]
        return min(reachable, key=lambda found: found[0], default=None)

    def with_headroom(self, share: float) -> Demand:
        """Return the demand with all rates higher by a share of them.

        Raises
        ------
        InputError
            If the share is not from 0 to 100.

        Examples
        --------
        >>> from mig_opt import load
        >>> [round(load("parvagpu-s1").with_headroom(0.2).services[0].rate, 3)]
        [22.8]
        """
        problems: list[Problem] = []
        checked_value(_HEADROOM, share, "headroom", problems)
        raise_any(problems)
        services = (dataclasses.replace(service, rate=service.rate * (1 + share)) for service in self.services)
        return self.replace(services=tuple(services))

    def replace(self, **changes: object) -> Demand:
        """Return a copy with some attributes changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # the constructor checks


def measured_points(
    demand: Demand, model: str, max_processes: int | None = None
) -> dict[tuple[int, Profile], list[Point]]:
    """Return the points of a model on instances with memory enough, by pool and instance, the smallest first."""
    found: dict[tuple[int, Profile], list[Point]] = {}
    for number, pool in enumerate(demand.pools):
        for table in demand.measured:
            if (table.model, table.gpu) == (model, pool.kind.name):
                for point in sorted(table.points, key=lambda point: point.size):
                    profile = smallest_profile(pool.kind, point.size, table.memory_gb)
                    if profile is not None and point.processes <= (max_processes or math.inf):
                        found.setdefault((number, profile), []).append(point)
    return found


def demand_problems(
    services: Sequence[Service | None], tables: Sequence[ProfileTable | None], pools: Sequence[Pool | None]
) -> Iterator[Problem]:
    """Yield everything that is wrong with a demand beyond its single parts.

    ``None`` stands for an entry that could not be read; it keeps the indices of the others right.
    """
    yield from repeated([service and service.name for service in services], "services", ".name")
    yield from repeated([table and (table.model, table.gpu) for table in tables], "tables", "")
    yield from pool_problems(pools)
    if not tables or not pools or any(not table or not (table.model and table.gpu) for table in tables):
        return
    if any(not pool or not pool.gpu or pool.mig is None for pool in pools):
        return
    kinds = {pool.kind.name for pool in pools if pool} | {pool.gpu.name for pool in pools if pool}
    known = dict.fromkeys(table.model for table in tables if table and table.gpu in kinds)
    where = " or ".join(sorted({pool.gpu.name for pool in pools if pool}))
    if not known:
        measured = ", ".join(sorted({table.gpu for table in tables if table}))
        yield Problem("tables", f"none is for {where}; they are for {measured}")
        return
    for index, service in enumerate(services):
        model = service and (service.name if service.model == "" else service.model)
        if model and model not in known:
            message = f"no profile table for {model!r} on {where}; {nearest(model, known)}"
            yield Problem(f"services[{index}].model", message)
            continue
        own = [table for table in tables if table and table.model == model and table.gpu in kinds]
        points = [point for table in own for point in table.points or () if point]
        for name in service.slos if service and model else ():
            if name != "latency" and all(getattr(point, name) is None for point in points):
                message = f"no point of {model!r} on {where} has the latency {name}; measure it, or leave this SLO out"
                yield Problem(f"services[{index}].slo_{name}", message)


def wrong_demand(demand: object) -> Iterator[Problem]:
    """Yield a problem unless ``demand`` is a Demand."""
    if not isinstance(demand, Demand):
        yield wrong_type("demand", demand, DEMAND_WANTED)


def repeated(keys: Sequence[object], path: str, suffix: str) -> Iterator[Problem]:
    """Yield a problem for each entry of the list ``path`` that has the key of an earlier one.

    None is no key, nor is what has a None in it, where a part could not be read.
    """
    first: dict[object, int] = {}
    for index, key in enumerate(keys):
        parts = key if isinstance(key, tuple) else (key,)
        if None not in parts and first.setdefault(key, index) != index:
            shown = " on ".join(map(str, parts))
            message = f"{shown!r} is that of {path}[{first[key]}] already; each needs its own"
            yield Problem(f"{path}[{index}]{suffix}", message)
