"""Places of one step's segments after those of the step before: the fewest new ones for given numbers."""

from __future__ import annotations

from mig_opt.method.control import Limits
from mig_opt.models.serving.day_counts import Counts, DayProblem
from mig_opt.models.serving.fewest_changes import ChangeProgram
from mig_opt.models.solvers.backend import Values, solve_program
from mig_opt.models.solvers.highs import highs_or_cbc
from mig_opt.serving.bounds import Relaxation
from mig_opt.serving.deployment import Deployment


def fewest_new(
    problem: DayProblem,
    step: int,
    before: Deployment,
    counts: Counts,
    control: Limits,
    *,
    known: Deployment,
    least: int,
    share: float,
) -> Deployment:
    """Return a deployment with given numbers of segments of which as few as possible are new.

    Parameters
    ----------
    problem : DayProblem
        The day.
    step : int
        The step; it has requests.
    before : Deployment
        That of the step before.
    counts : Counts
        Numbers of segments.
    control : Limits
        Time and seed.
    known : Deployment
        A deployment with these numbers.
    least : int
        Number of changes that no such deployment falls below.
    share : float
        The part of the remaining time that the solver may take.
    """
    demand = problem.day.demands[step]
    changes = before.changes_to(known)
    assert demand is not None
    if changes <= least or control.expired:
        return known
    program = ChangeProgram(demand, Relaxation(demand), before)
    if not program.choices:
        return known
    program.fix(
        {
            (service, option.pool, option.profile.name): counts.get((service, kind), 0)
            for service, ways in problem.ways.items()
            for kind, option in ways
        }
    )
    program.limit(known.used_gpus, known.compute_slices, changes - 1, least)
    best = known

    def report(values: Values) -> None:
        nonlocal best
        found = program.deployment(values)
        if found is not None and before.changes_to(found) < before.changes_to(best):
            best = found

    solve_program(program.linear.program, highs_or_cbc(), control, share=share, on_solution=report)
    return best
