"""Batches one after the other: each is planned when its turn comes, and what is planned before stays as it is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from operator import attrgetter
from typing import Literal, Unpack

from mig_opt.api.solve import solve, unplannable
from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.horizon import Horizon
from mig_opt.batch.problems import total_problems
from mig_opt.batch.schedule import Schedule, on_gpus, wrong_types
from mig_opt.batch.timing import tidy
from mig_opt.errors import InputError, Problem, SolverError, raise_any
from mig_opt.heuristics.batch.far import best_published, far_published, far_unrefined
from mig_opt.heuristics.batch.far.concatenation import JOINS, EndState, Join, far_behind, joined, shifted
from mig_opt.method.control import Control
from mig_opt.method.options import RunKeywords, RunOptions, run_options
from mig_opt.method.registry import METHODS, needs_more
from mig_opt.rules import entries_of, wrong_choice, wrong_class, wrong_flag
from mig_opt.validation import validate
from mig_opt.validation.batch.schedules import violations_of_method

StreamJoin = Join | Literal["handover"]
"""Manner in which :func:`plan_stream` proceeds from one batch to the next."""

_BEAM_WIDTH = 4  # plans for the batches so far that are kept with foresight


@dataclass(frozen=True)
class StreamPlan:
    """Batches that are planned one after the other on the same GPUs.

    Attributes
    ----------
    batches : tuple of Batch
        In the order in which they came.
    schedules : tuple of Schedule
        One for each batch, with the names of its tasks. All times count from the start of the first batch. A
        destruction that makes room for a batch belongs to its schedule, also if the instance is an older one.
    """

    batches: tuple[Batch, ...]
    schedules: tuple[Schedule, ...]

    @property
    def ends(self) -> tuple[float, ...]:
        """For each batch the second at which its last task ends."""
        return tuple(schedule.makespan for schedule in self.schedules)

    @property
    def makespan(self) -> float:
        """The last end of a task in seconds."""
        return max(self.ends)

    @cached_property
    def batch(self) -> Batch:
        """All tasks as one batch.

        If two batches have a task of the same name, every task is called ``0/name``, ``1/name``, ... after the index of
        its batch.
        """
        tasks = tuple(
            Task(self._name(index, task.name), task.times, task.memory_gb)
            for index, batch in enumerate(self.batches)
            for task in batch.tasks
        )
        return self.batches[0].replace(tasks=tasks, name=f"stream of {len(self.batches)} batches")

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule of all tasks; it is valid for :attr:`batch`."""
        pairs = list(enumerate(self.schedules))
        runs = (replace(run, task=self._name(index, run.task)) for index, plan in pairs for run in plan.runs)
        operations = (operation for _, plan in pairs for operation in plan.operations or ())
        # What takes no time stays in the order of the batches: the sort is stable.
        begin = attrgetter("begin")
        return Schedule(tuple(sorted(runs, key=begin)), tuple(sorted(operations, key=begin)))

    @cached_property
    def _numbered(self) -> bool:
        names = [task.name for batch in self.batches for task in batch.tasks]
        return len(set(names)) < len(names)

    def _name(self, index: int, task: str) -> str:
        return f"{index}/{task}" if self._numbered else task


def concatenate(plans: Iterable[tuple[Batch, Schedule]], *, join: Join = "moved") -> StreamPlan:
    """Join schedules that were made for empty GPUs.

    The first schedule stays as it is. Of the others, ``reversed`` and ``moved`` keep the instance on which each task
    runs, but not the time (``moved`` also changes instances, within a size): each placement is used once, in the order
    of FAR's repartitioning tree or against it. An instance that is live already is reused where it fits.

    Parameters
    ----------
    plans : iterable of (Batch, Schedule)
        Batches for the same GPUs, each with a valid schedule, such as ``solve`` returns. Only the first batch may have
        an initial state.
    join : str
        ``trivial``: a batch begins when the last task before it has ended, on empty GPUs. ``reversed``: batches
        overlap, and if that ends earlier, small instances come first, as they were the last ones before. ``moved``:
        moreover tasks are moved and swapped so that batches fit better. Neither ends a batch later than ``trivial``
        would.

    Returns
    -------
    StreamPlan
        Its schedule has passed the validator.

    Raises
    ------
    InputError
        If batches do not fit together, or a schedule is not valid for its batch.

    Examples
    --------
    >>> from mig_opt import generate_batch, solve
    >>> batches = [generate_batch(10, scaling="PoorScaling", seed=seed) for seed in (1, 2)]
    >>> plans = [(batch, solve(batch, "far").schedule) for batch in batches]
    >>> [round(concatenate(plans, join=join).makespan, 1) for join in ("trivial", "reversed", "moved")]
    [128.1, 115.1, 104.8]
    """
    plans = entries_of("plans", plans, tuple, "a pair of a Batch and a Schedule")
    raise_any(
        problem.below(f"plans[{index}]")
        for index, pair in enumerate(plans)
        for problem in (wrong_types(*pair) if len(pair) == 2 else [Problem("", "must be a Batch and a Schedule")])
    )
    batches = [batch for batch, _ in plans]
    problems = [*wrong_choice("join", join, JOINS), *_batch_problems(batches, "plans")]
    given: list[Schedule] = []
    for index, (batch, schedule) in enumerate(plans if not problems else ()):
        validation = validate(batch, schedule)
        given.append(validation.schedule)
        if not validation.valid:
            problems.append(Problem(f"plans[{index}]", f"the schedule is not valid: {validation.violations[0]}"))
    raise_any(problems)

    def following(index: int, state: EndState) -> list[Schedule]:
        return [joined(batches[index], given[index], state, join) if index else given[0]]

    return _one_by_one(batches, following)


def plan_stream(
    batches: Iterable[Batch],
    *,
    join: StreamJoin = "moved",
    method: str = "far",
    time_limit: float | None = None,
    foresight: bool = False,
    **options: Unpack[RunKeywords],
) -> StreamPlan:
    """Plan batches that come one after the other; without ``foresight`` a batch knows nothing of those that follow.

    Parameters
    ----------
    batches : iterable of Batch
        For the same GPUs. Only the first one may have an initial state. GPUs that are then busy until a later batch
        can have ended on the others are not planned for in it.
    join : str
        As for :func:`concatenate`; with ``moved`` and the method ``far`` that schedule is joined which then ends first:
        FAR's own, that of the authors' program, or one of two whose tasks are spread with regard to the ends of the
        batch before. Or ``handover``: no batch is planned for empty GPUs, but for the state that the one before has
        left (see :func:`handover`). With an exact method each batch then ends as early as it can from there.
    method : str
        As for :func:`mig_opt.solve`, which plans each batch.
    time_limit : float, optional
        Seconds for each batch, and once more for its moves and swaps.
    foresight : bool
        Whether all batches are known when the first one is planned. Four ways to plan the batches so far are then
        carried on, instead of the one that ends first: a schedule that ends a little later may be better to follow. The
        first of them is the one without foresight, and the one that ends first counts. For the method ``far`` and the
        join ``moved``.
    **options
        The other :class:`~mig_opt.method.options.RunOptions`, as for :func:`mig_opt.solve`: a stream is a run for each
        batch, with its own calls of the callbacks, and ``gap`` or ``stop`` ends the run of a batch, not the stream.

    Returns
    -------
    StreamPlan
        Its schedule has passed the validator. Ctrl-C ends the planning early: the plan then has the batches until then.

    Raises
    ------
    InputError
        If arguments are wrong, batches do not fit together, or a task can run nowhere.
    KeyboardInterrupt
        If Ctrl-C came before the first batch was planned.

    Examples
    --------
    >>> from mig_opt import generate_batch
    >>> stream = [generate_batch(10, scaling="PoorScaling", seed=seed) for seed in (1, 2, 3)]
    >>> plan = plan_stream(stream)
    >>> [round(end, 1) for end in plan.ends], len(plan.schedule.runs)
    ([76.2, 104.8, 194.8], 30)
    """
    batches = entries_of("batches", batches, Batch, "a Batch")
    wrong = [*wrong_choice("join", join, (*JOINS, "handover")), *wrong_flag("foresight", foresight)]
    if foresight is True and (join, method) != ("moved", "far"):
        message = "there are several ways to choose from only with the method 'far' and join='moved'"
        wrong.append(Problem("foresight", message))
    wrong += [*_batch_problems(batches, "batches"), *needs_more(method)]
    settings = run_options(METHODS, method, also=wrong, time_limit=time_limit, **options)
    own = RunOptions(time_limit=time_limit, deterministic=settings.deterministic)  # of what is done around the method

    def solved(index: int, batch: Batch) -> Schedule:
        result = solve(batch, method, time_limit=time_limit, **options).uninterrupted()
        if result.schedule is None:
            limit = "stop" if settings.stop is not None else "method" if time_limit is None else "time_limit"
            message = f"{method} found no schedule for batches[{index}]; allow for more, or take another method"
            raise InputError([Problem(limit, message)])
        return result.schedule

    @cache
    def planned(index: int, gpus: int) -> Schedule:
        batch = batches[index]
        return solved(index, batch.replace(gpus=gpus, initial=()) if index else batch)

    def following(index: int, state: EndState) -> list[Schedule]:
        batch = batches[index]
        if index and join == "handover":
            batch, begin = _handed_over(batch, state)
            return [shifted(solved(index, batch), begin)]
        if not index or join == "handover":
            plans = [planned(index, batch.gpus)]
            return plans + _firsts(batch, own) if foresight else plans
        seen, _ = _handed_over(batch, state)
        # The other GPUs are busy until the batch can have ended.
        late = {live.gpu for live in seen.initial} - {place.gpu for place in Horizon.of(seen).places}
        gpus = [gpu for gpu in range(batch.gpus) if gpu not in late]
        batch, state = batch.replace(gpus=len(gpus), initial=()), state.of_gpus(gpus)
        plans = [planned(index, len(gpus))]
        control = Control[Schedule](own)
        if join == "moved" and method == "far":
            plans += far_behind(batch, state, control)
        return [on_gpus(joined(batch, plan, state, join, control), dict(enumerate(gpus))) for plan in plans]

    return _one_by_one(batches, following, width=_BEAM_WIDTH if foresight else 1)


def handover(batch: Batch, schedule: Schedule, following: Batch) -> tuple[Batch, float]:
    """Return the next batch as it looks at the moment when the last operation of a schedule has ended.

    The instances that exist then are its initial state; most of them are still running tasks. Nothing more changes by
    itself, so a schedule of that batch, begun at that moment, never disturbs the schedule before. If an exact method
    solves it, no plan made at that moment ends earlier.

    Parameters
    ----------
    batch : Batch
        What was planned.
    schedule : Schedule
        A valid schedule for it.
    following : Batch
        What is to be planned next, for the same GPUs.

    Returns
    -------
    Batch
        ``following`` with the initial state.
    float
        Seconds from the start of ``batch`` to that moment.

    Raises
    ------
    InputError
        If the batches do not fit together, or the schedule is not valid.

    Examples
    --------
    >>> from mig_opt import generate_batch, solve
    >>> first, second = (generate_batch(6, gpu="A30", seed=seed) for seed in (1, 2))
    >>> following, seconds = handover(first, solve(first, "far").schedule, second)
    >>> round(seconds, 2), [(live.profile, round(live.free, 2)) for live in following.initial]
    (23.38, [('1g.6gb', 33.45), ('1g.6gb', 30.93), ('1g.6gb', 33.53), ('1g.6gb', 31.87)])
    >>> solve(following).status.value
    'optimal'
    """
    raise_any([*wrong_types(batch, schedule), *wrong_class("following", following, Batch)])
    raise_any(_batch_problems([batch, following], "batches"))
    validation = validate(batch, schedule)
    raise_any(Problem("schedule", f"is not valid: {violation}") for violation in validation.violations[:1])
    return _handed_over(following, EndState.at_start_of(batch).after(batch, validation.schedule))


def _firsts(batch: Batch, options: RunOptions) -> list[Schedule]:
    """Return schedules of a first batch that are longer than that of ``far``, but may be better to follow."""
    found = []
    for method in (far_published, far_unrefined):
        control = Control[Schedule](options)
        method(batch, control)
        if control.plan is not None:
            found.append(control.plan)
    if not batch.initial:
        control = Control[Schedule](options)
        plan = best_published(batch, control)
        plan.refine(over=lambda: control.expired)
        found.append(plan.fifo_driver_schedule())
    return found


def _handed_over(batch: Batch, state: EndState) -> tuple[Batch, float]:
    begin = max(state.driver_free.values(), default=0.0)
    initial = tuple(
        LiveInstance(gpu, profile, start, tidy(max(0.0, free - begin)))
        for (gpu, profile, start), free in state.live.items()
    )
    return batch.replace(initial=initial), begin


def _one_by_one(
    batches: Sequence[Batch], following: Callable[[int, EndState], Iterable[Schedule]], width: int = 1
) -> StreamPlan:
    """Plan one batch after the other with ``following(index, state)``, and validate the whole.

    Of the schedules that it returns the one that ends first is kept. A wider beam search keeps ``width``
    states after each batch: that of the schedules that end first each time, and others that end first.
    """
    kept: list[tuple[EndState, tuple[Schedule, ...]]] = [(EndState.at_start_of(batches[0]), ())]
    for index, batch in enumerate(batches):
        try:
            found = [
                [(state.after(batch, each), (*schedules, each)) for each in following(index, state)]
                for state, schedules in kept
            ]
        except KeyboardInterrupt:
            if not index:
                raise
            break
        kept = [min(found[0], key=lambda plan: plan[1][-1].makespan)]
        for state, schedules in sorted(itertools.chain(*found), key=lambda plan: plan[0].makespan):
            if len(kept) < width and all(state != other for other, _ in kept):
                kept.append((state, schedules))
    _, schedules = min(kept, key=lambda plan: plan[0].makespan)
    stream = StreamPlan(tuple(batches[: len(schedules)]), schedules)
    for violation in violations_of_method(stream.batch, stream.schedule):
        raise SolverError(f"the schedules of a stream do not fit together: {violation}")
    return stream


def _batch_problems(batches: Sequence[Batch], path: str) -> list[Problem]:
    if not batches:
        return [Problem(path, "needs at least one batch, is empty")]
    problems = []
    first = batches[0]
    for index, batch in enumerate(batches):
        at = f"{path}[{index}]"
        if not batch.gpu:
            message = f"has several kinds of GPUs ({batch.kind_names}), and a stream is planned on one"
            problems.append(Problem(f"{at}.pools", f"{message}; plan each by itself"))
        problems += [
            Problem(f"{at}.{name}", f"must be the same as in {path}[0]: the GPUs are the same")
            for name in ("gpu", "gpus", "operations", "parallel_operations")
            if getattr(batch, name) != getattr(first, name)
        ]
        if index and any(batch.has_mig(live.gpu) or live.free for live in batch.initial):
            problems.append(Problem(f"{at}.initial", "must be empty: the batches before decide what is live"))
        problems += [
            Problem(f"{at}.tasks[{task}]", f"{batch.tasks[task].name!r} can run on no profile of {batch.kind_names}")
            for task in batch.unplaceable()
        ]
        problems += (problem.below(at) for problem in unplannable(batch))
    problems += [
        Problem(path, f"all together: {problem}")
        for problem in total_problems([task for batch in batches for task in batch.tasks], first.operations, ())
    ]
    return problems
