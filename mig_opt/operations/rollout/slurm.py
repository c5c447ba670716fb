"""Slurm's lines for the instances of a fleet, and the change of nodes with drain and resume around it.

Slurm does not change partitions itself: the lines in ``gres.conf`` and ``slurm.conf`` have to say what is there, and a
node has to be drained before their number changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from mig_opt.errors import InputError, Problem
from mig_opt.fleet.state import FleetState, Migration
from mig_opt.operations.rollout.shell import shell_word

_REASON = "MIG instances change"


def slurm_change(
    state: FleetState, migrations: Sequence[Migration], *, room: Sequence[tuple[int, str, int]] = ()
) -> str:
    r"""Return what an administrator does for migrations: lines before and after, drain and resume, node by node.

    Jobs are not moved while they run: each node that loses or gets an instance is drained first. The instances
    themselves are changed by the steps that are named, for example by ``nvidia-smi``. Idle instances stay, except those
    in the way.

    Parameters
    ----------
    state : FleetState
        What there is, idle instances included.
    migrations : sequence of Migration
        What moves, in this order.
    room : sequence of (int, str, int)
        GPU, profile name and start slice of each instance that room is made for.

    Raises
    ------
    InputError
        If the state does not name its nodes, or the migrations cannot be done.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> from mig_opt.fleet.state import HeldInstance
    >>> state = FleetState(get_gpu("A100"), 2, (HeldInstance(0, "1g.5gb", 0, "job 7"),), nodes=("a", "b"))
    >>> text = slurm_change(state, [Migration(0, "1g.5gb", 0, 1, 6, "job 7")])
    >>> print("\n".join(line for line in text.splitlines() if line.startswith("scontrol")))
    scontrol update NodeName=a,b State=DRAIN Reason='MIG instances change'
    scontrol reconfigure
    scontrol update NodeName=a,b State=RESUME
    """
    cleared = state.without_idle_in_the_way(migrations, room)
    old, new = _counts(state), _counts(cleared.after(migrations))
    ended = [held for held in state.idle if held not in cleared.instances]
    touched = {gpu for m in migrations for gpu in (m.gpu, m.to_gpu)} | {held.gpu for held in ended}
    changed = list(dict.fromkeys(node for gpu, node in enumerate(state.nodes) if gpu in touched))
    steps = [f"destroy the idle {held.profile}@{held.start} of GPU {state.devices[held.gpu]}" for held in ended]
    steps += [_step(state, migration) for migration in migrations]
    if not changed:
        return "# Nothing changes.\n"
    names = shell_word(",".join(changed))
    lines = [
        "# 1. Let the jobs of these nodes end, and begin no others.",
        f"scontrol update NodeName={names} State=DRAIN Reason='{_REASON}'",
        "# Wait until no node of these is in use (the list is empty):",
        f"squeue --noheader --nodelist={names}",
        "",
        "# 2. Change the instances on the drained nodes: destroy the old ones, create the new ones.",
        *(f"#    {number}. {step}" for number, step in enumerate(steps, 1)),
        "",
        "# 3. gres.conf: replace these lines ...",
        *(f"# - {line}" for node in changed for line in _gres_lines(node, old[node])),
        "#    ... by these:",
        *(f"# + {line}" for node in changed for line in _gres_lines(node, new[node])),
        "#    slurm.conf: Gres= of the lines of these nodes, before and after:",
        *(
            f"# {sign} {_node_line(node, counts[node])}"
            for node in changed
            for sign, counts in (("-", old), ("+", new))
        ),
        "",
        "# 4. Let Slurm read them, and give the nodes back.",
        "scontrol reconfigure",
        f"scontrol update NodeName={names} State=RESUME",
    ]
    return "\n".join(lines) + "\n"


def _counts(state: FleetState) -> dict[str, Counter[str]]:
    """Return how many instances of each type a node has."""
    if not state.nodes:
        raise InputError([Problem("nodes", "the state does not say which GPUs are on which node; add its nodes")])
    family = state.gpu.name.partition("-")[0].lower()
    counts: dict[str, Counter[str]] = {node: Counter() for node in state.nodes}
    for held in state.instances:
        counts[state.nodes[held.gpu]][f"{family}_{held.profile}"] += 1
    return counts


def _gres_lines(node: str, counts: Counter[str]) -> Iterator[str]:
    """Yield the lines of ``gres.conf`` for a node; with ``AutoDetect`` they need no device files."""
    for kind, count in sorted(counts.items()):
        yield f"NodeName={node} AutoDetect=nvml Name=gpu Type={kind} Count={count}"


def _node_line(node: str, counts: Counter[str]) -> str:
    """Return what the line of a node in ``slurm.conf`` says of instances."""
    return (
        f"NodeName={node} Gres={','.join(f'gpu:{kind}:{count}' for kind, count in sorted(counts.items())) or '(null)'}"
    )


def _step(state: FleetState, migration: Migration) -> str:
    first, second = (f"GPU {state.devices[gpu]}" for gpu in (migration.gpu, migration.to_gpu))
    who = f" ({migration.name})" if migration.name else ""
    return f"{migration.profile}@{migration.start} of {first} to {migration.to_start} of {second}{who}"
