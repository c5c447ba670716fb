"""Scores: plans of other people, and solvers in any language, judged on the library of instances."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.files.documents import make_folder, read_text
from mig_opt.instances.bundled import DATA, InstanceInfo, Library
from mig_opt.instances.goals import goal_of
from mig_opt.instances.library import same
from mig_opt.instances.trace_goals import is_policy
from mig_opt.method.functions import place_of
from mig_opt.method.result import relative_gap
from mig_opt.rules import wrong_choice, wrong_integer, wrong_number
from mig_opt.simulation import Policy
from mig_opt.studies.execution import MOST_JOBS, run_missing
from mig_opt.studies.rows import Row
from mig_opt.studies.solvers import VALID, SolverRun, judged_text, left_plan, perform
from mig_opt.studies.summary import grouped

FACTORS = (1.0, 1.001, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0)
"""Factors of the best known value for which a performance profile has the share of the instances."""

Solver = Callable[[Any, float], Any] | Callable[[Any], Any] | Policy
"""Function of an instance, or of one and a limit in seconds, that returns a plan; or a scheduler of traces."""


@dataclass(frozen=True, slots=True)
class Score:
    """Judgement of a plan for an instance, beside the best that is known.

    Attributes
    ----------
    instance : str
        Name of the instance.
    valid : bool
        True if there is a plan in time that keeps every rule.
    value : float or None
        What counts, computed by the validator; None without a valid plan.
    lower_bound : float or None
        The best lower bound on record.
    gap : float or None
        ``(value - lower_bound) / value``.
    best_known : float or None
        The best value on record.
    new_best : bool
        True if the plan is better than that.
    solver : str
        Whose plan it is.
    status : str
        ``valid``, ``invalid``, ``garbage``, ``no plan``, ``late``, ``timeout`` or ``crashed``.
    reason : str
        Why there is no valid plan.
    seconds : float or None
        For how long the solver ran.
    """

    instance: str
    valid: bool
    value: float | None
    lower_bound: float | None
    gap: float | None
    best_known: float | None
    new_best: bool
    solver: str = ""
    status: str = VALID
    reason: str = ""
    seconds: float | None = None

    @property
    def ratio(self) -> float:
        """Value divided by the best known one; infinite without a valid plan."""
        if self.value is None:
            return math.inf
        known = self.value if self.best_known is None else self.best_known
        return 1.0 if same(self.value, known) else self.value / known if known > 0 else math.inf


@dataclass(frozen=True, slots=True)
class SolverLine:
    """Summary of a solver: numbers of runs, and ratios to the best known values.

    ``mean_ratio`` is the geometric mean over the instances with a valid plan where neither value is 0, ``profile`` has
    for each of ``FACTORS`` the share of all instances on which the plan is valid and within that factor of the best
    known.
    """

    solver: str
    runs: int
    valid: int
    best: int
    new_best: int
    failed: Mapping[str, int]
    mean_ratio: float | None
    profile: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of solvers on instances.

    Attributes
    ----------
    scores : tuple of Score
        One for each run, in the order in which they ended.
    interrupted : bool
        True if Ctrl-C ended it early.
    missing : int
        Number of runs that were not done for that reason.
    """

    scores: tuple[Score, ...]
    interrupted: bool = False
    missing: int = 0

    @property
    def lines(self) -> list[SolverLine]:
        """A line for each solver."""
        return [_line(solver, own) for solver, own in grouped(self.scores, lambda score: score.solver).items()]


def _line(solver: str, scores: Sequence[Score]) -> SolverLine:
    good = [score.ratio for score in scores if score.valid and 0 < score.ratio < math.inf]
    failed = {status: len(own) for status, own in grouped(scores, attrgetter("status")).items() if status != VALID}
    return SolverLine(
        solver=solver,
        runs=len(scores),
        valid=sum(score.valid for score in scores),
        best=sum(score.ratio <= 1 for score in scores),
        new_best=sum(score.new_best for score in scores),
        failed=failed,
        mean_ratio=math.exp(math.fsum(map(math.log, good)) / len(good)) if good else None,
        profile=tuple(sum(score.ratio <= factor for score in scores) / len(scores) for factor in FACTORS),
    )


def _score(
    info: InstanceInfo, status: str, value: float | None, reason: str, *, solver: str = "", seconds: float | None = None
) -> Score:
    valid = status == VALID and value is not None
    value = value if valid else None
    best = None if info.best is None else info.best.value
    bound = None if info.lower_bound is None else info.lower_bound.value
    gap = None if value is None or bound is None else relative_gap(value, bound)
    new = value is not None and (best is None or (value < best and not same(value, best)))
    return Score(info.name, valid, value, bound, gap, best, new, solver, status, reason, seconds)


def score(
    solver: str | Path | Solver,
    plan: str | Path | None = None,
    *,
    time_limit: float = 60.0,
    kind: str | None = None,
    difficulty: str | None = None,
    names: Iterable[str] = (),
    methods: Sequence[str] = (),
    output: str | Path | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    library: str | Path | None = None,
    told: Callable[[Score], None] = lambda _: None,
) -> Scores:
    """Score a plan, a folder of plans, or a solver on the library of instances.

    Parameters
    ----------
    solver : str, Path or callable
        With ``plan`` the name of an instance. Else a folder with plans, each called like its instance
        (``NAME.json``); a command with the placeholders ``{instance}`` and ``{plan}`` (and, where it wants them,
        ``{seconds}``, ``{name}``, ``{goal}`` and ``{question}``); or a function at the top of a file, which takes an
        instance, and if it wants a limit in seconds, and returns a plan; or a scheduler with a name there, such as a
        trained :class:`~mig_opt.environments.FleetAgent`, for traces.
    plan : path-like, optional
        File of a plan for the instance.
    time_limit : float
        Seconds for a solver on each instance; a second later it is ended.
    kind, difficulty : str, optional
        Kind and class of the instances; all, if they are not given.
    names : iterable of str
        Names of the instances, in place of these.
    methods : sequence of str
        Methods of our own to run beside, such as ``auto``, with one thread and the same limit; each on the instances
        that it is for.
    output : path-like, optional
        Folder in which the valid plans of the solver are kept.
    jobs : int
        Runs at the same time.
    scheduler : str, optional
        Address of a Dask scheduler whose workers do the runs; they need the same files.
    library : path-like, optional
        Folder of another library than the bundled one.
    told : callable
        Called with each score, as soon as it is known.

    Returns
    -------
    Scores
        A score for each plan or run. Nothing that a solver does ends it.

    Raises
    ------
    InputError
        If there are no such instances or plans, or an argument makes no sense.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mig_opt import load, score, solve, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(solve(load("rodinia-a30"), "far").schedule, Path(folder, "plan.json"))
    ...     (mine,) = score("rodinia-a30", Path(folder, "plan.json")).scores
    >>> mine.valid, round(mine.value, 3), mine.new_best, f"{mine.gap:.1%}"
    (True, 29.261, False, '2.8%')
    """
    known = Library(DATA if library is None else Path(library))
    if plan is not None:
        info = known.info(str(solver))
        return Scores((_score(info, *judged_text(known, info, read_text(plan), str(plan))),))
    command = solver if isinstance(solver, str | Path) else None
    if command and os.path.isdir(command):  # noqa: PTH112  # which has no trouble with long commands
        return _scored_folder(known, Path(command))
    problems = [*wrong_number("time_limit", time_limit, "a finite number of seconds > 0", above=0.0)]
    problems += wrong_integer("jobs", jobs, 1, MOST_JOBS)
    problems += () if command is None else _command_problems(str(command), here=scheduler is None)
    raise_any(problems)
    if kind is None and is_policy(solver):
        kind = "trace"
    infos = [known.info(name) for name in dict.fromkeys(names)] or known.chosen(kind, difficulty)
    ours = {info.name: [name for name in dict.fromkeys(methods) if name in goal_of(info).methods] for info in infos}
    able = list(dict.fromkeys(name for info in infos for name in goal_of(info).methods))
    raise_any(problem for name in methods for problem in wrong_choice("methods", name, able))
    if command is None:
        how, what = "function", place_of(solver, "solver")
        shown = what.rsplit(":", 1)[1]
    else:
        how, what, shown = "command", str(command), _program(str(command))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory()) if output is None else str(output)
        make_folder(folder)
        kept, asked = Path(folder).resolve(), (str(known.folder.resolve()), float(time_limit))
        runs = []
        for info in infos:
            beside = ((f"mig-opt {name}", "method", name, f".{name}") for name in ours[info.name])
            for solver_name, by, said, suffix in [(shown, how, what, ""), *beside]:
                file = str(kept / f"{info.name}{suffix}.json")
                runs.append(SolverRun(solver_name, by, said, info.name, *asked, file))
        return _scored_runs(known, runs, jobs, scheduler, told)


def _command_problems(command: str, *, here: bool) -> Iterator[Problem]:
    """Yield what is wrong with a command; that its program is there can be said of this machine only."""
    if not all(f"{{{word}}}" in command for word in ("instance", "plan")):
        yield Problem("solver", "must be a folder of plans, or a command with {instance} and {plan}")
        return
    try:
        first = shlex.split(command)[0]
    except ValueError as error:
        yield Problem("solver", f"is no command: {error}")
    else:
        if here and "{" not in first and shutil.which(first) is None:
            yield Problem("solver", f"{first} is no program that can be run here")


def _program(command: str) -> str:
    """Return the name of the program that a command runs, or of the script for Python."""
    first, *others = (Path(word).name for word in shlex.split(command))
    return others[0] if first.startswith("python") else first


def _scored_runs(
    library: Library, runs: list[SolverRun], jobs: int, scheduler: str | None, told: Callable[[Score], None]
) -> Scores:
    found: list[Score] = []

    def add(row: Row[SolverRun]) -> None:
        run, outcome = row.run, row.outcome
        info = library.info(run.instance)
        judged = outcome.status, outcome.makespan, outcome.error
        found.append(_score(info, *judged, solver=run.solver, seconds=outcome.seconds))
        told(found[-1])

    try:
        run_missing(runs, perform, jobs=jobs, scheduler=scheduler, told=add)
    except KeyboardInterrupt:
        return Scores(tuple(found), interrupted=True, missing=len(runs) - len(found))
    return Scores(tuple(found))


def _scored_folder(library: Library, folder: Path) -> Scores:
    """Return the scores of the plans in a folder that are called like instances; what cannot be read is garbage."""
    paths = [path for path in sorted(folder.glob("*.json")) if path.stem in library.infos]
    if not paths:
        message = "has no plan that is called like an instance, such as rodinia-a30.json"
        raise InputError([Problem("", message)], str(folder))
    judged = ((library.info(path.stem), path) for path in paths)
    plans = ((info, *left_plan(library, info, path, "")[1:]) for info, path in judged)
    return Scores(tuple(_score(*one, solver=folder.resolve().name) for one in plans))
