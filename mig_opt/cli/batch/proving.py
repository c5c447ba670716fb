"""Commands about second proofs: prove, check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mig_opt.batch.batch import Batch
from mig_opt.batch.certificate import Certificate, Claim
from mig_opt.cli.batch.solving import DEFAULT_TIME_LIMIT
from mig_opt.cli.inputs import (
    BatchArgument,
    GpuOption,
    GpusOption,
    JsonOption,
    ScheduleArgument,
    SeedOption,
    TimeLimitOption,
    WorkersOption,
    check_output,
    load_batch,
)
from mig_opt.cli.interruption import INTERRUPTED
from mig_opt.cli.outcome import ANSWER_IS_NO, Checks, as_options, options_named, print_json
from mig_opt.cli.progress import shown_progress
from mig_opt.cli.serving.fleets import violations_document
from mig_opt.errors import InputError, Problem
from mig_opt.proving import Check, check_proof_options
from mig_opt.proving import check as check_certificate
from mig_opt.proving import prove as find_proof
from mig_opt.proving.prover import DEFAULT_METHOD
from mig_opt.validation import validate

if TYPE_CHECKING:
    from rich.text import Text

_OPTIONS = as_options("method", "time_limit", "within", "seed", "workers", "rerun")


def prove(
    batch: BatchArgument,
    schedule: ScheduleArgument,
    *,
    gpu: GpuOption = None,
    gpus: GpusOption = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="An exact one of: mig-opt methods.")] = DEFAULT_METHOD,
    time_limit: TimeLimitOption = DEFAULT_TIME_LIMIT,
    within: Annotated[
        float, typer.Option(metavar="S", help="Seconds by which a schedule may be shorter without counting.")
    ] = 0.0,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the certificate as JSON.")
    ] = None,
    save_better: Annotated[
        Path | None, typer.Option("--save-better", "-b", metavar="FILE", help="Write the shorter schedule, if any.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Prove a second time that no schedule is shorter by a tick.

    Choose another method than the one that found the schedule: it is not told about it. A tick is the unit of the
    batch's times. Exits with 0 if there is a proof; with 1 if there is a shorter schedule, if the question stays
    open, or if the schedule is not valid; with 130 after Ctrl-C.
    """
    from mig_opt.files import read_schedule

    checks = Checks()
    with checks.step(), options_named(_OPTIONS):
        check_proof_options(method, time_limit=time_limit, within=within, seed=seed, workers=workers)
    with checks.step():
        problem = load_batch(batch, gpu, gpus)
    with checks.step():
        plan = read_schedule(schedule)
    for path in (output, save_better):
        if path is not None:
            with checks.step():
                check_output(path, batch, schedule)
    if output is not None and save_better is not None and output.resolve() == save_better.resolve():
        message = "is wanted for both certificate and schedule; name two files"
        checks.errors.append(InputError([Problem("", message)], str(output)))
    checks.finish()
    found = validate(problem, plan)
    if not found.valid:
        from mig_opt.cli import screens

        if as_json:
            from mig_opt.files.documents import rendered

            print_json(rendered({"claim": None, "violations": violations_document(found.violations)}))
        else:
            screens.show(screens.validation_card(problem, found), "", screens.bullets(map(str, found.violations)))
        raise typer.Exit(ANSWER_IS_NO)
    with shown_progress(quiet=as_json) as callbacks:
        certificate = find_proof(
            problem,
            plan,
            method,
            time_limit=time_limit,
            within=within,
            seed=seed,
            workers=workers,
            callbacks=callbacks,
        )
    remarks = _written(certificate, output, save_better)
    if as_json:
        from mig_opt.files import certificate_to_json

        print_json(certificate_to_json(certificate))
    else:
        _show_certificate(problem, certificate, [*_hints(certificate, time_limit), *remarks])
    if certificate.interrupted and certificate.claim is Claim.OPEN:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(0 if certificate.claim is Claim.PROVED else ANSWER_IS_NO)


def check(
    batch: BatchArgument,
    schedule: ScheduleArgument,
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE", help="JSON file.", show_default=False)],
    *,
    gpu: GpuOption = None,
    gpus: GpusOption = None,
    rerun: Annotated[bool, typer.Option("--rerun", help="Ask a method again where something rests on one.")] = False,
    method: Annotated[
        str | None, typer.Option(metavar="NAME", help="For --rerun.  [default: that of the certificate]")
    ] = None,
    time_limit: TimeLimitOption = DEFAULT_TIME_LIMIT,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a certificate of: mig-opt prove.

    Recomputes all that needs no solver, in exact arithmetic, and says what is left to be trusted.
    Exits with 0 if the certificate is right, whatever it claims, else 1.
    """
    from mig_opt.files import read_certificate, read_schedule

    checks = Checks()
    with checks.step(), options_named(_OPTIONS):
        also = [Problem("method", "is for --rerun; add that")] if method is not None and not rerun else []
        check_proof_options(
            DEFAULT_METHOD if method is None else method, time_limit=time_limit, workers=workers, also=also
        )
    with checks.step():
        problem = load_batch(batch, gpu, gpus)
    with checks.step():
        plan = read_schedule(schedule)
    with checks.step():
        read = read_certificate(certificate)
    checks.finish()
    with shown_progress(quiet=as_json) as callbacks:
        found = check_certificate(
            problem,
            plan,
            read,
            rerun=rerun,
            method=method,
            time_limit=time_limit,
            workers=workers,
            callbacks=callbacks,
        )
    if as_json:
        print_json(_document(found))
    else:
        _show_check(problem, found)
    if found.rerun is not None and found.rerun.interrupted and found.rerun.claim is Claim.OPEN:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(0 if found.holds else ANSWER_IS_NO)


def _written(certificate: Certificate, output: Path | None, save_better: Path | None) -> list[str]:
    """Write what is wanted; return what to say about it."""
    from mig_opt.files import write_certificate, write_schedule

    remarks = []
    if output is not None:
        write_certificate(certificate, output)
        remarks.append(f"Certificate written to {output}.")
    if save_better is not None and certificate.better is None:
        remarks.append(f"There is no shorter schedule to write to {save_better}.")
    elif save_better is not None and certificate.better is not None:
        write_schedule(certificate.better, save_better)
        remarks.append(f"Shorter schedule written to {save_better}.")
    return remarks


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
    from mig_opt.cli import screens

    rows = screens.batch_rows(batch)
    rows.append(("makespan", f"{screens.seconds(certificate.makespan)} s"))
    rows.append(("shorter by", _shorter(certificate)))
    rows.append(("answer", _answer(certificate)))
    if certificate.better is not None:
        rows.append(("shorter", f"{screens.seconds(certificate.better.makespan)} s"))
    rows.append(("lower bound", f"{screens.seconds(certificate.lower_bound)} s"))
    if certificate.claim is not Claim.REFUTED and certificate.lower_bound < certificate.makespan:
        rows.append(("between", f"{_between(certificate)} s"))
    rows.append(("method", certificate.method if certificate.runtime_s else "not needed"))
    rows.append(("runtime", f"{certificate.runtime_s:.3f} s"))
    screens.show(screens.card(rows))
    if certificate.better is not None:
        screens.show("", screens.plan(batch, certificate.better))
    if remarks:
        screens.show("", *map(screens.paragraph, remarks))


def _between(certificate: Certificate) -> str:
    return f"{certificate.makespan - certificate.lower_bound:.3g}"


def _shorter(certificate: Certificate) -> str:
    """Return by how much a schedule must be shorter to count."""
    least = "a tick" if certificate.exact else "a millionth"
    if certificate.exact:
        least += f" ({certificate.tick} s)"
    return f"{least} and more than {certificate.within:g} s" if certificate.within else least


def _answer(certificate: Certificate) -> Text:
    from rich.text import Text

    if certificate.claim is Claim.PROVED:
        return Text("proved, no schedule is that much shorter", "bold green")
    if certificate.claim is Claim.REFUTED:
        return Text("refuted, there is a shorter schedule", "bold red")
    return Text("open, interrupted" if certificate.interrupted else "open", "bold yellow")


def _show_check(batch: Batch, found: Check) -> None:
    from rich.text import Text

    from mig_opt.cli import screens

    certificate = found.certificate
    rows = screens.batch_rows(batch)
    if found.holds:
        rows.append(("certificate", Text("right", "bold green")))
    else:
        rows.append(("certificate", Text(f"not right, {len(found.mismatches)} x", "bold red")))
    rows.append(("claim", certificate.claim.value))
    rows.append(("shorter by", _shorter(certificate)))
    rows.append(("makespan", f"{screens.seconds(certificate.makespan)} s"))
    rows.append(("lower bound", f"{screens.seconds(certificate.lower_bound)} s"))
    share = f" ({found.bound / certificate.makespan:.1%} of the makespan)" if certificate.makespan > 0 else ""
    rows.append(("no solver", f"{screens.seconds(found.bound)} s{share}"))
    if found.rerun is not None:
        rows.append(("asked again", f"{found.rerun.method}: {found.rerun.claim}, {found.rerun.runtime_s:.3f} s"))
    screens.show(screens.card(rows))
    if found.mismatches:
        screens.show("", screens.bullets(map(str, found.mismatches)))
    if found.trusted:
        screens.show("", "Recomputed and right. What remains to be trusted:", screens.bullets(found.trusted))


def _document(found: Check) -> str:
    from mig_opt.files.documents import rendered

    rerun = found.rerun
    return rendered(
        {
            "holds": found.holds,
            "claim": found.certificate.claim.value,
            "makespan": found.certificate.makespan,
            "lower_bound": found.certificate.lower_bound,
            "bound_without_solver": found.bound,
            "needs_solver": found.needs_solver,
            "mismatches": [{"path": entry.path, "message": entry.message} for entry in found.mismatches],
            "trusted": list(found.trusted),
            "rerun": None
            if rerun is None
            else {
                "claim": rerun.claim.value,
                "method": rerun.method,
                "lower_bound": rerun.lower_bound,
                "runtime_s": rerun.runtime_s,
            },
        }
    )
