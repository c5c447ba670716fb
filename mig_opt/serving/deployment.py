"""Deployments: segments placed on GPUs, with their cost and what they leave unused."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from mig_opt.errors import Problem, raise_any
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.devices import Device, device_problems, entry_of
from mig_opt.gpu.model import GpuModel, Location, Placement
from mig_opt.method.report import Facts
from mig_opt.method.result import Result, Status
from mig_opt.method.shown import Shown
from mig_opt.rules import Checked, wrong_type
from mig_opt.rules.vocabulary import MOST_GPUS, Index, NullIs, Wanted
from mig_opt.serving.demand import Demand, Option
from mig_opt.texts import plural

_GOALS = {
    "cost": "least cost",
    "gpus": "fewest GPUs",
    "compute slices": "fewest compute slices",
    "changes": "fewest changes",
}

Unknown = Annotated[float, NullIs(0.0)]
"""A figure that is 0 where it is not known."""


@dataclass(frozen=True, slots=True)
class Segment:
    """An instance that serves a service.

    Attributes
    ----------
    service : str
        Name of the service.
    gpu : int
        Index of the GPU, from 0.
    profile : str
        Profile name of the instance.
    start : int
        Start slice of the instance.
    batch : int
        Requests that each process answers together.
    processes : int
        Processes that share the instance.
    throughput : float
        Requests per second of all processes together; 0 if that is not known.
    latency : float
        Seconds from the begin of a batch to its end; 0 if that is not known.
    """

    service: str
    gpu: Index
    profile: str
    start: int
    batch: int
    processes: int
    throughput: Unknown = 0.0
    latency: Unknown = 0.0

    @property
    def place(self) -> Location:
        """GPU, profile name and start slice."""
        return self.gpu, self.profile, self.start

    @property
    def identity(self) -> tuple[str, int, str, int, int, int]:
        """Key of the same segment in two deployments: service, instance, batch size and processes."""
        return self.service, self.gpu, self.profile, self.start, self.batch, self.processes


@dataclass(frozen=True, slots=True)
class Deployment(Shown, Checked):
    """Instances that serve services, and their places on GPUs.

    Attributes
    ----------
    gpus : tuple of str
        The name of each GPU in the catalogue; a GPU may be without segments.
    segments : tuple of Segment
        In any order.
    devices : tuple of Device
        What the first GPUs are, for scripts and pictures; those after them are new. Empty: GPU 3 of the deployment is
        number 3 of its machine.

    Raises
    ------
    InputError
        If ``gpus`` is one name in place of a tuple, or an entry is no name or no Segment.

    Examples
    --------
    >>> segment = Segment("chat", 0, "3g.40gb", 4, batch=8, processes=2, throughput=410.0, latency=0.04)
    >>> deployment = Deployment(("A100-80GB",), (segment,))
    >>> deployment.used_gpus, deployment.compute_slices, round(deployment.external_fragmentation, 3)
    (1, 3, 0.571)
    """

    gpus: tuple[Annotated[str, Wanted("the name of a GPU")], ...]
    segments: tuple[Segment, ...]
    devices: tuple[Device, ...] = ()

    def _problems(self) -> Iterator[Problem]:
        gpus = MOST_GPUS if self.gpus is None else len(self.gpus)
        yield from device_problems(self.devices or (), gpus, some_new=True)

    def model(self, gpu: int) -> GpuModel:
        """Return the kind of a GPU."""
        return get_gpu(entry_of(gpu, self.gpus))

    def placement(self, segment: Segment) -> Placement:
        """Return where ``segment`` is on its GPU.

        Raises
        ------
        InputError
            If its GPU has no such placement.
        """
        return self.model(segment.gpu).placement(segment.profile, segment.start)

    def on(self, gpu: int) -> tuple[Segment, ...]:
        """Return the segments of a GPU, by start slice."""
        return tuple(sorted((s for s in self.segments if s.gpu == gpu), key=lambda segment: segment.start))

    @property
    def used_gpus(self) -> int:
        """The number of GPUs with a segment."""
        return len({segment.gpu for segment in self.segments})

    @property
    def compute_slices(self) -> int:
        """The compute slices of all segments together."""
        return sum(self.model(s.gpu).profile(s.profile).compute_slices for s in self.segments)

    @property
    def external_fragmentation(self) -> float:
        """The share of the used GPUs' compute slices that is in no segment (ParvaGPU, equation 4), from 0 to 1.

        The paper counts streaming multiprocessors; each compute slice has equally many of those that MIG can use.
        """
        whole = sum(self.model(gpu).compute_slices for gpu in {segment.gpu for segment in self.segments})
        return 1 - self.compute_slices / whole if whole else 0.0

    def figures(self, demand: Demand | None = None) -> Facts:
        """Return GPUs, slices and fragmentation, and cost and slack if the demand is given."""
        used = {segment.gpu for segment in self.segments}
        kinds = Counter(self.model(gpu).name for gpu in used)
        each = f" ({', '.join(f'{count} x {kind}' for kind, count in kinds.items())})" if len(kinds) > 1 else ""
        idle = f"; {len(self.gpus) - len(used)} more without segments" if len(self.gpus) > len(used) else ""
        whole = sum(self.model(gpu).compute_slices for gpu in used)
        return [
            ("GPUs", f"{len(used)}{each}{idle}"),
            ("cost", None if demand is None or demand.costs.counted else f"{self.cost(demand):.10g}"),
            ("slices", f"{self.compute_slices} of {whole} compute slices"),
            ("fragmentation", f"{self.external_fragmentation:.1%} external"),
            ("slack", None if demand is None else f"{self.internal_slack(demand):.1%} internal"),
        ]

    def throughput(self, service: str) -> float:
        """Return the requests per second that all segments of a service answer together."""
        return sum(segment.throughput for segment in self.segments if segment.service == service)

    def slack(self, demand: Demand) -> dict[str, float]:
        """Return for each service the share of its throughput that its rate leaves unused (negative if it lacks)."""
        given = dict.fromkeys((service.name for service in demand.services), 0.0)
        for segment in self.segments:
            if segment.service in given:
                given[segment.service] += segment.throughput
        return {
            service.name: 1 - service.rate / given[service.name] if given[service.name] else -float("inf")
            for service in demand.services
        }

    def internal_slack(self, demand: Demand) -> float:
        """Return the share of the segments' compute slices that requests leave idle (ParvaGPU, equation 3), 0 to 1.

        The equation weighs the activity of the streaming multiprocessors of each service by their number. Here a
        service's activity is its rate as a share of its throughput: a segment that answers as many requests as were
        measured counts as active all the time, and those of services that are not in the demand as idle; without
        segments it is 0. What is idle even then, only counters of a GPU tell.

        Examples
        --------
        Three slices answer 80 of 100 requests per second that they could, one slice 30 of 60: (0.6 + 0.5) / 4.

        >>> from mig_opt import Demand, Pool, Point, ProfileTable, Service, get_gpu
        >>> gpu = get_gpu("A100-80GB")
        >>> points = Point(3, 8, 1, 100.0, 0.01), Point(1, 8, 1, 60.0, 0.01)
        >>> services = Service("chat", 1.0, 80.0, "bert"), Service("search", 1.0, 30.0, "bert")
        >>> demand = Demand(services, (ProfileTable("bert", gpu.name, points),), (Pool(gpu),))
        >>> large = Segment("chat", 0, "3g.40gb", 4, batch=8, processes=1, throughput=100.0, latency=0.01)
        >>> small = Segment("search", 0, "1g.10gb", 0, batch=8, processes=1, throughput=60.0, latency=0.01)
        >>> round(Deployment((gpu.name,), (large, small)).internal_slack(demand), 3)
        0.275
        """
        idle = {service: max(0.0, share) for service, share in self.slack(demand).items()}
        slices = [(self.model(s.gpu).profile(s.profile).compute_slices, s.service) for s in self.segments]
        total = sum(count for count, _ in slices)
        return math.fsum(count * idle.get(service, 1.0) for count, service in slices) / total if total else 0.0

    def changes_to(self, other: Deployment) -> int:
        """Return how many segments end and how many begin where this deployment gives way to ``other``.

        A segment stays if the other deployment has the same one: service, instance, batch size and processes.
        """
        here, there = ({segment.identity for segment in segments} for segments in (self.segments, other.segments))
        return len(here ^ there)

    def cost(self, demand: Demand) -> float:
        """Return what the GPUs with a segment cost together; those of a kind that no pool has cost nothing."""
        kinds = Counter(self.model(gpu).name for gpu in {segment.gpu for segment in self.segments})
        return demand.costs.total([kinds[pool.kind.name] for pool in demand.pools])

    def goals(self, demand: Demand, running: Deployment | None = None) -> tuple[float, int, int, int]:
        """Return the goals in their order.

        Parameters
        ----------
        demand : Demand
            The services, and the costs of GPUs.
        running : Deployment, optional
            What is running.

        Returns
        -------
        tuple of float and three int
            Cost, GPUs, compute slices, and changes to what is running.
        """
        changes = 0 if running is None else running.changes_to(self)
        return self.cost(demand), self.used_gpus, self.compute_slices, changes

    def without_idle_gpus(self) -> Deployment:
        """Return the same deployment with its GPUs numbered anew, without those that have no segment."""
        used = sorted({segment.gpu for segment in self.segments})
        number = {gpu: index for index, gpu in enumerate(used)}
        segments = (dataclasses.replace(segment, gpu=number[segment.gpu]) for segment in self.segments)
        devices = tuple(self.devices[gpu] for gpu in used if gpu < len(self.devices))
        return Deployment(tuple(self.gpus[gpu] for gpu in used), tuple(segments), devices)

    def replace(self, *, gpus: Iterable[str] | None = None, segments: Iterable[Segment] | None = None) -> Deployment:
        """Return a copy with other GPUs or segments.

        Parameters
        ----------
        gpus : iterable of str, optional
            Names of the GPUs, in place of these; the first ones are the same devices.
        segments : iterable of Segment, optional
            In place of these.

        Returns
        -------
        Deployment
            The copy.
        """
        names = self.gpus if gpus is None else tuple(gpus)
        found = self.segments if segments is None else tuple(segments)
        return Deployment(names, found, self.devices[: len(names)])


def segment_of(service: str, gpu: int, placement: Placement, option: Option) -> Segment:
    """Return the segment that serves ``service`` in a placement in the way of ``option``."""
    point = option.point
    way = point.batch, point.processes, point.throughput, point.latency
    return Segment(service, gpu, placement.profile.name, placement.start, *way)


def check_deployments(**arguments: object) -> None:
    """Refuse arguments, given by their names, that are no deployments, as the result of ``deploy`` is none."""
    raise_any(
        wrong_type(name, value, "a Deployment, for example the attribute deployment of a DeploymentResult")
        for name, value in arguments.items()
        if not isinstance(value, Deployment)
    )


@dataclasses.dataclass(frozen=True, slots=True)
class DeploymentResult(Shown, Result[Deployment]):
    """Outcome of :func:`mig_opt.deploy`: the deployment that was found, and the lower bound of its cost.

    The status is ``optimal`` if no deployment costs less. The lower bound is 0 if none is known, or if there is no
    deployment at all. ``proven`` has some of ``cost``, ``gpus``, ``compute slices`` and ``changes``, the first only
    where GPUs cost something else than 1.

    Attributes
    ----------
    cost : float or None
        What the GPUs with a segment cost together, their number if each costs 1; None without a deployment.
    demand : Demand or None
        The demand that was met, for pictures; None for a result from a file.
    """

    cost: float | None = None
    demand: Demand | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def deployment(self) -> Deployment | None:
        """The best deployment found; it has passed the validator."""
        return self.plan

    @property
    def gpus(self) -> int | None:
        """GPUs with a segment; None without a deployment."""
        return None if self.plan is None else self.plan.used_gpus

    @property
    def objective(self) -> float | None:
        """The cost; None without a deployment."""
        return self.gpus if self.cost is None else self.cost

    @property
    def compute_slices(self) -> int | None:
        """Compute slices of all segments; None without a deployment."""
        return None if self.plan is None else self.plan.compute_slices

    def figures(self) -> Facts:
        """Return method, lower bound, the figures of the deployment, and what is proven."""
        known = self.lower_bound > 0 and self.status is not Status.INFEASIBLE
        counted = self.objective == self.gpus if self.demand is None else self.demand.costs.counted
        least = plural(int(self.lower_bound), "GPU") if counted else f"cost {self.lower_bound:.10g}"
        gpus, cost, *shares = [("GPUs", None)] * 2 if self.plan is None else self.plan.figures(self.demand)
        return [
            ("method", self.method),
            gpus,
            cost,
            ("lower bound", f"{least}: {self.reason}" if known else None),
            *shares,
            ("proven", ", then ".join(_GOALS[goal] for goal in self.proven) or None),
        ]
