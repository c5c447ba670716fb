"""The paper's migration rules on a fleet in which nothing else happens."""

from __future__ import annotations

from typing import Any

from mig_opt import FleetState, Migration
from mig_opt.online.geometry import geometry_of
from mig_opt.online.ranking import Key, Ranking
from mig_opt.online.schedulers.fragmentation import FragmentationAware
from mig_opt.online.states import GpuState, States


class StandingFleet:
    """What the policy asks of a cluster, where jobs never end and migrations take no time."""

    def __init__(self, state: FleetState) -> None:
        self.geometry = geometry_of(state.gpu)
        self.trace: Any = state
        self.migrations: list[Migration] = []
        self._known = States(self.geometry)
        places = [(held.gpu, self.geometry.index(held.profile, held.start)) for held in state.instances]
        self._places = dict(enumerate(places))
        masks = [self.geometry.mask(place for gpu, place in places if gpu == index) for index in range(state.gpus)]
        self.states = [self._known.get(mask, 0) for mask in masks]
        self._rankings: list[Ranking] = []

    def ranking(self, key: Key) -> Ranking:
        self._rankings.append(Ranking(self.states, key))
        return self._rankings[-1]

    def job_at(self, gpu: int, placement: int) -> int | None:
        return next((job for job, place in self._places.items() if place == (gpu, placement)), None)

    def movable(self, job: int) -> bool:
        return True

    def migrate(self, job: int, gpu: int, placement: int) -> None:
        old, place = self._places[job]
        self._places[job] = (gpu, placement)
        self._set(old, self.states[old].busy & ~(1 << place))
        self._set(gpu, self.states[gpu].busy | 1 << placement)
        before, after = self.geometry.placements[place], self.geometry.placements[placement]
        self.migrations.append(Migration(old, before.profile.name, before.start, gpu, after.start))

    def _set(self, gpu: int, busy: int) -> None:
        self.states[gpu] = self._known.get(busy, 0)
        for ranking in self._rankings:
            ranking.changed.add(gpu)

    def state(self, gpu: int) -> GpuState:
        return self.states[gpu]


def greedily(state: FleetState) -> list[Migration]:
    """The migrations of the fragmentation-aware scheduler, as if a job had just departed from each GPU in turn."""
    cluster: Any = StandingFleet(state)
    policy = FragmentationAware()
    policy.begin(cluster)
    for gpu in range(state.gpus):
        policy.finished(cluster, -1, gpu, 0)
    migrations: list[Migration] = cluster.migrations
    return migrations
