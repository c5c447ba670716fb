"""Scripts of ``nvidia-smi mig`` commands that give each instance its place.

The scripts are for bash. They check everything that can be checked before they change anything: MIG mode, instances
that are in the way, and whether the GPUs have the placements that the catalogue says they have. Numbers of instances
are only known once these exist: they are looked up by placement.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Lifetime, OperationKind, Schedule, lifetimes_with_runs
from mig_opt.errors import Problem, raise_any
from mig_opt.operations.rollout import shell
from mig_opt.operations.rollout.layouts import addresses, in_creation_order, layouts_of, whole_gpu_problems
from mig_opt.serving.deployment import Deployment
from mig_opt.texts import number_ranges
from mig_opt.validation import validate

_SEGMENT_USAGE = (
    "Usage: bash SCRIPT [HOOKS]. HOOKS is a file of bash functions, which may define",
    "  start_segment SERVICE GPU PROFILE START BATCH PROCESSES",
    "to start the processes of a segment; CUDA_VISIBLE_DEVICES is its instance. If these are several, they share it",
    "through NVIDIA's Multi-Process Service: its control daemon runs, and CUDA_MPS_PIPE_DIRECTORY says where.",
)


def deployment_script(deployment: Deployment, *, devices: Sequence[str] | None = None) -> str:
    r"""Return a bash script that cuts GPUs as a deployment has them.

    GPUs may have some of the instances already, so that the script can be run again; if there are others, it changes
    nothing and says which. At the end it prints a line for each segment: service, GPU, profile, start slice, batch
    size, processes and the instance's UUID, separated by tabs, the service quoted for bash.

    Parameters
    ----------
    deployment : Deployment
        The deployment to carry out.
    devices : sequence of str, optional
        For each GPU what ``nvidia-smi -i`` takes (index, UUID or PCI address), after ``host/`` if it is in a machine
        that ssh reaches. By default it is one of the deployment's ``devices``, by UUID if that is known, since indices
        shift; without them GPU 3 of the deployment is number 3 of the machine on which the script runs.

    Returns
    -------
    str
        Text of a script for bash, with its usage in comments.

    Raises
    ------
    InputError
        If segments cannot exist together, or an argument is wrong.

    Examples
    --------
    >>> from mig_opt.serving.deployment import Deployment, Segment
    >>> segment = Segment("chat", 0, "3g.40gb", 4, batch=8, processes=2, throughput=410.0, latency=0.04)
    >>> text = deployment_script(Deployment(("A100-80GB",), (segment,)))
    >>> print(*text.splitlines()[-10:], sep="\n")
    check 0 '' '9:4' '9:4:4'
    check_mps 0
    checked
    <BLANKLINE>
    # GPU 0: A100-80GB
    # 3g.40gb at 4: chat, batch size 8, 2 processes
    create_missing 0 9:4
    <BLANKLINE>
    segments 0
    segment 9:4 3g.40gb 8 2 chat
    """
    layouts = layouts_of(deployment)
    places = addresses(len(layouts), devices, deployment.devices)
    services = ((f"segments[{i}].service", segment.service) for i, segment in enumerate(deployment.segments))
    on = (segment.gpu for segment in deployment.segments)
    raise_any([*shell.name_problems(services), *whole_gpu_problems(deployment.gpus, on)])
    used = [gpu for gpu, layout in enumerate(layouts) if layout]
    title = f"Deployment. GPUs: {deployment.used_gpus}, segments: {len(deployment.segments)}."
    body = [f"check {shell.check_words(gpu, may=layouts[gpu], wanted=layouts[gpu])}" for gpu in used]
    body += [*shell.check_mps_lines(deployment.segments), "checked"]
    for gpu in used:
        body += ["", shell.comment(f"GPU {places[gpu].name}: {deployment.gpus[gpu]}")]
        words = (f"{s.profile} at {s.start}: {s.service}, {shell.batch_and_processes(s)}" for s in deployment.on(gpu))
        body += map(shell.comment, words)
        body.append(" ".join([f"create_missing {gpu}", *map(shell.place, in_creation_order(layouts[gpu]))]))
    for gpu in used:
        body += ["", f"segments {gpu}"]
        body += [f"segment {shell.place(deployment.placement(s))} {shell.segment_words(s)}" for s in deployment.on(gpu)]
    return shell.script(title, _SEGMENT_USAGE, places, ["functions.sh", "mps.sh", "segments.sh"], body)


_SCHEDULE_USAGE = (
    "Usage: bash SCRIPT HOOKS. HOOKS is a file of bash functions; it has to define",
    "  run_task NAME GPU PROFILE START",
    "to run a task and return when it has ended; CUDA_VISIBLE_DEVICES is its instance. It may define",
    "  earlier_work GPU PROFILE START SECONDS",
    "to wait for what an instance is busy with before the batch; without it that takes SECONDS.",
)


def schedule_script(batch: Batch, schedule: Schedule, *, devices: Sequence[str] | None = None) -> str:
    r"""Return a bash script that carries out a schedule.

    On each GPU operations come in the order of the schedule, and each as soon as it can: a destruction when the tasks
    of the instance have ended. Tasks that take longer or shorter than planned move the rest. GPUs do not wait for each
    other. A task that fails is reported at the end and keeps nothing else from running. The first argument of the
    script is a file with the bash function ``run_task NAME GPU PROFILE START``.

    Parameters
    ----------
    batch : Batch
        The batch that was planned.
    schedule : Schedule
        A valid schedule; operations that it leaves out are looked for.
    devices : sequence of str, optional
        As for :func:`deployment_script`; by default the batch's own.

    Returns
    -------
    str
        Text of a script for bash, with its usage in comments.

    Raises
    ------
    InputError
        If the schedule is not valid, or an argument is wrong.

    Examples
    --------
    >>> from mig_opt import Batch, Task, get_gpu, solve
    >>> batch = Batch((Task("a", {4: 2.0}), Task("b", {4: 1.0})), get_gpu("A30"))
    >>> text = schedule_script(batch, solve(batch, "far").schedule)
    >>> print(*text.splitlines()[-7:-2], sep="\n")
    gpu_0() {
      # 0 s: 4g.24gb at 0, until 3.13 s
      create 0 0:0
      run 0 0:0 4g.24gb 0 a b
    }
    """
    places = addresses(batch.gpus, devices, batch.devices)
    problems = [*shell.name_problems((f"tasks[{i}].name", task.name) for i, task in enumerate(batch.tasks))]
    found = validate(batch, schedule)
    problems += [violation.problem() for violation in found.violations]
    whole = [gpu for gpu in range(batch.gpus) if not batch.has_mig(gpu)]
    if whole:
        message = f"MIG is off on GPU {number_ranges(whole)}, and a script runs tasks on instances; use mig-opt run"
        problems.append(Problem("pools", message))
    raise_any(problems, "schedule")
    lanes: dict[int, list[Lifetime]] = defaultdict(list)
    for lifetime in lifetimes_with_runs(batch, found.schedule):
        lanes[lifetime.gpu].append(lifetime)
    body = shell.required("run_task")
    for gpu, there in lanes.items():
        initial = [batch.placement(live) for live in batch.initial if live.gpu == gpu]
        body.append(f"check {shell.check_words(gpu, must=initial, wanted=map(batch.placement, there))}")
    body += ["checked", ""]
    for gpu, there in lanes.items():
        body += [f"gpu_{gpu}() {{", *(f"  {line}" for line in _lane(batch, there)), "}", ""]
    body.append(" ".join(["all", *(f"gpu_{gpu}" for gpu in lanes)]))
    title = f"Schedule: {len(batch.tasks)} tasks on {batch.label}, makespan {schedule.makespan:.6g} s. {batch.name}"
    return shell.script(title, _SCHEDULE_USAGE, places, ["functions.sh", "lanes.sh"], body)


def _lane(batch: Batch, lifetimes: Sequence[Lifetime]) -> Iterator[str]:
    """Yield the commands for the instances of a GPU."""
    where = {id(each): shell.place(batch.placement(each)) for each in lifetimes}

    def run(each: Lifetime, busy: float) -> Iterator[str]:
        if each.runs or busy:
            names = (shell.shell_word(run.task) for run in each.runs)
            seconds = f"{busy:.3f}".rstrip("0").rstrip(".")  # as the shell understands it
            yield " ".join([f"run {each.gpu} {where[id(each)]} {shell.shell_word(each.profile)} {seconds}", *names])

    for each in lifetimes:
        if each.initial:
            yield shell.comment(f"{each.profile} at {each.start} exists, is busy until {each.ready:.6g} s")
            yield from run(each, math.ceil(1000 * each.ready) / 1000)
    for each, kind in _operations(batch, lifetimes):
        if kind == "create":
            ends = each.runs[-1].end if each.runs else each.ready
            yield shell.comment(f"{each.begin:.6g} s: {each.profile} at {each.start}, until {ends:.6g} s")
            yield f"create {each.gpu} {where[id(each)]}"
            yield from run(each, 0)
        else:
            yield shell.comment(f"{each.close:.6g} s: {each.profile} at {each.start} ends")
            yield f"release {each.gpu} {where[id(each)]}"


def _operations(batch: Batch, lifetimes: Sequence[Lifetime]) -> Iterator[tuple[Lifetime, OperationKind]]:
    """Yield the operations on a GPU by time; of those that begin together, the one that makes room comes first.

    A schedule that is valid within a tolerance may have a creation a little before the destruction that makes room.
    """
    waiting: list[tuple[float, float, OperationKind, int]]
    waiting = [(each.begin, each.ready, "create", at) for at, each in enumerate(lifetimes) if each.created is not None]
    waiting += [(one.close, one.end, "destroy", at) for at, one in enumerate(lifetimes) if one.destroyed is not None]
    waiting.sort(key=lambda entry: entry[:2])
    placed = list(map(batch.placement, lifetimes))
    held = {at for at, each in enumerate(lifetimes) if each.initial}

    def possible(kind: OperationKind, at: int) -> bool:
        return at in held if kind == "destroy" else placed[at].fits_beside(placed[other] for other in held)

    while waiting:
        # In a valid schedule one of those that come first is always possible.
        entry = next(entry for entry in waiting if possible(*entry[2:]))
        waiting.remove(entry)
        *_, kind, at = entry
        held ^= {at}  # a creation adds it, a destruction takes it away
        yield lifetimes[at], kind
