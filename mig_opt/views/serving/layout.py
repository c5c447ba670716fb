"""The parts of pictures of deployments (rows of GPUs, colours of services) and of latencies (a line each)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mig_opt.errors import InputError, Problem
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import GpuModel
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.simulation.serving.outcome import RequestSimulation, ServiceLatencies
from mig_opt.texts import number_ranges, plural
from mig_opt.views.texts import colour_of, elide, one_line

UNUSED, EMPTY, LINES = "#e4e4e4", "#fafafa", "#9a9a9a"
UNUSED_SIGN, LOST_SIGN = "unused compute slice", "compute slice lost to the segment beside it"
_MOST_SEPARATE = 16  # GPUs up to which each has a row of its own
_MOST_LINES = 20  # services whose latencies are drawn
FARTHEST, LEAST_SHARE = 2.0, 1e-3
"""Pictures of latencies end at so many times the SLO, and at so many percent of the requests."""
_LONGEST_LABEL = 20  # characters of the numbers of GPUs beside a row


def deployment_problems(deployment: Deployment) -> Iterator[Problem]:
    """Yield why a deployment cannot be drawn."""
    models: dict[int, GpuModel] = {}
    for gpu, name in enumerate(deployment.gpus):
        try:
            models[gpu] = get_gpu(name)
        except InputError as error:
            yield from (Problem(f"gpus[{gpu}]", problem.message) for problem in error.problems)
    for index, segment in enumerate(deployment.segments):
        if not 0 <= segment.gpu < len(deployment.gpus):
            message = f"must be from 0 to {len(deployment.gpus) - 1}, is {segment.gpu}"
            yield Problem(f"segments[{index}].gpu", message)
        elif segment.gpu in models:
            try:
                models[segment.gpu].profile(segment.profile)
            except InputError as error:
                yield from (problem.below(f"segments[{index}]") for problem in error.problems)


def _usual_title(deployment: Deployment, demand: Demand | None) -> str:
    kinds = Counter(model.name for model in map(get_gpu, deployment.gpus))
    gpus = " + ".join(f"{count} x {kind}" for kind, count in kinds.items()) or "no GPUs"
    idle = len(deployment.gpus) - deployment.used_gpus
    slices = sum(deployment.model(gpu).compute_slices for gpu in {segment.gpu for segment in deployment.segments})
    parts = [demand.name if demand else "", f"{gpus}{f' ({idle} without segments)' if idle else ''}"]
    parts.append(f"{deployment.compute_slices} of {slices} compute slices")
    parts.append(f"fragmentation {100 * deployment.external_fragmentation:.3g} %")
    return " · ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class Row:
    """GPUs of one kind with the same segments in the same places."""

    model: GpuModel
    gpus: tuple[int, ...]
    segments: tuple[tuple[int, Segment], ...]
    """Those of the first GPU, with their indices in the deployment."""

    @property
    def per_compute_slice(self) -> int:
        """Memory slices beside a compute slice. An A100 has one more memory slice, without compute."""
        return self.model.memory_slices // self.model.compute_slices

    def footprint(self, segment: Segment) -> range:
        """Return the memory slices of a segment."""
        return range(segment.start, segment.start + self.model.profile(segment.profile).memory_slices)

    def lost(self, segment: Segment) -> range:
        """Return the slices of a segment whose compute its profile does not have, put at its end."""
        slices = self.footprint(segment)
        computing = range(slices.start, min(slices.stop, self.per_compute_slice * self.model.compute_slices))
        used = self.per_compute_slice * self.model.profile(segment.profile).compute_slices
        return computing[used:]

    def unused(self) -> Iterator[range]:
        """Yield the compute slices, as memory slices, that are in no segment."""
        held = {position for _, segment in self.segments for position in self.footprint(segment)}
        width = self.per_compute_slice
        for start in range(0, width * self.model.compute_slices, width):
            if not held & set(range(start, start + width)):
                yield range(start, start + width)


def rows_of(deployment: Deployment) -> list[Row]:
    """Return the rows of a chart: each GPU has its own, or, if there are many, those that are alike have one."""
    on_gpu: list[list[tuple[int, Segment]]] = [[] for _ in deployment.gpus]
    for index, segment in enumerate(deployment.segments):
        on_gpu[segment.gpu].append((index, segment))
    alike: dict[object, list[int]] = {}
    for gpu, segments in enumerate(on_gpu):
        segments.sort(key=lambda entry: (entry[1].start, entry[0]))
        ways = tuple((s.service, s.profile, s.start, s.batch, s.processes) for _, s in segments)
        separate = gpu if len(on_gpu) <= _MOST_SEPARATE else None
        alike.setdefault((deployment.model(gpu).name, ways, separate), []).append(gpu)
    return [Row(deployment.model(gpus[0]), tuple(gpus), tuple(on_gpu[gpus[0]])) for gpus in alike.values()]


class DeploymentLayout:
    """The picture of a deployment, for a demand if that is known: title, rows, services and their colours."""

    def __init__(self, deployment: Deployment, demand: Demand | None, title: str | None) -> None:
        self.deployment, self.demand = deployment, demand
        self.title = _usual_title(deployment, demand) if title is None else title
        self.rows = rows_of(deployment)
        names = {segment.service for segment in deployment.segments}
        if demand is not None:
            names |= {service.name for service in demand.services}
        self.numbers = {name: number for number, name in enumerate(sorted(names), 1)}
        self.colours = {name: colour_of(number - 1) for name, number in self.numbers.items()}

    def row_label(self, row: Row, *, kind: bool) -> str:
        """Return what stands beside a row, with the ``kind`` of GPU if there are several."""
        name = row.model.name if kind else ""
        if len(row.gpus) == 1:
            return f"GPU {row.gpus[0]}\n{name}".rstrip()
        gpus, *rest = number_ranges(row.gpus).split(", ")
        while rest and len(gpus) + len(rest[0]) < _LONGEST_LABEL:
            gpus += f", {rest.pop(0)}"
        return f"{len(row.gpus)} x {name or 'GPU'}\n{gpus}{', …' if rest else ''}"

    @cached_property
    def service_labels(self) -> list[str]:
        """A line about each service."""
        rates = {} if self.demand is None else {service.name: service.rate for service in self.demand.services}
        labels = []
        for name, number in self.numbers.items():
            count = sum(segment.service == name for segment in self.deployment.segments)
            given = self.deployment.throughput(name)
            wanted = f" (needs {spell_rate(rates[name])})" if name in rates else ""
            segments = plural(count, "segment")
            labels.append(f"#{number} {elide(one_line(name), 32)}: {segments}, {spell_rate(given)} requests/s{wanted}")
        return labels


def spell_rate(rate: float) -> str:
    """Return requests per second as a label shows them."""
    return f"{rate:.0f}" if 1000 <= rate < 1e9 else f"{rate:.4g}"


@dataclass(frozen=True, slots=True)
class LatencyLine:
    """The falling line of a service: which share of its requests takes longer than which multiples of its SLO."""

    number: int
    service: ServiceLatencies
    label: str

    @property
    def colour(self) -> str:
        """Its colour."""
        return colour_of(self.number)

    def steps(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return multiples of the SLO, and the percentage of the requests that take longer than each."""
        if not self.service.requests:
            return np.array([0.0]), np.array([0.0])
        edges = np.array([0.0, *(edge for edge, _ in self.service.bins)]) / self.service.slo_s
        counts = np.array([0, *(count for _, count in self.service.bins)])
        return edges, 100 * (1 - np.cumsum(counts) / self.service.requests)


def latency_title(simulation: RequestSimulation, title: str | None) -> str:
    """Return the title, by default arrivals, requests and the late share."""
    usual = f"{simulation.requests:,} requests ({simulation.arrivals}), {100 * simulation.late_share:.3g} % late"
    return usual if title is None else title


def latency_lines(simulation: RequestSimulation) -> list[LatencyLine]:
    """Return the lines that are drawn: those with most late requests, in the order of the demand."""
    worst = sorted(enumerate(simulation.services), key=lambda entry: -entry[1].late_share)[:_MOST_LINES]
    hidden = len(simulation.services) - len(worst)
    lines: list[LatencyLine] = []
    for number, service in sorted(worst, key=lambda entry: entry[0]):
        label = f"{elide(one_line(service.name), 24)}: {100 * service.late_share:.3g} % late"
        remark = f" ({hidden} more not drawn)" if hidden and len(lines) == len(worst) - 1 else ""
        lines.append(LatencyLine(number, service, label + remark))
    return lines
