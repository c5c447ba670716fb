"""The PCIe-aware scheduler, and the rival of its paper that knows nothing of PCIe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mig_opt.arguments import wrong_number, wrong_type
from mig_opt.errors import InputError, Problem, nearest
from mig_opt.fleet.trace import Job
from mig_opt.heuristics.fleet.reconfiguring import ReconfiguringPolicy, View, wrong_threshold
from mig_opt.simulation.cluster import Cluster


class PcieAware(ReconfiguringPolicy):
    """Keeps jobs that need much PCIe bandwidth apart.

    A job is slower by ``max(1, sensitivity x demand x PCIe-bound jobs on its GPU / PCIe limit)``, itself counted
    (Eq. 2). It goes to the GPU where it is slowed down least; of equal ones to that with the fewest free compute
    slices, then memory slices, then the least index. Where it would be slower than the threshold it is skipped for now,
    unless it starves. How others are slowed down does not count. Queue, marks and reconfiguration are those of
    :class:`~mig_opt.heuristics.fleet.reconfiguring.ReconfiguringPolicy`. Decided here:

    * A job is never skipped if its GPU has no other PCIe-bound job, even if the threshold is passed: it would wait for
      nothing.
    * The paper does not print its thresholds; ``docs/pcie.md`` has what other values do.

    Parameters
    ----------
    delay_threshold : float, optional
        Largest slowdown with which a job is started, from 1 on. None: any.
    wait_threshold : float, optional
        Seconds; a job that has waited longer starts in spite of the delay threshold, and on a larger instance if there
        is none of its profile. None: none does.
    sensitivities : mapping of str to float, optional
        Sensitivity of jobs by name, as estimated by :func:`mig_opt.simulation.fit_sensitivity`; of others it is what
        the trace says, which is the truth.
    partition
        As of :class:`~mig_opt.heuristics.fleet.reconfiguring.ReconfiguringPolicy`.

    Raises
    ------
    InputError
        With every problem of the options.
    """

    def __init__(
        self,
        *,
        delay_threshold: float | None = 1.5,
        wait_threshold: float | None = 60.0,
        sensitivities: Mapping[str, float] | None = None,
        partition: str | Sequence[str] | None = None,
    ) -> None:
        problems = list(wrong_threshold("delay_threshold", delay_threshold, "a slowdown", 1.0))
        problems += _wrong_sensitivities(sensitivities)
        try:
            super().__init__(wait_threshold=wait_threshold, partition=partition)
        except InputError as error:
            problems += error.problems
        if problems:
            raise InputError(problems)
        self.delay_threshold = delay_threshold
        self.sensitivities = dict(sensitivities or {})

    def begin(self, cluster: Cluster) -> None:
        """Divide the GPUs."""
        if self.sensitivities:
            known = {job.name for job in cluster.trace.jobs}
            unknown = [name for name in self.sensitivities if name not in known]
            if unknown:
                message = "the trace has no job of that name; {}"
                raise InputError(
                    Problem(f"sensitivities[{name!r}]", message.format(nearest(name, known))) for name in unknown
                )
        super().begin(cluster)

    def factor(self, cluster: Cluster, job: Job) -> float | None:
        """Return sensitivity x demand / PCIe limit."""
        if job.pcie_gbps <= 0:
            return None
        return self.sensitivities.get(job.name, job.sensitivity) * job.pcie_gbps / cluster.trace.pcie_limit

    def order(self, view: View, free: int) -> int:
        """Return the slowdown, which rises with the number of others, then the room that is left."""
        gpu, used = view.state.geometry.gpu, view.state.occupancy
        room = (gpu.compute_slices - used.used_compute) * (gpu.memory_slices + 1) + gpu.memory_slices - used.used_memory
        return max(view.bound, free) * (gpu.compute_slices + 1) * (gpu.memory_slices + 1) + room


class PcieUnaware(ReconfiguringPolicy):
    """The first GPU with an idle instance, whatever the jobs there do: the baseline of the PCIe-aware paper.

    Of the baseline the paper says only that (section 5.1). Queue, marks and reconfiguration are the same as those of
    :class:`PcieAware`, so that the two differ in nothing but the choice of the GPU and the delay threshold.

    Parameters
    ----------
    wait_threshold, partition
        As of :class:`~mig_opt.heuristics.fleet.reconfiguring.ReconfiguringPolicy`.
    """

    def factor(self, cluster: Cluster, job: Job) -> float | None:
        """Return that no job is PCIe-bound."""
        return None

    def order(self, view: View, free: int) -> int:
        """Return the same for all."""
        return 0


def _wrong_sensitivities(values: object) -> Iterator[Problem]:
    if values is None:
        return
    if not isinstance(values, Mapping):
        yield wrong_type("sensitivities", values, "a mapping of names of jobs to their sensitivities")
        return
    for name, value in values.items():
        if not isinstance(name, str):
            yield Problem(
                "sensitivities", f"must be a mapping whose keys are names of jobs, one of them is {name!r:.60}"
            )
        yield from wrong_number(f"sensitivities[{name!r}]", value, "a finite number >= 0", at_least=0)
