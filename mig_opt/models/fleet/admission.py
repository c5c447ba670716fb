"""The most that a fleet without a queue can accept, with all arrivals known: a reference for online schedulers."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack, get_args

from mig_opt.errors import Problem, raise_any
from mig_opt.fleet.admission import Acceptance, Admission, AdmissionGoal, admission_weights
from mig_opt.fleet.trace import Trace, check_jobs, disturbances
from mig_opt.method.control import Control, Limits, run
from mig_opt.method.options import RunKeywords, RunOptions, run_options
from mig_opt.method.registry import Method
from mig_opt.method.report import Facts
from mig_opt.method.result import Result
from mig_opt.models.fleet.admission_programs import (
    UNITS,
    AdmissionProblem,
    Choice,
    PlacesModel,
    migration_program,
    pooled_program,
)
from mig_opt.models.solvers import cpsat
from mig_opt.models.solvers.backend import Request, Values, solve_program
from mig_opt.models.solvers.highs import highs_or_cbc
from mig_opt.models.solvers.linear import LinearProgram
from mig_opt.rules import wrong_choice, wrong_flag, wrong_type
from mig_opt.validation.fleet.admissions import check_admission, too_late_jobs

_NOISE = 1e-7  # share of the whole weight by which the tolerances of a solver may move a bound
# Jobs of a part of a trace for :func:`admission_bound`: what runs over from one part into the next is lost.
_MIN_JOBS_IN_PART, _JOBS_IN_PART_PER_GPU, _MAX_JOBS_IN_PART = 300, 25, 4000
_MAX_TERMS = 200_000  # terms of the program of a part: to write and solve it takes some seconds
_WITH_MIGRATION = "the jobs have to fit on the fleet in each moment, however they migrate"
_ON_PLACEMENT = "each job keeps its placement"
_ON_PLACE = "each job keeps its placement and its GPU"

_METHOD = Method(
    "admission",
    "exact",
    "accepted jobs and their places, by integer and constraint programming",
    "this package, docs/explanation/admission.md",
    "mig_opt.models.fleet.admission:most_accepted",
    packages=("ortools", "pulp", "highspy"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionOptimum(Result[Admission]):
    """Outcome of :func:`mig_opt.optimum`: its plan is an admission, its objective what it turns away.

    No scheduler that gives jobs the profiles that they ask for turns away less than the lower bound, so none accepts
    more than the upper bound.

    Attributes
    ----------
    goal : str
        ``jobs``, ``slices`` or ``slice-seconds``: what is counted.
    migration : bool
        True if the bound holds for schedulers that migrate, stop or resize jobs too. The plan never does.
    trace : Trace
        The jobs and the fleet.
    """

    goal: AdmissionGoal
    migration: bool
    trace: Trace

    @property
    def admission(self) -> Admission | None:
        """The best admission that was found."""
        return self.plan

    @property
    def total(self) -> float:
        """Count of all jobs."""
        return AdmissionProblem(self.trace, self.goal).total / UNITS

    @property
    def objective(self) -> float | None:
        """Count of the jobs that the plan turns away; None without one."""
        return None if self.plan is None else _turned_away(AdmissionProblem(self.trace, self.goal), self.plan)

    @property
    def accepted(self) -> float | None:
        """Count of the jobs that the plan accepts; None without one."""
        return None if self.objective is None else _difference(self.total, self.objective)

    @property
    def upper_bound(self) -> float:
        """No scheduler that gives jobs the profiles that they ask for accepts more."""
        return _difference(self.total, self.lower_bound)

    def figures(self) -> Facts:
        """Return what is counted, and the accepted part with its upper bound."""
        accepted = "-" if self.accepted is None else f"{self.accepted:.6g}"
        return [
            ("goal", self.goal),
            ("accepted", f"{accepted} of {self.total:.6g}"),
            ("at most", f"{self.upper_bound:.6g}"),
        ]


def admission_optimum(
    trace: Trace,
    goal: AdmissionGoal = "jobs",
    *,
    migration: bool = False,
    time_limit: float | None = None,
    **options: Unpack[RunKeywords],
) -> AdmissionOptimum:
    """Return the most that a fleet without a queue can accept of a trace, for somebody who knows all arrivals.

    A job is accepted when it arrives, or never; it holds its place for as long as it runs there alone. Creating and
    destroying instances takes no time, and PCIe slows nobody down: real fleets accept at most as much. The bound holds
    for every scheduler that gives jobs the profile that they ask for.

    Parameters
    ----------
    trace : Trace
        Up to some hundred jobs; with more, what is left unproven grows.
    goal : {"jobs", "slices", "slice-seconds"}
        Count of an accepted job: 1, its compute slices, or these times its seconds, by what it asks for at the least.
    migration : bool
        Bound schedulers that migrate, stop and resize jobs, too. The plan still never migrates, so the two need not
        meet. By default each job keeps the place that it gets.
    time_limit : float, optional
        Seconds.
    **options
        The other :class:`~mig_opt.method.options.RunOptions`, as for :func:`mig_opt.solve`. The objective is what is
        turned away.

    Returns
    -------
    AdmissionOptimum
        The best admission that was found, which has passed the validator. Ctrl-C ends the run early; the best one is
        kept.

    Raises
    ------
    InputError
        If a job can run nowhere, or an argument is wrong.

    Examples
    --------
    First fit would accept "a" and "b" and turn both others away.

    >>> from mig_opt import Job, get_gpu
    >>> jobs = (Job("a", 0.0, {1: 9.0}), Job("b", 1.0, {1: 9.0}), Job("c", 2.0, {4: 5.0}), Job("d", 7.0, {4: 5.0}))
    >>> best = admission_optimum(Trace(jobs, get_gpu("A30")), workers=1)
    >>> best.status.value, best.accepted, best.upper_bound
    ('optimal', 2.0, 2.0)
    >>> best = admission_optimum(Trace(jobs, get_gpu("A30")), "slice-seconds", workers=1)
    >>> [entry.job for entry in best.admission.accepted], best.accepted
    (['c', 'd'], 40.0)
    """
    problems: list[Problem] = [] if isinstance(trace, Trace) else [wrong_type("trace", trace, "a Trace")]
    problems += wrong_choice("goal", goal, choices=get_args(AdmissionGoal))
    problems += wrong_flag("migration", migration)
    problems += [*too_late_jobs(trace), *disturbances(trace)]
    settings = run_options(also=problems, time_limit=time_limit, **options)
    problem = AdmissionProblem(trace, goal)
    control = Control[Admission](settings, judge=lambda admission: (_turned_away(problem, admission),))
    return run(
        control,
        trace,
        _METHOD,
        lambda: most_accepted(problem, control, migration=migration),
        violations=lambda admission: check_admission(trace, admission),
        make_result=functools.partial(AdmissionOptimum, goal=goal, migration=migration, trace=trace),
    )


def most_accepted(problem: AdmissionProblem, control: Control[Admission], *, migration: bool) -> None:
    """Report admissions that turn away ever less, and bounds on that.

    First come an admission in the order of arrivals and the linear program with migration; then the integer programs,
    from the weakest to the strongest that holds, each with half of the time that is left.
    """
    first = {choice.job: choice for choice in reversed(problem.choices)}
    control.report_plan(problem.accept(first.values()))
    control.raise_bound(_relaxed(problem, control, share=0.5) / UNITS, _WITH_MIGRATION)
    if migration:
        _solve_program(problem, control, migration_program(problem, whole=True), {}, _WITH_MIGRATION)
    if not control.expired:
        _solve_program(problem, control, *pooled_program(problem), None if migration else _ON_PLACEMENT)
    if not control.expired:
        _solve_places(problem, control, binding=not migration)


def _turned_away(problem: AdmissionProblem, admission: Admission) -> float:
    names = {entry.job for entry in admission.accepted}
    jobs = problem.trace.jobs
    return sum(weight for job, weight in problem.weights.items() if jobs[job].name not in names) / UNITS


def _difference(total: float, part: float) -> float:
    """Return what is left of a count, in whole thousandths as all counts are."""
    return (round(total * UNITS) - round(part * UNITS)) / UNITS


def _whole(problem: AdmissionProblem, bound: float) -> int:
    """Return the least weight in thousandths that a solver's bound stands for: weights share a divisor."""
    divisor = math.gcd(*problem.weights.values())
    return max(0, math.ceil((bound - _NOISE * problem.total) / divisor) * divisor)


def _relaxed(problem: AdmissionProblem, limits: Limits, *, share: float = 1.0, most_terms: int | None = None) -> int:
    """Return the least that schedulers turn away, however they migrate, by the linear program; 0 without time."""
    program = migration_program(problem, whole=False, most_terms=most_terms).program
    outcome = solve_program(program, highs_or_cbc(), limits, share=share)
    return _whole(problem, outcome.objective) if outcome.proven and outcome.objective is not None else 0


def _solve_program(
    problem: AdmissionProblem,
    control: Control[Admission],
    linear: LinearProgram,
    choices: dict[str, Choice],
    reason: str | None,
) -> None:
    """Solve an integer program: its bound counts if there is a reason, and its solutions as far as they find GPUs."""

    def on_solution(values: Values) -> None:
        control.report_plan(problem.accept(choice for name, choice in choices.items() if values[name] > 0.5))

    def on_bound(bound: float) -> None:
        if reason is not None and math.isfinite(bound):
            control.raise_bound(_whole(problem, bound) / UNITS, reason)

    found = on_solution if choices else None
    solve_program(linear.program, highs_or_cbc(), control, share=0.5, on_solution=found, on_bound=on_bound)


def _solve_places(problem: AdmissionProblem, control: Control[Admission], *, binding: bool) -> None:
    at_least = round(control.lower_bound * UNITS) if binding else 0
    model = PlacesModel(problem, at_least)

    def on_solution(values: Sequence[int]) -> None:
        control.report_plan(model.admission(values))

    def on_bound(bound: int) -> None:
        if binding:
            control.raise_bound(bound / UNITS, _ON_PLACE)

    outcome = cpsat.run(model.model, control, Request(at_least=at_least, on_solution=on_solution, on_bound=on_bound))
    if outcome.values is not None:
        on_solution(outcome.values)
    on_bound(outcome.bound)


def admission_bound(
    trace: Trace, goal: AdmissionGoal = "jobs", *, as_asked: bool = True, time_limit: float | None = None
) -> float:
    """Return an upper bound on what schedulers can accept of a trace, quickly; they may migrate jobs at will.

    It is the linear program of :func:`admission_optimum` with ``migration``. Long traces are cut into parts, whose
    bounds are added up; what runs over from one part into the next is left out, and parts for which there is no time
    count in full. Where very many jobs run at once, only some moments are looked at. With ``as_asked`` the bound is of
    schedulers that give jobs the profiles that they ask for; else of all, those included that give a job any instance
    for which it has seconds, as ``whole-gpu`` does.

    Examples
    --------
    >>> from mig_opt import Job, get_gpu
    >>> jobs = (Job("a", 0.0, {1: 9.0}), Job("b", 1.0, {1: 9.0}), Job("c", 2.0, {4: 5.0}), Job("d", 7.0, {4: 5.0}))
    >>> admission_bound(Trace(jobs, get_gpu("A30")))
    3.0
    """
    problems: list[Problem] = [] if isinstance(trace, Trace) else [wrong_type("trace", trace, "a Trace")]
    problems += wrong_choice("goal", goal, choices=get_args(AdmissionGoal))
    problems += wrong_flag("as_asked", as_asked)
    raise_any(problems)
    check_jobs(trace)
    limits = Limits(RunOptions(time_limit=time_limit, workers=1))
    count = len(trace.jobs)
    parts = math.ceil(count / min(max(_MIN_JOBS_IN_PART, _JOBS_IN_PART_PER_GPU * trace.gpus), _MAX_JOBS_IN_PART))
    least = total = 0
    for part in range(parts):
        problem = AdmissionProblem(trace, goal, count * part // parts, count * (part + 1) // parts, as_asked=as_asked)
        total += problem.total
        if not limits.expired:
            least += _relaxed(problem, limits, most_terms=_MAX_TERMS)
    return (total - least) / UNITS


def acceptance_bound(trace: Trace, *, as_asked: bool = True, time_limit: float | None = None) -> Acceptance:
    """Return upper bounds on the acceptance ratios of schedulers (0 to 1), each by :func:`admission_bound`.

    Examples
    --------
    >>> from mig_opt import Job, get_gpu
    >>> jobs = (Job("a", 0.0, {1: 9.0}), Job("b", 1.0, {1: 9.0}), Job("c", 2.0, {4: 5.0}), Job("d", 7.0, {4: 5.0}))
    >>> acceptance_bound(Trace(jobs, get_gpu("A30")))
    Acceptance(jobs=0.75, slices=0.8, slice_seconds=0.6896551724137931)
    """

    def ratio(goal: AdmissionGoal) -> float:
        most = admission_bound(trace, goal, as_asked=as_asked, time_limit=time_limit)
        return min(1.0, most / math.fsum(admission_weights(trace, goal)))

    return Acceptance(ratio("jobs"), ratio("slices"), ratio("slice-seconds"))
