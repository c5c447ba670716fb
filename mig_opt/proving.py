"""A second proof: whether a schedule can be beaten is asked of another method, and the answer can be checked."""

from __future__ import annotations

import dataclasses
import math
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mig_opt._version import __version__
from mig_opt.arguments import wrong_flag, wrong_number, wrong_type
from mig_opt.batch import Batch
from mig_opt.bounds import slice_prices
from mig_opt.certificate import Certificate, Claim, CriticalTask, SliceLoad, batch_digest, schedule_digest
from mig_opt.control import Callbacks
from mig_opt.errors import InputError, Problem, SolverError, UnknownMethodError
from mig_opt.result import Result, Status, TrajectoryPoint
from mig_opt.schedule import Schedule
from mig_opt.solving import check_options, get_method, solve
from mig_opt.ticks import RESOLUTION, Ticks, as_decimal
from mig_opt.validation import validate

DEFAULT_METHOD = "milp"

_LARGEST_DENOMINATOR = 2 * 10**6
"""The sum of the weights that the search for prices returns is below that: a price leads back to whole weights."""

_TOLERANCE = 1e-6
"""Seconds by which a valid schedule may cut each of its times."""


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of :func:`check`.

    Attributes
    ----------
    certificate : Certificate
        What was checked.
    mismatches : tuple of Problem
        Everything in which the certificate is not right, each with the path of the field.
    bound : float
        Seconds, rounded down: what the bounds that need no solver show, recomputed in exact arithmetic. 0 if a task can
        run nowhere.
    needs_solver : bool
        Whether the claim, or the lower bound, rests on more than these bounds and the rules of the problem.
    trusted : tuple of str
        What was not checked and has to be believed; empty if there are mismatches.
    rerun : Certificate or None
        The answer of the method that was asked again, if it was.
    """

    certificate: Certificate
    mismatches: tuple[Problem, ...]
    bound: float
    needs_solver: bool
    trusted: tuple[str, ...]
    rerun: Certificate | None = None

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the certificate."""
        return not self.mismatches


def prove(
    batch: Batch,
    schedule: Schedule,
    method: str = DEFAULT_METHOD,
    *,
    time_limit: float | None = None,
    within: float = 0.0,
    seed: int = 0,
    workers: int | None = None,
    callbacks: Callbacks | Sequence[Callbacks] = (),
) -> Certificate:
    """Decide whether a schedule can be beaten, preferably by another method than the one that found it.

    The question is whether there is a schedule that is shorter by a tick (:class:`~mig_opt.ticks.Ticks`): the unit of
    the batch's times where they are exact in ticks, else a millionth of the makespan.

    Parameters
    ----------
    batch : Batch
        The problem.
    schedule : Schedule
        A valid schedule of it. The method is not told about it.
    method : str
        An exact method.
    time_limit : float, optional
        Seconds; without a limit the method runs until it knows, or can do no more.
    within : float
        Seconds: schedules that are shorter by no more than that do not count. Methods that compute in floating-point
        numbers (``milp``) can be some millionths of a second short of a proof to the tick.
    seed : int
        For whatever is random in the method.
    workers : int, optional
        Threads; by default one for each core.
    callbacks : Callbacks or sequence of Callbacks
        Told about the progress of the method.

    Returns
    -------
    Certificate
        Ctrl-C ends the method early; the bound that it reached is kept, and the claim then mostly open.

    Raises
    ------
    InputError
        If arguments are wrong, or the schedule is not valid, with every violation.
    SolverError
        If the method proves a bound above the valid schedule: a defect of this package or of the solver.

    Examples
    --------
    >>> from mig_opt import Batch, Run, Schedule, Task, get_gpu
    >>> batch = Batch((Task("a", {4: 2.0}),), get_gpu("A30"))
    >>> certificate = prove(batch, Schedule((Run("a", 0, "4g.24gb", 0, 0.13, 2.13),)))
    >>> certificate.claim.value, certificate.slice_load
    ('proved', SliceLoad(weights=(1, 1, 1, 1), value='213/100'))
    """
    check_proof_options(
        method,
        time_limit=time_limit,
        within=within,
        seed=seed,
        workers=workers,
        callbacks=callbacks,
        also=[*_wrong_types(batch, schedule)],
    )
    found = validate(batch, schedule)
    if not found.valid:
        raise InputError(Problem(violation.path, violation.message).below("schedule") for violation in found.violations)
    slice_load, critical_task = _slice_load(batch), _critical_task(batch)
    question = _Question(Ticks.of(batch), schedule.makespan, float(within))
    lower_bound = question.seconds_below(max(Fraction(slice_load.value), Fraction(critical_task.value)))
    result: Result | None = None
    if not question.met(lower_bound):
        result = solve(
            batch,
            method,
            time_limit=time_limit,
            seed=seed,
            workers=workers,
            callbacks=callbacks,
            stop=question.decided,
        )
        lower_bound = max(lower_bound, result.lower_bound)
    better = result.schedule if result is not None and question.shorter(result.makespan) else None
    shortest = schedule if better is None else better
    _refuse_bound_above(lower_bound, shortest, method)
    lower_bound = min(lower_bound, shortest.makespan)
    certificate = Certificate(
        claim=question.claim(lower_bound, better),
        batch=batch_digest(batch),
        schedule=schedule_digest(schedule),
        makespan=float(schedule.makespan),
        tick=str(question.ticks.length),
        exact=question.ticks.exact,
        within=question.within,
        lower_bound=lower_bound,
        slice_load=slice_load,
        critical_task=critical_task,
        method=get_method(method).name,
        seed=int(seed),
        runtime_s=0.0 if result is None else result.runtime_s,
        versions=_own_versions() if result is None else dict(result.versions),
        better=better,
        interrupted=result is not None and result.status is Status.INTERRUPTED,
    )
    return dataclasses.replace(certificate, digest=certificate.computed_digest())


def check_proof_options(
    method: object = DEFAULT_METHOD,
    *,
    time_limit: object = None,
    within: object = 0.0,
    seed: object = 0,
    workers: object = None,
    callbacks: object = (),
    also: Sequence[Problem] = (),
) -> None:
    """Refuse options that :func:`prove` cannot work with; ``also`` is what is known to be wrong.

    Raises
    ------
    InputError
        With every problem.
    """
    problems = [*also]
    problems += wrong_number("within", within, "a finite number of seconds >= 0", above=math.nextafter(0.0, -1.0))
    if isinstance(method, str):
        problems += _wrong_method(method, also_unknown=False)
    check_options(method, time_limit=time_limit, seed=seed, workers=workers, callbacks=callbacks, also=problems)


def _wrong_types(batch: object, schedule: object) -> Iterator[Problem]:
    if not isinstance(batch, Batch):
        yield wrong_type("batch", batch, "a Batch, for example load_instance('rodinia-a30')")
    if not isinstance(schedule, Schedule):
        yield wrong_type("schedule", schedule, "a Schedule, for example that of a Result")


def check(
    batch: Batch,
    schedule: Schedule,
    certificate: Certificate,
    *,
    rerun: bool = False,
    method: str | None = None,
    time_limit: float | None = None,
    workers: int | None = None,
    callbacks: Callbacks | Sequence[Callbacks] = (),
) -> Check:
    """Check a certificate, as far as that is possible without its solver or by asking one again.

    Recomputed are the digests, the validity and the makespan of the schedule, the tick, the bounds that need no solver
    (in exact arithmetic), the shorter schedule of a refutation, and what the claim follows from. The digest of the
    certificate itself finds changes by accident; whoever means to deceive can compute it anew.

    Parameters
    ----------
    batch, schedule : Batch, Schedule
        What the certificate is about.
    certificate : Certificate
        What :func:`prove` returned, or :func:`mig_opt.read_certificate`.
    rerun : bool
        Whether to ask a method again, where something rests on one. A claim that it cannot confirm is a mismatch.
    method : str, optional
        The exact method to ask; by default that of the certificate.
    time_limit, workers, callbacks
        For the method, as in :func:`prove`.

    Raises
    ------
    InputError
        If arguments are wrong.

    Examples
    --------
    >>> from mig_opt import Batch, Run, Schedule, Task, get_gpu
    >>> batch = Batch((Task("a", {4: 2.0}),), get_gpu("A30"))
    >>> schedule = Schedule((Run("a", 0, "4g.24gb", 0, 0.13, 2.13),))
    >>> found = check(batch, schedule, prove(batch, schedule))
    >>> found.holds, found.needs_solver
    (True, False)
    """
    wrong = [*_wrong_types(batch, schedule), *wrong_flag("rerun", rerun)]
    if not isinstance(certificate, Certificate):
        wrong.append(wrong_type("certificate", certificate, "a Certificate, as prove returns it"))
    asked = DEFAULT_METHOD if method is None else method
    check_proof_options(asked, time_limit=time_limit, workers=workers, callbacks=callbacks, also=wrong)
    question = _Question(Ticks.of(batch), schedule.makespan, certificate.within)
    bound = 0.0
    if not batch.unplaceable():
        bound = max(question.seconds_below(value) for value in _recomputed(batch, certificate))
    mismatches = [*_mismatches(batch, schedule, certificate, question, bound)]
    needs_solver = certificate.claim is not Claim.REFUTED and not question.met(bound)
    again: Certificate | None = None
    if rerun and needs_solver and not mismatches:
        again = prove(
            batch,
            schedule,
            certificate.method if method is None else method,
            time_limit=time_limit,
            within=certificate.within,
            seed=certificate.seed,
            workers=workers,
            callbacks=callbacks,
        )
        mismatches += _contradictions(certificate, again, question)
    trusted = () if mismatches else tuple(_trusted(certificate, again, bound, needs_solver=needs_solver))
    return Check(certificate, tuple(mismatches), bound, needs_solver, trusted, again)


@dataclass(frozen=True, slots=True)
class _Question:
    """Whether a schedule of some makespan can be beaten."""

    ticks: Ticks
    makespan: float
    within: float

    def met(self, lower_bound: float) -> bool:
        """Whether no schedule above the bound is shorter."""
        return self.ticks.meet(self.makespan, lower_bound) or self._close(lower_bound)

    def shorter(self, makespan: float | None) -> bool:
        """Whether a schedule of this makespan is shorter."""
        if makespan is None or self._close(makespan):
            return False
        if self.ticks.exact:
            # Both are sums of floating-point numbers.
            return self.ticks.nearest(makespan) < self.ticks.nearest(self.makespan)
        return not self.ticks.meet(self.makespan, makespan)

    def decided(self, point: TrajectoryPoint) -> bool:
        return self.met(point.lower_bound) or self.shorter(point.makespan)

    def claim(self, lower_bound: float, better: Schedule | None) -> Claim:
        if better is not None and self.shorter(better.makespan):
            return Claim.REFUTED
        return Claim.PROVED if self.met(lower_bound) else Claim.OPEN

    def seconds_below(self, seconds: Fraction) -> float:
        return self.ticks.seconds_below(seconds / self.ticks.length)

    def _close(self, seconds: float) -> bool:
        return as_decimal(self.makespan) - as_decimal(seconds) <= as_decimal(self.within)


def _slice_load(batch: Batch) -> SliceLoad:
    shares = [Fraction(price).limit_denominator(_LARGEST_DENOMINATOR) for price in slice_prices(batch)]
    scale = math.lcm(*(share.denominator for share in shares))
    weights = tuple(int(share * scale) for share in shares)
    return SliceLoad(weights, str(slice_load_value(batch, weights)))


def slice_load_value(batch: Batch, weights: Sequence[int]) -> Fraction:
    """Return the slice-load bound of these weights in seconds, exactly.

    It says the same as :func:`mig_opt.lower_bounds` in other words, placement by placement and without ticks, so that
    a mistake in one of them shows.

    Raises
    ------
    InputError
        Unless there is a weight >= 0 for each memory slice, not all of them 0.
    """
    wanted = batch.gpu.memory_slices
    if len(weights) != wanted or min(weights, default=0) < 0 or not any(weights):
        raise InputError([Problem("weights", f"must be {wanted} whole numbers >= 0, not all 0")])
    load = Fraction(0)
    create: list[Fraction] = []
    for task in batch.tasks:
        options = batch.options(task)
        load += min(
            _exactly(seconds) * sum(weights[at] for at in placement.footprint) for placement, seconds in options
        )
        create += [_exactly(batch.operations.of("create", placement.profile)) for placement, _ in options]
    return load / (sum(weights) * batch.gpus) + (Fraction(0) if batch.initial else min(create))


def _critical_task(batch: Batch) -> CriticalTask:
    shapes = [(batch.gpu.placement(live.profile, live.start).shape, _exactly(live.free)) for live in batch.initial]
    least: list[tuple[Fraction, str]] = []
    for task in batch.tasks:
        ends = []
        for placement, seconds in batch.options(task):
            ready = [_exactly(batch.operations.of("create", placement.profile))]
            ready += [free for shape, free in shapes if shape[1:] == placement.shape[1:]]
            ends.append(min(ready) + _exactly(seconds))
        least.append((min(ends), task.name))
    value, name = max(least)
    return CriticalTask(name, str(value))


def _exactly(seconds: float) -> Fraction:
    return Fraction(as_decimal(seconds))


def _recomputed(batch: Batch, certificate: Certificate) -> Iterator[Fraction]:
    """Yield the values of the bounds; a bound whose weights are wrong shows nothing."""
    yield Fraction(_critical_task(batch).value)
    try:
        yield slice_load_value(batch, certificate.slice_load.weights)
    except InputError:
        return


def _mismatches(
    batch: Batch, schedule: Schedule, certificate: Certificate, question: _Question, bound: float
) -> Iterator[Problem]:
    """Yield everything in which a certificate differs from what can be recomputed."""
    if certificate.digest != certificate.computed_digest():
        yield Problem("digest", "is not that of the certificate: something in it was changed after it was made")
    if certificate.batch != batch_digest(batch):
        yield Problem("batch", "the certificate is about another batch, or GPU, or number of GPUs")
    if certificate.schedule != schedule_digest(schedule):
        yield Problem("schedule", "the certificate is about another schedule")
    for violation in validate(batch, schedule).violations:
        yield Problem(violation.path, f"{violation.message} (the schedule is not valid)").below("schedule")
    for path, stated, actual in (
        ("makespan", certificate.makespan, schedule.makespan),
        ("tick", certificate.tick, str(question.ticks.length)),
        ("exact", certificate.exact, question.ticks.exact),
    ):
        if stated != actual:
            yield Problem(path, f"is {stated}, but follows from batch and schedule as {actual}")
    if certificate.within < 0:
        yield Problem("within", f"must be >= 0 seconds, is {certificate.within}")
    if not batch.unplaceable():
        yield from _wrong_evidence(batch, certificate)
    yield from _wrong_method(certificate.method)
    yield from _wrong_claim(batch, certificate, question, bound)


def _wrong_evidence(batch: Batch, certificate: Certificate) -> Iterator[Problem]:
    try:
        value = str(slice_load_value(batch, certificate.slice_load.weights))
    except InputError as error:
        yield from (problem.below("slice_load") for problem in error.problems)
    else:
        if certificate.slice_load.value != value:
            yield Problem("slice_load.value", f"is {certificate.slice_load.value}, but follows from them as {value}")
    critical = _critical_task(batch)
    if certificate.critical_task.task != critical.task:
        yield Problem("critical_task.task", f"is {certificate.critical_task.task!r}, but should be {critical.task!r}")
    if certificate.critical_task.value != critical.value:
        yield Problem("critical_task.value", f"is {certificate.critical_task.value}, but should be {critical.value}")


def _wrong_method(name: str, *, also_unknown: bool = True) -> Iterator[Problem]:
    try:
        kind = get_method(name).kind
    except UnknownMethodError as error:
        yield from error.problems if also_unknown else ()
    else:
        if kind != "exact":
            yield Problem("method", f"must be exact, {name} proves nothing; see: mig-opt methods")


def _wrong_claim(batch: Batch, certificate: Certificate, question: _Question, bound: float) -> Iterator[Problem]:
    """Yield what is wrong with the claim, the lower bound, and the shorter schedule."""
    shortest, better = question.makespan, certificate.better
    if better is not None:
        for violation in validate(batch, better).violations:
            yield Problem(violation.path, f"{violation.message} (so it refutes nothing)").below("better")
        if not question.shorter(better.makespan):
            yield Problem("better", f"takes {better.makespan} s, which is not shorter")
        shortest = min(shortest, better.makespan)
    if not min(bound, shortest) <= certificate.lower_bound:
        yield Problem("lower_bound", f"is {certificate.lower_bound}, but the bounds without a solver show {bound}")
    if certificate.lower_bound > shortest:
        yield Problem("lower_bound", f"is {certificate.lower_bound}, above a schedule of {shortest} s")
    follows = question.claim(certificate.lower_bound, better)
    if certificate.claim is not follows:
        yield Problem("claim", f"is {certificate.claim}, but follows from the bound and the schedules as {follows}")


def _contradictions(certificate: Certificate, again: Certificate, question: _Question) -> Iterator[Problem]:
    """Yield what the second answer says against the first."""
    if again.better is not None and certificate.lower_bound > again.better.makespan:
        message = f"is {certificate.lower_bound}, but {again.method} found a schedule of {again.better.makespan} s"
        yield Problem("lower_bound", message)
    if certificate.claim is Claim.PROVED and again.claim is not Claim.PROVED:
        message = f"{again.method} could not confirm it: it proves a lower bound of {again.lower_bound} s"
        if again.claim is Claim.REFUTED:
            message = f"{again.method} found a schedule shorter than {question.makespan} s"
        yield Problem("claim", message)


def _trusted(certificate: Certificate, again: Certificate | None, bound: float, *, needs_solver: bool) -> Iterator[str]:
    yield f"the rules and the arithmetic of mig-opt {__version__}, which checked the rest"
    if not needs_solver:
        return
    for made in (certificate, *(() if again is None else (again,))):
        versions = ", ".join(f"{name} {version}" for name, version in sorted(made.versions.items()))
        yield (
            f"{made.method} with {versions}: its model, and that it solved it without a mistake when it proved "
            f"{made.lower_bound:.12g} s, where the bounds without a solver show {bound:.12g} s"
            f"{'' if made is certificate else ' (asked again just now)'}"
        )


def _refuse_bound_above(lower_bound: float, schedule: Schedule, method: str) -> None:
    # Each time of a valid schedule may be off by the tolerance of the validator.
    slack = _TOLERANCE * 2 * (len(schedule.runs) + len(schedule.operations or schedule.runs * 2) + 1)
    if lower_bound - schedule.makespan > slack + RESOLUTION * schedule.makespan:
        message = f"the lower bound {lower_bound} s above a valid schedule of {schedule.makespan} s"
        raise SolverError(f"method {method} claims {message}")


def _own_versions() -> dict[str, str]:
    return {"mig-opt": __version__, "python": platform.python_version()}
