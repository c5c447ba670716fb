"""The command explain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

from mig_opt import Batch
from mig_opt import explain as find_explanation
from mig_opt.api.explain import Conflict, Explanation, Remedy, RequirementKind, Verdict
from mig_opt.api.explain.explainer import DEFAULT_TIME_LIMIT, check_question
from mig_opt.cli import options
from mig_opt.cli.answers import Answer, Call, code_of
from mig_opt.cli.batch.reports import batch_facts
from mig_opt.cli.inputs import load_batch
from mig_opt.method.report import Part, Points, Report, bad, data_of, dim, good, unclear
from mig_opt.texts import in_seconds, plural, seconds

MOST_TASKS = 12
"""Tasks up to which each has a line of its own, for each kind of requirement."""

MOST_MISFITS = 10
"""Tasks that fit nowhere up to which each is shown."""

MOST_REMEDIES = 30
"""Changes that are shown."""

_MARK = " (?)"  # behind what is not proven to be needed

_MANY = {
    RequirementKind.TASK: "tasks must run",
    RequirementKind.SIZES: "of them have no time on some sizes",
    RequirementKind.MEMORY: "of them need memory",
}


def explain(
    call: Call,
    batch: options.BatchArgument,
    *,
    target: Annotated[
        float | None, "S", "Seconds that the makespan should not exceed.  [default: just below the bound]"
    ] = None,
    given: options.BatchOptions,
    time_limit: options.TimeLimit = DEFAULT_TIME_LIMIT,
    seed: options.Seed = 0,
    workers: options.Workers = None,
) -> Answer:
    """Say why there is no schedule, or none within the target.

    The answer is a set of requirements that cannot be met together, none of them superfluous, and single changes that
    would help. Without a target: why no schedule is shorter than the best lower bound.
    Exits with 0 if there is a schedule (within the target), else 1, and 130 after Ctrl-C.

    Examples
    --------
    mig-opt explain rodinia-a30
    mig-opt explain rodinia-a30 --target 28
    """
    call.attempt(check_question, target, time_limit=time_limit, seed=seed, workers=workers)
    problem = call.attempt(load_batch, batch, given)
    call.begin()
    found = find_explanation(problem, target, time_limit=time_limit, seed=seed, workers=workers)
    code = code_of(good=found.verdict is Verdict.POSSIBLE, interrupted=found.interrupted)
    return Answer(_report(problem, found, time_limit), code)


def _report(batch: Batch, found: Explanation, time_limit: float) -> Report:
    facts = [
        *batch_facts(batch),
        ("target", in_seconds(found.target)),
        ("answer", _answer(found)),
        ("best known", in_seconds(found.makespan)),
        ("lower bound", in_seconds(found.lower_bound or None)),
    ]
    parts: list[Part] = [
        Points(
            list(_requirements(conflict)), _heading(conflict, found), " ".join(_remarks(conflict, found, time_limit))
        )
        for conflict in found.conflicts[:MOST_MISFITS]
    ]
    if len(found.conflicts) > MOST_MISFITS:
        parts.append(dim(f"{len(found.conflicts) - MOST_MISFITS} more fit nowhere: --json has all."))
    if found.remedies:
        goal = "a shorter schedule" if found.target is None else "the target"
        heading = "What would mend it:" if math.isinf(found.lower_bound) else f"What would make {goal} possible:"
        parts.append(Points(list(map(_spelled, found.remedies[:MOST_REMEDIES])), heading))
    data = {
        **data_of(found, "verdict", "target", "makespan", "lower_bound"),
        "conflicts": list(map(_conflict_data, found.conflicts)),
        **data_of(found, "remedies", "interrupted", "runtime_s"),
    }
    remarks = ["Interrupted: not everything was looked at."] if found.interrupted else []
    return Report(facts, parts, remarks, data)


def _conflict_data(conflict: Conflict) -> dict[str, Any]:
    requirements = [
        {**data_of(requirement, "kind", "path", "text", "task"), "needed": requirement not in conflict.open}
        for requirement in conflict.requirements
    ]
    return {**data_of(conflict, "target", "lower_bound", "makespan", "minimal"), "requirements": requirements}


def _answer(found: Explanation) -> str:
    if found.verdict is Verdict.UNKNOWN:
        return unclear("not known, interrupted" if found.interrupted else "not known, the time is over")
    if found.verdict is Verdict.POSSIBLE:
        return good("possible")
    return bad("infeasible" if math.isinf(found.lower_bound) else "impossible")


def _heading(conflict: Conflict, found: Explanation) -> str:
    if conflict.target is None:
        return f"Task {conflict.requirements[0].task!r} fits nowhere:"
    count = plural(len(conflict.requirements) - 1, "requirement")
    if found.target is None:
        goal = f"No schedule ends before {seconds(found.lower_bound)} s"
    else:
        goal = f"No schedule ends within {seconds(conflict.target)} s"
    if len(conflict.requirements) == 2:
        return f"{goal}, because of this requirement alone:"
    if conflict.minimal:
        return f"{goal}, because of {count}. Without any one of them the others could be met:"
    return f"{goal}, because of {count}, perhaps of fewer:"


def _requirements(conflict: Conflict) -> Iterator[str]:
    """Yield a line for each requirement but the target, and one for all of a kind if they are about many tasks."""
    for kind in RequirementKind:
        entries = [entry for entry in conflict.requirements if entry.kind is kind]
        if len(entries) > MOST_TASKS and kind in _MANY:
            names = ", ".join(repr(entry.task) for entry in entries[:MOST_TASKS])
            some = sum(entry in conflict.open for entry in entries)
            mark = f" ({some} of them{_MARK})" if some else ""
            yield f"{len(entries)} {_MANY[kind]}{mark}: {names} and {len(entries) - MOST_TASKS} more (--json has all)"
        elif kind is not RequirementKind.TARGET:
            yield from (f"{entry}{_MARK * (entry in conflict.open)}" for entry in entries)


def _remarks(conflict: Conflict, found: Explanation, time_limit: float) -> Iterator[str]:
    """Yield sentences that say how long the requirements take, and what is not proven."""
    if conflict.target is None:
        return
    if found.target is not None:
        more = f"{seconds(conflict.lower_bound - conflict.target)} s more than the target"
        if conflict.makespan is None:
            yield f"They take at least {seconds(conflict.lower_bound)} s, {more}."
        elif conflict.makespan <= conflict.lower_bound:
            yield f"They take {seconds(conflict.makespan)} s, {more}."
        else:
            yield (
                f"They take at least {seconds(conflict.lower_bound)} s, {more}, and at most "
                f"{seconds(conflict.makespan)} s."
            )
    if conflict.open:
        reason = (
            "the work was interrupted"
            if found.interrupted
            else f"that takes longer than {time_limit:g} s (--time-limit)"
        )
        yield f"{_MARK.strip()} is not proven to be needed: {reason}."


def _spelled(remedy: Remedy) -> str:
    known = remedy.makespan is not None and remedy.path != "target"
    return f"{remedy} (at most {seconds(remedy.makespan)} s)" if known else str(remedy)
