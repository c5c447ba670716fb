"""Options of a run: limits, seed, threads, receivers of the progress, and when a run may end early."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypedDict

from mig_opt.errors import InputError, Problem, nearest, problems_of
from mig_opt.method.registry import AUTO, Registry
from mig_opt.method.result import TrajectoryPoint
from mig_opt.rules import Checked, entries_of, wrong_type
from mig_opt.rules.vocabulary import Seconds, Share, Whole

Stop = Callable[[TrajectoryPoint], bool]
"""Asked after each improvement of the plan or the bound; True ends the run."""


class Callbacks:
    """Receiver of the progress of a run; override the methods that you need.

    The calls come one at a time, but not always from the thread that started the run; ``seconds`` counts from there.
    Problem and plan are a batch and a schedule for :func:`mig_opt.solve`, a demand and a deployment for ``deploy``, ...

    Examples
    --------
    >>> from mig_opt import solve, load
    >>> class Show(Callbacks):
    ...     def on_end(self, result):
    ...         print(result.status)
    >>> _ = solve(load("rodinia-a30"), method="far", callbacks=Show())
    feasible
    """

    def on_start(self, problem: Any, method: str) -> None:
        """Begin a run.

        Parameters
        ----------
        problem : object
            The batch, demand, fleet state, trace, or change.
        method : str
            Name of the method.
        """

    def on_incumbent(self, seconds: float, plan: Any, lower_bound: float) -> None:
        """Receive a plan that is better than all before.

        Parameters
        ----------
        seconds : float
            Since the run began.
        plan : object
            The new incumbent.
        lower_bound : float
            The best one so far.
        """

    def on_bound(self, seconds: float, objective: float | None, lower_bound: float) -> None:
        """Receive a lower bound that is better than all before.

        Parameters
        ----------
        seconds : float
            Since the run began.
        objective : float or None
            Of the incumbent; None without one.
        lower_bound : float
            The new one.
        """

    def on_end(self, result: Any) -> None:
        """End a run; the result is what the entry point returns."""


class RunKeywords(TypedDict, total=False):
    """Attributes of :class:`RunOptions` that entry points take as keywords, besides their own ``time_limit``."""

    seed: int
    workers: int | None
    callbacks: Callbacks | Sequence[Callbacks]
    gap: float
    stop: Stop | None
    deterministic: bool


class InnerOptions(TypedDict):
    """Options of a run inside of another one, whose receivers and ends it does not share."""

    time_limit: float | None
    seed: int
    workers: int
    deterministic: bool


@dataclass(frozen=True, slots=True)
class RunOptions(Checked):
    """Options of a run, which every entry point that runs a method takes by keyword.

    Attributes
    ----------
    time_limit : float, optional
        Wall-clock seconds of the method; seconds of counted work if ``deterministic``. Exact methods without a limit
        run until the proof. The import of a method that this process has not used yet does not count.
    seed : int
        Seed for whatever is random in the method, at least 0.
    workers : int, optional
        Threads of the method; by default one for each core.
    callbacks : Callbacks or sequence of Callbacks
        Told about the progress. What they raise ends the run and arrives at the caller.
    gap : float
        The run ends as soon as ``(objective - lower_bound) / objective`` is at most this share: 0.01 is one percent. If
        plans have several goals, 0 does not end a run that has reached the bound of the first.
    stop : callable, optional
        Called with the new ``TrajectoryPoint`` after each improvement of the plan or the bound, not always in the
        thread that began the run. The run ends as soon as it returns True; nothing that the method finds later counts.
        What it raises arrives at the caller as well.
    deterministic : bool
        True if the same arguments have to give the same plan, bound and trajectory (but for the seconds) on every run,
        with any number of workers and any time limit, as long as the versions of this package and its solvers are the
        same. The method then has one thread, and the time limit counts work in place of time: about as many seconds as
        it takes on a typical machine, within a factor of two or three.

    Raises
    ------
    InputError
        With every option that no run can work with, whatever its type.

    Examples
    --------
    >>> RunOptions(time_limit=10.0, seed=1).workers
    >>> try:
    ...     RunOptions(time_limit=0)
    ... except InputError as error:
    ...     print(error)
    time_limit: must be a finite number of seconds > 0, is 0
    """

    time_limit: Seconds | None = None
    seed: Annotated[int, Whole(0, 2**31 - 1)] = 0
    workers: Annotated[int, Whole(1, 1000)] | None = None
    callbacks: Callbacks | Sequence[Callbacks] = ()
    gap: Share = 0.0
    stop: Stop | None = None
    deterministic: bool = False

    def _problems(self) -> Iterator[Problem]:
        if not isinstance(self.callbacks, Callbacks):
            wanted = "a Callbacks object, not the class or a function"
            yield from problems_of(entries_of, "callbacks", self.callbacks, Callbacks, wanted)
        if self.stop is not None and not callable(self.stop):
            yield wrong_type("stop", self.stop, "a function of a TrajectoryPoint")


def run_options(
    known: Registry | None = None,
    method: object = AUTO,
    *,
    also: Iterable[Problem] = (),
    functions: bool = False,
    **options: Any,
) -> RunOptions:
    """Return the options of a run; refuse them together with whatever else is wrong with the arguments.

    ``method`` has to be one of those that are ``known``, if any are, or one of the ``functions`` of others if these
    will do; ``also`` has the problems of other arguments, which come first.

    Raises
    ------
    InputError
        With every problem; an UnknownMethodError if one of them is that.
    TypeError
        If an argument is called like none of the options.
    """
    names = [field.name for field in fields(RunOptions)]
    for name in options.keys() - names:
        raise TypeError(f"got an unexpected keyword argument {name!r}; {nearest(name, names)}")
    problems = list(also)
    error: type[InputError] = InputError
    if known is not None and callable(method) and not functions:
        problems.append(wrong_type(known.what, method, f"the name of a {known.what}"))
    elif known is not None:
        try:
            known.find(method)
        except InputError as unknown:
            error = type(unknown)
            problems += unknown.problems
    try:
        found = RunOptions(**options)
    except InputError as wrong:
        problems += wrong.problems
    if problems:
        raise error(problems)
    return found
