"""Checks certificates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mig_opt._version import __version__
from mig_opt.api.prove.prover import (
    DEFAULT_METHOD,
    Question,
    check_proof_options,
    critical_task_of,
    prove,
    slice_load_value,
    wrong_method,
)
from mig_opt.batch.batch import Batch
from mig_opt.batch.certificate import Certificate, Claim, SliceLoad, batch_digest, schedule_digest
from mig_opt.batch.integer_batch import Ticks
from mig_opt.batch.schedule import Schedule, wrong_types
from mig_opt.errors import InputError, Problem
from mig_opt.method.options import Callbacks
from mig_opt.method.result import RESOLUTION
from mig_opt.rules import wrong_flag, wrong_integer, wrong_type
from mig_opt.validation import validate


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of :func:`mig_opt.check`.

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
        The answer of the method that was asked again, if it was: to the claim, or where that is not ``proved``, whether
        a schedule is below the lower bound.
    """

    certificate: Certificate
    mismatches: tuple[Problem, ...]
    bound: float
    needs_solver: bool
    trusted: tuple[str, ...]
    rerun: Certificate | None = None

    @property
    def holds(self) -> bool:
        """True if nothing speaks against the certificate."""
        return not self.mismatches


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
        What :func:`prove` returned, or :func:`mig_opt.read`.
    rerun : bool
        Whether to ask a method again, where something rests on one. A claim that it cannot confirm is a mismatch, and
        where nothing is claimed a lower bound.
    method : str, optional
        The exact method to ask; by default that of the certificate.
    time_limit, workers, callbacks
        For the method, as in :func:`prove`.

    Returns
    -------
    Check
        The mismatches, and what was not checked.

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
    wrong = [*wrong_types(batch, schedule), *wrong_flag("rerun", rerun)]
    if not isinstance(certificate, Certificate):
        wrong.append(wrong_type("certificate", certificate, "a Certificate, as prove returns it"))
    options: Any = {"time_limit": time_limit, "workers": workers, "callbacks": callbacks}
    check_proof_options(DEFAULT_METHOD if method is None else method, also=wrong, **options)
    question = Question(Ticks.of(batch), schedule.makespan, certificate.within)
    value, wrong_evidence = (Fraction(0), []) if batch.unplaceable() else _recomputed(batch, schedule, certificate)
    bound = question.seconds_below(value)
    mismatches = [*_wrong_statements(batch, schedule, certificate, question), *wrong_evidence]
    mismatches += (*wrong_method(certificate.method), *_wrong_claim(batch, certificate, question, bound))
    undecided = certificate.claim is not Claim.REFUTED and not question.met(bound)
    needs_solver = undecided or certificate.lower_bound > bound
    again: Certificate | None = None
    if rerun and needs_solver and not mismatches:
        asked = certificate.method if method is None else method
        within = certificate.within
        if certificate.claim is not Claim.PROVED:
            within = schedule.makespan - certificate.lower_bound * (1 - RESOLUTION)
        again = prove(batch, schedule, asked, within=within, seed=certificate.seed, **options)
        mismatches += _contradictions(certificate, again, question)
    trusted = () if mismatches else tuple(_trusted(certificate, again, bound, needs_solver=needs_solver))
    return Check(certificate, tuple(mismatches), bound, needs_solver, trusted, again)


def _recomputed(batch: Batch, schedule: Schedule, certificate: Certificate) -> tuple[Fraction, list[Problem]]:
    """Return the best bound, and what is wrong with them; one with wrong weights or prices shows nothing."""
    stated, critical = certificate.critical_task, critical_task_of(batch)
    best, problems = Fraction(critical.value), []
    for path, evidence in (("slice_load", certificate.slice_load), ("priced_work", certificate.priced_work)):
        if evidence is None:
            continue
        try:
            if isinstance(evidence, SliceLoad):
                value = slice_load_value(batch, evidence.weights)
            else:
                from mig_opt.api.prove.priced_work import priced_work_value  # loads numpy

                value = priced_work_value(batch, evidence.prices, schedule.makespan)
        except InputError as error:
            problems += [problem.below(path) for problem in error.problems]
        else:
            best = max(best, value)
            if evidence.value != str(value):
                problems.append(Problem(f"{path}.value", f"is {evidence.value}, but follows from them as {value}"))
    if stated.task != critical.task:
        problems.append(Problem("critical_task.task", f"is {stated.task!r}, but should be {critical.task!r}"))
    if stated.value != critical.value:
        problems.append(Problem("critical_task.value", f"is {stated.value}, but should be {critical.value}"))
    return best, problems


def _wrong_statements(
    batch: Batch, schedule: Schedule, certificate: Certificate, question: Question
) -> Iterator[Problem]:
    """Yield everything in which a certificate is not about this batch and schedule."""
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
    for path, seconds in (("within", certificate.within), ("runtime_s", certificate.runtime_s)):
        if seconds < 0:
            yield Problem(path, f"must be >= 0 seconds, is {seconds}")
    yield from wrong_integer("seed", certificate.seed, 0, 2**31 - 1)


def _wrong_claim(batch: Batch, certificate: Certificate, question: Question, bound: float) -> Iterator[Problem]:
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


def _contradictions(certificate: Certificate, again: Certificate, question: Question) -> Iterator[Problem]:
    """Yield what the second answer says against the first."""
    if again.better is not None and certificate.lower_bound > again.better.makespan:
        message = f"is {certificate.lower_bound}, but {again.method} found a schedule of {again.better.makespan} s"
        yield Problem("lower_bound", message)
    proved = certificate.claim is Claim.PROVED
    if again.claim is Claim.OPEN:
        message = f"{again.method} could not confirm it: it proves a lower bound of {again.lower_bound} s"
        yield Problem("claim" if proved else "lower_bound", message)
    elif again.claim is Claim.REFUTED and proved:
        yield Problem("claim", f"{again.method} found a schedule shorter than {question.makespan} s")


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
