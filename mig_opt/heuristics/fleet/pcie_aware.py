"""The PCIe-aware scheduler, and the baseline of its paper, which differs only in the choice of the GPU.

From *PCIe Bandwidth-Aware Scheduling for Multi-Instance GPUs*, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from mig_opt.errors import Problem, nearest, raise_any
from mig_opt.fleet.job import Job
from mig_opt.heuristics.fleet.base import free_slices
from mig_opt.heuristics.fleet.reconfiguration import GpuView, ReconfiguringPolicy
from mig_opt.rules.vocabulary import Number
from mig_opt.simulation.fleet.cluster import Cluster


@dataclass(kw_only=True, eq=False)
class PcieAware(ReconfiguringPolicy):
    """Keeps jobs that need much PCIe bandwidth apart.

    A job is slower by ``max(1, sensitivity x demand x PCIe-bound jobs on its GPU / PCIe limit)``, itself counted
    (Eq. 2). It goes to the GPU where it is slowed down least; of equal ones to that with the fewest free compute
    slices, then memory slices, then the least index. Where it would be slower than the threshold it is skipped for now,
    unless it starves. How others are slowed down does not count. Queue, marks and reconfiguration are those of
    :class:`~mig_opt.heuristics.fleet.reconfiguration.ReconfiguringPolicy`; ``docs/explanation/pcie-aware.md`` has what
    was decided where the paper is open, and the effect of the thresholds.

    Parameters
    ----------
    delay_threshold : float, optional
        Largest slowdown with which a job is started, from 1 on. None: any.
    wait_threshold : float, optional
        Seconds; a job that has waited longer starts in spite of the delay threshold, and on a larger instance if there
        is none of its profile. None: none does.
    sensitivities : mapping of str to float, optional
        Sensitivity of jobs by name, as estimated by :func:`mig_opt.simulation.fit_sensitivity`; of others the
        sensitivity in the trace is used, which is the truth.
    partition
        As of :class:`~mig_opt.heuristics.fleet.reconfiguration.ReconfiguringPolicy`.
    """

    delay_threshold: (
        Annotated[float, Number(at_least=1, words="a slowdown from 1 on, or None for no threshold")] | None
    ) = 1.5
    sensitivities: Mapping[str, Annotated[float, Number(at_least=0)]] | None = None

    def begin(self, cluster: Cluster) -> None:
        """Partition the GPUs."""
        trace = getattr(self, "whole_trace", cluster.trace)  # some jobs may be for other kinds of GPUs only
        known = dict.fromkeys(job.name for job in trace.jobs)
        raise_any(
            Problem(f"sensitivities.{name}", f"the trace has no job of that name; {nearest(str(name), known)}")
            for name in self.sensitivities or ()
            if name not in known
        )
        super().begin(cluster)

    def factor(self, cluster: Cluster, job: Job) -> float | None:
        """Return sensitivity x demand / PCIe limit."""
        if job.pcie_gbps <= 0:
            return None
        sensitivity = (self.sensitivities or {}).get(job.name, job.sensitivity)
        return sensitivity * job.pcie_gbps / cluster.trace.pcie_limit

    def allowed(self, slowdown: float) -> bool:
        """Return True if the slowdown does not pass the delay threshold."""
        return self.delay_threshold is None or slowdown <= self.delay_threshold

    def order(self, view: GpuView, unaffected: int) -> int:
        """Return the slowdown, which rises with the number of others, then the slices that are left."""
        gpu = view.state.geometry.gpu
        scale = (gpu.compute_slices + 1) * (gpu.memory_slices + 1)
        return max(view.bound, unaffected) * scale + free_slices(view.state)


class PcieUnaware(ReconfiguringPolicy):
    """The first GPU with an idle instance, whatever the jobs there do: the baseline of the PCIe-aware paper.

    Of the baseline the paper says only that (section 5.1). Queue, marks and reconfiguration are the same as those of
    :class:`PcieAware`, so that the two differ in nothing but the choice of the GPU and the delay threshold. Its
    options are those of :class:`~mig_opt.heuristics.fleet.reconfiguration.ReconfiguringPolicy`.
    """
