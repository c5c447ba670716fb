"""Commands for plans: validate, bound, plot, script. The files tell which problem it is.

The commands of services alone are in :mod:`mig_opt.cli.serving.planning`; what they do is here.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Annotated

from typer import Option

from mig_opt.cli import options
from mig_opt.cli.inputs import is_table, parsed_devices, piped
from mig_opt.cli.outcome import Checks, finish, print_json, say, say_infeasible
from mig_opt.cli.plans import BatchPlans, Plans, ServingPlans
from mig_opt.cli.screens import bullets, card, show, show_remarks, show_written
from mig_opt.errors import InputError, Problem
from mig_opt.texts import plural

PROBLEMS: tuple[type[Plans], ...] = (BatchPlans, ServingPlans)
"""The kinds of problems; the first one is meant where nothing tells."""


def chosen_plans(argument: str, plan: Path | None, given: options.ProblemOptions, **for_batches: object) -> Plans:
    """Return what a command works on: a problem of the kind that its arguments are about.

    The kind of the file that ``argument`` names decides, if it can be told; else that of the plan, or options that are
    for one kind alone, as ``for_batches`` are. Options of another kind are refused.
    """
    document = piped(argument)
    kind = _kind(argument, document)
    defaults = {field.name: field.default for field in dataclasses.fields(given)}
    values = {name: getattr(given, name) for name in defaults}
    named = {name for name, default in defaults.items() if values[name] not in (default, [])}
    own = {
        problem: [f"--{name.replace('_', '-')}" for name in problem.own_options if name in named]
        for problem in PROBLEMS
    }
    own[BatchPlans] += [option for option, value in for_batches.items() if value is not None]
    chosen = next((problem for problem in PROBLEMS if problem.kind == kind), None)
    if chosen is None:
        plan_kind = None if plan is None else _kind(str(plan), None)
        serves = own[ServingPlans] or plan_kind in ServingPlans.plan_kinds
        chosen = ServingPlans if serves else BatchPlans
        return _plans(chosen, argument, document, given)
    wrong = [
        Problem(option, f"is for {problem.plural}, but {argument} {chosen.predicate}; leave it out")
        for problem in PROBLEMS
        if problem is not chosen
        for option in own[problem]
    ]
    if wrong:
        raise InputError(wrong)
    return _plans(chosen, argument, document, given)


def _plans(
    problem: type[Plans], argument: str, document: bytes | None, given: options.ProblemOptions
) -> BatchPlans | ServingPlans:
    if problem is ServingPlans:
        return ServingPlans(argument, document, given.for_services())
    return BatchPlans(argument, document, given)


def _kind(name: str, document: bytes | None) -> str | None:
    """Return the kind of file that an argument names, None if that cannot be told."""
    from mig_opt.files.documents import read_text
    from mig_opt.files.recognition import document_kind
    from mig_opt.instances.bundled import instance_names

    if document is not None:
        return document_kind(document)
    if not os.access(name, os.F_OK):
        return "batch" if name in instance_names() else "services" if name in instance_names("demand") else None
    try:
        return document_kind(read_text(name), table=is_table(name))
    except InputError:  # reported where the file is read
        return None


def validate(
    batch: options.BatchArgument,
    schedule: options.ScheduleArgument,
    *,
    given: options.ProblemOptions,
    tolerance: Annotated[
        float | None, Option(metavar="S", help="Seconds by which times may differ.  [default: 1e-6]")
    ] = None,
    output: Annotated[Path | None, options.output("Write the schedule with the operations that were found.")] = None,
    as_json: options.Json = False,
) -> None:
    """Check a schedule of a batch against every rule.

    A schedule without operations is valid if there are operations that make it so; they are looked for.
    Exits with 0 if it is valid, else 1. For deployments: mig-opt services validate.
    """
    plans = chosen_plans(batch, schedule, given, **{"-o": output})
    validate_plan(plans, schedule, tolerance, output, as_json=as_json)


def bound(batch: options.BatchArgument, *, given: options.ProblemOptions, as_json: options.Json = False) -> None:
    """Show lower bounds on the makespan that need no solver.

    Exits with 1 if they show that there is no schedule at all. For services: mig-opt services bound.
    """
    bound_problem(chosen_plans(batch, None, given), as_json=as_json)


def plot(
    batch: options.BatchArgument,
    schedule: options.ScheduleArgument,
    out: options.PictureArgument,
    *,
    given: options.ProblemOptions,
    lower_bound: Annotated[float | None, Option(metavar="S", help="Seconds, drawn as a line.")] = None,
) -> None:
    """Draw a schedule as a Gantt chart.

    A schedule without operations is drawn with some that make it feasible, what is not valid as it is. For
    deployments: mig-opt services plot.
    """
    plans = chosen_plans(batch, schedule, given, **{"--lower-bound": lower_bound})
    plot_plan(plans, schedule, out, lower_bound)


def script(
    batch: options.BatchArgument,
    schedule: options.ScheduleArgument,
    out: options.ScriptArgument,
    *,
    given: options.ProblemOptions,
    devices: options.Devices = None,
) -> None:
    """Write a bash script that carries out a schedule.

    It has nvidia-smi commands, and hooks for the rest. A schedule without operations gets some. Exits with 1 if the
    schedule is not valid; nothing is written then. For deployments: mig-opt services script.
    """
    script_plan(chosen_plans(batch, schedule, given), schedule, out, devices)


def validate_plan(
    plans: Plans, path: Path, tolerance: float | None, output: Path | None = None, *, as_json: bool
) -> None:
    """Check a plan in a file, and end the command."""
    plans.read(path, output=output)
    plans.found = found = plans.validate(tolerance)
    if output is not None and found.valid:
        from mig_opt.files.batch.schedules import write_schedule

        write_schedule(found.schedule, output)
    if as_json:
        shares = plans.shares() if found.valid else {}
        violations = list(map(dataclasses.asdict, found.violations))
        figure = {plans.figure: getattr(found, plans.figure)}
        print_json({"valid": found.valid, **figure, **shares, "violations": violations})
    else:
        show(*plans.validation_parts())
        if not found.valid:
            show("", bullets(map(str, found.violations)))
        remarks = plans.remarks()
        if output is not None:
            remarks.append(f"Schedule written to {output}." if found.valid else f"Nothing written to {output}.")
        show_remarks(remarks)
    finish(good=found.valid)


def bound_problem(plans: Plans, *, as_json: bool) -> None:
    """Show the lower bounds of a problem, and end the command."""
    plans.problem = plans.load()
    found = plans.bounds()
    if as_json:
        print_json({"lower_bound": found.best, "bounds": found.document})
        if found.reasons:
            say_infeasible(found.reasons)
    else:
        bound_text = None if found.best is None else found.text
        none = "there is none" if found.reasons else None
        show(card([*plans.rows(), ("lower bound", bound_text), (plans.noun, none)]))
        if found.reasons:
            show("", bullets(found.reasons))
        if found.best is not None:
            show("", found.table)
    finish(good=not found.reasons)


def plot_plan(plans: Plans, path: Path, out: Path, lower_bound: float | None = None) -> None:
    """Draw a plan in a file."""
    plans.read(path, out)
    plans.found = plans.validate()
    if not plans.found.valid:
        say(f"warning: the {plans.noun} is not valid ({_violations(plans)}); see: mig-opt validate")
    plans.draw(out, lower_bound)
    show_written("Chart", out)


def script_plan(plans: Plans, path: Path, out: Path, devices: str | None) -> None:
    """Write a script that carries out a plan in a file."""
    from mig_opt.files.documents import write_text

    checks, count = Checks(), None
    with checks.step():
        plans.read(path, output=out)
        count = plans.number_of_gpus()
        plans.check_script(path)
    names = checks.attempt(parsed_devices, devices, count)
    checks.finish()
    plans.found = plans.validate()
    if not plans.found.valid:
        say(f"The {plans.noun} is not valid ({_violations(plans)}); see: mig-opt validate")
        finish(good=False)
    write_text(out, plans.script(names))
    show_written("Script", out, hooks=plans.hooks)


def _violations(plans: Plans) -> str:
    return plural(len(plans.found.violations), "violation")
