"""Defragmentation in which jobs move to GPUs of other kinds, where the state says which profiles they may have there.

A search over the states of the fleet, those that the least weight of migrations leads to first, is exact if it ends
within its limit. Larger fleets begin with migrations to other kinds, and then each kind is planned apart.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import accumulate
from typing import Any, NamedTuple

from mig_opt.api.defragment.joined import KindsGoal, KindsPlan
from mig_opt.api.defragment.problem import DefragmentationGoal, Relocation, alike, least_costs, room_places
from mig_opt.fleet.migration_plan import MigrationPlan
from mig_opt.fleet.state import FleetState, HeldInstance, Migration, moved, profile_on
from mig_opt.gpu.geometry import NumberedPlace, geometry_of
from mig_opt.gpu.model import ProfileSet
from mig_opt.method.control import Control, Limits
from mig_opt.method.result import Status
from mig_opt.models.fleet.defragmentation import TargetColumn, TargetProblem, choose_targets

_MOST_WORK = 1_000_000
"""Most work of the search: migrations that are tried, times the GPUs of the fleet. A million takes some seconds."""
_ARRANGED_SHARE = 0.2
"""Share of the time in which it is found out whether any arrangement reaches the goal."""
_MOST_BEGINNINGS, _MOST_PLANS = 12, 60
"""Ways to begin with migrations to other kinds of which plans are made at a time, and plans that are made in all."""


class _Job(NamedTuple):
    """All that tells a job from others, wherever it is."""

    profiles: tuple[int | None, ...]  # by kind of GPU: the number of the profile that it may have there
    weight: int
    stays: bool


_Content = frozenset[tuple[int, int]]
"""Placements and jobs of a GPU, by their numbers."""
_Contents = tuple[_Content, ...]
_Path = tuple[Relocation, ...]


class CrossingSearch:
    """Search for migrations of least weight, from the state of a fleet without idle instances.

    Attributes
    ----------
    complete : bool
        True if no plan is better than that of :attr:`migrations`, or than the one that was known; without both there is
        none.
    """

    def __init__(self, state: FleetState, goal: KindsGoal) -> None:
        self.state, self.goal = state, goal
        kinds = tuple(dict.fromkeys(map(state.kind, range(state.gpus))))
        self._kind_of = [kinds.index(state.kind(gpu)) for gpu in range(state.gpus)]
        used = {held.profile for held in state.instances} | {*goal.room}
        used |= {profile for held in state.instances for profile in held.elsewhere.values()}
        plain = {profile.name for kind in kinds for profile in kind.profiles_of("double-memory")}
        self._profiles: ProfileSet = "double-memory" if used <= plain else "all"
        self._geometries = [geometry_of(kind, self._profiles) for kind in kinds]
        self._unit = math.lcm(*(geometry.unit for geometry in self._geometries))
        first = [self._kind_of.index(kind) for kind in range(len(kinds))]  # a GPU of each kind
        number = [{profile.name: at for at, profile in enumerate(own.profiles)} for own in self._geometries]
        self._goals = [
            DefragmentationGoal(geometry, tuple(known.get(name) for name in goal.room), tuple(goal.room.values()))
            for geometry, known in zip(self._geometries, number, strict=True)
        ]
        jobs: dict[_Job, int] = {}
        contents: list[set[tuple[int, int]]] = [set() for _ in range(state.gpus)]
        for held in state.instances:
            names = (profile_on(state, held, gpu) for gpu in first)
            own = tuple(known.get(name or "") for name, known in zip(names, number, strict=True))
            job = jobs.setdefault(_Job(own, held.weight, state.stays(held)), len(jobs))
            geometry = self._geometries[self._kind_of[held.gpu]]
            contents[held.gpu].add((geometry.index(held.profile, held.start), job))
        self._jobs = list(jobs)
        self._start: _Contents = tuple(map(frozenset, contents))
        nodes = state.nodes if goal.free == "nodes" else [""] * state.gpus
        self._labels = list(zip(self._kind_of, nodes, strict=True))
        self._alike = alike(self._labels)
        self._best: tuple[_Contents, _Path] | None = None
        self._best_cost = math.inf
        self._stay = [frozenset(one for one in own if self._jobs[one[1]].stays) for own in self._start]
        self._least = self._used(self._stay) if goal.free == "nodes" else 0
        self.complete = False

    @property
    def crosses(self) -> bool:
        """True if a job may move to another kind."""
        return any(not job.stays and sum(profile is not None for profile in job.profiles) > 1 for job in self._jobs)

    def refuted(self, limits: Limits) -> str:
        """Return why no arrangement of the instances reaches the goal, if that is proven; else note what it costs.

        In the program each instance, there or wanted, takes one of its profiles from what the layouts of the GPUs have.
        """
        before = list(accumulate((len(geometry.profiles) for geometry in self._geometries), initial=0))
        nothing = (0,) * before[-1]
        columns, sizes = list[TargetColumn](), list[int]()
        for (kind, stay), gpus in alike(zip(self._kind_of, map(_mask, self._stay), strict=True)).items():
            geometry = self._geometries[kind]
            for own, units in least_costs(geometry.gpu, self._profiles, stay).items():
                cost = int(any(own)) if self.goal.free else units * (self._unit // geometry.unit)
                counts = nothing[: before[kind]] + own + nothing[before[kind + 1] :]
                columns.append(TargetColumn(len(sizes), 0, counts, 0, 0, cost))
            sizes.append(len(gpus))
        for profiles, count in self._takers().items():
            for kind, profile in enumerate(profiles):
                if profile is not None:
                    counts = tuple(-(at == before[kind] + profile) for at in range(before[-1]))
                    columns.append(TargetColumn(len(sizes), 0, counts, 0, 0, 0))
            sizes.append(count)
        low = self.goal.fragmentation
        most = None if low is None else math.floor((low + 1e-9) * self._unit * self.state.gpus)
        problem = TargetProblem(tuple(sizes), nothing, most_cost=most)
        found = choose_targets(columns, problem, limits, "cost", share=_ARRANGED_SHARE)
        if self.goal.free != "nodes":
            self._least = max(self._least, found.bound or 0)
        what = "has that room" if self.goal.room else "has as little fragmentation"
        none = found.status is Status.INFEASIBLE
        return f"no arrangement of these instances on these GPUs {what}" if none else ""

    def _takers(self) -> Counter[tuple[int | None, ...]]:
        """Return the instances, there or wanted, by the profiles that they may have on each kind of GPU."""
        found = Counter[tuple[int | None, ...]]()
        for kind, own in zip(self._kind_of, self._start, strict=True):
            for job in (self._jobs[number] for _, number in own):
                there = (None if job.stays and at != kind else profile for at, profile in enumerate(job.profiles))
                found[tuple(there)] += 1
        for number, count in enumerate(self.goal.room.values()):
            found[tuple(goal.profiles[number] for goal in self._goals)] += count
        return found

    def run(self, limits: Limits, known: MigrationPlan | None) -> None:
        """Search until nothing is better, or the limits of time or work are reached.

        With a plan that is ``known`` and reaches the goal, only those of less weight are looked for.
        """
        most = self.goal.most_migrations
        below = math.inf if known is None or not self._reaches(known) else known.weight
        weights = {job.weight for job in self._jobs}
        # Of ways to the same contents one of more weight counts only if it leaves more migrations.
        counted = most is not None and len(weights) > 1
        heap: list[tuple[int, int, int, _Contents, _Path]] = [(0, 0, 0, self._start, ())]
        reached, fewest, work = dict[object, float](), dict[object, int](), 0
        while heap:
            weight, steps, _, contents, path = heappop(heap)
            if steps >= fewest.get(key := self._key(contents), math.inf):
                continue
            fewest[key] = steps * counted
            if self._settles(contents, path):
                break
            more = steps != most and weight + min(weights, default=0) < below
            for source, target, job in self._moves(contents) if more else ():
                work += len(contents)
                if work > _MOST_WORK or limits.expired:
                    return
                after = self._after(contents, source, target, job)
                key, total = self._key(after), weight + self._jobs[job].weight
                way = (steps + 1) * counted, key
                if total < min(below, reached.get(way, math.inf)) and steps + 1 < fewest.get(key, math.inf):
                    reached[way] = total
                    heappush(heap, (total, steps + 1, work, after, (*path, Relocation(source, target))))
        self.complete = True
        if self._best_cost < below == math.inf:
            self._least = int(self._best_cost)

    def _settles(self, contents: _Contents, path: _Path) -> bool:
        """Keep a plan, and what it leads to, if it is the best so far; return True if none can be better."""
        goal, cost = self.goal, self._used(contents) if self.goal.free else self._cost(contents)
        if goal.room or goal.fragmentation is not None:
            most = (goal.fragmentation or 0.0) + 1e-9
            enough = self._room_in(contents) is not None if goal.room else cost <= most * self._unit * self.state.gpus
            self._best = (contents, path) if enough else None
            return enough
        if cost < self._best_cost:
            self._best, self._best_cost = (contents, path), cost
        return self._best_cost <= self._least

    def _reaches(self, known: MigrationPlan) -> bool:
        """Return True if no plan can be better than one that is known, but for the weight of its migrations."""
        goal = self.goal
        if goal.room or goal.fragmentation is not None:
            return True
        if goal.free:
            units = len(set(self.state.nodes)) if goal.free == "nodes" else self.state.gpus
            return units - len(known.free) <= self._least
        return known.fragmentation <= self.bound + 1e-9

    @property
    def bound(self) -> float:
        """Least mean fragmentation, or number of GPUs or nodes in use, that is known for every plan."""
        return self._least if self.goal.free else self._least / self._unit / self.state.gpus

    @property
    def migrations(self) -> list[Migration] | None:
        """The best plan that was found."""
        if self._best is None:
            return None
        there = {(held.gpu, held.profile, held.start): held for held in self.state.instances}
        found = []
        for (gpu, place), (to_gpu, to_place) in self._best[1]:
            old = self._geometries[self._kind_of[gpu]].placements[place]
            new = self._geometries[self._kind_of[to_gpu]].placements[to_place]
            held = there.pop((gpu, old.profile.name, old.start))
            found.append(_migration(held, to_gpu, new.profile.name, new.start))
            there[to_gpu, new.profile.name, new.start] = moved(self.state, held, found[-1])
        return found

    @property
    def room(self) -> list[tuple[int, str, int]]:
        """Places of the room that is wanted, after the best plan."""
        return (self._best and self._room_in(self._best[0])) or []

    def _moves(self, contents: _Contents) -> Iterator[tuple[NumberedPlace, NumberedPlace, int]]:
        """Yield the possible migrations and their jobs; of GPUs that are alike one stands for all."""
        groups = alike(zip(contents, self._labels, strict=True)).values()
        for gpus in groups:
            targets = {others[0] for others in groups} | set(gpus[:2])
            for place, job in contents[gpus[0]]:
                for other in sorted(targets) if not self._jobs[job].stays else ():
                    kind = self._kind_of[other]
                    profile = self._jobs[job].profiles[kind]
                    if profile is not None:
                        for target in self._geometries[kind].usage(_mask(contents[other])).available[profile]:
                            yield (gpus[0], place), (other, target), job

    @staticmethod
    def _after(contents: _Contents, source: NumberedPlace, target: NumberedPlace, job: int) -> _Contents:
        after = list(contents)
        after[source[0]] -= {(source[1], job)}
        after[target[0]] |= {(target[1], job)}
        return tuple(after)

    def _key(self, contents: _Contents) -> tuple[Any, ...]:
        """Return what is the same where GPUs that are alike change places."""
        return tuple(frozenset(Counter(contents[gpu] for gpu in gpus).items()) for gpus in self._alike.values())

    def _cost(self, contents: _Contents) -> int:
        there = ((self._geometries[kind], own) for kind, own in zip(self._kind_of, contents, strict=True))
        return sum(geometry.usage(_mask(own)).cost * (self._unit // geometry.unit) for geometry, own in there)

    def _used(self, contents: Sequence[_Content]) -> int:
        used = [gpu for gpu, own in enumerate(contents) if own]
        return len({self.state.nodes[gpu] for gpu in used}) if self.goal.free == "nodes" else len(used)

    def _room_in(self, contents: _Contents) -> list[tuple[int, str, int]] | None:
        """Return places of the wanted instances, where all fit at once; None if they do not."""
        return room_places([self._goals[kind] for kind in self._kind_of], list(map(_mask, contents)))


def _mask(content: _Content) -> int:
    return sum(1 << place for place, _ in content)


def _migration(held: HeldInstance, gpu: int, profile: str, start: int) -> Migration:
    new = "" if profile == held.profile else profile
    return Migration(held.gpu, held.profile, held.start, gpu, start, held.name, held.owner, new)


def with_crossings(
    search: CrossingSearch,
    control: Control[MigrationPlan],
    offer: Callable[[Sequence[Migration], Sequence[tuple[int, str, int]]], object],
    apart: Callable[[Sequence[Migration]], object],
) -> KindsPlan:
    """Look for plans that are better than that of kinds apart, which the control has; return what is proven.

    ``offer`` gives the control a plan, and ``apart`` one that begins with some migrations and goes on kind by kind.
    """
    search.run(control, control.plan)
    if search.migrations is not None:
        offer(search.migrations, search.room)
    if not search.complete:
        _begin(search.state, search.goal, control, apart)
    none = search.complete and control.plan is None
    reason = "no arrangement of these instances reaches the goal, and can be reached by migrations" if none else ""
    return KindsPlan((), search.complete, reason, search.bound)


def _begin(
    state: FleetState, goal: KindsGoal, control: Control[MigrationPlan], apart: Callable[[Sequence[Migration]], object]
) -> None:
    """Begin plans with more and more migrations to other kinds, as long as that helps, or there is no plan yet."""
    begun: list[Migration] = []
    plans = 0
    most = math.inf if goal.most_migrations is None else goal.most_migrations
    for _ in range(state.gpus):
        best: list[Migration] = []
        for more in _beginnings(state, begun, goal):
            if control.expired or len(begun) + len(more) > most or plans == _MOST_PLANS:
                continue
            plans += 1
            before = control.plan
            apart([*begun, *more])
            if control.plan is not before or not (best or before):
                best = more
            if control.plan is None:  # whatever the others do, more have to leave
                break
        begun += best
        if not best:
            return


def _beginnings(state: FleetState, begun: Sequence[Migration], goal: KindsGoal) -> Iterator[list[Migration]]:
    """Yield ways to go on with migrations to other kinds: all that may leave a GPU or a node, then single instances.

    What has migrated stays. GPUs that have the profiles that are wanted come first, then those that are empty
    afterwards, then those with the fewest instances.
    """
    state, moved = state.after(begun), {(step.to_gpu, step.new_profile, step.to_start) for step in begun}
    movable = [
        held
        for held in state.instances
        if held.elsewhere and not state.stays(held) and (held.gpu, held.profile, held.start) not in moved
    ]
    unit: Sequence[object] = state.nodes if goal.free == "nodes" else range(state.gpus)
    groups: dict[object, list[HeldInstance]] = defaultdict(list)
    for held in movable:
        groups[unit[held.gpu]].append(held)
    there = Counter(unit[held.gpu] for held in state.instances)

    def rank(at: object) -> tuple[bool, int, int]:
        names = {profile.name for profile in state.kind(groups[at][0].gpu).profiles}
        return names.isdisjoint(goal.room), there[at] - len(groups[at]), there[at]

    several = [groups[at] for at in sorted(groups, key=rank)]
    masks = [0] * state.gpus
    for held in state.instances:
        masks[held.gpu] |= 1 << geometry_of(state.kind(held.gpu), "all").index(held.profile, held.start)
    told = set[object]()
    for group in [*several, *([held] for held in movable)]:
        look = tuple(sorted((state.kind(held.gpu).name, held.profile, held.start) for held in group))
        if len(told) == _MOST_BEGINNINGS:
            return
        if look not in told and (found := _crossings(state, group, [*masks])):
            told.add(look)
            yield found


def _crossings(state: FleetState, group: Sequence[HeldInstance], masks: list[int]) -> list[Migration]:
    """Return migrations of instances to the free places of other kinds that cost the least fragmentation."""
    found = []
    for held in group:
        options = []
        for gpu, mask in enumerate(masks):
            profile = profile_on(state, held, gpu) if state.kind(gpu) != state.kind(held.gpu) else None
            geometry = geometry_of(state.kind(gpu), "all")
            number = None if profile is None else geometry.profile_index(geometry.gpu.profile(profile))
            for place in () if number is None else geometry.usage(mask).available[number]:
                grown = geometry.usage(mask | 1 << place).cost - geometry.usage(mask).cost
                options.append((grown / geometry.unit, mask == 0, gpu, place))
        if options:
            _, _, gpu, place = min(options)
            masks[gpu] |= 1 << place
            placement = geometry_of(state.kind(gpu), "all").placements[place]
            found.append(_migration(held, gpu, placement.profile.name, placement.start))
    return found
