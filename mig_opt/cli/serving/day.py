"""The options and the answer of ``deploy --rates``: a deployment for each step of a table of rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mig_opt import Demand, Deployment, Status
from mig_opt.cli.answers import EXIT_CODES, NO_PLAN, Answer, Call, File, chart_of, hints_on_time, infeasible
from mig_opt.cli.checks import options_named, refuse
from mig_opt.cli.figures import MOST_ROWS, first_of, joined
from mig_opt.cli.inputs import parsed_share
from mig_opt.cli.serving.promise import promise_document
from mig_opt.cli.serving.reports import demand_facts
from mig_opt.method.registry import get_deploy_method
from mig_opt.method.report import Facts, Report, Table, data_of
from mig_opt.serving.day import Day, DayPlan, DayResult, clock_text
from mig_opt.texts import number_in, plural, seconds

if TYPE_CHECKING:
    from mig_opt.simulation.serving.capacity import Promise

_PRICES = (0.01, 1.0)


@dataclass(frozen=True, slots=True)
class DayOptions:
    """Options of ``deploy`` about rates that change over time; None (or False) where they were not given."""

    rates: Annotated[
        Path | None, "CSV file: column time (seconds or 8:30), one for each service; a deployment for each row."
    ] = None
    margin: Annotated[str | None, "SHARE", "With --rates: forecast error by which rates may be higher, e.g. 10%."] = (
        None
    )
    prices: Annotated[
        str | None,
        "NEW,CUT",
        "With --rates: GPU-hours for each segment that is created, and interrupted.  [default: 0.01,1]",
    ] = None
    step_by_step: Annotated[bool, "With --rates: plan each step for itself, without lookahead."] = False

    def check(self, call: Call) -> None:
        """Note options that need a table of rates where there is none, and others that do not go with one."""
        if self.rates is None:
            own = ("--margin", "--prices", "--step-by-step")
            call.none_of(own, "is for --rates; give a table of rates, or leave it out")
            return
        there = "does not go with --rates: the first deployment of the day is there already; leave out one of them"
        call.none_of(("--from", "--only"), there)
        lacking = call.given.get("--export") is not None and call.given.get("--output") is None
        call.require(not lacking, "--export", "writes a file for each change; give a folder with -o FOLDER")

    def read(self, call: Call, demand: Demand | None, headroom: float) -> Day | None:
        """Return the day, if there is a table of rates, with all rates raised by the headroom."""
        from mig_opt.files.serving.arrivals import read_rates
        from mig_opt.serving.rates import wrong_services

        if self.rates is None:
            return None
        before = len(call.errors)
        rates = call.attempt(read_rates, self.rates)
        margin = 0.0 if self.margin is None else call.attempt(parsed_share, "--margin", self.margin)
        prices = call.attempt(_parsed_prices, self.prices)
        if demand is None or rates is None:
            return None
        call.note(wrong_services(demand, list(rates.rates), "service"), self.rates)
        if len(call.errors) > before:
            return None
        with call.step(), options_named({"creation_price": "--prices", "interruption_price": "--prices"}):
            return Day(demand, rates, (1 + margin) * (1 + headroom) - 1 if headroom else margin, *prices)
        return None


def _parsed_prices(text: str | None) -> tuple[float, float]:
    """Return the figures of ``0.01,1``."""
    if text is None:
        return _PRICES
    first, *others = [number_in(part.strip()) for part in text.split(",")]
    if isinstance(first, str) or len(others) != 1 or isinstance(others[0], str):
        refuse("--prices", f"must be two figures such as 0.01,1, is {text!r}")
    return first, others[0]


def run_day(day: Day, method: str, promise: Promise | None, *, lookahead: bool, **given: Any) -> DayResult:
    """Return what the method finds for a day, with the promise if there is one."""
    from mig_opt.api.deploy.days import deploy_day, deploy_day_with_promise

    run = deploy_day if promise is None else partial(deploy_day_with_promise, promise=promise)
    prices = data_of(day, "margin", "creation_price", "interruption_price")
    return run(day.demand, day.rates, method=method, lookahead=lookahead, **prices, **given)


def day_folder(
    plan: DayPlan | None, folder: Path | None, noun: str, suffix: str, text: Callable[[Deployment, Any], str]
) -> File:
    """Return the folder with a file for the first step and for each change; their texts come from a function."""
    files = {}
    if plan is not None and folder is not None:
        for step in (0, *plan.changed):
            name = clock_text(plan.times[step]).replace(":", "-").rjust(5, "0")
            # Of two in the same millisecond the second is named after its step, too.
            own = f"{name}-step-{step}" if f"{name}{suffix}" in files else name
            files[f"{own}{suffix}"] = text(plan.deployments[step], plan.changes[step - 1] if step else None)
    said = ", each named after the time when it begins."
    return File(plural(len(files), noun), folder, files or None, said, absent=NO_PLAN)


def day_answer(
    result: DayResult, time_limit: float | None, folder: File, chart: Path | None, *, tables: bool
) -> Answer:
    """Return the answer of ``deploy`` for a day."""
    plan = result.plan
    more = promise_document(result)
    remarks = hints_on_time(get_deploy_method(result.method), result, time_limit)
    if plan is not None and plan.interrupted:
        remarks.append("More GPUs, or a higher price for interruptions, may save services from them.")
    said = []
    if plan is None and result.status is Status.INFEASIBLE:
        said = [infeasible([result.reason])]
    elif plan is None and result.status is not Status.INTERRUPTED:
        known = f": {result.reason}" if more and result.reason else " in time; --time-limit S allows for more"
        said = [f"no plan was found{known}"]
    changes = [_changes(result, plan)] if plan is not None and plan.changed and tables else []
    report = Report(_facts(result), changes, remarks, _data(result) | more)
    files = [folder, chart_of("plan", chart, None if plan is None else result)]
    return Answer(report, EXIT_CODES.get(result.status, 0), files, said=said)


def _facts(result: DayResult) -> Facts:
    day = result.day
    assert day is not None
    hours = float(sum(day.hours))
    begin, end = day.rates.times[0], day.rates.times[-1]
    return [
        *demand_facts(day.demand),
        ("rates", f"{plural(day.steps, 'step')}, {clock_text(begin)} to {clock_text(end)} ({hours:g} h)"),
        ("margin", f"{100 * day.margin:g} %" if day.margin else None),
        *result.facts(),
    ]


def _changes(result: DayResult, plan: DayPlan) -> Table:
    rows = []
    costs = plan.gpus if result.day is None else result.day.costs(plan)
    for step in plan.changed[:MOST_ROWS]:
        change = plan.changes[step - 1]
        services = dict.fromkeys(one.service for entry in change.steps for one in (entry.begins, entry.ends) if one)
        rows.append(
            [
                clock_text(plan.times[step]),
                f"{costs[step - 1]:.6g} -> {costs[step]:.6g}",
                f"{result.least_costs[step]:.6g}",
                str(sum(one.begins is not None for one in change.steps)),
                str(sum(one.ends is not None for one in change.steps)),
                str(len(change.interrupted)),
                seconds(change.duration),
                ", ".join(services),
            ]
        )
    unit = ">GPUs" if result.counted else ">cost"
    columns = ["time", unit, ">least", ">begin", ">end", ">cut", ">seconds", "/services"]
    notes = ["begin, end, cut: segments that begin, end, and are interrupted."]
    return Table(columns, rows, joined([*notes, *first_of(len(plan.changed), "changes", "; --json has all.")]))


def _data(result: DayResult) -> dict[str, Any]:
    from mig_opt.files.serving.deployment_results import change_document
    from mig_opt.files.serving.deployments import DEPLOYMENT

    plan = result.plan
    costs = () if plan is None or result.day is None else result.day.costs(plan)
    steps = []
    if plan is not None:
        steps = [
            {
                "begin_s": plan.times[step],
                "end_s": plan.times[step + 1],
                "gpus": deployment.used_gpus,
                "fewest_gpus": None if result.fewest_gpus is None else result.fewest_gpus[step],
                "cost": costs[step],
                "least_cost": result.least_costs[step],
                "change": change_document(plan.changes[step - 1]) if step else None,
                "deployment": DEPLOYMENT.document(deployment),
            }
            for step, deployment in enumerate(plan.deployments)
        ]
    return {
        **data_of(result, "status", "method"),
        "cost": result.objective,
        **data_of(result, "lower_bound", "gap"),
        "gpu_hours": None if plan is None else plan.gpu_hours,
        "gpu_hours_bound": result.gpu_hours_bound,
        "changes": None if plan is None else len(plan.changed),
        "created": None if plan is None else plan.created,
        "interrupted": None if plan is None else plan.interrupted,
        "runtime_s": result.runtime_s,
        "steps": steps,
    }
