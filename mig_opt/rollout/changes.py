"""Scripts that lead from a running deployment to a new one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from mig_opt.arguments import wrong_type
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.model import Placement
from mig_opt.rollout.devices import devices_of
from mig_opt.rollout.layouts import layouts_of, way
from mig_opt.rollout.shell import check_line, comment, name_problems, place, required, script, segment_words
from mig_opt.serving.change_plan import ChangePlan, ChangeStep
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.texts import plural

_USAGE = (
    "Usage: bash SCRIPT HOOKS. HOOKS is a file of bash functions; it has to define",
    "  start_segment SERVICE GPU PROFILE START BATCH PROCESSES",
    "to start the processes of a segment and return when it serves, and",
    "  stop_segment SERVICE GPU PROFILE START BATCH PROCESSES",
    "to end those of another and return when they have ended; CUDA_VISIBLE_DEVICES is the instance.",
)


def change_script(change: ChangePlan, *, devices: Sequence[str] | None = None) -> str:
    """Return a bash script that carries out a change plan.

    The steps come one after the other, in the order of the plan: a segment that takes over serves before the next step
    begins. The script changes nothing unless the GPUs have exactly the instances from which the plan starts. The first
    argument of the script is a file with the bash functions ``start_segment`` and ``stop_segment``.

    Parameters
    ----------
    change : ChangePlan
        A plan of :func:`mig_opt.plan_change`; its ``gpus``, ``kept`` and ``steps`` count.
    devices : sequence of str, optional
        As for :func:`mig_opt.deployment_script`.

    Raises
    ------
    InputError
        If the steps cannot be done in that order, or an argument is wrong.
    """
    if not all(hasattr(change, name) for name in ("gpus", "kept", "steps")):
        raise InputError([wrong_type("change", change, "a ChangePlan, as plan_change returns it")])
    first = _before(change)
    layouts = layouts_of(first)
    places = devices_of(len(layouts), devices)
    segments = [("kept", i, segment) for i, segment in enumerate(change.kept)]
    segments += [("steps", i, s) for i, step in enumerate(change.steps) for s in (step.ends, step.begins) if s]
    problems = [
        *name_problems((f"{path}[{index}].service", segment.service) for path, index, segment in segments),
        *_illegal(change, layouts),
    ]
    if problems:
        raise InputError(problems, "change plan")
    wanted: dict[int, list[Placement]] = defaultdict(list)
    for step in change.steps:
        wanted[step.gpu].append(first.model(step.gpu).placement(step.profile, step.start))
    body = required("start_segment", "stop_segment")
    body += [
        check_line(gpu, must=layout, wanted=wanted[gpu]) for gpu, layout in enumerate(layouts) if layout or wanted[gpu]
    ]
    body.append("checked")
    for step in change.steps:
        body += ["", *_commands(first, step)]
    stay = "segment stays as it is" if len(change.kept) == 1 else "segments stay as they are"
    title = f"Change of a deployment: {plural(len(change.steps), 'step')}, {len(change.kept)} {stay}."
    return script([title], _USAGE, places, ["functions.sh", "segments.sh", "changes.sh"], body)


def _before(change: ChangePlan) -> Deployment:
    """Return the deployment from which a change starts: the first step at a place tells what was there before."""
    there: dict[tuple[int, str, int], Segment | None] = {}
    for step in change.steps:
        there.setdefault((step.gpu, step.profile, step.start), step.ends)
    return Deployment(change.gpus, (*change.kept, *(segment for segment in there.values() if segment)))


def _illegal(change: ChangePlan, layouts: Sequence[Sequence[Placement]]) -> Iterator[Problem]:
    """Yield a problem for each step that cannot be done when its turn comes."""
    held = [set(layout) for layout in layouts]
    for index, step in enumerate(change.steps):
        path = f"steps[{index}]"
        if not 0 <= step.gpu < len(held):
            yield Problem(f"{path}.gpu", f"must be that of a GPU, from 0 to {len(held) - 1}")
            continue
        here = held[step.gpu]
        try:
            placement = Deployment(change.gpus, ()).model(step.gpu).placement(step.profile, step.start)
        except InputError as error:
            yield from (problem.below(path) for problem in error.problems)
            continue
        clashes = sorted(str(other) for other in here if other.conflicts(placement))
        alike = sum(other.profile == placement.profile for other in here)
        if step.kind != "create" and placement not in here:
            yield Problem(path, f"there is no {placement} on GPU {step.gpu} then")
        elif step.kind == "create" and clashes:
            yield Problem(path, f"{placement} shares memory slices of GPU {step.gpu} with {', '.join(clashes)} then")
        elif step.kind == "create" and alike == placement.profile.max_count:
            yield Problem(path, f"GPU {step.gpu} can have no more than {alike} of {step.profile}")
        elif step.kind == "create":
            here.add(placement)
        elif step.kind == "destroy":
            here.remove(placement)


def _commands(deployment: Deployment, step: ChangeStep) -> Iterator[str]:
    """Yield what a script does for a step."""
    instance = place(deployment.model(step.gpu).placement(step.profile, step.start))
    words = {"create": "creates", "destroy": "destroys", "switch": "keeps"}
    served = [
        f"{segment.service}, {way(segment)}, {what}"
        for segment, what in ((step.ends, "stops"), (step.begins, "starts"))
        if segment
    ]
    parts = [f"{step.begin:.6g} s: GPU {step.gpu} {words[step.kind]} {step.profile} at {step.start}", *served]
    yield comment("; ".join(parts))
    if step.ends:
        yield f"stop {step.gpu} {instance} {segment_words(step.ends)}"
    if step.kind != "switch":
        yield f"{step.kind} {step.gpu} {instance}"
    if step.begins:
        yield f"start {step.gpu} {instance} {segment_words(step.begins)}"
