"""Commands about second proofs: prove, check."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from mig_opt.api.prove import Check, check_proof_options
from mig_opt.api.prove import check as check_certificate
from mig_opt.api.prove import prove as find_proof
from mig_opt.api.prove.prover import DEFAULT_METHOD
from mig_opt.batch.batch import Batch
from mig_opt.batch.certificate import Certificate, Claim
from mig_opt.cli import options
from mig_opt.cli.batch.screens import batch_rows, schedule_table, validation_card
from mig_opt.cli.inputs import check_outputs, load_batch, written
from mig_opt.cli.outcome import DEFAULT_TIME_LIMIT, Checks, finish, print_json, print_text
from mig_opt.cli.screens import BAD, GOOD, UNCLEAR, Cell, Rows, bullets, card, seconds, show, styled
from mig_opt.errors import Problem
from mig_opt.validation import validate


def prove(
    batch: options.BatchArgument,
    schedule: options.ScheduleArgument,
    *,
    gpu: options.Gpu = None,
    gpus: options.Gpus = None,
    costs: options.Costs = None,
    method: Annotated[str, Option(metavar="NAME", help="An exact one of: mig-opt methods.")] = DEFAULT_METHOD,
    time_limit: options.TimeLimit = DEFAULT_TIME_LIMIT,
    within: Annotated[
        float, Option(metavar="S", help="Seconds by which a schedule may be shorter without counting.")
    ] = 0.0,
    seed: options.Seed = 0,
    workers: options.Workers = None,
    output: Annotated[Path | None, options.output("Write the certificate as JSON.")] = None,
    save_better: Annotated[
        Path | None, options.file("Write the shorter schedule, if any.", "--save-better", "-b")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Prove a second time that no schedule is shorter by a tick.

    Choose another method than the one that found the schedule: it is not told about it. A tick is the unit of the
    batch's times. Exits with 0 if there is a proof; with 1 if there is a shorter schedule, if the question stays
    open, or if the schedule is not valid; with 130 after Ctrl-C.
    """
    from mig_opt.cli.progress import shown_progress
    from mig_opt.files.batch.certificates import write_certificate
    from mig_opt.files.batch.schedules import read_schedule, write_schedule

    checks = Checks()
    limits: dict[str, Any] = {"time_limit": time_limit, "within": within, "seed": seed, "workers": workers}
    checks.attempt(check_proof_options, method, **limits)
    problem = checks.attempt(load_batch, batch, gpu, gpus, costs=costs)
    plan = checks.attempt(read_schedule, schedule)
    checks.attempt(check_outputs, [batch, schedule], certificate=output, schedule=save_better)
    checks.finish()
    found = validate(problem, plan)
    if not found.valid:
        if as_json:
            print_json({"claim": None, "violations": list(map(dataclasses.asdict, found.violations))})
        else:
            show(validation_card(problem, found), "", bullets(map(str, found.violations)))
        finish(good=False)
    with shown_progress(quiet=as_json) as callbacks:
        certificate = find_proof(problem, plan, method, callbacks=callbacks, **limits)
    remarks = written("certificate", certificate, output, write_certificate)
    remarks += written("shorter schedule", certificate.better, save_better, write_schedule)
    if as_json:
        from mig_opt.files.batch.certificates import certificate_to_json

        print_text(certificate_to_json(certificate))
    else:
        _show_certificate(problem, certificate, [*_hints(certificate, time_limit), *remarks])
    interrupted = certificate.interrupted and certificate.claim is Claim.OPEN
    finish(good=certificate.claim is Claim.PROVED, interrupted=interrupted)


def check(
    batch: options.BatchArgument,
    schedule: options.ScheduleArgument,
    certificate: Annotated[Path, Argument(metavar="CERTIFICATE", help="JSON file.", show_default=False)],
    *,
    gpu: options.Gpu = None,
    gpus: options.Gpus = None,
    costs: options.Costs = None,
    rerun: Annotated[bool, Option("--rerun", help="Ask a method again where something rests on one.")] = False,
    method: Annotated[
        str | None, Option(metavar="NAME", help="For --rerun.  [default: that of the certificate]")
    ] = None,
    time_limit: options.TimeLimit = DEFAULT_TIME_LIMIT,
    workers: options.Workers = None,
    as_json: options.Json = False,
) -> None:
    """Check a certificate of: mig-opt prove.

    Recomputes all that needs no solver, in exact arithmetic, and says what is left to be trusted.
    Exits with 0 if the certificate is right, whatever it claims, else 1.
    """
    from mig_opt.cli.progress import shown_progress
    from mig_opt.files.batch.certificates import read_certificate
    from mig_opt.files.batch.schedules import read_schedule

    checks = Checks()
    limits: dict[str, Any] = {"time_limit": time_limit, "workers": workers}
    with checks.step():
        also = [Problem("method", "is for --rerun; add that")] if method is not None and not rerun else []
        check_proof_options(DEFAULT_METHOD if method is None else method, also=also, **limits)
    problem = checks.attempt(load_batch, batch, gpu, gpus, costs=costs)
    plan = checks.attempt(read_schedule, schedule)
    read = checks.attempt(read_certificate, certificate)
    checks.finish()
    with shown_progress(quiet=as_json) as callbacks:
        found = check_certificate(problem, plan, read, rerun=rerun, method=method, callbacks=callbacks, **limits)
    if as_json:
        print_json(_document(found))
    else:
        _show_check(problem, found)
    again = found.rerun
    finish(good=found.holds, interrupted=again is not None and again.interrupted and again.claim is Claim.OPEN)


def _hints(certificate: Certificate, time_limit: float) -> list[str]:
    """Return what might close a question that is open."""
    if certificate.claim is not Claim.OPEN or certificate.interrupted:
        return []
    if certificate.runtime_s >= 0.9 * time_limit:
        return [f"Stopped after {time_limit:g} s; --time-limit S allows for more."]
    return [
        f"{certificate.method} can tell no more: {_between(certificate)} s are left. Another --method may, "
        "or --within S if so little does not matter."
    ]


def _show_certificate(batch: Batch, certificate: Certificate, remarks: list[str]) -> None:
    better = certificate.better
    undecided = certificate.claim is not Claim.REFUTED and certificate.lower_bound < certificate.makespan
    rows: Rows = [
        *batch_rows(batch),
        ("makespan", f"{seconds(certificate.makespan)} s"),
        ("shorter by", _shorter(certificate)),
        ("answer", _answer(certificate)),
        ("shorter", None if better is None else f"{seconds(better.makespan)} s"),
        ("lower bound", f"{seconds(certificate.lower_bound)} s"),
        ("between", f"{_between(certificate)} s" if undecided else None),
        ("method", certificate.method if certificate.runtime_s else "not needed"),
        ("runtime", f"{certificate.runtime_s:.3f} s"),
    ]
    show(card(rows))
    if better is not None:
        show("", schedule_table(batch, better))
    if remarks:
        show("", *map(styled, remarks))


def _between(certificate: Certificate) -> str:
    return f"{certificate.makespan - certificate.lower_bound:.3g}"


def _shorter(certificate: Certificate) -> str:
    """Return by how much a schedule must be shorter to count."""
    least = "a tick" if certificate.exact else "a millionth"
    if certificate.exact:
        least += f" ({certificate.tick} s)"
    return f"{least} and more than {certificate.within:g} s" if certificate.within else least


def _answer(certificate: Certificate) -> Cell:
    if certificate.claim is Claim.PROVED:
        return styled("proved, no schedule is that much shorter", GOOD)
    if certificate.claim is Claim.REFUTED:
        return styled("refuted, there is a shorter schedule", BAD)
    return styled("open, interrupted" if certificate.interrupted else "open", UNCLEAR)


def _show_check(batch: Batch, found: Check) -> None:
    certificate = found.certificate
    share = f" ({found.bound / certificate.makespan:.1%} of the makespan)" if certificate.makespan > 0 else ""
    rerun = found.rerun
    again = None if rerun is None else f"{rerun.method}: {rerun.claim}, {rerun.runtime_s:.3f} s"
    wrong = len(found.mismatches)
    rows: Rows = [
        *batch_rows(batch),
        ("certificate", styled(f"not right, {wrong} x", BAD) if wrong else styled("right", GOOD)),
        ("claim", certificate.claim.value),
        ("shorter by", _shorter(certificate)),
        ("makespan", f"{seconds(certificate.makespan)} s"),
        ("lower bound", f"{seconds(certificate.lower_bound)} s"),
        ("no solver", f"{seconds(found.bound)} s{share}"),
        ("asked again", again),
    ]
    show(card(rows))
    if found.mismatches:
        show("", bullets(map(str, found.mismatches)))
    if found.trusted:
        show("", "Recomputed and right. What remains to be trusted:", bullets(found.trusted))


def _document(found: Check) -> dict[str, Any]:
    certificate, rerun = found.certificate, found.rerun
    return {
        "holds": found.holds,
        "claim": certificate.claim.value,
        "makespan": certificate.makespan,
        "lower_bound": certificate.lower_bound,
        "bound_without_solver": found.bound,
        "needs_solver": found.needs_solver,
        "mismatches": [dataclasses.asdict(entry) for entry in found.mismatches],
        "trusted": list(found.trusted),
        "rerun": rerun and {name: getattr(rerun, name) for name in ("claim", "method", "lower_bound", "runtime_s")},
    }
