"""The migration rules of the fragmentation-aware scheduler on a fleet in which nothing else happens."""

from __future__ import annotations

from typing import NamedTuple, cast

from mig_opt.arguments import wrong_type
from mig_opt.defragmentation.fleet import Fleet
from mig_opt.defragmentation.ordering import Move
from mig_opt.errors import InputError
from mig_opt.fleet.state import FleetState, Migration
from mig_opt.gpu.geometry import members
from mig_opt.gpu.model import GpuModel
from mig_opt.simulation.cluster import Cluster
from mig_opt.simulation.instances import GpuStates
from mig_opt.simulation.registry import get_policy

_NO_JOB = -1


def greedy_migrations(state: FleetState, threshold: float = 0.4) -> tuple[Migration, ...]:
    """Return what the fragmentation-aware scheduler migrates if a job has just departed from each GPU, one by one.

    The rules are those of :class:`~mig_opt.heuristics.fleet.fragmentation_aware.FragmentationAware` (the paper, section
    IV-D), GPU by GPU: within a busy one single migrations that lower its fragmentation most, to a lazy one jobs of busy
    ones with more load.

    Parameters
    ----------
    state : FleetState
        What there is; no instance is pinned.
    threshold : float
        Share of the compute slices from which on a GPU is busy.

    Raises
    ------
    InputError
        If an instance is pinned or an argument is wrong.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> from mig_opt.fleet.state import HeldInstance
    >>> held = HeldInstance(0, "2g.10gb", 2), HeldInstance(0, "1g.5gb", 0), HeldInstance(0, "1g.5gb", 6)
    >>> [str(migration) for migration in greedy_migrations(FleetState(get_gpu("A100"), 1, held))]
    ['1g.5gb@6 of GPU 0 to 1 of GPU 0']
    """
    if not isinstance(state, FleetState) or any(held.pinned for held in state.instances):
        raise InputError([wrong_type("state", state, "a FleetState without pinned instances")])
    fleet = Fleet.of(state)
    return fleet.migrations(state, greedy_moves(fleet, threshold))


def greedy_moves(fleet: Fleet, threshold: float = 0.4) -> list[Move]:
    """Return what :func:`greedy_migrations` does, in numbers."""
    standing = _StandingFleet(fleet)
    # The policy asks no more of its cluster than this has.
    cluster = cast(Cluster, standing)
    policy = get_policy("fragmentation-aware").load(threshold=threshold)
    policy.begin(cluster)
    for gpu in range(len(fleet.masks)):
        policy.finished(cluster, _NO_JOB, gpu, 0)
    return standing.moves


class _Kind(NamedTuple):
    """What the policy asks of a trace."""

    gpu: GpuModel


class _StandingFleet(GpuStates):
    """A cluster where jobs never end, and migrations take no time."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(fleet.geometry, fleet.masks)
        self.trace = _Kind(fleet.geometry.gpu)
        self.moves: list[Move] = []
        self._spots = [(gpu, place) for gpu, mask in enumerate(fleet.masks) for place in members(mask)]
        self._jobs = {spot: job for job, spot in enumerate(self._spots)}

    def job_at(self, gpu: int, placement: int) -> int | None:
        """Return the job on an instance."""
        return self._jobs.get((gpu, placement))

    def movable(self, job: int) -> bool:
        """Return True for every job."""
        return 0 <= job < len(self._spots)

    def migrate(self, job: int, gpu: int, placement: int) -> None:
        """Move a job."""
        source, target = self._spots[job], (gpu, placement)
        self.moves.append(Move(source, target))
        del self._jobs[source]
        self._spots[job] = target
        self._jobs[target] = job
        self.become(source[0], self.states[source[0]].busy & ~(1 << source[1]), 0)
        self.become(gpu, self.states[gpu].busy | 1 << placement, 0)
