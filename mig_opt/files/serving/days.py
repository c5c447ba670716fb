"""Plans of days as JSON: the ``steps`` of what ``deploy --rates --json`` prints, which make a plan again."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass

from mig_opt.errors import InputError
from mig_opt.files.documents import parsed
from mig_opt.files.serving.deployment_results import change_document
from mig_opt.files.serving.deployments import DEPLOYMENT
from mig_opt.files.values import EXAMPLES, Findings, Raw, read_listed
from mig_opt.gpu.model import Location
from mig_opt.serving.change_plan import ChangePlan, ChangeStep, StepKind
from mig_opt.serving.day import Day, DayPlan
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.validation.serving.changes import validate_change


@dataclass(frozen=True, slots=True)
class _Step:
    """Step of a change, with the service that begins, its batch size and its processes."""

    kind: StepKind
    gpu: int
    profile: str
    start: int
    begin: float
    end: float
    begins: str | None = None
    batch: int | None = None
    processes: int | None = None


EXAMPLES[_Step] = {"kind": "create", "gpu": 0, "profile": "1g.10gb", "start": 6, "begin": 0.0, "end": 0.2}


def day_document(plan: DayPlan) -> Raw:
    """Return the plan of a day as a document: for each step its deployment, and the change with which it begins."""
    changes = [None, *map(change_document, plan.changes)]
    steps = zip(map(DEPLOYMENT.document, plan.deployments), changes, strict=True)
    return {"steps": [{"deployment": deployment, "change": change} for deployment, change in steps]}


def day_plan_from_json(text: str, day: Day, *, source: str = "") -> DayPlan:
    """Return the plan in a document; what of a step is neither deployment nor change is passed over.

    Raises
    ------
    InputError
        With every problem of the document; whether the plan may be is for the validator to say.
    """
    findings = Findings(source)
    steps = parsed(text, source)[0].get("steps")
    given: list[object] = steps if isinstance(steps, list) else []
    if len(given) != day.steps:
        findings.add("steps", f"must be a list of {day.steps}, as mig-opt deploy --rates --json has it")
        findings.check()
    deployments, listed = list[Deployment](), list[tuple[_Step, ...]]()
    for at, step in enumerate(given):
        where, own = f"steps[{at}]", _object(step)
        deployment = _object(own.get("deployment"))
        deployments.append(DEPLOYMENT.part(deployment, f"{where}.deployment", findings, demand=day.demand))
        if at:
            entries = _object(own.get("change")).get("steps")
            listed.append(read_listed(_Step, entries, f"{where}.change.steps", findings))
    findings.check()
    pairs = zip(itertools.pairwise(deployments), listed, day.demands[1:], strict=True)
    changes = tuple(_change(before, after, own, demand) for (before, after), own, demand in pairs)
    return DayPlan(day.rates.times, tuple(deployments), changes)


def _object(value: object) -> Raw:
    return value if isinstance(value, dict) else {}


def _change(before: Deployment, after: Deployment, entries: tuple[_Step, ...], demand: Demand | None) -> ChangePlan:
    """Return the plan of a change; which segments stay and which are interrupted follows from its steps."""
    stated = {segment.identity: segment for segment in (*before.segments, *after.segments)}
    live: dict[Location, Segment] = {segment.place: segment for segment in before.segments}
    kept, steps = dict(live), list[ChangeStep]()
    for entry in entries:
        place = entry.gpu, entry.profile, entry.start
        begins = None
        if entry.begins is not None:
            made = Segment(entry.begins, *place, entry.batch or 1, entry.processes or 1)
            begins = stated.get(made.identity, made)
        ends = live.pop(place, None)
        kept.pop(place, None)
        steps.append(ChangeStep(entry.kind, *place, entry.begin, entry.end, ends, begins))
        if begins is not None:
            live[place] = begins
    duration = max((step.end for step in steps), default=0.0)
    gpus = max(before.gpus, after.gpus, key=len)
    plan = ChangePlan(gpus, tuple(kept.values()), tuple(steps), (), duration)
    try:
        return dataclasses.replace(plan, interrupted=validate_change(before, after, plan, demand=demand).interrupted)
    except InputError:  # told by the validator of the day
        return plan
