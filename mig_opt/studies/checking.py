"""What is wrong with a study: names that nobody has, values out of range, files that cannot be read."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mig_opt.arguments import MOST_GPUS, wrong_flag, wrong_integer, wrong_type
from mig_opt.batch.batch import Batch
from mig_opt.errors import InputError, Problem
from mig_opt.files.studies import Parts
from mig_opt.instances import generate_batch, load_instance
from mig_opt.solving import check_options, check_partition
from mig_opt.studies.runs import batch_from_file, columns
from mig_opt.studies.trace_checking import policy_problems, title_problems, trace_problems, value_problems
from mig_opt.study import BatchFromFile, BatchSource, BundledBatch, GeneratedBatches, MethodSettings, Study

_LARGEST_SEED = 2**31 - 1
_MOST_REPETITIONS = 1_000_000
_SETTINGS = ("n", "seeds", "scaling", "times", "p_sup", "gpu", "gpus", "variant", "operation_costs")


def check_study(study: Study, folder: Path) -> None:
    """Refuse a study that cannot be run.

    Parameters
    ----------
    study : Study
        Any study.
    folder : Path
        Where relative paths of files begin.

    Raises
    ------
    InputError
        With every problem.
    """
    problems = list(part_problems(Parts(study.batches, study.methods, study.traces, study.policies), folder))
    problems += number_problems(study.repetitions, study.seed)
    problems += wrong_flag("fresh", study.fresh)
    if problems:
        raise InputError(problems)


def part_problems(parts: Parts, folder: Path) -> Iterator[Problem]:
    """Yield what is wrong with the parts of a study beyond their shape; of what cannot be read nothing."""
    simulated = bool(parts.traces or parts.policies)
    if parts.batches or parts.methods or not simulated:
        yield from _missing({"batches": parts.batches, "methods": parts.methods}, "traces and policies")
    if simulated:
        yield from _missing({"traces": parts.traces, "policies": parts.policies}, "batches and methods")
    yield from _batch_problems(parts.batches, parts.methods, folder)
    yield from trace_problems(parts.traces, folder)
    yield from policy_problems(parts.policies)


def _missing(lists: Mapping[str, Sequence[object]], others: str) -> Iterator[Problem]:
    alone = not any(lists.values())
    for key, entries in lists.items():
        if not entries:
            yield Problem(key, "needs at least one entry" + (f", or the study needs {others}" if alone else ""))


def _batch_problems(
    batches: Sequence[BatchSource | None], methods: Sequence[MethodSettings | None], folder: Path
) -> Iterator[Problem]:
    for index, source in enumerate(batches):
        yield from (problem.below(f"batches[{index}]") for problem in _wrong_source(source, folder))
    samples = functools.cache(lambda: list(_samples(batches, folder)))
    titles: list[set[str]] = []
    for index, method in enumerate(methods):
        wrong = [*_wrong_method(method), *_wrong_partitions(method, samples)] if method else []
        yield from (problem.below(f"methods[{index}]") for problem in wrong)
        titles.append({title for *_, title in columns([method])} if method and not wrong else set())
    yield from title_problems("methods", titles)


def number_problems(repetitions: object, seed: object) -> Iterator[Problem]:
    """Yield what is wrong with the numbers of a study."""
    yield from wrong_integer("repetitions", repetitions, 1, _MOST_REPETITIONS)
    yield from wrong_integer("seed", seed, 0, _LARGEST_SEED - _MOST_REPETITIONS)


def _wrong_source(source: BatchSource | None, folder: Path) -> Iterator[Problem]:
    if source is None:
        return
    if isinstance(source, GeneratedBatches):
        yield from value_problems(source, _SETTINGS, _wrong_setting)
        return
    if source.gpus is not None:
        yield from wrong_integer("gpus", source.gpus, 1, MOST_GPUS)
    try:
        if isinstance(source, BundledBatch):
            load_instance(source.instance)
        else:
            batch_from_file(BatchFromFile(source.file, source.gpu), folder)
    except InputError as error:
        for problem in error.problems:
            if isinstance(source, BundledBatch):
                yield Problem("instance", problem.message)
            else:
                yield Problem("file", f"{source.file}: {problem}")


def _wrong_setting(name: str, value: Any) -> Iterator[Problem]:
    if name == "operation_costs":
        yield from wrong_flag(name, value)
        return
    if name in ("n", "seeds", "gpus"):
        least, most = {"n": (1, 10**7), "seeds": (0, 2**63 - 1), "gpus": (1, MOST_GPUS)}[name]
        yield from wrong_integer(name, value, least, most)
        return
    try:
        # The generator says what it does not know.
        generate_batch(1, **{name: value})
    except InputError as error:
        yield from error.problems


def _wrong_method(method: MethodSettings) -> Iterator[Problem]:
    yield from _refused("method", "method", method=method.method)
    yield from _refused("deterministic", "deterministic", deterministic=method.deterministic)
    for name in ("time_limit", "gap", "workers"):
        values = getattr(method, name)
        if not values:
            yield Problem(name, "needs at least one value")
        for index, value in enumerate(values):
            where = name if len(values) == 1 else f"{name}[{index}]"
            if name == "workers" and value is None:
                yield from wrong_integer(where, value, 1, 1000)
            yield from _refused(name, where, **{name: value})


def _samples(batches: Sequence[BatchSource | None], folder: Path) -> Iterator[tuple[str, Batch]]:
    """Yield batches that show which partitions a study can have, with their paths; those that can be had."""
    for index, source in enumerate(batches):
        path = f"batches[{index}]"
        for gpu in source.gpu if isinstance(source, GeneratedBatches) else ("",):
            with contextlib.suppress(InputError):  # which is a problem of its own
                match source:
                    case GeneratedBatches():
                        yield path, generate_batch(1, gpu=gpu)  # tasks of the generator run on every size
                    case BundledBatch():
                        yield path, load_instance(source.instance)
                    case BatchFromFile():
                        yield path, batch_from_file(source, folder)


def _wrong_partitions(method: MethodSettings, samples: Callable[[], list[tuple[str, Batch]]]) -> Iterator[Problem]:
    if not method.partition:
        yield Problem("partition", "needs at least one value")
    for index, partition in enumerate(method.partition):
        where = "partition" if len(method.partition) == 1 else f"partition[{index}]"
        if partition is not None and not isinstance(partition, str):
            yield wrong_type(where, partition, "a text such as '4+2+1'")
            continue
        for path, batch in [("", None), *samples()]:
            try:
                check_partition(method.method, partition, batch)
            except InputError as error:
                # Without a batch this is about the method alone, and so are the batches then.
                yield from (Problem(where, f"{path}: {it.message}" if path else it.message) for it in error.problems)
                break


def _refused(name: str, where: str, **options: Any) -> Iterator[Problem]:
    """Yield what :func:`solve` would say about an option."""
    try:
        check_options(**options)
    except InputError as error:
        yield from (Problem(where, problem.message) for problem in error.problems if problem.path == name)
