"""Studies from files, and checks of studies: unknown names, values out of range, files that cannot be read."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mig_opt.errors import InputError, Problem, problems_of
from mig_opt.files.documents import Document
from mig_opt.files.studies import Parts, study_document
from mig_opt.files.studies import study_from_json as from_json
from mig_opt.method.study import GeneratedBatches, GeneratedTraces, Study
from mig_opt.rules import MOST_GPUS, wrong_flag, wrong_integer
from mig_opt.studies import batch, fleet
from mig_opt.studies.runs import Source, StudyRun

_LARGEST_SEED = 2**31 - 1
_MOST_REPETITIONS = 1_000_000


def read_study(path: str | Path) -> Study:
    """Read a study from a JSON file, or from a TOML file if its name ends in ``.toml``.

    Raises
    ------
    InputError
        With every problem of the file, and of the files that it names.
    """
    return study_from_json(study_document(path), folder=Path(path).parent, source=str(path))


def study_from_json(document: Document, *, folder: str | Path = ".", source: str = "") -> Study:
    """Return the study that a JSON document describes; relative paths of files begin in the folder.

    Examples
    --------
    >>> study = study_from_json(
    ...     '{"schema": "mig-opt/study/1", "batches": [{"n": [10, 20], "seeds": 3}],'
    ...     ' "methods": [{"method": "far"}, {"method": "cp", "time_limit": 10}]}'
    ... )
    >>> study.batches[0].seeds, study.methods[1].time_limit
    ((0, 1, 2), (10.0,))
    """
    return from_json(document, lambda parts: _part_problems(parts, Path(folder)), source=source)


def check_study(study: Study, folder: Path) -> None:
    """Refuse a study that cannot be run; relative paths of files begin in the folder."""
    problems = list(_part_problems(Parts(study.batches, study.methods, study.traces, study.policies), folder))
    problems += wrong_integer("repetitions", study.repetitions, 1, _MOST_REPETITIONS)
    problems += wrong_integer("seed", study.seed, 0, _LARGEST_SEED - _MOST_REPETITIONS)
    problems += wrong_flag("fresh", study.fresh)
    if problems:
        raise InputError(problems)


def _part_problems(parts: Parts, folder: Path) -> Iterator[Problem]:
    """Yield the problems of the parts of a study beyond their shape; of what cannot be read none."""
    batches, traces = parts.batches or parts.methods, parts.traces or parts.policies
    if batches or not traces:
        yield from _missing(parts, ("batches", "methods"), "" if batches else "traces and policies")
    if traces:
        yield from _missing(parts, ("traces", "policies"), "")
    for key, sources, problem_class in (
        ("batches", parts.batches, batch.BatchRun),
        ("traces", parts.traces, fleet.TraceRun),
    ):
        for index, source in enumerate(sources):
            if source is not None:
                found = _source_problems(source, problem_class, folder)
                yield from (problem.below(f"{key}[{index}]") for problem in found)
    samples = functools.cache(lambda: list(batch.sample_batches(parts.batches, folder)))
    of_method = functools.partial(batch.method_problems, samples=samples)
    yield from _solver_problems("methods", parts.methods, of_method, batch.columns)
    yield from _solver_problems("policies", parts.policies, fleet.policy_problems, fleet.policy_columns)


def _missing(parts: Parts, keys: Iterable[str], others: str) -> Iterator[Problem]:
    for key in keys:
        if not getattr(parts, key):
            yield Problem(key, "needs at least one entry" + (f", or the study needs {others}" if others else ""))


def _source_problems(source: Source, run_class: type[StudyRun], folder: Path) -> Iterator[Problem]:
    """Yield the problems of batches or traces."""
    if isinstance(source, GeneratedBatches):
        yield from _value_problems(source, batch.setting_problems)
    elif isinstance(source, GeneratedTraces):
        problems = list(_value_problems(source, fleet.setting_problems))
        problems += fleet.list_problems("parameters", source.parameters)
        yield from problems or dict.fromkeys(fleet.parameter_problems(source))
    else:
        if source.gpus is not None:
            yield from wrong_integer("gpus", source.gpus, 1, MOST_GPUS)
        yield from wrong_flag("operation_costs", source.operation_costs)
        file = getattr(source, "file", None)
        for problem in problems_of(run_class.load, dataclasses.replace(source, gpus=None), folder):
            yield Problem("instance", problem.message) if file is None else Problem("file", f"{file}: {problem}")


def _value_problems(
    source: GeneratedBatches | GeneratedTraces, check: Callable[[str, Any], Iterator[Problem]]
) -> Iterator[Problem]:
    """Yield the problems of each of the values that the settings of a generator list, with the path of the value."""
    for attribute in dataclasses.fields(source):
        name = attribute.name
        if name in ("parameters", "group"):
            continue
        values = getattr(source, name)
        if not values:
            yield Problem(name, "needs at least one value")
        for index, value in enumerate(values):
            if name == "operation_costs":
                found = wrong_flag(name, value)
            elif name == "seeds":
                found = wrong_integer(name, value, 0, 2**63 - 1)
            else:
                found = check(name, value)
            where = name if len(values) == 1 else f"{name}[{index}]"
            yield from (Problem(where, problem.message) for problem in found)


def _solver_problems(
    key: str,
    solvers: Sequence[Any],
    problems_of: Callable[[Any], Iterable[Problem]],
    columns: Callable[[Sequence[Any]], Iterable[tuple[Any, dict[str, Any], str]]],
) -> Iterator[Problem]:
    """Yield the problems of methods or schedulers, also of those that have the name of another one in tables."""
    known: dict[str, int] = {}
    for index, settings in enumerate(solvers):
        if settings is None:
            continue
        wrong = dict.fromkeys(problems_of(settings))
        yield from (problem.below(f"{key}[{index}]") for problem in wrong)
        for title in () if wrong else dict.fromkeys(title for *_, title in columns([settings])):
            first = known.setdefault(title, index)
            if first != index:
                message = f"tables would call this {title!r}, like {key}[{first}]; give one of them another label"
                yield Problem(f"{key}[{index}].label", message)
