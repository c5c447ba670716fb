"""Studies of schedulers on traces: their simulations and measurements, and checks of their traces and schedulers."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mig_opt.errors import InputError, Problem, problems_of
from mig_opt.files.fleet.traces import TRACE
from mig_opt.files.kinds import gpu_named
from mig_opt.fleet.bounds import TraceBounds, trace_bounds
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.instances.fleet.registry import generate_trace, get_trace_family
from mig_opt.method.functions import found_at, name_of, place_of
from mig_opt.method.registry import get_policy
from mig_opt.method.result import RESOLUTION, Status, relative_gap
from mig_opt.method.study import GeneratedTraces, PolicySettings, Study, TraceFromFile
from mig_opt.rules import wrong_integer
from mig_opt.rules.vocabulary import MOST_GPUS
from mig_opt.simulation.fleet.cluster import Policy
from mig_opt.simulation.fleet.options import option_problems, policy_label
from mig_opt.simulation.fleet.simulator import Simulation, check_own_policy, simulate
from mig_opt.studies.batch import violations
from mig_opt.studies.environment import peak_bytes
from mig_opt.studies.rows import Outcome, shielded
from mig_opt.studies.runs import StudyRun, combinations, list_problems, settings_of
from mig_opt.validation.fleet.logs import check_log

UNFINISHED = "unfinished"
"""Status of a simulation after which jobs wait for ever."""

_bounds = functools.lru_cache(maxsize=1)(trace_bounds)
"""The bounds of a trace: schedulers run on it one after the other."""


def _digest(trace: Trace) -> str:
    """Return a hash of a trace and its operation costs."""
    costs = [sorted(table.items()) for table in (trace.operations.create, trace.operations.destroy)]
    return hashlib.sha256((TRACE.to_json(trace) + json.dumps(costs)).encode()).hexdigest()


def _generated(family: str, parameters: Mapping[str, Any], **settings: Any) -> Trace:
    """Return the trace of a family with parameters, for GPUs and a seed."""
    return generate_trace(family, **settings, **parameters)


class TraceRun(StudyRun):
    """A simulation of a scheduler on a trace."""

    __slots__ = ()
    KIND = "trace"
    ARGUMENTS = frozenset({"policy", "options", "fresh"})
    ALWAYS_NAMED = ("family", "operation_costs")
    digest = staticmethod(_digest)
    generate = staticmethod(_generated)

    @classmethod
    def solvers(cls, study: Study) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield each scheduler with its options, and its column; it does the same each time, so no repetitions."""
        for settings, options, column in policy_columns(study.policies):
            ordered = dict(sorted(options.items()))
            policy = settings.policy if isinstance(settings.policy, str) else place_of(settings.policy, "policy")
            yield {"policy": policy, "options": ordered, "fresh": study.fresh}, column

    @classmethod
    def load(cls, source: TraceFromFile, folder: Path) -> Trace:
        """Return the trace in a file."""
        gpu = source.gpu and gpu_named(source.gpu, folder)
        return TRACE.read(folder / source.file, gpu=gpu, gpus=source.gpus)

    def warm_up(self) -> None:
        """Load whatever the scheduler loads; what goes wrong is left to the runs."""
        _warm_up(json.dumps({**self.arguments, "fresh": False}))

    def measure(self, subject: Trace) -> Outcome:
        """Simulate the scheduler."""
        given = self.arguments
        return measure(subject, found_at(given["policy"]), memory=given["fresh"], **given["options"])


def measure(trace: Trace, policy: str | Policy, *, memory: bool = False, **options: Any) -> Outcome:
    """Simulate a scheduler on a trace; its log has to pass the validator and must not beat the lower bounds.

    The outcome has no makespan if jobs were left waiting for ever; its figures are those of the others then. With
    ``memory`` the peak of this process is noted.
    """
    bounds = _bounds(trace)
    done = simulate(trace, policy, **options)
    peak = peak_bytes() if memory else None
    complete = not done.unfinished
    return Outcome(
        status=Status.FEASIBLE.value if complete else UNFINISHED,
        seconds=done.runtime_s,
        makespan=done.metrics.makespan if complete else None,
        lower_bound=bounds.makespan[0].value,
        tolerance=RESOLUTION * done.metrics.makespan,
        peak_bytes=peak,
        error=_defects(done, bounds),
        figures=_figures(done, bounds),
    )


@functools.cache
def _warm_up(arguments: str) -> None:
    # Very small batches need no solver; a scheduler that plans loads its own for these.
    run = TraceRun({"family": "warm-up"}, json.loads(arguments))
    shielded(lambda: run.measure(generate_trace("far-stream", batches=2, tasks=6)))


def policy_columns(policies: Sequence[PolicySettings]) -> Iterator[tuple[PolicySettings, dict[str, Any], str]]:
    """Yield each combination of the options of each scheduler, with its name in tables."""
    for settings in policies:
        for options in combinations(settings.options):
            named = {
                name: value for name, value in options.items() if len(settings.options[name]) > 1 or not settings.label
            }
            yield settings, options, policy_label(settings.label or name_of(settings.policy), named)


def _figures(done: Simulation, bounds: TraceBounds) -> dict[str, Any]:
    """Return all that a row says of a simulation: metrics, unfinished jobs, bounds, and gaps to them."""
    metrics, complete = done.metrics, not done.unfinished
    limits = {"makespan": bounds.makespan[0].value, "mean_completion": bounds.mean_completion}
    reached = {"makespan": metrics.makespan, "mean_completion": metrics.completion.mean}
    return {
        **dataclasses.asdict(metrics),
        **({} if done.trace.gpu else {"kinds": {name: dataclasses.asdict(own) for name, own in done.kinds.items()}}),
        "unfinished": len(done.unfinished),
        "unfinished_names": list(done.unfinished[:10]),
        "events": done.events,
        "lower_bounds": limits,
        "gaps": {goal: relative_gap(reached[goal], limits[goal]) if complete else None for goal in limits},
    }


def _defects(done: Simulation, bounds: TraceBounds) -> str:
    """Return the defects of a simulation in one line; empty if there are none."""
    log = done.log
    problems = check_log(log)
    if problems:
        return f"{len(problems)} violations of the log: {problems[0]}"
    # Without a run of any length there is no schedule.
    ran = any(end > begin for begin, end in zip(log.run_begin, log.run_end, strict=True))
    wrong = violations(*log.as_schedule()) if ran else ""
    mean, least = done.metrics.completion.mean, bounds.mean_completion
    if not wrong and not done.unfinished and mean < least * (1 - RESOLUTION):
        return f"jobs end after {mean:.9g} s on the average, which is below the lower bound of {least:.9g} s"
    return wrong


def setting_problems(name: str, value: Any) -> Iterator[Problem]:
    """Yield the problems of one value of a setting of the generator of traces."""
    if name == "gpus":
        yield from wrong_integer(name, value, 1, MOST_GPUS) if value is not None else ()
        return
    yield from problems_of(get_trace_family, value) if name == "family" else problems_of(get_gpu, value)


def parameter_problems(source: GeneratedTraces) -> Iterator[Problem]:
    """Yield what the generator says of each combination of settings, drawing one job where that can be."""
    for settings in settings_of(source):
        jobs = settings["parameters"].get("jobs")
        given = {"jobs": 1} if type(jobs) is int and jobs > 1 else {}
        values = {name: settings[name] for name in ("family", "gpu", "gpus")}
        for problem in problems_of(_generated, parameters={**settings["parameters"], **given}, seed=0, **values):
            yield problem if problem.path in ("family", "gpu", "gpus", "seed") else problem.below("parameters")


def policy_problems(settings: PolicySettings) -> Iterator[Problem]:
    """Yield the problems of the settings of a scheduler."""
    if not isinstance(settings.policy, str):
        for problem in problems_of(check_own_policy, settings.policy, settings.options):
            yield problem if problem.path == "policy" else problem.below("options")
        yield from problems_of(place_of, settings.policy, "policy")
        return
    try:
        entry = get_policy(settings.policy)
    except InputError as error:
        yield from error.problems
        return
    problems = [problem.below("options") for problem in list_problems(settings.options)]
    problems += (problem.below("options") for problem in option_problems(entry, settings.options))
    yield from problems
    for options in () if problems else combinations(settings.options):
        yield from (problem.below("options") for problem in problems_of(entry.load(), **options))
