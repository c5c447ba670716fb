"""Studies of methods on batches: their runs and measurements, and checks of their batches and methods."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mig_opt.api.solve import partition_problems, solve
from mig_opt.batch.batch import Batch
from mig_opt.batch.certificate import batch_digest
from mig_opt.batch.integer_batch import Ticks
from mig_opt.batch.schedule import Schedule, ScheduleResult
from mig_opt.errors import InputError, Problem, nearest, problems_of
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.kinds import gpu_named
from mig_opt.instances.batch import MOST_TASKS, generate_batch
from mig_opt.instances.bundled import instance_names, load
from mig_opt.method.functions import found_at, name_of, place_of
from mig_opt.method.options import run_options
from mig_opt.method.registry import METHODS, get_method
from mig_opt.method.result import RESOLUTION, Status, relative_gap
from mig_opt.method.study import (
    DEFAULT_TIME_LIMIT,
    BatchFromFile,
    BatchSource,
    BundledBatch,
    GeneratedBatches,
    MethodSettings,
    Study,
)
from mig_opt.rules import is_listed, wrong_integer, wrong_type
from mig_opt.studies.environment import peak_bytes
from mig_opt.studies.rows import Outcome, shielded
from mig_opt.studies.runs import StudyRun, combinations, list_problems
from mig_opt.texts import plural
from mig_opt.validation import validate

GAPS = (0.01, 0.005, 0.003, 0.001, 0.0005)
"""The seconds until each of these gaps are kept."""

_USUAL = {"time_limit": DEFAULT_TIME_LIMIT, "gap": 0.0, "workers": 1, "partition": None}
_TEXTS: Mapping[str, Callable[[Any], str]] = {
    "time_limit": lambda value: "no limit" if value is None else f"{value:g} s",
    "gap": lambda value: f"gap {value * 100:g}%",
    "workers": lambda value: plural(value, "thread"),
    "partition": str,
}
_WARM_UP_LIMIT = 5.0
_WARM_UP_PARTITION = "7"


class BatchRun(StudyRun):
    """A run of a method on a batch."""

    __slots__ = ()
    KIND = "batch"
    ARGUMENTS = frozenset({"method", "time_limit", "gap", "workers", "deterministic", "seed", "fresh"})
    ALWAYS_NAMED = ("n",)
    digest = staticmethod(batch_digest)
    generate = staticmethod(generate_batch)

    @classmethod
    def solvers(cls, study: Study) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the arguments of :func:`mig_opt.solve` for each repetition and method, and its column."""
        for repetition in range(study.repetitions):
            for method, given, column in columns(study.methods):
                partition = given.pop("partition")  # rows of methods without one have no such key
                name = method.method if isinstance(method.method, str) else place_of(method.method, "method")
                settings = {"deterministic": method.deterministic, "seed": study.seed + repetition}
                arguments = {"method": name, **given, **settings, "fresh": study.fresh}
                yield arguments if partition is None else {**arguments, "partition": partition}, column

    @classmethod
    def load(cls, source: BundledBatch | BatchFromFile, folder: Path) -> Batch:
        """Return the batch in a file or of a bundled instance."""
        if isinstance(source, BundledBatch):
            name, known = source.instance, instance_names(drawn=True)
            if name not in known:
                demand = name in instance_names("demand", drawn=True)
                what = "a demand of services, not a batch of tasks" if demand else "no bundled instance"
                raise InputError([Problem("name", f"{name!r} is {what}; {nearest(name, known)}")])
            batch: Batch = load(name)
        else:
            batch = BATCH.read(folder / source.file, gpu=source.gpu and gpu_named(source.gpu, folder))
        return batch if source.gpus is None else batch.replace(gpus=source.gpus)

    def warm_up(self) -> None:
        """Load whatever the method loads."""
        method = found_at(self.arguments["method"])
        if isinstance(method, str):
            warm_up(method)

    def measure(self, subject: Batch) -> Outcome:
        """Run the method."""
        given = {**self.arguments, "method": found_at(self.arguments["method"])}
        outcome = measure(subject, memory=given.pop("fresh"), **given)
        if outcome.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        return outcome


def columns(methods: Sequence[MethodSettings]) -> Iterator[tuple[MethodSettings, dict[str, Any], str]]:
    """Yield each combination of listed arguments of each method, with its name in tables."""
    for method in methods:
        for given in combinations({name: getattr(method, name) for name in _USUAL}):
            named = [
                _TEXTS[name](value)
                for name, value in given.items()
                if len(getattr(method, name)) > 1 or (not method.label and value != _USUAL[name])
            ]
            if method.deterministic and not method.label:
                named.append("deterministic")
            yield method, given, ", ".join([method.label or name_of(method.method), *named])


def measure(batch: Batch, method: Any, *, memory: bool = False, **options: Any) -> Outcome:
    """Run a method with options of :func:`mig_opt.solve`, time it, and validate its schedule once more.

    If the method fails, the status is ``crashed`` and ``error`` says why; after Ctrl-C in the method it is
    ``interrupted``. With ``memory`` the peak of this process is noted, which should then be one for this run alone.
    """

    def run() -> Outcome:
        begin = time.perf_counter()
        result = solve(batch, method, **options)
        return Outcome(  # in this order: the validation is no part of the run
            status=result.status.value,
            seconds=time.perf_counter() - begin,
            makespan=result.makespan,
            lower_bound=None if result.status is Status.INFEASIBLE else result.lower_bound,
            peak_bytes=peak_bytes() if memory else None,
            tolerance=tolerance(batch, result.makespan),
            seconds_to_gap={str(gap): at for gap in GAPS if (at := _seconds_to(gap, result)) is not None},
            error=violations(batch, result.schedule),
        )

    return shielded(run)


def _seconds_to(gap: float, result: ScheduleResult) -> float | None:
    for point in result.trajectory:
        if point.makespan is not None and relative_gap(point.makespan, point.lower_bound) <= gap:
            return point.seconds
    # An optimum whose bound was rounded up to it at the end is in no point.
    return result.runtime_s if result.gap is not None and result.gap <= gap else None


def tolerance(batch: Batch, makespan: float | None) -> float:
    """Return the seconds by which two makespans of a batch may differ and still be the same."""
    ticks, resolution = Ticks.of(batch), RESOLUTION * (makespan or 0.0)
    # Short makespans are whole ticks, so two that differ do so by at least one; less is rounding of sums.
    return min(float(ticks.length) / 2, resolution) if ticks.exact else resolution


def violations(batch: Batch, schedule: Schedule | None) -> str:
    """Return the defects of a schedule in one line; empty if it is valid, or if there is none."""
    found = () if schedule is None else validate(batch, schedule).violations
    return f"{len(found)} violations: {found[0]}" if found else ""


@functools.cache
def warm_up(method: str) -> None:
    """Load whatever a method loads, so that no run pays for it."""
    partition = _WARM_UP_PARTITION if "partition" in get_method(method).options else None
    for n in (2, 6):  # very small batches need no solver
        outcome = measure(generate_batch(n), method, time_limit=_WARM_UP_LIMIT, partition=partition)
        if outcome.status == Status.INTERRUPTED:
            raise KeyboardInterrupt


def setting_problems(name: str, value: Any) -> Iterator[Problem]:
    """Yield the problems of one value of a setting of the generator of batches."""
    if name == "n":  # of which not all are to be drawn
        yield from wrong_integer(name, value, 1, MOST_TASKS)
    elif name in ("scaling", "gpu") and not isinstance(value, str):  # the generator takes others, rows do not
        yield wrong_type(name, value, "a name, as in a study file")
    else:
        yield from problems_of(generate_batch, 1, **{name: value})  # the generator says what it does not know


def method_problems(method: MethodSettings, samples: Callable[[], list[tuple[str, Batch]]]) -> Iterator[Problem]:
    """Yield the problems of the settings of a method; ``samples`` returns :func:`sample_batches`."""
    yield from _refused("method", "method", method=method.method)
    yield from () if isinstance(method.method, str) else problems_of(place_of, method.method, "method")
    yield from _refused("deterministic", "deterministic", deterministic=method.deterministic)
    for name in _USUAL:
        values = getattr(method, name)
        yield from (wrong := list(list_problems({name: values})))
        for index, value in () if wrong else enumerate(values):
            where = name if len(values) == 1 else f"{name}[{index}]"
            if name == "partition":
                yield from _partition_problems(where, method.method, value, samples)
                continue
            if name == "workers" and value is None:
                yield from wrong_integer(where, value, 1, 1000)
            yield from _refused(name, where, **{name: value})


def _refused(name: str, where: str, **options: Any) -> Iterator[Problem]:
    """Yield what :func:`solve` would say about an option."""
    found = problems_of(run_options, METHODS, functions=True, **options)
    yield from (Problem(where, problem.message) for problem in found if problem.path == name)


def _partition_problems(
    where: str, method: object, partition: object, samples: Callable[[], list[tuple[str, Batch]]]
) -> Iterator[Problem]:
    if partition is not None and not isinstance(partition, str):
        yield wrong_type(where, partition, "a text such as '4+2+1'")
        return
    for path, batch in [("", None), *samples()]:
        problems = list(partition_problems(method, partition, batch))
        yield from (Problem(where, f"{path}: {it.message}" if path else it.message) for it in problems)
        if problems:
            return  # without a batch this is about the method alone, and so are the batches then


def sample_batches(sources: Sequence[BatchSource | None], folder: Path) -> Iterator[tuple[str, Batch]]:
    """Yield batches that show which partitions a study can have, with their paths; those that can be had."""
    for index, source in enumerate(sources):
        drawn = source.gpu if isinstance(source, GeneratedBatches) and is_listed(source.gpu) else ()
        for gpu in drawn:
            with contextlib.suppress(InputError):  # which is a problem of its own
                yield f"batches[{index}]", generate_batch(1, gpu=gpu)  # tasks of the generator run on every size
        with contextlib.suppress(InputError):
            if isinstance(source, BundledBatch | BatchFromFile):
                yield f"batches[{index}]", BatchRun.load(source, folder)
