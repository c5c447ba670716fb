"""Reports of demands, deployments and changes of deployments."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from mig_opt import Demand, Deployment, Segment, Service, get_gpu
from mig_opt.cli.figures import MOST_ROWS, first_of, joined, rate, verdict
from mig_opt.cli.screens import shortened
from mig_opt.gpu.devices import gpu_name, gpu_names
from mig_opt.method.report import Facts, Report, Table
from mig_opt.texts import plural, seconds

if TYPE_CHECKING:
    from mig_opt.serving.change_plan import ChangePlan, ChangeStep
    from mig_opt.validation import DeploymentValidation

_WIDEST_RANGES = 12  # columns for the numbers of GPUs that are cut and filled alike
_WIDEST_NAME = 20  # columns for the name of a service that shares a line with others


def demand_facts(demand: Demand) -> Facts:
    """Return the facts about a demand."""
    pools = (
        (f"{pool.kind.name}, as many as it takes" if pool.count is None else f"{pool.count} x {pool.kind.name}")
        + ("" if demand.costs.counted else f" at {pool.cost:g}")
        for pool in demand.pools
    )
    return [("services", f"{demand.name} ({plural(len(demand.services), 'service')})"), ("fleet", "; ".join(pools))]


def validation_facts(demand: Demand, deployment: Deployment, validation: DeploymentValidation) -> Facts:
    """Return the facts about a validation."""
    figures = deployment.figures(demand) if validation.valid else [("GPUs", str(validation.gpus))]
    return [*demand_facts(demand), ("deployment", verdict(validation.violations)), *figures]


def deployment_table(deployment: Deployment) -> Table:
    """Return the segments GPU by GPU.

    Of many GPUs those with the same segments stand together, of very many each such group is one line.
    """
    ordered = sorted(deployment.segments, key=attrgetter("gpu", "start"))
    held = {gpu: list(segments) for gpu, segments in itertools.groupby(ordered, attrgetter("gpu"))}
    alike: dict[object, list[int]] = {}
    for gpu, segments in held.items():
        same = deployment.gpus[gpu], *((s.service, s.profile, s.start, s.batch, s.processes) for s in segments)
        alike.setdefault(same if len(ordered) > MOST_ROWS else gpu, []).append(gpu)
    groups = [(gpus, get_gpu(deployment.gpus[gpus[0]]), held[gpus[0]]) for gpus in alike.values()]
    notes = ["GPUs with the same segments stand together."] if any(len(gpus) > 1 for gpus, _, _ in groups) else []
    several = len({get_gpu(name).name for name in deployment.gpus}) > 1
    columns = ["GPU", "kind"] if several else ["GPU"]
    rows: list[list[str]] = []
    if sum(len(segments) for _, _, segments in groups) <= MOST_ROWS:
        columns += ["instance", "/service", ">batch", ">procs", ">req/s", ">latency s"]
        for gpus, _, segments in groups:
            where = [_names(deployment, gpus), deployment.gpus[gpus[0]]][: 1 + several]
            for segment in segments:
                setting = [segment.service, str(segment.batch), str(segment.processes)]
                figures = [rate(segment.throughput), seconds(segment.latency)]
                rows.append([*where, f"{segment.profile}@{segment.start}", *setting, *figures])
                where = [""] * len(where)
    else:
        columns += [">slices", "/segments"]
        notes += [*first_of(len(groups), "groups"), "-o FILE or --json gives every segment."]
        for gpus, model, segments in groups[:MOST_ROWS]:
            slices = sum(model.profile(segment.profile).compute_slices for segment in segments)
            counts = Counter((segment.service, segment.profile) for segment in segments)
            parts = (
                f"{shortened(service, _WIDEST_NAME)} {f'{count} x ' if count > 1 else ''}{profile}"
                for (service, profile), count in counts.items()
            )
            where = [_names(deployment, gpus), deployment.gpus[gpus[0]]][: 1 + several]
            rows.append([*where, f"{slices}/{model.compute_slices}", ", ".join(parts)])
    return Table(columns, rows, joined(notes))


def _names(deployment: Deployment, gpus: Sequence[int]) -> str:
    """Return the names of GPUs, cut off where there are too many."""
    shown = gpu_names(deployment.devices, gpus)
    if len(gpus) == 1 or len(shown) <= _WIDEST_RANGES:
        return shown
    return f"{gpu_name(deployment.devices, gpus[0])} + {len(gpus) - 1} more"


def services_table(demand: Demand, deployment: Deployment) -> Table:
    """Return the throughput of each service beside its rate."""
    held: dict[str, list[Segment]] = {service.name: [] for service in demand.services}
    for segment in deployment.segments:
        held.setdefault(segment.service, []).append(segment)
    slack = deployment.slack(demand)

    def token_limits(service: Service) -> str:
        limits = {"ttft": demand.rule.limit(service.slo_ttft or 0.0), "itl": service.slo_itl}
        return ", ".join(f"{name} {seconds(limits[name])}" for name in service.slos if name in limits) or "-"

    of_tokens = any(len(service.slos) > 1 for service in demand.services)
    return Table.of(
        demand.services[:MOST_ROWS],
        {
            "/service": lambda service: service.name,
            ">req/s": lambda service: rate(service.rate),
            ">answered": lambda service: rate(sum(segment.throughput for segment in held[service.name])),
            ">slack %": lambda service: f"{100 * slack[service.name]:.1f}" if held[service.name] else "-",
            ">segments": lambda service: str(len(held[service.name])),
            ">latency s": lambda service: seconds(max((one.latency for one in held[service.name]), default=None)),
            ">limit s": lambda service: seconds(demand.rule.limit(service.slo)),
            **({"token limits s": token_limits} if of_tokens else {}),
        },
        first_of(len(demand.services), "services"),
    )


def change_report(plan: ChangePlan) -> Report:
    """Return the change of a running deployment into a new one: its figures and its steps."""
    first = first_of(len(plan.steps), "steps", "; --export nvidia-smi has all of them.")
    interrupted = set(plan.interrupted)
    steps = Table.of(
        plan.steps[:MOST_ROWS],
        {
            ">begin s": lambda step: seconds(step.begin),
            ">end s": lambda step: seconds(step.end),
            ">GPU": lambda step: gpu_name(plan.devices, step.gpu),
            "instance": lambda step: f"{step.profile}@{step.start}",
            "step": lambda step: step.kind,
            "/service": lambda step: _step_text(step, interrupted=step.ends in interrupted),
        },
        first or ["Steps are in the order of the moments at which segments end or begin."],
    )
    return Report(plan.figures(), [steps] if plan.steps else [], title="Change")


def _step_text(step: ChangeStep, *, interrupted: bool) -> str:
    ends, begins = step.ends, step.begins
    if ends is not None and begins is not None:
        name = shortened(ends.service, _WIDEST_NAME)
        if ends.service != begins.service:
            text = f"{name} -> {shortened(begins.service, _WIDEST_NAME)}"
        else:
            text = f"{name} {_setting(ends)} -> {_setting(begins)}"
    else:
        text = next(segment.service for segment in (ends, begins) if segment is not None)
    return f"interrupts {text}" if interrupted else text


def _setting(segment: Segment) -> str:
    return f"{segment.batch} x {segment.processes}"
