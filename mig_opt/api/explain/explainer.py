"""The function that explains a batch."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from typing import Any

from mig_opt.api.explain.conflicts import LEAST_SECONDS, Kept, Oracle, Shrinker, in_time
from mig_opt.api.explain.explanation import Conflict, Explanation, Remedy, Verdict
from mig_opt.api.explain.requirements import Requirement, RequirementKind, Requirements, spelled
from mig_opt.api.solve import solve
from mig_opt.batch.batch import Batch, wrong_batch
from mig_opt.batch.bounds import best_lower_bound
from mig_opt.batch.integer_batch import Ticks
from mig_opt.batch.schedule import Schedule, ScheduleResult
from mig_opt.batch.timing import DECIMALS
from mig_opt.errors import Problem
from mig_opt.gpu.catalogue import catalogue
from mig_opt.gpu.model import Profile
from mig_opt.method.control import Limits
from mig_opt.method.options import RunOptions, run_options
from mig_opt.method.registry import AUTO
from mig_opt.method.result import RESOLUTION, Status
from mig_opt.rules import wrong_number
from mig_opt.rules.decimals import as_fraction

DEFAULT_TIME_LIMIT = 20.0
"""Seconds."""
_MOST_TASKS = 8  # tasks for which it is tried whether leaving them out helps, those with the most work first
_MOST_GPUS = 64  # GPUs that are added at most
_MOST_RUNS = 2000  # tasks times GPUs up to which an exact method is worth its model
_SHARE = 4  # one question may take this part of the time that is left


def explain(
    batch: Batch,
    target: float | None = None,
    *,
    time_limit: float | None = DEFAULT_TIME_LIMIT,
    seed: int = 0,
    workers: int | None = None,
) -> Explanation:
    """Say why a batch is infeasible, or why its makespan cannot be at most a target.

    The answer is a minimal set of requirements that are impossible together: without any one of them the others could
    be met. A batch may have several such sets; one is returned.

    Parameters
    ----------
    batch : Batch
        The batch.
    target : float, optional
        Seconds. Without a target the question is why no schedule is shorter than the best lower bound.
    time_limit : float, optional
        Wall-clock seconds. When they are over, the set is still impossible, but ``open`` requirements in it may be
        superfluous. With None the work goes on until all is proven, which may take very long.
    seed, workers
        As for :func:`mig_opt.solve`.

    Returns
    -------
    Explanation
        The verdict, the conflict and remedies. Ctrl-C ends the work early; what is known by then is returned.

    Raises
    ------
    InputError
        If an argument is wrong.

    Examples
    --------
    >>> from mig_opt import Batch, Task, explain, get_gpu
    >>> batch = Batch((Task("a", {1: 1.0}), Task("b", {4: 5.0}), Task("c", {4: 3.0})), get_gpu("A30"))
    >>> explanation = explain(batch, target=6.0)
    >>> for requirement in explanation.conflicts[0].requirements:
    ...     print(requirement)
    the makespan must be at most 6 s
    there is 1 x A30-24GB
    task 'b' must run: 5 s on 4 slices
    task 'c' must run: 3 s on 4 slices
    >>> for remedy in explanation.remedies:
    ...     print(remedy)
    a target of 9.34 s
    2 x A30-24GB
    without task 'b'
    """
    options = check_question(target, time_limit=time_limit, seed=seed, workers=workers, also=[*wrong_batch(batch)])
    work = _Explaining(batch, None if target is None else float(target), Limits(options))
    try:
        work.run()
    except KeyboardInterrupt:
        return work.explanation(interrupted=True)
    return work.explanation()


def check_question(target: object, *, also: Sequence[Problem] = (), **options: Any) -> RunOptions:
    """Return the options of a run; refuse wrong arguments of :func:`explain`, and what is ``also`` wrong."""
    wrong = () if target is None else wrong_number("target", target, "a finite number of seconds > 0", above=0)
    return run_options(also=[*also, *wrong], **options)


class _Explaining:
    """Run of one explanation, with what is known at each moment."""

    def __init__(self, batch: Batch, target: float | None, limits: Limits) -> None:
        self._batch, self._target, self._limits = batch, target, limits
        self._verdict = Verdict.UNKNOWN
        self._schedule: Schedule | None = None
        self._lower_bound = 0.0
        self._oracle: Oracle | None = None
        self._shrinker: Shrinker | None = None
        self._least: ScheduleResult | None = None
        self._remedies: list[Remedy] = []

    def run(self) -> None:
        """Find out as much as the time allows."""
        first = self._solve(method="far")
        if first.status is Status.INFEASIBLE:
            self._verdict = Verdict.IMPOSSIBLE
            for index in self._batch.unplaceable():
                self._remedies += _misfit_remedies(self._batch, index)
            return
        goal = self._below_bound() if self._target is None else self._target
        oracle = self._oracle = Oracle(Requirements(self._batch, goal), self._limits)
        if self._is_ruled_out(oracle):
            self._explain(oracle)

    def explanation(self, *, interrupted: bool = False) -> Explanation:
        """Return what is known."""
        conflicts = misfit_conflicts(self._batch) if math.isinf(self._lower_bound) else tuple(self._conflict())
        # What rules out a part of the batch rules out the whole.
        lower_bound = max(self._lower_bound, *(conflict.lower_bound for conflict in conflicts), 0.0)
        return Explanation(
            verdict=self._verdict,
            target=self._target,
            schedule=self._schedule,
            lower_bound=_at_most(lower_bound, self._schedule),
            conflicts=conflicts,
            remedies=tuple(self._remedies),
            runtime_s=self._limits.seconds,
            interrupted=interrupted,
        )

    def _below_bound(self) -> float:
        """Return the largest makespan that the best lower bound rules out, in seconds."""
        self._verdict = Verdict.POSSIBLE
        self._solve(self._limits.left / 2)
        ticks = Ticks.of(self._batch)
        # Makespans are rounded to nanoseconds, so shorter ticks cannot be counted in them.
        if not ticks.exact or ticks.decimals > DECIMALS:
            return self._lower_bound * (1 - RESOLUTION)
        return ticks.seconds_below(math.ceil(as_fraction(self._lower_bound) / ticks.length) - 1)

    def _is_ruled_out(self, oracle: Oracle) -> bool:
        """Return True if it is proven that no schedule meets all requirements."""
        if self._target is None:
            oracle.rule_out(oracle.requirements.all, self._lower_bound)
            return True
        ticks = Ticks.of(self._batch)
        if self._schedule is not None and in_time(ticks, self._schedule.makespan, self._target):
            self._verdict = Verdict.POSSIBLE
            return False
        answer = oracle.decide(oracle.requirements.all, self._limits.left / 2)
        self._improve(answer.schedule)
        if answer.possible is not None:
            self._verdict = Verdict.POSSIBLE if answer.possible else Verdict.IMPOSSIBLE
        return answer.possible is False

    def _explain(self, oracle: Oracle) -> None:
        requirements = oracle.requirements
        self._shrinker = Shrinker(oracle, requirements.all)
        self._shrinker.run()
        core = self._shrinker.core
        if core != requirements.all or self._target is not None:
            self._measure(oracle, core)
        for remedy in _remedies(oracle, core, self._worthwhile):
            self._remedies.append(remedy)
        if self._target is not None:
            if core != requirements.all and self._worthwhile:
                self._solve(self._worthwhile)
            if self._schedule is not None:
                makespan = self._schedule.makespan
                self._remedies.insert(0, Remedy("target", f"a target of {spelled(makespan)} s", makespan))

    def _measure(self, oracle: Oracle, core: Kept) -> None:
        """Find out how long the requirements take at least."""
        batch = oracle.requirements.relaxed(core)
        if batch is None or not self._worthwhile:
            return
        self._least = solve(batch, **self._limits.inner(most=self._worthwhile, least=LEAST_SECONDS))
        oracle.rule_out(core, oracle.requirements.least(core, self._least.lower_bound))
        if core == oracle.requirements.all:
            self._improve(self._least.schedule)
        self._least.uninterrupted()

    @property
    def _worthwhile(self) -> float:
        """Seconds for a finishing touch: it may take half as long again as everything before it, and leaves as much."""
        if math.isinf(self._limits.left):
            return math.inf
        return min(self._limits.left / 2, max(self._limits.seconds / 2, 1.0))

    def _conflict(self) -> Iterator[Conflict]:
        """Yield the conflict as it is now, if there is one."""
        if self._oracle is None or self._shrinker is None:
            return
        requirements, core = self._oracle.requirements, self._shrinker.core
        measured = None if self._least is None else self._least.schedule
        schedule = self._schedule if core == requirements.all else measured
        text = f"the makespan must be at most {spelled(requirements.target)} s"
        target = Requirement(RequirementKind.TARGET, "target", text, "with a longer makespan")
        yield Conflict(
            requirements=(target, *requirements.ordered(core)),
            open=requirements.ordered(core - self._shrinker.needed),
            target=requirements.target,
            lower_bound=_at_most(self._oracle.lower_bound(core), schedule),
            makespan=None if schedule is None else schedule.makespan,
        )

    def _solve(self, seconds: float = math.inf, method: str = AUTO) -> ScheduleResult:
        """Solve the batch, and keep what is better than before."""
        result = solve(self._batch, method, **self._limits.inner(most=seconds, least=LEAST_SECONDS))
        self._improve(result.schedule)
        self._lower_bound = max(self._lower_bound, result.lower_bound)
        return result.uninterrupted()

    def _improve(self, schedule: Schedule | None) -> None:
        if schedule is not None and (self._schedule is None or schedule.makespan < self._schedule.makespan):
            self._schedule = schedule


def _at_most(lower_bound: float, schedule: Schedule | None) -> float:
    """Return a lower bound without what rounding of sums may have put it above a makespan."""
    return lower_bound if schedule is None else min(lower_bound, schedule.makespan)


# Remedies: single changes of a batch that make its target possible, or let a task that fits nowhere run


def _remedies(oracle: Oracle, core: Kept, seconds: float) -> Iterator[Remedy]:
    """Yield changes with which a schedule of the whole batch was found in time, all of them within ``seconds``.

    Only what is in the conflict (``core``) can help: the conflict stays with whatever else is changed.
    """
    requirements = oracle.requirements
    end = oracle.limits.clock + seconds
    if requirements.gpus in core:
        yield from _more_gpus(oracle, end)
    rest = [entry for entry in core if entry.kind not in (RequirementKind.GPUS, RequirementKind.TASK)]
    tasks = sorted((entry for entry in core if entry.kind is RequirementKind.TASK), key=requirements.work)
    for requirement in (*requirements.ordered(rest), *tasks[: -_MOST_TASKS - 1 : -1]):
        if not oracle.limits.left_until(end):
            return
        kept = requirements.all - requirements.with_implied([requirement])
        answer = oracle.decide(kept, oracle.limits.left_until(end) / _SHARE)
        if answer.possible:
            makespan = None if answer.schedule is None else answer.schedule.makespan
            yield Remedy(requirement.path, requirement.dropped, makespan)


def _more_gpus(oracle: Oracle, end: float) -> Iterator[Remedy]:
    """Yield a number of GPUs with which a schedule in time is found, if there is one: seldom more than needed."""
    batch, target = oracle.requirements.batch, oracle.requirements.target
    for at in range(len(batch.kinds)):
        counts = list(map(len, batch.kinds.values()))

        def larger(count: int, at: int = at, counts: Sequence[int] = counts) -> Batch:
            return batch.of_gpus([count if other == at else each for other, each in enumerate(counts)])

        most = counts[at] + min(_MOST_GPUS, len(batch.tasks))
        more = range(counts[at] + 1, most + 1)
        # From the least number on that no bound rules out, or else the last one.
        least = bisect.bisect_left(more[:-1], True, key=lambda count: best_lower_bound(larger(count)) <= target)
        for count in more[least:]:
            if not oracle.limits.left_until(end):
                return
            exact = larger(count).gpus * len(batch.tasks) <= _MOST_RUNS
            seconds = oracle.limits.left_until(end) / _SHARE
            answer = oracle.answer(larger(count), seconds, method=AUTO if exact else "far")
            if answer.possible and answer.schedule is not None:
                path = "gpus" if batch.gpu else f"pools[{at}].count"
                yield Remedy(path, f"{count} x {list(batch.kinds)[at].name}", answer.schedule.makespan)
                break


def misfit_conflicts(batch: Batch) -> tuple[Conflict, ...]:
    """Return for each task that fits nowhere what together keeps it from running."""
    requirements = Requirements(batch, math.inf)
    profiles = [profile for kind in batch.kinds for profile in kind.profiles_of("double-memory")]

    def needed(index: int) -> tuple[Requirement, ...]:
        must_run, details = requirements.tasks[index], requirements.details_of[index]
        kept = frozenset((must_run, *details))
        for detail in details:
            task = requirements.kept_task(must_run, kept - {detail})
            if all(task.time_on(profile) is None for profile in profiles):
                kept -= {detail}
        return requirements.ordered(kept)

    return tuple(Conflict(needed(index), (), None, math.inf, None) for index in batch.unplaceable())


def _misfit_remedies(batch: Batch, index: int) -> Iterator[Remedy]:
    """Yield the least changes with which a task fits that fits nowhere."""
    task = batch.tasks[index]
    assert task.memory_gb is not None, "only memory keeps a task from the sizes that it has a time for"
    profiles = [profile for kind in batch.kinds for profile in kind.profiles_of("double-memory")]
    most = max(profile.memory_gb for profile in profiles if task.profiled(profile) is not None)
    yield Remedy(f"tasks[{index}].memory_gb", f"task {task.name!r} with at most {most:.12g} GB", None)
    enough = [profile for profile in profiles if profile.memory_gb >= task.memory_gb]
    if enough:
        least = min(enough, key=_smallness)
        slices = f"{least.compute_slices} slice{'s' * (least.compute_slices > 1)}"
        text = f"a time for task {task.name!r} on {slices}: {least.name} has {least.memory_gb:.12g} GB"
        kind = f"{least.gpu}." if task.by_kind else ""
        yield Remedy(f"tasks[{index}].times.{kind}{least.compute_slices}", text, None)
    every = ((model, own) for model in catalogue() for own in model.profiles_of("double-memory"))
    larger = [(model, own) for model, own in every if task.time_on(own) is not None]
    if larger:
        model, profile = min(larger, key=lambda pair: (pair[0].memory_gb, _smallness(pair[1]), pair[0].name))
        yield Remedy("gpu", f"the GPU {model.name}, where task {task.name!r} fits into {profile.name}", None)


def _smallness(profile: Profile) -> tuple[int, float]:
    return profile.compute_slices, profile.memory_gb
