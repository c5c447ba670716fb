"""The rows of a deployment's picture: GPUs with their segments, and the slices that these leave unused or lose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mig_opt.gpu.devices import gpu_names
from mig_opt.gpu.model import GpuModel
from mig_opt.serving.deployment import Deployment, Segment

_MOST_SEPARATE = 16  # GPUs up to which each has a row of its own
_LONGEST_LABEL = 20  # characters of the numbers of GPUs beside a row


@dataclass(frozen=True, slots=True)
class Row:
    """GPUs of one kind with the same segments in the same places."""

    model: GpuModel
    gpus: tuple[int, ...]
    names: str
    """What these GPUs are called, after the word GPU."""
    segments: tuple[tuple[int, Segment], ...]
    """Those of the first GPU, with their indices in the deployment."""

    def label(self, *, kind: bool) -> str:
        """Return what stands beside it, with the ``kind`` of GPU if there are several."""
        name = self.model.name if kind else ""
        if len(self.gpus) == 1:
            return f"GPU {self.names}\n{name}".rstrip()
        gpus, *rest = self.names.split(", ")
        while rest and len(gpus) + len(rest[0]) < _LONGEST_LABEL:
            gpus += f", {rest.pop(0)}"
        return f"{len(self.gpus)} x {name or 'GPU'}\n{gpus}{', …' if rest else ''}"

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
    return [
        Row(deployment.model(gpus[0]), tuple(gpus), gpu_names(deployment.devices, gpus), tuple(on_gpu[gpus[0]]))
        for gpus in alike.values()
    ]
