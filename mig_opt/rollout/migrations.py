"""Scripts that carry out the migrations of a defragmentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mig_opt.arguments import entries_of, wrong_type
from mig_opt.errors import InputError, Problem
from mig_opt.fleet.state import FleetState, Migration
from mig_opt.rollout.changes import change_script
from mig_opt.serving.change_plan import ChangePlan, ChangeStep
from mig_opt.serving.deployment import Segment
from mig_opt.validation import validate_migrations


def migration_script(
    state: FleetState, migrations: Iterable[Migration], *, devices: Sequence[str] | None = None
) -> str:
    """Return a bash script that carries out migrations one after the other.

    For each it creates the new instance, has the replica started, has the old processes stopped, and destroys the old
    instance. It changes nothing unless the GPUs have exactly the instances of the state. The first argument of the
    script is a file with the bash functions ``start_segment`` and ``stop_segment``, as for
    :func:`mig_opt.change_script`; what runs on an instance is called by its name there, or by where it was if it has
    none, with batch size 1 and one process.

    Parameters
    ----------
    state : FleetState
        What there is before.
    migrations : iterable of Migration
        In order.
    devices : sequence of str, optional
        As for :func:`mig_opt.deployment_script`.

    Raises
    ------
    InputError
        If the migrations cannot be done in that order, or an argument is wrong.
    """
    return change_script(migrations_as_change(state, migrations), devices=devices)


def migrations_as_change(state: FleetState, migrations: Iterable[Migration]) -> ChangePlan:
    """Return migrations as the plan of a change: each is a creation and then a destruction, with their seconds.

    What runs on an instance is a service of its own, of which nothing is ever interrupted.

    Raises
    ------
    InputError
        If the migrations cannot be done in that order.

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
    wrong = validate_migrations(state, wanted).violations
    if wrong:
        raise InputError(Problem(violation.path, violation.message) for violation in wrong)
    there = {
        (held.gpu, held.profile, held.start): _segment(
            held.name or f"{held.profile}@{held.start} of GPU {held.gpu}", held.gpu, held.profile, held.start
        )
        for held in state.instances
    }
    costs, steps, now, moved = state.gpu.operation_costs, list[ChangeStep](), 0.0, set[Segment]()
    for migration in wanted:
        old = there.pop((migration.gpu, migration.profile, migration.start))
        new = _segment(old.service, migration.to_gpu, migration.profile, migration.to_start)
        there[new.gpu, new.profile, new.start] = new
        moved.add(new)
        profile = state.gpu.profile(migration.profile)
        ready = now + costs.of("create", profile)
        done = ready + costs.of("destroy", profile)
        steps.append(ChangeStep("create", new.gpu, new.profile, new.start, now, ready, begins=new))
        steps.append(ChangeStep("destroy", old.gpu, old.profile, old.start, ready, done, ends=old))
        now = done
    kept = tuple(segment for segment in there.values() if segment not in moved)
    return ChangePlan((state.gpu.name,) * state.gpus, kept, tuple(steps), (), now)


def _segment(name: str, gpu: int, profile: str, start: int) -> Segment:
    return Segment(name, gpu, profile, start, batch=1, processes=1, throughput=1.0, latency=0.0)
