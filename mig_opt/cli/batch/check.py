"""The command check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from mig_opt import Batch, Problem, Schedule, read
from mig_opt import check as check_certificate
from mig_opt.api.prove import Check, check_proof_options
from mig_opt.api.prove.prover import DEFAULT_METHOD
from mig_opt.batch.certificate import Certificate, Claim
from mig_opt.cli import options
from mig_opt.cli.answers import DEFAULT_TIME_LIMIT, Answer, Call, code_of
from mig_opt.cli.batch.prove import counting
from mig_opt.cli.batch.reports import batch_facts
from mig_opt.cli.figures import in_seconds
from mig_opt.cli.inputs import load_batch
from mig_opt.method.report import Points, Report, bad, data_of, good


def check(
    call: Call,
    batch: options.BatchArgument,
    schedule: options.ScheduleArgument,
    certificate: Annotated[Path, options.needed("CERTIFICATE", "JSON file.")],
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
    with call.step():
        also = [Problem("method", "is for --rerun; add that")] if method is not None and not rerun else []
        check_proof_options(DEFAULT_METHOD if method is None else method, also=also, **limits)
    problem = call.attempt(load_batch, batch, given)
    plan = call.attempt(read, Schedule, schedule)
    claimed = call.attempt(read, Certificate, certificate)
    call.begin()
    with call.progress() as callbacks:
        found = check_certificate(problem, plan, claimed, rerun=rerun, method=method, callbacks=callbacks, **limits)
    again = found.rerun
    interrupted = again is not None and again.interrupted and again.claim is Claim.OPEN
    return Answer(_report(problem, found), code_of(good=found.holds, interrupted=interrupted))


def _report(batch: Batch, found: Check) -> Report:
    certificate, rerun, wrong = found.certificate, found.rerun, len(found.mismatches)
    share = f" ({found.bound / certificate.makespan:.1%} of the makespan)" if certificate.makespan > 0 else ""
    facts = [
        *batch_facts(batch),
        ("certificate", bad(f"not right, {wrong} x") if wrong else good("right")),
        ("claim", certificate.claim.value),
        ("shorter by", counting(certificate)),
        ("makespan", in_seconds(certificate.makespan)),
        ("lower bound", in_seconds(certificate.lower_bound)),
        ("no solver", f"{in_seconds(found.bound)}{share}"),
        ("asked again", None if rerun is None else f"{rerun.method}: {rerun.claim}, {rerun.runtime_s:.3f} s"),
    ]
    parts = [Points(list(map(str, found.mismatches)))] if wrong else []
    if found.trusted:
        parts.append(Points(found.trusted, "Recomputed and right. What remains to be trusted:"))
    data = {
        "holds": found.holds,
        **data_of(certificate, "claim", "makespan", "lower_bound"),
        "bound_without_solver": found.bound,
        **data_of(found, "needs_solver", "mismatches", "trusted"),
        "rerun": rerun and data_of(rerun, "claim", "method", "lower_bound", "runtime_s"),
    }
    return Report(facts, parts, data=data)
