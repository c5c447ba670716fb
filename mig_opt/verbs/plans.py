"""Plans and problems: whether a plan is valid, what bounds it, and the best one with hindsight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from mig_opt.verbs import function_for, function_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mig_opt.batch.batch import Batch
    from mig_opt.batch.bounds import Bound
    from mig_opt.batch.schedule import Schedule
    from mig_opt.fleet.admission import Acceptance, AdmissionGoal
    from mig_opt.fleet.bounds import TraceBounds
    from mig_opt.fleet.state import FleetState, Migration
    from mig_opt.fleet.trace import Trace
    from mig_opt.gpu.model import OperationCosts
    from mig_opt.method.options import RunKeywords
    from mig_opt.models.fleet.admission import AdmissionOptimum
    from mig_opt.models.fleet.arrivals import TraceGoal
    from mig_opt.models.fleet.optimum import TraceOptimum
    from mig_opt.serving.bounds import FleetBound
    from mig_opt.serving.change_plan import ChangePlan
    from mig_opt.serving.day import Day, DayPlan
    from mig_opt.serving.demand import Demand
    from mig_opt.serving.deployment import Deployment
    from mig_opt.validation import (
        ChangeValidation,
        DayValidation,
        DeploymentValidation,
        MigrationValidation,
        Validation,
    )

VALIDATORS = {
    "Batch": "mig_opt.validation.batch.schedules:validate",
    "Demand": "mig_opt.validation.serving.deployments:validate_deployment",
    "Deployment": "mig_opt.validation.serving.changes:validate_change",
    "Day": "mig_opt.validation.serving.days:validate_day",
    "FleetState": "mig_opt.validation.fleet.migrations:validate_migrations",
}

BOUNDS = {
    "Batch": "mig_opt.batch.bounds:lower_bounds",
    "Demand": "mig_opt.serving.bounds:fleet_bounds",
    "Trace": "mig_opt.fleet.bounds:trace_bounds",
}
_ACCEPTANCE = {"Trace": "mig_opt.models.fleet.admission:acceptance_bound"}

OPTIMA = {
    **dict.fromkeys(("makespan", "completion"), "mig_opt.models.fleet.optimum:trace_optimum"),
    **dict.fromkeys(("jobs", "slices", "slice-seconds"), "mig_opt.models.fleet.admission:admission_optimum"),
}


@overload
def validate(batch: Batch, schedule: Schedule, /, *, tolerance: float = 1e-6) -> Validation: ...
@overload
def validate(demand: Demand, deployment: Deployment, /, *, tolerance: float = 1e-9) -> DeploymentValidation: ...
@overload
def validate(
    running: Deployment,
    deployment: Deployment,
    change: ChangePlan,
    /,
    *,
    demand: Demand | None = None,
    operations: Mapping[str, OperationCosts] | None = None,
    tolerance: float = 1e-6,
) -> ChangeValidation: ...
@overload
def validate(day: Day, plan: DayPlan, /) -> DayValidation: ...
@overload
def validate(
    state: FleetState,
    migrations: Iterable[Migration],
    /,
    *,
    room: Iterable[tuple[int, str, int]] = (),
    fragmentation: float | None = None,
    within_gpus: bool = False,
    most_migrations: int | None = None,
    rounds: Sequence[int] = (),
    per_owner: int | None = None,
) -> MigrationValidation: ...
def validate(problem: Any, /, *plan: Any, **options: Any) -> Any:
    """Check a plan against every rule of its problem.

    Parameters
    ----------
    problem : Batch, Demand, Day, FleetState or Deployment
        What was to be planned; of a change, the deployment that is running.
    *plan : Schedule, Deployment, DayPlan, iterable of Migration, or Deployment and ChangePlan
        The plan of a batch, a demand, a day, a state, or of a change to another deployment.
    **options
        Those of :func:`mig_opt.validation.validate`, :func:`mig_opt.validation.validate_deployment`,
        :func:`mig_opt.validation.validate_day`, :func:`mig_opt.validation.validate_migrations` and
        :func:`mig_opt.validation.validate_change`.

    Returns
    -------
    Validation, DeploymentValidation, DayValidation, MigrationValidation or ChangeValidation
        All violations, not only the first, and the figures of the plan, recomputed.

    Raises
    ------
    InputError
        If an argument is of another type, or an option makes no sense.

    Examples
    --------
    >>> from mig_opt import load, solve
    >>> batch = load("rodinia-a30")
    >>> validate(batch, solve(batch, "far").schedule).valid
    True
    """
    return function_for(type(problem), VALIDATORS, "problem")(problem, *plan, **options)


@overload
def bounds(problem: Batch) -> tuple[Bound, ...]: ...
@overload
def bounds(problem: Demand) -> tuple[FleetBound, ...]: ...
@overload
def bounds(problem: Trace, *, resizing: bool = True) -> TraceBounds: ...
@overload
def bounds(
    problem: Trace, *, reject: Literal[True], as_asked: bool = True, time_limit: float | None = None
) -> Acceptance: ...
def bounds(problem: Any, *, reject: bool = False, **options: Any) -> Any:
    """Return bounds that no plan of a problem can pass, each with its reason.

    Parameters
    ----------
    problem : Batch, Demand or Trace
        Tasks, whose makespan is bounded; services, whose number of GPUs is; or jobs that arrive over time.
    **options
        Those below, of a trace.
    resizing : bool
        False for a trace if schedulers migrate no running job to an instance of another size.
    reject : bool
        True for a trace on a fleet without a queue: how many jobs, slices and slice-seconds can be accepted.
    as_asked : bool
        With ``reject``: False for schedulers that give jobs other instances than they ask for.
    time_limit : float
        With ``reject``: seconds for the computation.

    Returns
    -------
    tuple of Bound, tuple of FleetBound, TraceBounds or Acceptance
        Lower bounds in seconds or GPUs; with ``reject`` upper bounds of acceptance ratios.

    Raises
    ------
    InputError
        If this is no such problem, or it has no plan at all.

    Examples
    --------
    >>> from mig_opt import load
    >>> round(max(bound.value for bound in bounds(load("rodinia-a30"))), 3)
    24.734
    """
    return function_for(type(problem), _ACCEPTANCE if reject else BOUNDS, "problem")(problem, **options)


@overload
def optimum(
    trace: Trace, goal: TraceGoal = "makespan", *, time_limit: float | None = None, **options: Unpack[RunKeywords]
) -> TraceOptimum: ...
@overload
def optimum(
    trace: Trace,
    goal: AdmissionGoal,
    *,
    migration: bool = False,
    time_limit: float | None = None,
    **options: Unpack[RunKeywords],
) -> AdmissionOptimum: ...
def optimum(trace: Trace, goal: str = "makespan", **options: Any) -> Any:
    """Return the best that a scheduler could do with a trace if it knew all arrivals.

    Parameters
    ----------
    trace : Trace
        The jobs and the fleet.
    goal : str
        ``makespan`` or ``completion`` (the sum of all ends) of a fleet with a queue; ``jobs``, ``slices`` or
        ``slice-seconds`` to accept on a fleet without one.
    **options
        Those of :func:`mig_opt.models.fleet.optimum.trace_optimum` and
        :func:`mig_opt.models.fleet.admission.admission_optimum`: the same as of :func:`mig_opt.solve`, and
        ``migration`` without a queue.

    Returns
    -------
    TraceOptimum or AdmissionOptimum
        The plan with its bound.

    Raises
    ------
    InputError
        If an argument is wrong, or a job can run nowhere.
    """
    from mig_opt.errors import raise_any
    from mig_opt.fleet.trace import Trace
    from mig_opt.rules import wrong_class

    raise_any(wrong_class("trace", trace, Trace))
    return function_in(OPTIMA, goal, "goal")(trace, goal, **options)
