"""What commands show about demands, deployments and changes of deployments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mig_opt.cli.screens import MOST_ROWS, Columns, card, note, seconds, shortened, status, table
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.result import DeploymentResult, Status
from mig_opt.serving.bounds import FleetBound
from mig_opt.serving.change_plan import ChangePlan, ChangeStep
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.texts import number_ranges, plural, printable
from mig_opt.validation import DeploymentValidation

_WIDEST_RANGES = 12
"""Columns for the numbers of GPUs that are cut and filled alike."""

_WIDEST_NAME = 20
"""Columns for the name of a service that shares a line with others."""

_GOALS = {"gpus": "fewest GPUs", "compute slices": "fewest compute slices", "changes": "fewest changes"}
_CHANGE_GOALS = {"interruptions": "fewest interruptions", "duration": "shortest"}

Rows = list[tuple[str, str | Text]]


def demand_rows(demand: Demand) -> Rows:
    """Return the rows of a card that say what is asked for."""
    pools = (
        f"{pool.gpu.name}, as many as it takes" if pool.count is None else f"{pool.count} x {pool.gpu.name}"
        for pool in demand.pools
    )
    return [
        ("services", f"{demand.name} ({plural(len(demand.services), 'service')})"),
        ("fleet", "; ".join(pools)),
    ]


def result_card(demand: Demand, result: DeploymentResult) -> Table:
    """Return the card of a result."""
    rows = demand_rows(demand)
    rows += [("status", status(result.status)), ("method", result.method)]
    deployment = result.deployment
    if deployment is not None:
        rows.append(("GPUs", _kinds(deployment)))
    if result.lower_bound and result.status is not Status.INFEASIBLE:
        rows.append(("lower bound", f"{plural(result.lower_bound, 'GPU')}: {result.reason}"))
    if deployment is not None:
        rows += _shares(deployment)
    if result.proven:
        rows.append(("proven", ", then ".join(_GOALS[goal] for goal in result.proven)))
    rows.append(("runtime", f"{result.runtime_s:.3f} s"))
    return card(rows)


def validation_card(demand: Demand, deployment: Deployment, validation: DeploymentValidation) -> Table:
    """Return the card of what the validator says."""
    rows = demand_rows(demand)
    if validation.valid:
        rows += [("deployment", Text("valid", "bold green")), ("GPUs", _kinds(deployment)), *_shares(deployment)]
    else:
        count = plural(len(validation.violations), "violation")
        rows += [("deployment", Text(f"not valid, {count}", "bold red")), ("GPUs", str(validation.gpus))]
    return card(rows)


def _kinds(deployment: Deployment) -> str:
    used = {segment.gpu for segment in deployment.segments}
    kinds = Counter(get_gpu(deployment.gpus[gpu]).name for gpu in used)
    shown = str(len(used))
    if len(kinds) > 1:
        shown += f" ({', '.join(f'{count} x {kind}' for kind, count in kinds.items())})"
    idle = len(deployment.gpus) - len(used)
    return f"{shown}; {idle} more without segments" if idle else shown


def _shares(deployment: Deployment) -> Rows:
    whole = sum(deployment.model(gpu).compute_slices for gpu in {segment.gpu for segment in deployment.segments})
    return [
        ("slices", f"{deployment.compute_slices} of {whole} compute slices"),
        ("fragmentation", f"{deployment.external_fragmentation:.1%} external"),
    ]


def bounds_table(bounds: Iterable[FleetBound]) -> Table:
    """Return the bounds with their reasons."""
    return table(
        [("bound", "name"), ("GPUs", "number"), ("not rounded", "number"), ("because", "text")],
        ([bound.name, str(bound.gpus), f"{bound.value:.3f}", bound.reason] for bound in bounds),
    )


@dataclass(frozen=True)
class _Alike:
    """GPUs of one kind with the same segments."""

    kind: str
    gpus: tuple[int, ...]
    segments: tuple[Segment, ...]

    @property
    def numbers(self) -> str:
        """Their numbers, cut off where there are too many."""
        shown = number_ranges(self.gpus)
        return shown if len(shown) <= _WIDEST_RANGES else f"{self.gpus[0]} + {len(self.gpus) - 1} more"


def fleet(deployment: Deployment) -> RenderableType:
    """Return the segments GPU by GPU.

    Of many GPUs those with the same segments stand together, of very many each such group is one line.
    """
    held: dict[int, list[Segment]] = {}
    for segment in sorted(deployment.segments, key=lambda segment: (segment.gpu, segment.start)):
        held.setdefault(segment.gpu, []).append(segment)
    groups = [_Alike(deployment.gpus[gpu], (gpu,), tuple(segments)) for gpu, segments in held.items()]
    remarks = []
    if len(deployment.segments) > MOST_ROWS:
        groups = _together(groups)
        if any(len(group.gpus) > 1 for group in groups):
            remarks.append("GPUs with the same segments stand together.")
    columns: Columns = [("GPU", "name")]
    several = len({get_gpu(name).name for name in deployment.gpus}) > 1
    if several:
        columns = [*columns, ("kind", "name")]
    if sum(len(group.segments) for group in groups) <= MOST_ROWS:
        rows = [row for group in groups for row in _segment_rows(group, several=several)]
        shown = table([*columns, *_SEGMENT_COLUMNS], rows)
    else:
        rows = [_group_row(group, several=several) for group in groups[:MOST_ROWS]]
        shown = table([*columns, ("slices", "number"), ("segments", "cut")], rows)
        if len(groups) > MOST_ROWS:
            remarks.append(f"The first {MOST_ROWS} of {len(groups)} groups are shown.")
        remarks.append("-o FILE or --json gives every segment.")
    return Group(shown, Text(), note(" ".join(remarks))) if remarks else shown


_SEGMENT_COLUMNS: Columns = [
    ("instance", "name"),
    ("service", "cut"),
    ("batch", "number"),
    ("procs", "number"),
    ("req/s", "number"),
    ("latency s", "number"),
]


def _together(groups: Iterable[_Alike]) -> list[_Alike]:
    """Return the groups with those of the same segments as one."""
    found: dict[tuple[object, ...], _Alike] = {}
    for group in groups:
        key = group.kind, *((s.service, s.profile, s.start, s.batch, s.processes) for s in group.segments)
        known = found.get(key)
        found[key] = group if known is None else _Alike(known.kind, (*known.gpus, *group.gpus), known.segments)
    return list(found.values())


def _segment_rows(group: _Alike, *, several: bool) -> Iterator[list[str | Text]]:
    where = [group.numbers, group.kind] if several else [group.numbers]
    for segment in group.segments:
        yield [
            *where,
            f"{segment.profile}@{segment.start}",
            segment.service,
            str(segment.batch),
            str(segment.processes),
            figure(segment.throughput),
            seconds(segment.latency),
        ]
        where = [""] * len(where)


def _group_row(group: _Alike, *, several: bool) -> list[str | Text]:
    model = get_gpu(group.kind)
    slices = sum(model.profile(segment.profile).compute_slices for segment in group.segments)
    counts = Counter((segment.service, segment.profile) for segment in group.segments)
    names = ", ".join(
        f"{shortened(service, _WIDEST_NAME)} {f'{count} x ' if count > 1 else ''}{profile}"
        for (service, profile), count in counts.items()
    )
    return [group.numbers, *([group.kind] if several else []), f"{slices}/{model.compute_slices}", names]


def figure(value: float) -> str:
    """Return a rate with one decimal, very small and very large ones with four digits."""
    return f"{value:.1f}" if 0.1 <= value < 1e7 or value == 0 else f"{value:.3e}"


def services(demand: Demand, deployment: Deployment) -> RenderableType:
    """Return what each service gets beside what it needs."""
    held: dict[str, list[Segment]] = {service.name: [] for service in demand.services}
    for segment in deployment.segments:
        held.setdefault(segment.service, []).append(segment)
    slack = deployment.slack(demand)
    rows = []
    for service in demand.services[:MOST_ROWS]:
        segments = held[service.name]
        rows.append(
            [
                service.name,
                figure(service.rate),
                figure(sum(segment.throughput for segment in segments)),
                f"{100 * slack[service.name]:.1f}" if segments else "-",
                str(len(segments)),
                seconds(max((segment.latency for segment in segments), default=None)),
                seconds(demand.rule.limit(service.slo)),
            ]
        )
    columns = ("req/s", "answered", "slack %", "segments", "latency s", "limit s")
    shown = table([("service", "cut"), *((column, "number") for column in columns)], rows)
    if len(demand.services) <= MOST_ROWS:
        return shown
    return Group(shown, Text(), note(f"The first {MOST_ROWS} of {len(demand.services)} services are shown."))


def change(plan: ChangePlan) -> RenderableType:
    """Return how a running deployment becomes a new one."""
    kinds = Counter(step.kind for step in plan.steps)
    unchanged = f"{plural(len(plan.kept), 'segment')} as {'it is' if len(plan.kept) == 1 else 'they are'}"
    rows: Rows = [("kept", unchanged if plan.kept else "no segment")]
    rows.append(("switched", f"{plural(kinds['switch'], 'instance')} to another service, batch size or processes"))
    rows.append(("destroyed", plural(kinds["destroy"], "instance")))
    rows.append(("created", plural(kinds["create"], "instance")))
    names = ", ".join(dict.fromkeys(segment.service for segment in plan.interrupted))
    rows.append(("interrupted", Text(printable(names), "bold yellow") if names else Text("no service", "bold green")))
    rows.append(("duration", f"{plan.duration:.3f} s"))
    if plan.proven:
        rows.append(("proven", ", then ".join(_CHANGE_GOALS[goal] for goal in plan.proven)))
    if not plan.steps:
        return Group(Text("Change", "bold"), card(rows))
    remark = "Steps are in the order of the moments at which segments end or begin."
    if len(plan.steps) > MOST_ROWS:
        remark = f"The first {MOST_ROWS} of {len(plan.steps)} steps are shown; --export nvidia-smi has all of them."
    return Group(Text("Change", "bold"), card(rows), Text(), _steps(plan), Text(), note(remark))


def _steps(plan: ChangePlan) -> Table:
    interrupted = set(plan.interrupted)
    rows = [
        [
            seconds(step.begin),
            seconds(step.end),
            str(step.gpu),
            f"{step.profile}@{step.start}",
            step.kind,
            _step_text(step, interrupted=step.ends in interrupted),
        ]
        for step in plan.steps[:MOST_ROWS]
    ]
    columns: Sequence[str] = ("begin s", "end s", "GPU")
    return table(
        [*((column, "number") for column in columns), ("instance", "name"), ("step", "name"), ("service", "cut")], rows
    )


def _step_text(step: ChangeStep, *, interrupted: bool) -> str:
    ends, begins = step.ends, step.begins
    if ends is not None and begins is not None:
        name = shortened(ends.service, _WIDEST_NAME)
        if ends.service != begins.service:
            text = f"{name} -> {shortened(begins.service, _WIDEST_NAME)}"
        else:
            text = f"{name} {_way(ends)} -> {_way(begins)}"
    else:
        text = next(segment.service for segment in (ends, begins) if segment is not None)
    return f"interrupts {text}" if interrupted else text


def _way(segment: Segment) -> str:
    return f"{segment.batch} x {segment.processes}"
