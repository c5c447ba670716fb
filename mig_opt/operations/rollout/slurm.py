"""Changes of instances under Slurm: a script for the controller and one for each node.

Slurm does not change partitions itself: a node has to be drained, and the lines in ``gres.conf`` and ``slurm.conf``
have to say what is there. Jobs are not moved: those of a node end before it changes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.fleet.state import FleetState, HeldInstance, Migration
from mig_opt.gpu.model import Placement
from mig_opt.operations.rollout.kubernetes import mig_parted_config
from mig_opt.operations.rollout.layouts import Address, creation_order, in_creation_order, layouts_of
from mig_opt.operations.rollout.shell import check_words, comment, functions_of, head, place, script
from mig_opt.serving.deployment import Deployment, Segment

_NODE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_USAGE = (
    "Usage: bash controller.sh [check|undo], on the machine of slurmctld, beside the scripts of the nodes. With check",
    "it says what it would do; undo takes back what an interrupted run has begun. What a site has elsewhere is set in",
    "the environment: SLURM_CONF, GRES_CONF, ON_NODE='ssh -o BatchMode=yes' (NODE and a command follow), STOP_SLURMD,",
    "START_SLURMD, RESTART_SLURMCTLD, SHARE_CONF (a command that copies both files to the nodes), NVIDIA_SMI.",
)
_NODE_USAGE = ("Usage: bash SCRIPT check|change|restore|files|stop|start, on the node. controller.sh calls it.",)

Layouts = Sequence[Sequence[Placement]]


def slurm_scripts(
    state: FleetState, migrations: Sequence[Migration], *, room: Sequence[tuple[int, str, int]] = ()
) -> dict[str, str]:
    """Return the files with which an administrator makes a fleet as it is after migrations, by their names.

    ``controller.sh`` changes one node after the other, by the script of the node: those that gain instances come
    first. It drains a node, waits for its jobs, stops its slurmd, changes the instances, writes ``gres.conf`` and the
    line of the node, restarts, verifies, and gives the node back; what fails is taken back. A configuration of
    ``nvidia-mig-parted`` for each node makes its layout again after a reboot. Idle instances stay, except those in the
    way.

    Parameters
    ----------
    state : FleetState
        What there is, idle instances included.
    migrations : sequence of Migration
        What moves, in this order.
    room : sequence of (int, str, int)
        GPU, profile name and start slice of each instance that is to be created besides.

    Returns
    -------
    dict of str to str
        Text by name of file; empty if nothing changes.

    Raises
    ------
    InputError
        If the state does not name its nodes, or the migrations cannot be done.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> state = FleetState(get_gpu("A100"), 2, (HeldInstance(0, "1g.5gb", 0, "job 7"),), nodes=("a", "b"))
    >>> list(slurm_scripts(state, [Migration(0, "1g.5gb", 0, 1, 6, "job 7")]))
    ['controller.sh', 'node-b.sh', 'node-b.mig-parted.yaml', 'node-a.sh', 'node-a.mig-parted.yaml']
    """
    if not state.nodes:
        raise InputError([Problem("nodes", "the state does not say which GPUs are on which node; add its nodes")])
    after = state.without_idle_in_the_way(migrations, room).after(migrations).instances
    made = (HeldInstance(gpu, profile, start) for gpu, profile, start in room)
    return _scripts(_deployment(state, state.instances), _deployment(state, [*after, *made]).segments)


def slurm_change(running: Deployment | FleetState, deployment: Deployment) -> dict[str, str]:
    """Return the files with which an administrator makes one deployment of another, as :func:`slurm_scripts` does.

    Services are jobs there: those of a node have ended before it changes, and begin again on its new instances.

    Parameters
    ----------
    running : Deployment or FleetState
        What there is, on which node. Idle instances of a state stay, except those in the way.
    deployment : Deployment
        What is to run, on GPUs of these by the same numbers.

    Returns
    -------
    dict of str to str
        Text by name of file; empty if no instance changes.

    Raises
    ------
    InputError
        If a GPU is on no node, or segments cannot exist together.

    Examples
    --------
    >>> from mig_opt.gpu.devices import Device
    >>> devices, chat = (Device(0, "a"),), Segment("chat", 0, "1g.5gb", 0, 1, 1, 10.0, 0.1)
    >>> list(slurm_change(Deployment(("A100-40GB",), (), devices), Deployment(("A100-40GB",), (chat,), devices)))
    ['controller.sh', 'node-a.sh', 'node-a.mig-parted.yaml']
    """
    before = running if isinstance(running, Deployment) else _deployment(running, running.instances)
    there = {each for each in zip(count(), before.gpus, before.devices, strict=False) if each[2].node}
    devices = (*deployment.devices, *before.devices[len(deployment.devices) :])
    wrong = "is none of those that are known, each on its node; let what is running be a state that names its nodes"
    wanted = [(gpu, name, *devices[gpu : gpu + 1]) for gpu, name in enumerate(deployment.gpus)]
    raise_any(Problem(f"gpus[{each[0]}]", wrong) for each in wanted if each not in there)
    segments = deployment.segments
    if isinstance(running, FleetState):
        rest = running.without_idle_in_the_way((), (segment.place for segment in segments)).instances
        segments += _deployment(running, [held for held in rest if held.idle]).segments
    return _scripts(before, segments)


def _deployment(state: FleetState, instances: Sequence[HeldInstance]) -> Deployment:
    """Return the instances of a state as a deployment."""
    segments = (Segment("instance", each.gpu, each.profile, each.start, 1, 1, 1.0, 0.0) for each in instances)
    return Deployment(state.names, tuple(segments), state.devices)


def _scripts(before: Deployment, segments: Sequence[Segment]) -> dict[str, str]:
    """Return the files that make what is there be ``segments``; GPUs with MIG off are as they were."""
    names = [device.node for device in before.devices]
    wrong = "is no name of a node in Slurm: letters, digits, dots, underscores and hyphens, is"
    odd = ((at, node) for at, node in enumerate(names) if not _NODE.fullmatch(node))
    raise_any(Problem(f"nodes[{at}]", f"{wrong} {node!r:.80}") for at, node in odd)
    both = (layouts_of(each) for each in (before, before.replace(segments=segments)))
    old, new = (list(map(in_creation_order, layouts)) for layouts in both)
    with_mig = [gpu for gpu in range(len(names)) if before.model(gpu).mig]
    on = {node: [gpu for gpu in with_mig if names[gpu] == node] for node in dict.fromkeys(names)}
    changed = {node: gpus for node, gpus in on.items() if any(old[gpu] != new[gpu] for gpu in gpus)}

    def slices(layouts: Layouts, node: str) -> int:
        return sum(one.profile.memory_slices for gpu in on[node] for one in layouts[gpu])

    changed = {node: on[node] for node in sorted(changed, key=lambda node: slices(old, node) - slices(new, node))}
    files = {"controller.sh": _controller(before, changed, old, new)} if changed else {}
    for node, gpus in changed.items():
        files[f"node-{node}.sh"] = _node_script(before, node, gpus, old, new)
        # By this its layout is made again after a reboot.
        own = tuple(replace(each, gpu=gpus.index(each.gpu)) for each in segments if each.gpu in gpus)
        layout = Deployment(tuple(before.gpus[gpu] for gpu in gpus), own)
        indices = [str(before.devices[gpu].index) for gpu in gpus]
        files[f"node-{node}.mig-parted.yaml"] = str(mig_parted_config(layout, devices=indices))
    return files


def _controller(state: Deployment, nodes: Mapping[str, Sequence[int]], old: Layouts, new: Layouts) -> str:
    title = f"Change of the instances of {', '.join(nodes)}, one after the other."
    lines = [*head(title, "", *_USAGE), f"NODES=({' '.join(nodes)})"]
    empty = {node: (str(state.devices[gpu].index) for gpu in gpus if not new[gpu]) for node, gpus in nodes.items()}
    lines += [
        "# Of each node PROFILE:AS-AUTODETECT-CALLS-IT:BEFORE:AFTER, and the GPUs that are left without instances.",
        "declare -A COUNTS=(",
        *(f"  [{node}]='{' '.join(_counts(state, gpus, old, new))}'" for node, gpus in nodes.items()),
        ")",
        "declare -A EMPTY=(",
        *(f"  [{node}]='{', '.join(gpus)}'" for node, gpus in empty.items()),
        ")",
    ]
    return "\n".join([*lines, "", *functions_of("slurm.sh"), 'main "$@"', ""])


def _counts(state: Deployment, gpus: Sequence[int], old: Layouts, new: Layouts) -> Iterator[str]:
    """Yield how many of each profile a node has before and after."""
    before, after = (Counter(each.profile for at in gpus for each in layouts[at]) for layouts in (old, new))
    for profile in dict.fromkeys(profile for gpu in gpus for profile in state.model(gpu).profiles):
        if before[profile] or after[profile]:
            # In the types that AutoDetect finds memory is what the driver reports.
            memory = round(profile.usable_mib / 1024) if profile.usable_mib else round(profile.memory_gb)
            detected = f"{profile.compute_slices}g.{memory}gb"
            yield f"{profile.name}:{detected}:{before[profile]}:{after[profile]}"


def _node_script(state: Deployment, node: str, gpus: Sequence[int], old: Layouts, new: Layouts) -> str:
    """Return the script of a node, which knows all of its GPUs."""
    devices = [state.devices[gpu] for gpu in gpus]
    places = [Address("", each.uuid or str(each.index), f"{each.index} of {node}") for each in devices]
    profiles = sorted({each.profile for gpu in gpus for each in (*old[gpu], *new[gpu])}, key=creation_order)
    body = [f"declare -A PROFILES=({' '.join(f'[{profile.id}]={profile.name}' for profile in profiles)})"]
    for name, layouts in (("OLD", old), ("NEW", new)):
        words = [f"'{' '.join(map(place, layouts[gpu]))}'" for gpu in gpus]
        body.append(f"{name}=({' '.join(words)})")
    body += ["checks() {"]
    body += [f"  check {check_words(at, must=old[gpu], wanted=new[gpu])}" for at, gpu in enumerate(gpus)]
    body += ["}", ""]
    for each, gpu in zip(devices, gpus, strict=True):
        for sign, there, other in (("-", old[gpu], new[gpu]), ("+", new[gpu], old[gpu])):
            body += [comment(f"{sign} GPU {each.index}: {one}") for one in there if one not in other]
    body += ["", 'act "${1:-}" </dev/null']
    title = f"Change of the instances of {node}."
    return script(title, _NODE_USAGE, places, ["functions.sh", "slurm_node.sh"], body, hooks=False)
