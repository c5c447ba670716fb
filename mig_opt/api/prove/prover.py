"""Second proofs: asks an exact method whether a schedule can be beaten, and writes the certificate.

Its evidence is bounds that anybody can recompute, in exact arithmetic. They say the same as :mod:`mig_opt.batch.bounds`
in other words, placement by placement and without ticks, so that a mistake in one of the two shows.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mig_opt.api.solve import solve
from mig_opt.batch.batch import Batch
from mig_opt.batch.bounds import slice_dual_prices
from mig_opt.batch.certificate import (
    Certificate,
    Claim,
    CriticalTask,
    PricedWork,
    SliceLoad,
    batch_digest,
    schedule_digest,
)
from mig_opt.batch.integer_batch import Ticks
from mig_opt.batch.schedule import Schedule, ScheduleResult, wrong_types
from mig_opt.errors import InputError, Problem, SolverError, UnknownMethodError, raise_any
from mig_opt.gpu.model import GpuModel, Placement, Profile
from mig_opt.method.options import Callbacks, RunOptions, run_options
from mig_opt.method.registry import METHODS, get_method
from mig_opt.method.result import RESOLUTION, Status, TrajectoryPoint, versions_with
from mig_opt.rules import wrong_number
from mig_opt.rules.decimals import as_decimal, as_fraction
from mig_opt.validation import validate

DEFAULT_METHOD = "milp"

_TOLERANCE = 1e-6  # seconds by which a valid schedule may cut each of its times
_PRICING_SHARE, _PRICING_SECONDS = 0.2, 10.0
"""Share of the time for the prices of tasks, and most seconds: without a limit they take as long as the rest needs."""
_LARGEST_DENOMINATOR = 2 * 10**6
"""Number above the sum of the weights that the search returns: a dual price leads back to whole weights."""


@dataclass(frozen=True, slots=True)
class Question:
    """Question of a proof: a schedule that is shorter than ``makespan`` by a tick and more than ``within`` seconds.

    A bound that meets the makespan says no, a schedule that is shorter says yes; the two exclude each other.
    """

    ticks: Ticks
    makespan: float
    within: float

    def met(self, lower_bound: float) -> bool:
        """Return True if no schedule above the lower bound is shorter."""
        return self._finite(lower_bound) and (self.ticks.meet(self._meant, lower_bound) or self._close(lower_bound))

    def shorter(self, makespan: float | None) -> bool:
        """Return True if a schedule of this makespan (seconds) is shorter."""
        if makespan is None or not self._finite(makespan) or self._close(makespan):
            return False
        if self.ticks.exact:
            return self.ticks.of_sum(makespan) < self.ticks.of_sum(self._meant)
        return not self.ticks.meet(self.makespan, makespan)

    def decided(self, point: TrajectoryPoint) -> bool:
        """Return True if the run of a method has answered the question."""
        return self.met(point.lower_bound) or self.shorter(point.makespan)

    def claim(self, lower_bound: float, better: Schedule | None) -> Claim:
        """Return what follows from a bound and perhaps another schedule."""
        if better is not None and self.shorter(better.makespan):
            return Claim.REFUTED
        return Claim.PROVED if self.met(lower_bound) else Claim.OPEN

    def seconds_below(self, seconds: Fraction) -> float:
        """Return the float that does not stand for more."""
        return self.ticks.seconds_below(seconds / self.ticks.length)

    @property
    def _meant(self) -> float:
        """The makespan in whole ticks, if it is one within the tolerance of a valid schedule, which may be rounded."""
        near = self.ticks.seconds_below(self.ticks.nearest(self.makespan))
        return near if self.ticks.exact and abs(near - self.makespan) <= _TOLERANCE else self.makespan

    def _finite(self, seconds: float) -> bool:
        return math.isfinite(seconds + self.makespan)

    def _close(self, seconds: float) -> bool:
        return as_decimal(self.makespan) - as_decimal(seconds) <= as_decimal(self.within)


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

    The question is whether there is a schedule that is shorter by a tick:
    the unit of the batch's times where they are exact in ticks, else a millionth of the makespan.

    Parameters
    ----------
    batch : Batch
        The problem.
    schedule : Schedule
        A valid schedule of it. The method is not told about it.
    method : str
        An exact method.
    time_limit : float, optional
        Seconds; without a limit the method runs until it knows, or can do no more. The check of the schedule and the
        bounds that need no solver are made in any case, for thousands of tasks in some seconds.
    within : float
        Seconds: schedules that are shorter by no more than that do not count. Methods that compute in floating-point
        numbers (``milp``) can be some millionths of a second short of a proof to the tick.
    seed, workers, callbacks
        As for :func:`mig_opt.solve`.

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
    begin = time.monotonic()
    options: Any = {"time_limit": time_limit, "seed": seed, "workers": workers, "callbacks": callbacks}
    given = check_proof_options(method, within=within, also=[*wrong_types(batch, schedule)], **options)
    time_limit, seed = given.time_limit, given.seed
    raise_any(violation.problem("schedule") for violation in validate(batch, schedule).violations)
    seconds = _PRICING_SECONDS if time_limit is None else min(_PRICING_SECONDS, _PRICING_SHARE * time_limit)
    known: Any = {"method": get_method(method).name, "within": within}
    interrupted = False
    try:
        certificate = certify(batch, schedule, **known, seconds=seconds)
    except KeyboardInterrupt:
        certificate, interrupted = certify(batch, schedule, **known, seconds=0.0), True
    question = Question(Ticks.of(batch), schedule.makespan, certificate.within)
    if interrupted or question.met(certificate.lower_bound):
        return _sealed(certificate, seed=seed, interrupted=interrupted)
    if time_limit is not None:
        options["time_limit"] = begin + time_limit - time.monotonic()
        if options["time_limit"] <= 0:
            return _sealed(certificate, seed=seed, runtime_s=time.monotonic() - begin)
    result: ScheduleResult = solve(batch, method, stop=question.decided, **options)
    lower_bound = max(certificate.lower_bound, result.lower_bound)
    better = result.schedule if question.shorter(result.makespan) else None
    shortest = schedule if better is None else better
    _refuse_bound_above(lower_bound, shortest, method)
    lower_bound = min(lower_bound, shortest.makespan)
    return _sealed(
        certificate,
        claim=question.claim(lower_bound, better),
        lower_bound=lower_bound,
        seed=seed,
        runtime_s=time.monotonic() - begin,
        versions=dict(result.versions),
        interrupted=result.status is Status.INTERRUPTED,
        better=better,
    )


def certify(
    batch: Batch,
    schedule: Schedule,
    *,
    method: str = DEFAULT_METHOD,
    within: float = 0.0,
    seconds: float = _PRICING_SECONDS,
    prices: Sequence[int] | None = None,
) -> Certificate:
    """Return the certificate of the bounds that need no solver to be checked, before any method is asked.

    ``seconds`` are for the prices of the tasks, if they are not given; with 0 none are sought.
    """
    from mig_opt.api.prove.priced_work import priced_work_of, priced_work_value  # loads numpy

    slice_load, critical_task = slice_load_of(batch), critical_task_of(batch)
    question = Question(Ticks.of(batch), schedule.makespan, float(within))
    lower_bound = question.seconds_below(max(Fraction(slice_load.value), Fraction(critical_task.value)))
    priced_work: PricedWork | None = None
    if prices is not None:
        priced_work = PricedWork(tuple(prices), str(priced_work_value(batch, prices, schedule.makespan)))
    elif seconds and not question.met(lower_bound):
        priced_work = priced_work_of(batch, schedule, seconds)
    if priced_work is not None:
        lower_bound = max(lower_bound, question.seconds_below(Fraction(priced_work.value)))
    _refuse_bound_above(lower_bound, schedule, method)
    lower_bound = min(lower_bound, schedule.makespan)
    certificate = Certificate(
        claim=question.claim(lower_bound, None),
        batch=batch_digest(batch),
        schedule=schedule_digest(schedule),
        makespan=float(schedule.makespan),
        tick=str(question.ticks.length),
        exact=question.ticks.exact,
        within=question.within,
        lower_bound=lower_bound,
        slice_load=slice_load,
        critical_task=critical_task,
        method=method,
        seed=0,
        runtime_s=0.0,
        versions=versions_with(),
        interrupted=False,
        better=None,
        digest="",
        priced_work=priced_work,
    )
    return _sealed(certificate)


def _sealed(certificate: Certificate, **changes: Any) -> Certificate:
    """Return a certificate with some attributes changed, and with its digest."""
    changed = dataclasses.replace(certificate, **changes)
    return dataclasses.replace(changed, digest=changed.computed_digest())


def check_proof_options(
    method: object = DEFAULT_METHOD, *, within: object = 0.0, also: Sequence[Problem] = (), **options: Any
) -> RunOptions:
    """Return the options of a run; refuse wrong arguments of :func:`prove`, and what is ``also`` wrong."""
    wanted, below_zero = "a finite number of seconds >= 0", math.nextafter(0.0, -1.0)
    problems = [*also, *wrong_number("within", within, wanted, above=below_zero)]
    problems += wrong_method(method, also_unknown=False) if isinstance(method, str) else ()
    return run_options(METHODS, method, also=problems, **options)


def wrong_method(name: str, *, also_unknown: bool = True) -> Iterator[Problem]:
    """Yield a problem unless ``name`` is that of an exact method; unknown ones may be left to others."""
    try:
        kind = get_method(name).kind
    except UnknownMethodError as error:
        yield from error.problems if also_unknown else ()
    else:
        if kind != "exact":
            yield Problem("method", f"must be exact, {name} proves nothing; see: mig-opt methods")


def _refuse_bound_above(lower_bound: float, schedule: Schedule, method: str) -> None:
    # Each time of a valid schedule may be off by the tolerance of the validator.
    slack = _TOLERANCE * 2 * (len(schedule.runs) + len(schedule.operations or schedule.runs * 2) + 1)
    if lower_bound - schedule.makespan > slack + RESOLUTION * schedule.makespan:
        message = f"the lower bound {lower_bound} s above a valid schedule of {schedule.makespan} s"
        raise SolverError(f"method {method} claims {message}")


def slice_load_of(batch: Batch) -> SliceLoad:
    """Return the slice-load bound with weights that make it about as large as it can be."""
    prices = (price for own in slice_dual_prices(batch).values() for price in own)
    shares = [Fraction(price).limit_denominator(_LARGEST_DENOMINATOR) for price in prices]
    scale = math.lcm(*(share.denominator for share in shares))
    weights = tuple(int(share * scale) for share in shares)
    return SliceLoad(weights, str(slice_load_value(batch, weights)))


def slice_load_value(batch: Batch, weights: Sequence[int]) -> Fraction:
    """Return the slice-load bound of these weights in seconds, exactly; refuse weights that make no bound.

    They are those of the slices of a GPU, of one kind after the other.
    """
    wanted = sum(kind.memory_slices for kind in batch.kinds)
    if len(weights) != wanted or min(weights, default=0) < 0 or not any(weights):
        raise InputError([Problem("weights", f"must be {wanted} whole numbers >= 0, not all 0")])
    left = iter(weights)
    on_slice = {kind.name: [next(left) for _ in range(kind.memory_slices)] for kind in batch.kinds}
    weight_of: dict[Profile, int] = {}  # the least that an instance covers
    for placement in (each for kind in batch.kinds for each in kind.placements(batch.profile_set)):
        covered = sum(on_slice[placement.profile.gpu][at] for at in placement.footprint)
        weight_of[placement.profile] = min(covered, weight_of.get(placement.profile, covered))
    rows, parts = _exact_times(batch)
    load = Fraction(sum(min(weight_of[profile] * time for profile, time in row.items()) for row in rows), parts)
    created = {p: as_fraction(batch.operations.of("create", p)) for p in {own for row in rows for own in row}}
    # the weight of all slices by the second before which nothing runs there
    begins: Counter[Fraction] = Counter()
    for kind, on_gpus, idle in _live_by_kind(batch):
        # Where no task can run the second does not matter.
        first = min([own for profile, own in created.items() if profile.gpu == kind.name] or created.values())
        for live in on_gpus:
            free = {at: seconds for placement, seconds in live for at in placement.footprint}
            for at, weight in enumerate(on_slice[kind.name]):
                begins[free.get(at, first)] += weight
        if idle:
            begins[first] += sum(on_slice[kind.name]) * idle
    if not load:
        return min(begins)
    # Whichever slices are used, those that can be used first have room for the load soonest.
    ends, room, before = [], 0, Fraction(0)
    for begin, weight in sorted(begins.items()):
        room, before = room + weight, before + weight * begin
        ends += [(load + before) / room] if room else []
    return min(ends)


def critical_task_of(batch: Batch) -> CriticalTask:
    """Return the longest of the tasks' shortest times, each with the creation of its instance or the wait for one."""
    begins: dict[Profile, Fraction] = {}
    for kind, on_gpus, idle in _live_by_kind(batch):
        for placement in kind.placements(batch.profile_set):
            begin = min(_begin(batch, placement, live) for live in (on_gpus + [[]] * (idle > 0)))
            begins[placement.profile] = min(begin, begins.get(placement.profile, begin))
    rows, parts = _exact_times(batch)
    scale = math.lcm(*(begin.denominator for begin in begins.values()))  # whole numbers take a third of the time
    first = {profile: int(begin * parts * scale) for profile, begin in begins.items()}
    value, name = max(
        (min(first[profile] + time * scale for profile, time in row.items()), task.name)
        for task, row in zip(batch.tasks, rows, strict=True)
    )
    return CriticalTask(name, str(Fraction(value, parts * scale)))


def _exact_times(batch: Batch) -> tuple[list[dict[Profile, int]], int]:
    """Return the times of each task in whole parts of a second, and their number: fractions take ten times as long."""
    profiles = batch.profiles()
    rows = [
        {profile: as_decimal(time) for profile in profiles if (time := task.time_on(profile)) is not None}
        for task in batch.tasks
    ]
    decimals = max(0, *(-int(time.as_tuple().exponent) for row in rows for time in row.values()))
    return [{profile: int(time.scaleb(decimals)) for profile, time in row.items()} for row in rows], 10**decimals


def _live_by_kind(batch: Batch) -> Iterator[tuple[GpuModel, list[list[tuple[Placement, Fraction]]], int]]:
    """Yield each kind of GPU with the live instances of each GPU that has some, and the number of the others.

    Instances come with the seconds at which they are free.
    """
    for kind, gpus in batch.kinds.items():
        found: dict[int, list[tuple[Placement, Fraction]]] = {}
        for live in batch.initial:
            if live.gpu in gpus:
                found.setdefault(live.gpu, []).append((batch.placement(live), as_fraction(live.free)))
        yield kind, list(found.values()), len(gpus) - len(found)


def _begin(batch: Batch, placement: Placement, live: Sequence[tuple[Placement, Fraction]]) -> Fraction:
    """Return the second before which nothing runs in a placement of a GPU with these live instances."""
    begin = as_fraction(batch.operations.of("create", placement.profile))
    cleared = Fraction(0)
    for other, free in live:
        if other.shape == placement.shape:
            return free
        if other.conflicts(placement):
            cleared = max(cleared, free + as_fraction(batch.operations.of("destroy", other.profile)))
    return cleared + begin
