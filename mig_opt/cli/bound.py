"""The commands bound and services bound."""

from __future__ import annotations

from mig_opt.cli import options
from mig_opt.cli.answers import Answer, code_of, infeasible
from mig_opt.cli.problems import Given, given_problem, given_services
from mig_opt.method.report import Report


def bound(batch: options.BatchArgument, *, given: options.ProblemOptions) -> Answer:
    """Show lower bounds on the makespan that need no solver.

    Exits with 1 if they show that there is no schedule at all. For services: mig-opt services bound.

    Examples
    --------
    mig-opt bound rodinia-a30
    mig-opt bound tasks.csv --gpu H100
    """
    return _bounded(given_problem(batch, None, given))


def services_bound(services: options.ServicesArgument, *, given: options.ServicesOptions) -> Answer:
    """Show lower bounds on the number of GPUs.

    Exits with 1 if they show that there is no deployment at all.

    Examples
    --------
    mig-opt services bound parvagpu-s3
    mig-opt services bound services.json --slo-share 0.4
    """
    return _bounded(given_services(services, given))


def _bounded(given: Given) -> Answer:
    """Return the lower bounds of a problem."""
    problem = given.load()
    found = given.kind.bounds(problem)
    why = infeasible(found.remarks) if found.remarks else ""
    facts = [*given.kind.facts(problem), *found.facts, (given.kind.noun, "there is none" if why else None)]
    return Answer(Report(facts, found.parts, data=found.data), code_of(good=not why), why=why)
