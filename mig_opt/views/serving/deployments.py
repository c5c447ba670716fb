"""Pictures of deployments: a row for each GPU, or for several that have the same segments."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mig_opt.errors import Problem, problems_of, raise_any
from mig_opt.gpu.catalogue import get_gpu, known_gpu
from mig_opt.gpu.devices import gpu_names
from mig_opt.gpu.model import GpuModel
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.texts import plural
from mig_opt.views.scene import Axis, Box, Boxes, Panel, Rows, Scene
from mig_opt.views.texts import colour_of, elide, one_line, spell_slices, wrap_name

_UNUSED, _EMPTY = "#e4e4e4", "#fafafa"
_UNUSED_SIGN, _LOST_SIGN = "unused compute slice", "compute slice lost to the segment beside it"
_MOST_ROWS, _MOST_COLUMNS = 40, 5
_GAP = 0.16  # between two rows, as a share of their height
_ROW_PIXELS = 44
_LEAST_FONT = 5.0
_MOST_SEPARATE = 16  # GPUs up to which each has a row of its own
_LONGEST_LABEL = 20  # characters of the numbers of GPUs beside a row


def deployment_problems(deployment: Deployment) -> Iterator[Problem]:
    """Yield why a deployment cannot be drawn."""
    for gpu, name in enumerate(deployment.gpus):
        yield from (Problem(f"gpus[{gpu}]", problem.message) for problem in problems_of(get_gpu, name))
    for index, segment in enumerate(deployment.segments):
        if not 0 <= segment.gpu < len(deployment.gpus):
            message = f"must be from 0 to {len(deployment.gpus) - 1}, is {segment.gpu}"
            yield Problem(f"segments[{index}].gpu", message)
        elif (model := known_gpu(deployment.gpus[segment.gpu])) is not None:
            found = problems_of(model.profile, segment.profile)
            yield from (problem.below(f"segments[{index}]") for problem in found)


def deployment_title(deployment: Deployment, demand: Demand | None) -> str:
    """Return the title of a picture: the demand, the GPUs with their cost if they have one, use and fragmentation."""
    kinds = Counter(model.name for model in map(get_gpu, deployment.gpus))
    gpus = " + ".join(f"{count} x {kind}" for kind, count in kinds.items()) or "no GPUs"
    idle = len(deployment.gpus) - deployment.used_gpus
    slices = sum(deployment.model(gpu).compute_slices for gpu in {segment.gpu for segment in deployment.segments})
    parts = [demand.name if demand else "", f"{gpus}{f' ({idle} without segments)' if idle else ''}"]
    if demand is not None and not demand.costs.counted:
        parts.append(f"cost {deployment.cost(demand):.10g}")
    parts.append(f"{deployment.compute_slices} of {slices} compute slices")
    parts.append(f"fragmentation {100 * deployment.external_fragmentation:.3g} %")
    return " · ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class Row:
    """GPUs of one kind with the same segments in the same places."""

    model: GpuModel
    gpus: tuple[int, ...]
    names: str  # of these GPUs, after the word GPU
    segments: tuple[tuple[int, Segment], ...]  # of the first GPU, with their indices in the deployment
    position: int  # from the top
    scale: float  # width of a slice: all rows are as wide as each other

    def label(self, *, kind: bool) -> str:
        """Return what stands beside it, with the ``kind`` of GPU if there are several."""
        name = self.model.name if kind else ""
        if len(self.gpus) == 1:
            return f"GPU {self.names}\n{name}".rstrip()
        gpus, *rest = self.names.split(", ")
        while rest and len(gpus) + len(rest[0]) < _LONGEST_LABEL:
            gpus += f", {rest.pop(0)}"
        return f"{len(self.gpus)} x {name or 'GPU'}\n{gpus}{', …' if rest else ''}"

    def box(self, slices: range, colour: str, gid: str, **words: Any) -> Box:
        """Return a box over some slices."""
        heights = self.position + _GAP / 2, self.position + 1 - _GAP / 2
        return Box(self.scale * slices.start, self.scale * slices.stop, *heights, colour, gid, **words)

    @property
    def per_compute_slice(self) -> int:
        """Memory slices beside a compute slice. An A100 has one more memory slice, without compute."""
        return max(1, self.model.memory_slices // self.model.compute_slices)

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
        for start in range(0, min(width * self.model.compute_slices, self.model.memory_slices), width):
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
    models = [deployment.model(gpus[0]) for gpus in alike.values()]
    widest = max((model.memory_slices for model in models), default=1)
    return [
        Row(
            *(model, tuple(gpus), gpu_names(deployment.devices, gpus), tuple(on_gpu[gpus[0]])),
            *(position, widest / model.memory_slices),
        )
        for position, (model, gpus) in enumerate(zip(models, alike.values(), strict=True))
    ]


def deployment_scene(deployment: Deployment, demand: Demand | None = None) -> Scene:
    """Return the picture of a deployment: each GPU is a row of memory slices, with segments in colours of services.

    A segment shows as much as fits of its service, its profile, and its batch size x processes; at least the number of
    the service, which the legend explains. Compute slices in no segment are hatched in grey, those that an instance
    takes without being able to use them (a 3g at slice 0 of an A100) in the colour of its service. Of more than 16 GPUs
    those with the same segments share a row. The deployment need not be valid.

    Parameters
    ----------
    deployment : Deployment
        What to draw.
    demand : Demand, optional
        The demand that it is for: the legend then has the rates of the services beside the throughputs.

    Returns
    -------
    Scene
        Its title is the name of the demand, the number of GPUs and their kinds, compute slices and fragmentation.
        The group ids of the artists of a figure say what they are: ``segment:<index>`` (in the deployment),
        ``label:<index>``, ``lost:<index>``, ``gpu:<first of the row>``, ``empty:<...>`` and ``unused:<...>:<slice>``;
        labels of rows are ``row:<number of the row>``.

    Raises
    ------
    InputError
        If a segment names a GPU or profile that is not there.

    Examples
    --------
    >>> from mig_opt import Deployment, Segment, plot
    >>> segment = Segment("chat", 0, "3g.40gb", 4, batch=8, processes=2, throughput=410.0, latency=0.04)
    >>> figure = plot(Deployment(("A100-80GB",), (segment,)))
    >>> figure.axes[0].get_xlabel()
    'memory slice (slice 7 has no compute)'
    """
    raise_any(deployment_problems(deployment))
    rows = rows_of(deployment)
    # An image has room for the rows with most GPUs.
    often = sorted(range(len(rows)), key=lambda number: (-len(rows[number].gpus), rows[number].gpus))
    shown = sorted(often[: _MOST_ROWS * _MOST_COLUMNS])
    columns = max(1, math.ceil(len(shown) / _MOST_ROWS))
    unit = 0.5 if len(shown) <= 12 else 0.36 if columns == 1 else 0.3
    labels = [row.label(kind=len({row.model.name for row in rows}) > 1) for row in rows]
    shape = Rows(
        [label.replace("\n", " · ") for label in labels], unit, labels=labels,
        part=math.ceil(len(shown) / columns), beside=True, shown=shown,
    )  # fmt: skip
    services = _service_labels(deployment, demand)
    panel = Panel(
        "rows", _marks(rows, services), _slices_axis(rows), rows=shape, zoom="y",
        pixels=_ROW_PIXELS * max(2, len(rows)) + 90,
    )  # fmt: skip
    remarks = ["written on segments: profile · batch size x processes"] if deployment.segments else []
    if hidden := sum(len(row.gpus) for row in rows) - sum(len(rows[number].gpus) for number in shown):
        remarks.append(f"{hidden} more GPUs are not drawn")
    return Scene(
        deployment_title(deployment, demand),
        [panel],
        8.75 if columns == 1 else 5.6,
        left=0.3,
        beyond=0.23,
        key=list(zip(map(colour_of, range(len(services))), services.values(), strict=True)),
        many=f"{plural(len(services), 'service')}; point at a segment to read about its service.",
        remarks=remarks,
    )


def _service_labels(deployment: Deployment, demand: Demand | None) -> dict[str, str]:
    """Return a line about each service, which begins with its number."""
    rates = {} if demand is None else {service.name: service.rate for service in demand.services}
    labels = {}
    for number, name in enumerate(sorted({segment.service for segment in deployment.segments} | set(rates)), 1):
        count = sum(segment.service == name for segment in deployment.segments)
        given = spell_rate(deployment.throughput(name))
        wanted = f" (needs {spell_rate(rates[name])})" if name in rates else ""
        segments = plural(count, "segment")
        labels[name] = f"#{number} {elide(one_line(name), 32)}: {segments}, {given} requests/s{wanted}"
    return labels


def spell_rate(rate: float) -> str:
    """Return requests per second as a label shows them."""
    return f"{rate:.0f}" if 1000 <= rate < 1e9 else f"{rate:.4g}"


def _slices_axis(rows: list[Row]) -> Axis:
    """Return the axis of memory slices, without ticks where there are GPUs of several sizes."""
    count = max((row.model.memory_slices for row in rows), default=1)
    if len({row.model.memory_slices for row in rows}) != 1:
        return Axis(limits=(0, count), categorical=True)
    bare = {row.model.memory_slices - row.per_compute_slice * row.model.compute_slices for row in rows}
    remark = f" (slice {count - 1} has no compute)" if bare == {1} else ""
    ticks = [(position + 0.5, str(position)) for position in range(count)]
    return Axis(f"memory slice{remark}", (0, count), ticks=ticks, categorical=True)


def _marks(rows: list[Row], services: Mapping[str, str]) -> list[Boxes]:
    """Return the GPUs, which are as wide as each other, their segments, and the slices that these leave unused."""
    found: dict[str, list[Box]] = {role: [] for role in ("gpu", "empty", "unused", "segment", "lost")}
    colours = {name: colour_of(number) for number, name in enumerate(services)}
    for row in rows:
        first, whole = row.gpus[0], range(row.model.memory_slices)
        gpus = f"{'GPU' if len(row.gpus) == 1 else 'GPUs'} {row.names} ({row.model.name})"
        found["gpu"].append(row.box(whole, _EMPTY, f"gpu:{first}"))
        if not row.segments:
            nothing = "no segment"
            found["empty"].append(row.box(whole, _EMPTY, f"empty:{first}", head=nothing, facts=[gpus], label=nothing))
            continue
        for free in row.unused():
            words = {"head": _UNUSED_SIGN, "facts": [gpus, spell_slices(free)]}
            found["unused"].append(row.box(free, _UNUSED, f"unused:{first}:{free.start}", **words))
        for index, segment in row.segments:
            colour, name, footprint = colours[segment.service], one_line(segment.service), row.footprint(segment)
            label = services[segment.service]
            facts = (
                gpus,
                f"{segment.profile}, {spell_slices(footprint)}",
                f"{plural(segment.processes, 'process', 'processes')}, batches of {segment.batch}",
                f"{spell_rate(segment.throughput)} requests/s, {1000 * segment.latency:.4g} ms for each batch",
                f"service {label}",
            )
            written = {
                "label": f"{name} · {segment.profile}",
                "wordings": tuple(_wordings(segment, label.partition(" ")[0])),
            }
            box = row.box(footprint, colour, f"segment:{index}", head=name, facts=facts, **written)
            found["segment"].append(box)
            if missing := row.lost(segment):
                words = {"head": f"{_LOST_SIGN}: {segment.profile} of {name}", "facts": [gpus, spell_slices(missing)]}
                found["lost"].append(row.box(missing, colour, f"lost:{index}", **words))
    signs = {"unused": _UNUSED_SIGN, "lost": _LOST_SIGN}
    return [Boxes(role, boxes, signs.get(role, ""), beneath=role == "segment") for role, boxes in found.items()]


def _wordings(segment: Segment, number: str) -> Iterator[tuple[str, float]]:
    """Yield the wordings for a segment, each with the least size that it is worth, the best first."""
    name, way = one_line(segment.service), f"{segment.batch} x {segment.processes}"
    for least in (_LEAST_FONT + 1.5, _LEAST_FONT):
        for short in dict.fromkeys((name, elide(name, 24), elide(name, 14))):
            yield f"{short}\n{segment.profile} · {way}", least
            yield f"{wrap_name(short, 2)}\n{segment.profile} · {way}", least
            yield f"{short}\n{segment.profile}", least
            yield wrap_name(short, 2), least
    yield f"{number} · {segment.profile}\n{way}", _LEAST_FONT
    yield f"{number}\n{segment.profile}", _LEAST_FONT
    yield number, _LEAST_FONT
