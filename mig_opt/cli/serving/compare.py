"""Running servers beside their plan, for ``mig-opt serve --compare``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mig_opt.cli.answers import Answer, Call, code_of
from mig_opt.cli.checks import options_named
from mig_opt.cli.figures import MOST_ROWS, first_of, rate
from mig_opt.cli.serving.reports import demand_facts
from mig_opt.method.report import Report, Table, bad, data_of, good
from mig_opt.texts import plural
from mig_opt.texts import seconds as seconds_text

if TYPE_CHECKING:
    from mig_opt import Demand, Deployment
    from mig_opt.api.deploy.drift import Drift

_PLANNING_SECONDS = 30.0
"""Seconds that the deployment for what was observed may take."""


def compared(call: Call, demand: Demand, plan: Deployment, sources: Sequence[str], seconds: float | None) -> Answer:
    """Return what the counters of servers tell of each service, beside a deployment, and what would serve it now."""
    from mig_opt.api.deploy.drift import drifts_of
    from mig_opt.operations.observe.server_metrics import observe_services

    with options_named({"seconds": "--seconds"}):
        observed = observe_services(demand, sources, seconds)
    drifts = drifts_of(demand, plan, observed)
    drifted = [drift for drift in drifts if drift.reasons]
    noun = f"{len(drifted)} of {plural(len(drifts), 'service')}"
    facts: list[tuple[str, str | None]] = [
        demand_facts(demand)[0],
        ("drift", bad(f"{noun} {'has' if len(drifted) == 1 else 'have'} drifted") if drifted else good("none")),
    ]
    data: dict[str, object] = {"services": [_data(drift) for drift in drifts]}
    if drifted:
        text, found = _now(call, demand, plan, drifts)
        facts.append(("deploy now", text))
        data |= found
    return Answer(Report(facts, [_table(drifts)], data=data), code_of(good=not drifted))


def _now(call: Call, demand: Demand, plan: Deployment, drifts: tuple[Drift, ...]) -> tuple[str, dict[str, object]]:
    """Return what deploy would do about it, in words and as data."""
    from mig_opt import deploy
    from mig_opt.api.deploy.drift import demand_now
    from mig_opt.files.serving.deployments import DEPLOYMENT

    with call.progress("deploy"):
        result = deploy(demand_now(demand, drifts), running=plan, time_limit=_PLANNING_SECONDS)
    if result.deployment is None:
        return result.reason or str(result.status), {"status": str(result.status), "deployment": None}
    changes, used = plan.changes_to(result.deployment), result.deployment.used_gpus
    gpus = plural(used, "GPU") + ("" if used == plan.used_gpus else f" in place of {plan.used_gpus}")
    text = f"{gpus}, {plural(changes, 'segment')} would end or begin" if changes else f"{gpus}, as it is"
    found = {"status": str(result.status), "gpus": used, "changes": changes}
    return text, {**found, "deployment": DEPLOYMENT.document(result.deployment)}


def _data(drift: Drift) -> dict[str, object]:
    found = {"name": drift.service.name, "rate": drift.service.rate, "batch_seconds": drift.batch_seconds}
    seen = drift.observed
    names = ("seconds", "requests", "failures", "rate", "latency", "batch_seconds", "batch", "ttft", "itl")
    return {**found, "drift": [*drift.reasons], "observed": seen and data_of(seen, *names)}


def _table(drifts: Sequence[Drift]) -> Table:
    return Table.of(
        drifts[:MOST_ROWS],
        {
            "/service": lambda drift: drift.service.name,
            ">plan req/s": lambda drift: rate(drift.service.rate),
            ">req/s": lambda drift: rate(drift.observed.rate) if drift.observed else "-",
            ">plan batch s": lambda drift: seconds_text(drift.batch_seconds),
            ">batch s": lambda drift: seconds_text(drift.observed.batch_seconds if drift.observed else None),
            ">mean s": lambda drift: seconds_text(drift.observed.latency if drift.observed else None),
            ">SLO s": lambda drift: seconds_text(drift.service.slo),
            "~drift": lambda drift: ", ".join(drift.reasons) or "-",
        },
        first_of(len(drifts), "services")
        or ["batch s: mean time in which batches are computed. mean s: at the server."],
    )
