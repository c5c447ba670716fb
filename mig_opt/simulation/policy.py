"""What a scheduler is: it is told what happens, and acts through the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mig_opt.simulation.cluster import Cluster


class Policy(Protocol):
    """A scheduler. Jobs are indices in ``cluster.trace.jobs``, placements those of ``cluster.geometry.placements``.

    It knows of a job what it reads in the trace; one that models a scheduler with less knowledge must not look. All
    that it remembers belongs to one simulation and is made in :meth:`begin`.
    """

    def begin(self, cluster: Cluster) -> None:
        """Start afresh; nothing has arrived. Instances may be created already."""

    def arrived(self, cluster: Cluster, job: int) -> None:
        """Hear that a job waits."""

    def finished(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Hear that a job is done; its instance is idle."""

    def failed(self, cluster: Cluster, job: int, gpu: int, placement: int, needed_gb: float) -> None:
        """Hear that a job ran out of memory when it needed so much; it waits again, its instance is idle."""

    def gave_up(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Hear that a job ran out of memory too often and is out of the game; its instance is idle."""

    def woken(self, cluster: Cluster, tag: int) -> None:
        """Hear that a time has come for which the policy asked by :meth:`Cluster.wake`."""
