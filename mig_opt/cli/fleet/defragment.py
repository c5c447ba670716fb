"""The command defragment: the fewest migrations that make room, or that leave least fragmentation."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from mig_opt import DefragmentationResult, FleetState, GpuModel, HeldInstance, Migration, Status
from mig_opt.cli import options
from mig_opt.cli.answers import DEFAULT_TIME_LIMIT, EXIT_CODES, NO_PLAN, Answer, Call, File, script_of, word_of
from mig_opt.cli.checks import options_named, refuse
from mig_opt.cli.figures import MOST_ROWS, first_of, joined
from mig_opt.cli.inputs import idle_as_free, load_costs, load_state, parsed_devices, parsed_share
from mig_opt.gpu.devices import gpu_name
from mig_opt.method.report import Part, Report, Table
from mig_opt.texts import plural

if TYPE_CHECKING:
    from mig_opt.gpu.model import OperationCosts

_MOST_WANTED = 10_000
_OWNERS = {"dra": "NVIDIA's DRA driver", "hami": "HAMi", "device-plugin": "the device plugin", "slurm": "Slurm"}


def defragment(
    call: Call,
    state: options.StateArgument,
    *,
    wanted: Annotated[
        str | None, "PROFILES", "--for", "Make room for these, e.g. 3g.20gb or 2x3g.20gb,1g.5gb: all together."
    ] = None,
    fragmentation: Annotated[str | None, "SHARE", "Mean fragmentation that is enough, e.g. 0.05 or 5%."] = None,
    free: Annotated[str | None, "WHAT", "gpus or nodes: as many of them as possible are to be free."] = None,
    within_gpus: Annotated[bool, "Instances stay on their GPUs."] = False,
    most_migrations: Annotated[int | None, "K", "How many migrations there may be."] = None,
    per_owner: Annotated[int | None, "N", "How many instances of one owner may migrate at a time."] = None,
    gpu: Annotated[str | None, options.in_place_of_gpu("GPU that STATE")] = None,
    gpus: Annotated[int | None, options.in_place_of_gpus("STATE")] = None,
    costs: options.Costs = None,
    time_limit: options.TimeLimit = DEFAULT_TIME_LIMIT,
    seed: options.Seed = 0,
    output: Annotated[Path | None, "Write the state afterwards as JSON."] = None,
    script: Annotated[Path | None, "Write the migrations as a script for bash."] = None,
    devices: options.Devices = None,
    slurm: Annotated[Path | None, "DIR", "Write scripts for Slurm's controller and nodes that make it so."] = None,
) -> Answer:
    """Move instances to make room, with the fewest migrations.

    Without --for, --free and --fragmentation the goal is the least mean fragmentation. A replica runs before its old
    instance ends, so nothing is interrupted. The migrations of a round can be done together; disruption budgets of
    STATE and --per-owner limit how many of an owner are in a round.

    Exits with 0 if there is a plan, 1 if there is none, and 130 after Ctrl-C.

    Examples
    --------
    mig-opt defragment fleet.json --for 3g.20gb
    mig-opt defragment fleet.json --free gpus --script moves.sh
    """
    from mig_opt.api.defragment import defragment as plan
    from mig_opt.api.defragment.defragmentation import defragment_problems
    from mig_opt.method.options import run_options

    room = None if wanted is None else call.attempt(_profiles, wanted)
    share = None if fragmentation is None else call.attempt(parsed_share, "--fragmentation", fragmentation)
    one_goal = wanted is None or fragmentation is None
    call.require(one_goal, "--fragmentation", "is another goal than --for; give one of the two")
    found = call.attempt(load_state, state, gpu, gpus)
    limits: dict[str, Any] = {"within_gpus": within_gpus, "most_migrations": most_migrations, "per_owner": per_owner}
    also = defragment_problems(found, room, fragmentation=None if room else share, free=free, **limits)
    with call.step(), options_named({f"room[{index}]": "--for" for index in range(len(room or ()))}):
        run_options(time_limit=time_limit, seed=seed, also=also)
    if found is not None:
        owner = f"{_OWNERS.get(found.manager)} owns the partitions of this fleet and destroys those that others create"
        advice = "leave the script out, and let the pods move in the order of the steps"
        call.require(script is None or found.manager not in ("dra", "hami"), "--script", f"{owner}; {advice}")
        unnamed = slurm is not None and not found.nodes
        call.require(not unnamed, "--slurm", "the state does not say which GPUs are on which node; add its nodes")
    call.require(devices is None or script is not None, "--devices", "is for --script; leave it out")
    names = call.attempt(parsed_devices, devices if script else None, None if found is None else found.gpus)
    one = found is None or found.gpu is not None
    call.require(costs is None or one, "--costs", "is for GPUs of one kind; name it with --gpu when the state is made")
    seconds = call.attempt(load_costs, costs, found.gpu) if costs and found and found.gpu else None
    call.check_folder(slurm)
    call.begin(state=output, script=script)
    with call.progress("defragment"):
        result = plan(
            found,
            room,
            fragmentation=share,
            free=cast("Literal['gpus', 'nodes'] | None", free),
            **limits,
            time_limit=time_limit,
            seed=seed,
        )
    none = result.migrations is None
    return Answer(
        _report(found, result, seconds, costs),
        EXIT_CODES.get(result.status, 0),
        _files(found, result, output=output, script=script, devices=names, slurm=slurm),
        _why_not(result) if none else "",
    )


def _profiles(text: str) -> list[str]:
    """Return the profiles of a list such as ``2x3g.20gb,1g.5gb``."""
    names: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        several = re.fullmatch(r"([1-9][0-9]{0,5}) ?[x*] ?(\S+)", part)
        names += [several[2]] * int(several[1]) if several else [part]
    if not names or len(names) > _MOST_WANTED:
        refuse("--for", f"must name 1 to {_MOST_WANTED} instances, e.g. 3g.20gb or 2x3g.20gb,1g.5gb, is {text!r:.60}")
    return names


def _files(
    state: FleetState,
    result: DefragmentationResult,
    *,
    output: Path | None,
    script: Path | None,
    devices: Sequence[str] | None,
    slurm: Path | None,
) -> list[File]:
    """Return the files of a plan, if there is one."""
    from mig_opt.operations.rollout.changes import migration_script
    from mig_opt.operations.rollout.slurm import slurm_scripts

    after = moves = scripts = None
    if result.plan is not None and result.migrations is not None:
        cleared = state.without_idle_in_the_way(result.migrations, result.plan.room)
        after = cleared.after(result.migrations) if output else None
        moves = migration_script(result.state, result.migrations, devices=devices) if script else None
        scripts = slurm_scripts(state, result.migrations, room=result.plan.room) if slurm else None
    return [
        File("state afterwards", output, after, absent=NO_PLAN),
        script_of(script, moves, "HOOKS"),
        File(
            *("scripts for Slurm", slurm, scripts or None, f". Usage: bash {word_of(f'{slurm}/controller.sh')} check"),
            absent=NO_PLAN if scripts is None else "Nothing changes for Slurm: nothing written to",
        ),
    ]


def _why_not(result: DefragmentationResult) -> str:
    if result.status is Status.INFEASIBLE:
        return f"infeasible: {result.reason}"
    if result.status is Status.INTERRUPTED:
        return "interrupted before a plan was found"
    return "no plan was found; more time (--time-limit) or other limits may help"


def _report(
    state: FleetState, result: DefragmentationResult, costs: OperationCosts | None, named: str | None
) -> Report:
    """Return the report of a result, with the seconds of its operations if there are costs for them."""
    from mig_opt.api.defragment.rounds import seconds_of
    from mig_opt.files.fleet.states import defragmentation_document

    lasting: dict[str, object] = {}
    facts = [
        ("state", f"{result.state.name} ({plural(len(result.state.instances), 'instance')})"),
        ("fleet", state.fleet),
        *result.facts(),
    ]
    if costs is not None and result.migrations is not None:
        seconds = seconds_of(result.state, result.rounds, costs)
        lasting = {"operations_s": seconds, "operations_source": costs.source}
        facts.append(("operations", f"{seconds:.1f} s ({named})"))
    parts: list[Part] = [_why_not(result)] if result.migrations is None else []
    remarks = [] if result.migrations is None else idle_as_free(state)
    if result.migrations:
        parts += [_maps(result), _steps(result)]
        if state.manager in _OWNERS:
            remarks.append(f"{_OWNERS[state.manager]} owns the partitions: the steps say which pods (jobs) move where.")
    return Report(facts, parts, remarks, {**defragmentation_document(result), **lasting})


def _maps(result: DefragmentationResult) -> Table:
    """Return the GPUs that change, slice by slice, before and after."""
    before, after = result.state, result.after
    assert after is not None
    maps = [
        [gpu_name(before.devices, gpu), *(gpu_map(before.kind(gpu), state.on(gpu)) for state in (before, after))]
        for gpu in sorted({gpu for step in result.migrations or () for gpu in (step.gpu, step.to_gpu)})
    ]
    changed = [row for row in maps if row[1] != row[2]]
    same = before.gpus - len(changed)
    notes = first_of(len(changed), "GPUs that change")
    if same:
        notes.append(f"{plural(same, 'GPU')} stay{'s' * (same == 1)} alike.")
    notes.append("One column for each memory slice, .. is free, * must stay.")
    return Table([">GPU", "before", "after"], changed[:MOST_ROWS], joined(notes))


def gpu_map(kind: GpuModel, instances: Sequence[HeldInstance]) -> str:
    """Return the instances of a GPU as a line, with three characters for each memory slice.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> from mig_opt.fleet.state import HeldInstance
    >>> instances = HeldInstance(0, "2g.10gb", 2, pinned=True), HeldInstance(0, "1g.5gb", 6)
    >>> gpu_map(get_gpu("A100"), instances)
    '|..|..|2g*  |..|..|1g|..|'
    """
    cells = [".."] * kind.memory_slices
    for held in instances:
        profile = kind.profile(held.profile)
        label = f"{profile.compute_slices}g"
        mark = "~" if held.idle else "*" if held.pinned else ""
        if mark:
            label = f"{label}{mark}" if profile.memory_slices > 1 else f"{profile.compute_slices}{mark}"
        cells[held.start] = label.ljust(3 * profile.memory_slices - 1)
        cells[held.start + 1 : held.start + profile.memory_slices] = [""] * (profile.memory_slices - 1)
    return f"|{'|'.join(filter(None, cells))}|"


def _steps(result: DefragmentationResult) -> Table:
    """Return the migrations in order."""
    migrations = list(enumerate(result.migrations or (), 1))
    devices = result.state.devices

    def place(gpu: int, start: int) -> str:
        node, index = (devices[gpu].node, devices[gpu].index) if devices else ("", gpu)
        return f"{node} {index}@{start}".lstrip()

    columns: dict[str, Callable[[tuple[int, Migration]], str]] = {
        ">step": lambda step: str(step[0]),
        ">round": lambda step: str(result.plan.rounds[step[0] - 1]) if result.plan else "",
        "instance": lambda step: f"{step[1].profile} {step[1].to_profile and f'to {step[1].to_profile}'}".rstrip(),
        ">from GPU@slice": lambda step: place(step[1].gpu, step[1].start),
        ">to GPU@slice": lambda step: place(step[1].to_gpu, step[1].to_start),
        "owner": lambda step: step[1].owner,
        "/name": lambda step: step[1].name,
    }
    if len(result.rounds) <= 1:
        del columns[">round"]
    if not any(migration.owner for _, migration in migrations):
        del columns["owner"]
    notes = first_of(len(migrations), "migrations", "; --json has all.")
    return Table.of(migrations[:MOST_ROWS], columns, notes)
