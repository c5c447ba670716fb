"""Plans of migrations, and the outcome of a search for one."""

from __future__ import annotations

from dataclasses import dataclass

from mig_opt.fleet.state import FleetState, Migration
from mig_opt.gpu.devices import gpu_name
from mig_opt.method.report import Facts
from mig_opt.method.result import Result
from mig_opt.texts import plural

_GOALS = {"fragmentation": "least fragmentation", "free": "most free", "migrations": "fewest migrations"}


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """Migrations of instances, and the state that they lead to.

    Attributes
    ----------
    migrations : tuple of Migration
        In an order in which each can be done.
    fragmentation : float
        Mean fragmentation of the GPUs at the end, from 0 to 1.
    room : tuple of (int, str, int)
        GPU, profile and start slice of the instances for which room was asked: where they can all be created at the
        end.
    rounds : tuple of int
        Round of each migration, from 1. Those of a round can be done together, within the limits of their owners.
    weight : int
        Weight of the migrations: their number unless some count more.
    free : tuple of int or str
        GPUs, or nodes by their names, that are empty at the end, if that is the goal.
    """

    migrations: tuple[Migration, ...]
    fragmentation: float
    room: tuple[tuple[int, str, int], ...] = ()
    rounds: tuple[int, ...] = ()
    weight: int = 0
    free: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DefragmentationResult(Result[MigrationPlan]):
    """Outcome of :func:`mig_opt.defragment`: its plan is a :class:`mig_opt.fleet.migration_plan.MigrationPlan`.

    The status is ``optimal`` if no plan is better in any goal. The lower bound is a weight of migrations, which is
    their number unless instances have weights: no plan that ends with as little fragmentation, with the room that was
    asked for, or with as many GPUs or nodes free, has less. The trajectory is about the first goal, which is the mean
    fragmentation unless there is another. ``proven`` has some of ``fragmentation``, ``free`` and ``migrations``.
    Fragmentation is the mean over the GPUs of the fragmentation cost (the fragmentation-aware paper, section IV-B).

    Attributes
    ----------
    state : FleetState
        State before the migrations.
    fragmentation_before : float
        Its mean fragmentation, from 0 to 1.
    least_fragmentation : float
        No allowed plan ends with less fragmentation; 0 where that was not asked for.
    freeing : str
        ``gpus`` or ``nodes`` if these are to be free, else empty.
    free_before : tuple of int or str
        Those that are free before, if that is the goal.
    most_free : int
        No allowed plan ends with more of them free; 0 where that was not asked for.
    """

    lower_bound: int
    state: FleetState
    fragmentation_before: float
    least_fragmentation: float
    freeing: str = ""
    free_before: tuple[int | str, ...] = ()
    most_free: int = 0

    @property
    def migrations(self) -> tuple[Migration, ...] | None:
        """Migrations in an order in which each can be done; None if no plan was found."""
        return None if self.plan is None else self.plan.migrations

    @property
    def objective(self) -> int | None:
        """Weight of the migrations, which is their number unless instances have weights; None without a plan."""
        return None if self.plan is None else self.plan.weight

    @property
    def fragmentation(self) -> float | None:
        """Mean fragmentation at the end, from 0 to 1; None without a plan."""
        return None if self.plan is None else self.plan.fragmentation

    @property
    def room(self) -> tuple[tuple[int, str, int], ...]:
        """Places where the instances for which room was asked can be created: GPU, profile and start slice."""
        return () if self.plan is None else self.plan.room

    @property
    def free(self) -> tuple[int | str, ...]:
        """GPUs, or nodes by their names, that are free at the end, if that is the goal."""
        return () if self.plan is None else self.plan.free

    @property
    def rounds(self) -> tuple[tuple[Migration, ...], ...]:
        """Migrations of each round: those of one can be done together, within the limits of their owners."""
        if self.plan is None:
            return ()
        numbered = list(zip(self.plan.rounds, self.plan.migrations, strict=True))
        last = max(self.plan.rounds, default=0)
        return tuple(tuple(step for number, step in numbered if number == at) for at in range(1, last + 1))

    @property
    def after(self) -> FleetState | None:
        """State after the migrations; None without a plan."""
        return None if self.plan is None else self.state.after(self.plan.migrations)

    def figures(self) -> Facts:
        """Return migrations with their bound, what they achieve, and what is proven."""
        state, plan, facts = self.state, self.plan, list[tuple[str, str | None]]()
        if plan is not None:
            weighed = plan.weight != len(plan.migrations)
            bound = f"a weight of {self.lower_bound}" if weighed else plural(self.lower_bound, "migration")
            of = len(set(state.nodes)) if self.freeing == "nodes" else state.gpus
            free = f"{len(self.free_before)} before, {len(self.free)} after, at most {self.most_free} of {of}"
            room = (f"{profile}@{start} of GPU {gpu_name(state.devices, gpu)}" for gpu, profile, start in plan.room)
            facts = [
                ("migrations", str(len(plan.migrations))),
                ("weight", str(plan.weight) if weighed else None),
                ("lower bound", bound),
                ("rounds", str(len(self.rounds)) if len(self.rounds) > 1 else None),
                (f"free {self.freeing}", free if self.freeing else None),
                ("fragmentation", f"{self.fragmentation_before:.4f} before, {plan.fragmentation:.4f} after"),
                ("room for", ", ".join(room) or None),
            ]
        return [*facts, ("proven", ", then ".join(_GOALS[goal] for goal in self.proven) or None)]
