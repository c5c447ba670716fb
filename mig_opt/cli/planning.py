"""Commands for several problems: validate, bound, plot, script. The files tell which problem it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from mig_opt.cli.batch.plans import BatchPlans
from mig_opt.cli.inputs import parsed_devices, piped
from mig_opt.cli.options import DevicesOption, JsonOption, PlanArgument, ProblemArgument, ProblemOptions, output_option
from mig_opt.cli.outcome import ANSWER_IS_NO, Checks, print_json, say, say_infeasible
from mig_opt.cli.plans import Plans, chosen_plans, violations_document
from mig_opt.cli.screens import bullets, card, show, show_remarks, show_written
from mig_opt.cli.serving.plans import ServingPlans
from mig_opt.texts import plural

_PROBLEMS: tuple[type[Plans[Any, Any, Any]], ...] = (BatchPlans, ServingPlans)


def _plans(argument: str, plan: Path | None, options: ProblemOptions, **for_batches: object) -> Plans[Any, Any, Any]:
    """Return what a command does for the kind of problem that its arguments are about."""
    document = piped(argument)
    values = {problem: problem.own_options(options) for problem in _PROBLEMS}
    values[BatchPlans] |= for_batches
    given = {
        problem: [option for option, value in own.items() if value is not None and value is not False]
        for problem, own in values.items()
    }
    return chosen_plans(_PROBLEMS, argument, document, plan, given)(argument, document, options)


def validate(
    batch: ProblemArgument,
    schedule: PlanArgument,
    *,
    options: ProblemOptions,
    tolerance: Annotated[
        float | None,
        Option(
            metavar="S",
            help="By how much times may differ, or a share for figures of services.  [default: 1e-6 s; 1e-9]",
        ),
    ] = None,
    output: Annotated[Path | None, output_option("Write the schedule with the operations that were found.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a schedule of a batch, or a deployment of services, against every rule.

    A schedule without operations is valid if there are operations that make it so; they are looked for.
    Exits with 0 if it is valid, else 1.
    """
    plans = _plans(batch, schedule, options, **{"-o": output})
    problem, plan = plans.read(schedule, output=output)
    found = plans.validate(problem, plan, tolerance)
    if output is not None and found.valid:
        from mig_opt.files import write_schedule

        write_schedule(found.schedule, output)
    if as_json:
        violations = violations_document(found.violations)
        print_json({"valid": found.valid, **plans.figures(found), "violations": violations})
    else:
        show(*plans.validation_parts(problem, plan, found))
        if not found.valid:
            show("", bullets(map(str, found.violations)))
        remarks = plans.remarks(plan, found)
        if output is not None:
            remarks.append(f"Schedule written to {output}." if found.valid else f"Nothing written to {output}.")
        show_remarks(remarks)
    raise typer.Exit(0 if found.valid else ANSWER_IS_NO)


def bound(batch: ProblemArgument, *, options: ProblemOptions, as_json: JsonOption = False) -> None:
    """Show lower bounds that need no solver: on the makespan, or on the number of GPUs for services.

    Exits with 1 if they show that there is no schedule or deployment at all.
    """
    plans = _plans(batch, None, options)
    problem = plans.load()
    found = plans.bounds(problem)
    if as_json:
        print_json({"lower_bound": found.best, "bounds": found.document})
        if found.reasons:
            say_infeasible(found.reasons)
    else:
        bound_text = None if found.best is None else found.text
        none = "there is none" if found.reasons else None
        show(card([*plans.rows(problem), ("lower bound", bound_text), (plans.noun, none)]))
        if found.reasons:
            show("", bullets(found.reasons))
        if found.best is not None:
            show("", found.table)
    raise typer.Exit(ANSWER_IS_NO if found.reasons else 0)


def plot(
    batch: ProblemArgument,
    schedule: PlanArgument,
    out: Annotated[Path, Argument(metavar="OUT", help=".png, .pdf or .svg file.", show_default=False)],
    *,
    options: ProblemOptions,
    lower_bound: Annotated[float | None, Option(metavar="S", help="Seconds, drawn as a line.")] = None,
) -> None:
    """Draw a schedule as a Gantt chart, or which services are on which GPU of a deployment.

    A schedule without operations is drawn with some that make it feasible, what is not valid as it is.
    """
    plans = _plans(batch, schedule, options, **{"--lower-bound": lower_bound})
    problem, plan = plans.read(schedule, out)
    found = plans.validate(problem, plan)
    if not found.valid:
        say(f"warning: the {plans.noun} is not valid ({_violations(found)}); see: mig-opt validate")
    plans.draw(problem, found, plan, out, lower_bound)
    show_written("Chart", out)


def script(
    batch: ProblemArgument,
    schedule: PlanArgument,
    out: Annotated[Path, Argument(metavar="OUT", help="File for bash.", show_default=False)],
    *,
    options: ProblemOptions,
    devices: DevicesOption = None,
) -> None:
    """Write a bash script that carries out a schedule or a deployment: nvidia-smi commands, and hooks for the rest.

    A schedule without operations gets some. Exits with 1 if it or the deployment is not valid; nothing is written then.
    """
    from mig_opt.files.documents import write_text

    plans = _plans(batch, schedule, options)
    checks, count = Checks(), None
    with checks.step():
        problem, plan = plans.read(schedule, output=out)
        count = plans.number_of_gpus(problem, plan)
        plans.check_script(plan, schedule)
    with checks.step():
        names = parsed_devices(devices, count)
    checks.finish()
    found = plans.validate(problem, plan)
    if not found.valid:
        say(f"The {plans.noun} is not valid ({_violations(found)}); see: mig-opt validate")
        raise typer.Exit(ANSWER_IS_NO)
    write_text(out, plans.script(problem, found, plan, names))
    show_written("Script", out, hooks=plans.hooks)


def _violations(found: Any) -> str:
    return plural(len(found.violations), "violation")
