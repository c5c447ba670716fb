"""What is wrong with the traces and the schedulers of a study, and with lists of settings in general."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mig_opt.arguments import MOST_GPUS, wrong_flag, wrong_integer, wrong_type
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.model import get_gpu
from mig_opt.instances.fleet import generate_trace, get_trace_family
from mig_opt.simulation.registry import get_policy
from mig_opt.studies.trace_runs import combinations, policy_columns, settings_of, trace_from_file
from mig_opt.study import GeneratedTraces, PolicySettings, TraceFromFile, TraceSource

_ARGUMENTS = ("family", "gpu", "gpus", "seed")
"""Arguments of the generator that are no parameters of a family."""


def value_problems(
    source: object, names: Iterable[str], check: Callable[[str, Any], Iterable[Problem]]
) -> Iterator[Problem]:
    """Yield what a check says of each of the values that some attributes list, with the path of the value."""
    for name in names:
        values: Sequence[Any] = getattr(source, name)
        if not values:
            yield Problem(name, "needs at least one value")
        for index, value in enumerate(values):
            where = name if len(values) == 1 else f"{name}[{index}]"
            yield from (Problem(where, problem.message) for problem in check(name, value))


def title_problems(key: str, titles: Iterable[Iterable[str]]) -> Iterator[Problem]:
    """Yield the entries of a list that tables would call like one before; ``titles`` are those of each entry."""
    known: dict[str, int] = {}
    for index, own in enumerate(titles):
        for title in own:
            first = known.setdefault(title, index)
            if first != index:
                message = f"tables would call this {title!r}, like {key}[{first}]; give one of them another label"
                yield Problem(f"{key}[{index}].label", message)


def trace_problems(traces: Sequence[TraceSource | None], folder: Path) -> Iterator[Problem]:
    """Yield what is wrong with the traces of a study; None stands for one of which that is known already."""
    for index, source in enumerate(traces):
        if source is not None:
            wrong = _wrong_file(source, folder) if isinstance(source, TraceFromFile) else _wrong_settings(source)
            yield from (problem.below(f"traces[{index}]") for problem in wrong)


def policy_problems(policies: Sequence[PolicySettings | None]) -> Iterator[Problem]:
    """Yield what is wrong with the schedulers of a study; None stands for one of which that is known already."""
    titles: list[set[str]] = []
    for index, settings in enumerate(policies):
        wrong = list(dict.fromkeys(_wrong_policy(settings))) if settings else []
        yield from (problem.below(f"policies[{index}]") for problem in wrong)
        titles.append({title for *_, title in policy_columns([settings])} if settings and not wrong else set())
    yield from title_problems("policies", titles)


def _wrong_file(source: TraceFromFile, folder: Path) -> Iterator[Problem]:
    if source.gpus is not None:
        yield from wrong_integer("gpus", source.gpus, 1, MOST_GPUS)
    yield from wrong_flag("operation_costs", source.operation_costs)
    try:
        trace_from_file(TraceFromFile(source.file, source.gpu), folder)
    except InputError as error:
        yield from (Problem("file", f"{source.file}: {problem}") for problem in error.problems)


def _wrong_settings(source: GeneratedTraces) -> Iterator[Problem]:
    problems = list(value_problems(source, ("family", "seeds", "gpu", "gpus", "operation_costs"), _wrong_setting))
    problems += _wrong_lists("parameters", source.parameters)
    yield from problems or dict.fromkeys(_refused(source))


def _wrong_setting(name: str, value: Any) -> Iterator[Problem]:
    match name:
        case "operation_costs":
            yield from wrong_flag(name, value)
        case "seeds":
            yield from wrong_integer(name, value, 0, 2**63 - 1)
        case "gpus":
            yield from wrong_integer(name, value, 1, MOST_GPUS) if value is not None else ()
        case _:
            try:
                if name == "family":
                    get_trace_family(value)
                else:
                    get_gpu(value)
            except InputError as error:
                yield from error.problems


def _wrong_lists(key: str, lists: Any) -> Iterator[Problem]:
    for name, values in lists.items():
        if not isinstance(values, tuple):
            yield wrong_type(f"{key}.{name}", values, "a tuple of values")
        elif not values:
            yield Problem(f"{key}.{name}", "needs at least one value")


def _refused(source: GeneratedTraces) -> Iterator[Problem]:
    """Yield what the generator says of each combination, without drawing more than a job where that can be."""
    for settings in settings_of(source):
        values = dict(settings["parameters"])
        if type(values.get("jobs")) is int and values["jobs"] > 1:
            values["jobs"] = 1
        try:
            generate_trace(settings["family"], gpu=settings["gpu"], gpus=settings["gpus"], **values)
        except InputError as error:
            for problem in error.problems:
                yield problem if problem.path in _ARGUMENTS else problem.below("parameters")


def _wrong_policy(settings: PolicySettings) -> Iterator[Problem]:
    if not isinstance(settings.policy, str):
        yield wrong_type("policy", settings.policy, "the name of a policy")
        return
    try:
        entry = get_policy(settings.policy)
    except InputError as error:
        yield from error.problems
        return
    problems = [*_wrong_lists("options", settings.options)]
    problems += (problem.below("options") for problem in entry.option_problems(settings.options))
    yield from problems
    for options in () if problems else combinations(settings.options):
        try:
            entry.load(**options)
        except InputError as error:
            yield from (problem.below("options") for problem in error.problems)
