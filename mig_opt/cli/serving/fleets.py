"""What the commands validate, bound and plot do for services."""

from __future__ import annotations

from pathlib import Path

import typer

from mig_opt.cli.inputs import check_outputs
from mig_opt.cli.outcome import ANSWER_IS_NO, Checks, options_named, print_json, say
from mig_opt.cli.serving.inputs import DemandOptions, load_services, read_deployment_for
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment
from mig_opt.texts import plural, printable
from mig_opt.validation import Violation, validate_deployment


def violations_document(violations: tuple[Violation, ...]) -> list[dict[str, str]]:
    """Return violations as part of a document."""
    return [
        {"code": violation.code.value, "path": violation.path, "message": violation.message} for violation in violations
    ]


def validate_fleet(
    services: str,
    deployment: Path,
    options: DemandOptions,
    *,
    document: bytes | None,
    tolerance: float | None,
    as_json: bool,
) -> None:
    """Check a deployment against every rule, and exit."""
    demand, fleet = read_services_and_deployment(services, deployment, options, document)
    with options_named({"tolerance": "--tolerance"}):
        found = (
            validate_deployment(demand, fleet)
            if tolerance is None
            else validate_deployment(demand, fleet, tolerance=tolerance)
        )
    if as_json:
        from mig_opt.files.documents import rendered

        violations = violations_document(found.violations)
        print_json(rendered({"valid": found.valid, "gpus": found.gpus, "violations": violations}))
    else:
        from mig_opt.cli import screens
        from mig_opt.cli.serving import screens as fleet_screens

        screens.show(fleet_screens.validation_card(demand, fleet, found))
        if found.valid:
            screens.show("", fleet_screens.services(demand, fleet))
        else:
            screens.show("", screens.bullets(map(str, found.violations)))
    raise typer.Exit(0 if found.valid else ANSWER_IS_NO)


def bound_fleet(services: str, options: DemandOptions, *, document: bytes | None, as_json: bool) -> None:
    """Show lower bounds on the number of GPUs, and exit."""
    from mig_opt.deploying import why_unservable
    from mig_opt.serving.bounds import fleet_bounds, shortage

    demand = load_services(services, options, document)
    nowhere = why_unservable(demand)
    bounds = () if nowhere else fleet_bounds(demand)
    if bounds and (lacking := shortage(demand, bounds[0])):
        nowhere = [lacking]
    if as_json:
        from mig_opt.files.documents import rendered

        entries = [
            {"name": bound.name, "value": bound.gpus, "not_rounded": bound.value, "reason": bound.reason}
            for bound in bounds
        ]
        print_json(rendered({"lower_bound": bounds[0].gpus if bounds else None, "bounds": entries}))
        if nowhere:
            say("\n  ".join(["infeasible:", *nowhere]))
    else:
        from mig_opt.cli import screens
        from mig_opt.cli.serving import screens as fleet_screens

        rows = fleet_screens.demand_rows(demand)
        if bounds:
            rows.append(("lower bound", plural(bounds[0].gpus, "GPU")))
        if nowhere:
            rows.append(("deployment", "there is none"))
        screens.show(screens.card(rows))
        if nowhere:
            screens.show("", screens.bullets(nowhere))
        if bounds:
            screens.show("", fleet_screens.bounds_table(bounds))
    raise typer.Exit(ANSWER_IS_NO if nowhere else 0)


def plot_fleet(services: str, deployment: Path, out: Path, options: DemandOptions, *, document: bytes | None) -> None:
    """Draw a deployment."""
    demand, fleet = read_services_and_deployment(services, deployment, options, document, chart=out)
    found = validate_deployment(demand, fleet)
    if not found.valid:
        count = len(found.violations)
        say(f"warning: the deployment is not valid ({count} violation{'s' * (count > 1)}); see: mig-opt validate")
    from mig_opt.plotting import save_deployment_plot

    save_deployment_plot(fleet, out, demand=demand)
    typer.echo(f"Chart written to {printable(str(out))}.")


def read_services_and_deployment(
    services: str,
    deployment: Path,
    options: DemandOptions,
    document: bytes | None,
    *,
    output: Path | None = None,
    chart: Path | None = None,
) -> tuple[Demand, Deployment]:
    """Return the demand and the deployment that the arguments name, and see to it that outputs can be written.

    Raises
    ------
    WrongInputsError
        With everything that is wrong about any of them.
    """
    checks = Checks()
    demand: Demand | None = None
    fleet: Deployment | None = None
    with checks.step():
        demand = load_services(services, options, document)
    with checks.step():
        fleet = read_deployment_for(demand, deployment)
    with checks.step():
        check_outputs(output, chart, services, deployment, what="script")
    checks.finish()
    assert demand is not None
    assert fleet is not None
    return demand, fleet
