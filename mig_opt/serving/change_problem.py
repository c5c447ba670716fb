"""Decisions of a change between deployments: the order of its moves.

Throughput and time are whole numbers here, so that every method compares them alike.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.devices import Device
from mig_opt.gpu.model import OperationCosts, Placement, Profile
from mig_opt.rules.decimals import as_fraction, common_divisor
from mig_opt.serving.change_plan import ENOUGH, ChangeStep, StepKind, needs_during, throughputs
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, Segment

_LARGEST = 2**46
"""Need of a service in units: rounding of 100,000 segments is below the tolerance, sums of 10,000 are below 64 bits."""
_LONGEST = 2**28
"""Ticks that all moves together may last, a number at which CP-SAT can be relied on."""


@dataclass(frozen=True, slots=True)
class Move:
    """A step without its time."""

    kind: StepKind  # ``destroy``, ``switch`` or ``create``
    gpu: int  # index of the GPU
    placement: Placement  # where on it
    # the segments that end and begin
    ends: Segment | None
    begins: Segment | None
    seconds: float  # how long the driver takes
    ticks: int  # the same, rounded up
    after: tuple[int, ...]  # the moves, by index, that have to free memory slices first

    @property
    def delay(self) -> int:
        """Ticks from its begin to the moment at which segments end or begin."""
        return self.ticks if self.kind == "create" else 0


@dataclass(frozen=True, slots=True)
class Need:
    """A service that a change can interrupt."""

    least: int  # units of throughput that it needs
    # The units that a move takes away, and those that it brings, by index of the move. A switch within the service is
    # in both.
    ending: Mapping[int, int]
    beginning: Mapping[int, int]
    kept: int  # units that stay all the time


@dataclass(frozen=True, slots=True)
class Limit:
    """Instances of a profile on a GPU that their footprints do not limit."""

    creates: tuple[int, ...]  # the moves, by index
    destroys: tuple[int, ...]
    free: int  # how many can be created before one is destroyed


@dataclass(frozen=True, slots=True)
class Timetable:
    """Moves in the order in which segments end and begin, with the ticks at which they begin."""

    moves: tuple[tuple[int, int], ...]  # index of the move, and the tick at which it begins
    interruptions: int  # how many of them interrupt a segment
    ticks: int  # the tick at which the last one ends

    @property
    def cost(self) -> tuple[int, int]:
        """Interruptions come before time."""
        return self.interruptions, self.ticks


@dataclass(frozen=True)
class ChangeProblem:
    """A change from one legal deployment to another."""

    gpus: tuple[str, ...]  # the kind of each GPU of both fleets
    kept: tuple[Segment, ...]  # the segments that stay
    moves: tuple[Move, ...]  # what has to happen
    # the services that can lack throughput on the way; all others never do, in whatever order
    needs: Mapping[str, Need]
    tick: Fraction  # seconds per tick
    exact: bool  # whether all moves take whole ticks
    limits: tuple[Limit, ...] = ()  # those that can be reached on the way
    devices: tuple[Device, ...] = ()  # of the first GPUs

    @classmethod
    def of(
        cls, running: Deployment, deployment: Deployment, demand: Demand | None, costs: Mapping[str, OperationCosts]
    ) -> ChangeProblem:
        """Return what there is to decide; the GPUs of the two have the same numbers."""
        gpus = tuple(get_gpu(name).name for name in max(running.gpus, deployment.gpus, key=len))
        old, new = ({one.place: one for one in segments} for segments in (running.segments, deployment.segments))
        same = {place for place, segment in new.items() if place in old and old[place].identity == segment.identity}
        drafts: list[tuple[StepKind, int, Placement, Segment | None, Segment | None, float]] = []
        destroyed: dict[int, list[int]] = defaultdict(list)
        for gpu, profile, start in sorted({*old, *new} - same):
            ends, begins = old.get((gpu, profile, start)), new.get((gpu, profile, start))
            kind: StepKind = "switch" if ends and begins else "destroy" if ends else "create"
            placement = get_gpu(gpus[gpu]).placement(profile, start)
            seconds = 0.0 if kind == "switch" else costs[gpus[gpu]].of(kind, placement.profile)
            if kind == "destroy":
                destroyed[gpu].append(len(drafts))
            drafts.append((kind, gpu, placement, ends, begins, seconds))
        tick, exact = _tick([draft[-1] for draft in drafts])
        moves = []
        for draft in drafts:
            kind, gpu, placement, *_, seconds = draft
            rivals = destroyed[gpu] if kind == "create" else ()
            after = tuple(other for other in rivals if drafts[other][2].excludes(placement))
            moves.append(Move(*draft, math.ceil(as_fraction(seconds) / tick), after))
        kept = tuple(segment for place, segment in new.items() if place in same)
        needs = _needs(kept, moves, needs_during(running, deployment, demand))
        limits = tuple(_limits(running.segments, moves))
        return cls(gpus, kept, tuple(moves), needs, tick, exact, limits, running.devices or deployment.devices)

    @cached_property
    def by_gpu(self) -> dict[int, tuple[int, ...]]:
        """The moves of each GPU that has some."""
        found: dict[int, tuple[int, ...]] = {}
        for index, move in enumerate(self.moves):
            found[move.gpu] = (*found.get(move.gpu, ()), index)
        return found

    def least_ticks(self, gpus: Iterable[int]) -> int:
        """Return the ticks that no plan can be shorter than, as far as these GPUs go: the driver does one at a time."""
        return max((sum(self.moves[move].ticks for move in self.by_gpu[gpu]) for gpu in gpus), default=0)

    def timetable(self, order: Sequence[int]) -> Timetable:
        """Return the plan in which segments end and begin in this order, and each move begins as early as it may.

        Moves of services that cannot lack throughput only wait for what is before them on their GPU, and switches not
        even for that.
        """
        free: dict[int, int] = defaultdict(int)
        latest = 0
        begins: list[tuple[int, int]] = []
        for index in order:
            move = self.moves[index]
            begin = 0 if move.kind == "switch" else free[move.gpu]
            if any(segment is not None and segment.service in self.needs for segment in (move.ends, move.begins)):
                begin = max(begin, latest - move.delay)
                latest = begin + move.delay
            if move.kind != "switch":
                free[move.gpu] = begin + move.ticks
            begins.append((index, begin))
        return self.timed(begins)

    def timed(self, begins: Iterable[tuple[int, int]]) -> Timetable:
        """Return the plan in which moves, by index, begin at these ticks; those of one moment stay in this order."""
        order = sorted(begins, key=lambda entry: entry[1] + self.moves[entry[0]].delay)
        ends = (begin + self.moves[index].ticks for index, begin in order)
        return Timetable(tuple(order), len(self.interrupted(index for index, _ in order)), max(ends, default=0))

    def interrupted(self, order: Iterable[int]) -> tuple[int, ...]:
        """Return the moves that interrupt a segment if they happen in this order."""
        live = {service: need.kept + sum(need.ending.values()) for service, need in self.needs.items()}
        found = []
        for index in order:
            move = self.moves[index]
            if move.ends is not None and move.ends.service in live:
                need = self.needs[move.ends.service]
                live[move.ends.service] -= need.ending[index]
                if live[move.ends.service] < need.least:
                    found.append(index)
            if move.begins is not None and move.begins.service in live:
                live[move.begins.service] += self.needs[move.begins.service].beginning[index]
        return tuple(found)

    def step(self, index: int, begin: int) -> ChangeStep:
        """Return a move as a step that begins at that tick."""
        move = self.moves[index]
        seconds = as_fraction(move.seconds)
        # Where ticks are rounded, the moment at which segments change is the one that the order counts on.
        last = (begin + move.ticks) * self.tick if move.kind == "create" else begin * self.tick + seconds
        profile, start = move.placement.profile.name, move.placement.start
        times = float(last - seconds), float(last)
        return ChangeStep(move.kind, move.gpu, profile, start, *times, move.ends, move.begins)

    def inevitable(self, gpus: Iterable[int]) -> int:
        """Return how many moves of these GPUs interrupt their segment in every order.

        At best all that can be there when a segment ends is there: what is still to end, and what can have begun, that
        is, what does not wait for this very move.
        """
        count = 0
        for index in (index for gpu in gpus for index in self.by_gpu[gpu]):
            ends = self.moves[index].ends
            need = None if ends is None else self.needs.get(ends.service)
            if need is None:
                continue
            others = sum(units for other, units in need.ending.items() if other != index)
            begun = sum(
                units
                for other, units in need.beginning.items()
                if other != index and index not in self.moves[other].after
            )
            count += need.kept + others + begun < need.least
        return count

    @cached_property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """The GPUs with moves, in groups that have no service in common that can lack throughput."""
        import networkx as nx

        together: nx.Graph[int] = nx.Graph()
        together.add_nodes_from(self.by_gpu)
        for need in self.needs.values():
            nx.add_path(together, [self.moves[index].gpu for index in (*need.ending, *need.beginning)])
        order = {gpu: rank for rank, gpu in enumerate(self.by_gpu)}
        return tuple(tuple(sorted(group, key=order.__getitem__)) for group in nx.connected_components(together))


def _limits(running: Iterable[Segment], moves: Sequence[Move]) -> Iterator[Limit]:
    there = Counter((segment.gpu, segment.profile) for segment in running)
    alike: dict[tuple[int, Profile], dict[str, tuple[int, ...]]] = defaultdict(lambda: defaultdict(tuple))
    for index, move in enumerate(moves):
        alike[move.gpu, move.placement.profile][move.kind] += (index,)
    for (gpu, profile), own in alike.items():
        free = profile.max_count - there[gpu, profile.name]
        if profile.max_count > 1 and free < len(own["create"]):
            yield Limit(own["create"], own["destroy"], free)


def _tick(seconds: Sequence[float]) -> tuple[Fraction, bool]:
    """Return the longest tick in which all times are whole, and True; or one that is fine enough, and False."""
    times = [as_fraction(time) for time in seconds if time > 0]
    if not times:
        return Fraction(1), True
    tick = common_divisor(times)
    total = sum(times, start=Fraction(0))
    return (tick, True) if total / tick <= _LONGEST else (total / _LONGEST, False)


def _needs(kept: Iterable[Segment], moves: Sequence[Move], needs: Mapping[str, float]) -> dict[str, Need]:
    staying = throughputs(kept)
    ending: dict[str, dict[int, float]] = defaultdict(dict)
    beginning: dict[str, dict[int, float]] = defaultdict(dict)
    for index, move in enumerate(moves):
        if move.ends is not None:
            ending[move.ends.service][index] = move.ends.throughput
        if move.begins is not None:
            beginning[move.begins.service][index] = move.begins.throughput
    found = {}
    for service, least in needs.items():
        there = staying.get(service, 0.0)
        if there >= least * ENOUGH:
            continue

        def units(throughput: float, least: float = least) -> int:
            # More than is needed is as good as enough.
            return round(Fraction(min(throughput, least)) / Fraction(least) * _LARGEST)

        found[service] = Need(
            math.ceil(Fraction(ENOUGH) * _LARGEST),
            {index: units(throughput) for index, throughput in ending[service].items()},
            {index: units(throughput) for index, throughput in beginning[service].items()},
            units(there),
        )
    return found
