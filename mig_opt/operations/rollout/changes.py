"""Scripts that lead from a running deployment to a new one, or move the instances of a defragmentation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.fleet.state import FleetState, Migration
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.devices import gpu_name
from mig_opt.gpu.model import Placement
from mig_opt.operations.rollout import shell
from mig_opt.operations.rollout.layouts import addresses, layouts_of, whole_gpu_problems
from mig_opt.rules import entries_of, wrong_type
from mig_opt.serving.change_plan import ChangePlan, ChangeStep
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.texts import plural
from mig_opt.validation import validate_migrations
from mig_opt.validation.placed import placement_problems

_USAGE = (
    "Usage: bash SCRIPT HOOKS. HOOKS is a file of bash functions; it has to define",
    "  start_segment SERVICE GPU PROFILE START BATCH PROCESSES",
    "to start the processes of a segment and return when it serves, and",
    "  stop_segment SERVICE GPU PROFILE START BATCH PROCESSES",
    "to end those of another and return when they have ended; CUDA_VISIBLE_DEVICES is the instance. If these are",
    "several, they share it through NVIDIA's Multi-Process Service: its control daemon runs, and",
    "CUDA_MPS_PIPE_DIRECTORY says where.",
)


def change_script(change: ChangePlan, *, devices: Sequence[str] | None = None) -> str:
    """Return a bash script that carries out a change plan.

    The steps come one after the other, in the order of the plan: a segment that takes over serves before the next step
    begins. The script changes nothing unless the GPUs have exactly the instances from which the plan starts. After a
    failure the same command goes on with what had failed. The first argument of the script is a file with the bash
    functions ``start_segment`` and ``stop_segment``.

    Parameters
    ----------
    change : ChangePlan
        A plan, or a result of :func:`mig_opt.plan_change`; its ``gpus``, ``kept`` and ``steps`` count.
    devices : sequence of str, optional
        As for :func:`mig_opt.operations.rollout.nvidia_smi.deployment_script`.

    Returns
    -------
    str
        Text of a script for bash, with its usage in comments.

    Raises
    ------
    InputError
        If the steps cannot be done in that order, or an argument is wrong.
    """
    if not isinstance(change, ChangePlan):
        raise InputError([wrong_type("change", change, "a ChangePlan, like plan_change().plan")])
    first = change.state_after(0)
    layouts = layouts_of(first)
    places = addresses(len(layouts), devices, change.devices)
    segments = [("kept", i, segment) for i, segment in enumerate(change.kept)]
    segments += [("steps", i, s) for i, step in enumerate(change.steps) for s in (step.ends, step.begins) if s]
    problems = [
        *shell.name_problems((f"{path}[{index}].service", segment.service) for path, index, segment in segments),
        *_illegal(change, layouts),
        *whole_gpu_problems(first.gpus, (segment.gpu for _, _, segment in segments)),
    ]
    raise_any(problems, "change plan")
    wanted: dict[int, list[Placement]] = defaultdict(list)
    for step in change.steps:
        wanted[step.gpu].append(first.model(step.gpu).placement(step.profile, step.start))
    body = shell.required("start_segment", "stop_segment")
    used = ((gpu, layout) for gpu, layout in enumerate(layouts) if layout or wanted[gpu])
    body += [f"check_now {shell.check_words(gpu, must=layout, wanted=wanted[gpu])}" for gpu, layout in used]
    body += [*shell.check_mps_lines(segment for _, _, segment in segments), "checked"]
    for step in change.steps:
        body += ["", *_commands(first, step, places[step.gpu].name)]
    body += ["", 'rm -f "$DONE"']
    stay = "segment stays as it is" if len(change.kept) == 1 else "segments stay as they are"
    title = f"Change of a deployment: {plural(len(change.steps), 'step')}, {len(change.kept)} {stay}."
    return shell.script(title, _USAGE, places, ["functions.sh", "mps.sh", "segments.sh", "changes.sh"], body)


def _illegal(change: ChangePlan, layouts: Sequence[Sequence[Placement]]) -> Iterator[Problem]:
    """Yield a problem for each step that cannot be done when its turn comes."""
    held = [set(layout) for layout in layouts]
    for index, step in enumerate(change.steps):
        path = f"steps[{index}]"
        if not 0 <= step.gpu < len(held):
            yield Problem(f"{path}.gpu", f"must be that of a GPU, from 0 to {len(held) - 1}")
            continue
        here, kind = held[step.gpu], get_gpu(change.gpus[step.gpu])
        if wrong := placement_problems(kind, step):
            yield from (problem.below(path) for problem in wrong)
            continue
        placement = kind.placement(step.profile, step.start)
        if step.kind == "create":
            obstacles = placement.obstacles(sorted(here, key=str))
            if not obstacles:
                here.add(placement)
            elif placement.conflicts(obstacles[0]):
                clashes = ", ".join(map(str, obstacles))
                yield Problem(path, f"{placement} shares memory slices of GPU {step.gpu} with {clashes} then")
            else:
                most = placement.profile.max_count
                yield Problem(path, f"GPU {step.gpu} can have no more than {most} of {step.profile}")
        elif placement not in here:
            yield Problem(path, f"there is no {placement} on GPU {step.gpu} then")
        elif step.kind == "destroy":
            here.remove(placement)


def _commands(deployment: Deployment, step: ChangeStep, gpu: str) -> Iterator[str]:
    """Yield the commands of a step on a GPU of that name."""
    instance = shell.place(deployment.model(step.gpu).placement(step.profile, step.start))
    words = {"create": "creates", "destroy": "destroys", "switch": "keeps"}
    both = ((step.ends, "stops"), (step.begins, "starts"))
    served = [f"{segment.service}, {shell.batch_and_processes(segment)}, {what}" for segment, what in both if segment]
    parts = [f"{step.begin:.6g} s: GPU {gpu} {words[step.kind]} {step.profile} at {step.start}", *served]
    yield shell.comment("; ".join(parts))
    if step.ends:
        yield f"act stop {step.gpu} {instance} {shell.segment_words(step.ends)}"
    if step.kind != "switch":
        yield f"act {step.kind} {step.gpu} {instance}"
    if step.begins:
        yield f"act start {step.gpu} {instance} {shell.segment_words(step.begins)}"


def migration_script(
    state: FleetState, migrations: Iterable[Migration], *, devices: Sequence[str] | None = None
) -> str:
    """Return a bash script that carries out migrations one after the other.

    For each it creates the new instance, has the replica started, has the old processes stopped, and destroys the old
    instance. It changes nothing unless the GPUs have exactly the instances of the state. The first argument of the
    script is a file with the bash functions ``start_segment`` and ``stop_segment``, as for
    :func:`change_script`; what runs on an instance is called by its name there, or by where it was if it has none, with
    batch size 1 and one process.

    Parameters
    ----------
    state : FleetState
        What there is before.
    migrations : iterable of Migration
        In order.
    devices : sequence of str, optional
        As for :func:`mig_opt.operations.rollout.nvidia_smi.deployment_script`.

    Returns
    -------
    str
        Text of a script for bash, as that of :func:`change_script`.

    Raises
    ------
    InputError
        If the migrations cannot be done in that order, or an argument is wrong.
    """
    return change_script(migrations_as_change(state, migrations), devices=devices)


def migrations_as_change(state: FleetState, migrations: Iterable[Migration]) -> ChangePlan:
    """Return migrations as the plan of a change: each is a creation and then a destruction, with their seconds.

    What runs on an instance is a service of its own, of which nothing is ever interrupted. Migrations that cannot be
    done in that order are refused.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> from mig_opt.fleet.state import HeldInstance
    >>> state = FleetState(get_gpu("A100"), 1, (HeldInstance(0, "1g.5gb", 0, "chat"),))
    >>> change = migrations_as_change(state, [Migration(0, "1g.5gb", 0, 0, 6, "chat")])
    >>> [(step.kind, step.profile, step.start) for step in change.steps]
    [('create', '1g.5gb', 6), ('destroy', '1g.5gb', 0)]
    """
    if not isinstance(state, FleetState):
        raise InputError([wrong_type("state", state, "a FleetState")])
    wanted = entries_of("migrations", migrations, Migration, "a Migration")
    raise_any(violation.problem() for violation in validate_migrations(state, wanted).violations)
    there = {}
    for held in state.instances:
        name = held.name or f"{held.profile}@{held.start} of GPU {gpu_name(state.devices, held.gpu)}"
        segment = _segment(name, held.gpu, held.profile, held.start)
        there[segment.place] = segment
    steps, now, moved = list[ChangeStep](), 0.0, set[Segment]()
    for migration in wanted:
        old = there.pop((migration.gpu, migration.profile, migration.start))
        new = _segment(old.service, migration.to_gpu, migration.new_profile, migration.to_start)
        there[new.place] = new
        moved.add(new)
        kind, to_kind = state.kind(migration.gpu), state.kind(migration.to_gpu)
        ready = now + to_kind.operation_costs.of("create", to_kind.profile(new.profile))
        done = ready + kind.operation_costs.of("destroy", kind.profile(old.profile))
        steps.append(ChangeStep("create", new.gpu, new.profile, new.start, now, ready, begins=new))
        steps.append(ChangeStep("destroy", old.gpu, old.profile, old.start, ready, done, ends=old))
        now = done
    kept = tuple(segment for segment in there.values() if segment not in moved)
    return ChangePlan(state.names, kept, tuple(steps), (), now, devices=state.devices)


def _segment(name: str, gpu: int, profile: str, start: int) -> Segment:
    return Segment(name, gpu, profile, start, batch=1, processes=1, throughput=1.0, latency=0.0)
