"""The commands prove and check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from mig_opt import Batch, Schedule, read
from mig_opt import check as check_certificate
from mig_opt import prove as find_proof
from mig_opt.api.prove import Check, check_proof_options
from mig_opt.api.prove.prover import DEFAULT_METHOD
from mig_opt.batch.certificate import Certificate, Claim
from mig_opt.cli import options
from mig_opt.cli.answers import DEFAULT_TIME_LIMIT, Answer, Call, File, code_of
from mig_opt.cli.batch.reports import batch_facts, schedule_table, validation_facts
from mig_opt.cli.inputs import load_batch
from mig_opt.method.report import Part, Points, Report, bad, data_of, good, unclear
from mig_opt.texts import in_seconds
from mig_opt.validation import validate


def prove(
    call: Call,
    batch: options.BatchArgument,
    schedule: options.ScheduleArgument,
    *,
    given: options.BatchOptions,
    method: Annotated[str, "NAME", "An exact one of: mig-opt methods."] = DEFAULT_METHOD,
    time_limit: options.TimeLimit = DEFAULT_TIME_LIMIT,
    within: Annotated[float, "S", "Seconds by which a schedule may be shorter without counting."] = 0.0,
    seed: options.Seed = 0,
    workers: options.Workers = None,
    output: Annotated[Path | None, "Write the certificate as JSON."] = None,
    save_better: Annotated[Path | None, "--save-better", "-b", "Write the shorter schedule, if any."] = None,
) -> Answer:
    """Prove a second time that no schedule is shorter by a tick.

    Choose another method than the one that found the schedule: it is not told about it. A tick is the unit of the
    batch's times. Exits with 0 if there is a proof; with 1 if there is a shorter schedule, if the question stays
    open, or if the schedule is not valid; with 130 after Ctrl-C.

    Examples
    --------
    mig-opt prove rodinia-a30 plan.json -o certificate.json
    """
    limits: dict[str, Any] = {"time_limit": time_limit, "within": within, "seed": seed, "workers": workers}
    call.attempt(check_proof_options, method, **limits)
    problem = call.attempt(load_batch, batch, given)
    plan = call.attempt(read, Schedule, schedule)
    call.begin(certificate=output, schedule=save_better)
    found = validate(problem, plan)
    if not found.valid:
        data = {"claim": None, **data_of(found, "violations")}
        violations = Points(list(map(str, found.violations)))
        return Answer(Report(validation_facts(problem, found), [violations], data=data), code_of(good=False))
    with call.progress() as callbacks:
        certificate = find_proof(problem, plan, method, callbacks=callbacks, **limits)
    interrupted = certificate.interrupted and certificate.claim is Claim.OPEN
    return Answer(
        _proof_report(problem, certificate, time_limit),
        code_of(good=certificate.claim is Claim.PROVED, interrupted=interrupted),
        [File("certificate", output, certificate), File("shorter schedule", save_better, certificate.better)],
    )


def _proof_report(batch: Batch, certificate: Certificate, time_limit: float) -> Report:
    from mig_opt.files.batch.certificates import CERTIFICATE

    better = certificate.better
    undecided = certificate.claim is not Claim.REFUTED and certificate.lower_bound < certificate.makespan
    facts = [
        *batch_facts(batch),
        ("makespan", in_seconds(certificate.makespan)),
        ("shorter by", _counting(certificate)),
        ("answer", _answer(certificate)),
        ("shorter", None if better is None else in_seconds(better.makespan)),
        ("lower bound", in_seconds(certificate.lower_bound)),
        ("left open", f"{certificate.makespan - certificate.lower_bound:.3g} s" if undecided else None),
        ("method", certificate.method if certificate.runtime_s else "not needed"),
        ("runtime", f"{certificate.runtime_s:.3f} s"),
    ]
    parts: list[Part] = [] if better is None else [schedule_table(batch, better)]
    parts += [Points((), hint) for hint in _hints(certificate, time_limit)]
    return Report(facts, parts, data=CERTIFICATE.document(certificate))


def _hints(certificate: Certificate, time_limit: float) -> list[str]:
    """Return what might close a question that is open."""
    if certificate.claim is not Claim.OPEN or certificate.interrupted:
        return []
    if certificate.runtime_s >= 0.9 * time_limit:
        return [f"Stopped after {time_limit:g} s; --time-limit S allows for more."]
    return [
        f"{certificate.method} can tell no more: {certificate.makespan - certificate.lower_bound:.3g} s are left. "
        "Another --method may, "
        "or --within S if so little does not matter."
    ]


def _counting(certificate: Certificate) -> str:
    """Return by how much a schedule must be shorter to count."""
    least = "a tick" if certificate.exact else "a millionth"
    if certificate.exact:
        least += f" ({certificate.tick} s)"
    return f"{least} and more than {certificate.within:g} s" if certificate.within else least


def _answer(certificate: Certificate) -> str:
    if certificate.claim is Claim.PROVED:
        return good("proved, no schedule is that much shorter")
    if certificate.claim is Claim.REFUTED:
        return bad("refuted, there is a shorter schedule")
    return unclear("open, interrupted" if certificate.interrupted else "open")


def check(
    call: Call,
    batch: options.BatchArgument,
    schedule: options.ScheduleArgument,
    certificate: Annotated[Path, options.argument("CERTIFICATE", "JSON file.")],
    *,
    given: options.BatchOptions,
    rerun: Annotated[bool, "Ask a method again where something rests on one."] = False,
    method: Annotated[str | None, "NAME", "For --rerun.  [default: that of the certificate]"] = None,
    time_limit: options.TimeLimit = DEFAULT_TIME_LIMIT,
    workers: options.Workers = None,
) -> Answer:
    """Check a certificate of: mig-opt prove.

    Recomputes all that needs no solver, in exact arithmetic, and says what is left to be trusted.
    Exits with 0 if the certificate is right, whatever it claims, else 1.

    Examples
    --------
    mig-opt check rodinia-a30 plan.json certificate.json
    mig-opt check rodinia-a30 plan.json certificate.json --rerun
    """
    limits: dict[str, Any] = {"time_limit": time_limit, "workers": workers}
    if not rerun:
        call.none_of(("--method", "--time-limit", "--workers"), "is for --rerun; add that")
    call.attempt(check_proof_options, DEFAULT_METHOD if method is None else method, **limits)
    problem = call.attempt(load_batch, batch, given)
    plan = call.attempt(read, Schedule, schedule)
    claimed = call.attempt(read, Certificate, certificate)
    call.begin()
    with call.progress() as callbacks:
        found = check_certificate(problem, plan, claimed, rerun=rerun, method=method, callbacks=callbacks, **limits)
    again = found.rerun
    interrupted = again is not None and again.interrupted and again.claim is Claim.OPEN
    return Answer(_check_report(problem, found), code_of(good=found.holds, interrupted=interrupted))


def _check_report(batch: Batch, found: Check) -> Report:
    certificate, rerun, wrong = found.certificate, found.rerun, len(found.mismatches)
    share = f" ({found.bound / certificate.makespan:.1%} of the makespan)" if certificate.makespan > 0 else ""
    facts = [
        *batch_facts(batch),
        ("certificate", bad(f"not right, {wrong} x") if wrong else good("right")),
        ("claim", certificate.claim.value),
        ("shorter by", _counting(certificate)),
        ("makespan", in_seconds(certificate.makespan)),
        ("lower bound", in_seconds(certificate.lower_bound)),
        ("solver-free", f"{in_seconds(found.bound)}{share}"),
        ("asked again", None if rerun is None else f"{rerun.method}: {rerun.claim}, {rerun.runtime_s:.3f} s"),
    ]
    trusted = "Recomputed and right. What remains to be trusted:" if found.trusted else ""
    parts = [Points(list(map(str, found.mismatches))), Points(found.trusted, trusted)]
    data = {
        "holds": found.holds,
        **data_of(certificate, "claim", "makespan", "lower_bound"),
        "bound_without_solver": found.bound,
        **data_of(found, "needs_solver", "mismatches", "trusted"),
        "rerun": rerun and data_of(rerun, "claim", "method", "lower_bound", "runtime_s"),
    }
    return Report(facts, parts, data=data)
