"""Options and screens of deployments that keep a promise to the requests."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from mig_opt.cli.inputs import share_in
from mig_opt.cli.outcome import Checks, refuse
from mig_opt.cli.screens import Rows, percent
from mig_opt.cli.serving.serving import ARRIVALS, parsed_promise

if TYPE_CHECKING:
    from mig_opt.serving.day import DayResult
    from mig_opt.serving.demand import Demand
    from mig_opt.serving.deployment import DeploymentResult
    from mig_opt.simulation.serving.capacity import Promise
    from mig_opt.simulation.serving.outcome import RequestSimulation


@dataclass(frozen=True, slots=True)
class PromiseOptions:
    """Options of ``deploy`` about room for queues; None where they were not given."""

    promise: Annotated[
        str | None,
        Option(metavar="SHARE", help="Share of the requests of each service to be in time, e.g. 99%; in simulation."),
    ] = None
    arrivals: Annotated[str | None, Option(metavar="NAME", help=f"With --promise. {ARRIVALS}  [default: poisson]")] = (
        None
    )
    headroom: Annotated[str | None, Option(metavar="SHARE", help="Raise all rates by so much, e.g. 20%.")] = None

    def read(self) -> tuple[Promise | None, float]:
        """Return the promise, if there is one, and the headroom; all that is wrong is refused at once."""
        checks = Checks()
        promise, headroom = checks.attempt(self._promise), checks.attempt(self._headroom)
        checks.finish()
        return promise, headroom

    def _promise(self) -> Promise | None:
        if self.promise is None:
            if self.arrivals is not None:
                refuse("--arrivals", "is for --promise; give one, for example --promise 99%, or leave it out")
            return None
        from mig_opt.serving.arrivals import Arrivals
        from mig_opt.simulation.serving.capacity import Promise

        checks = Checks()
        share = checks.attempt(parsed_promise, self.promise)
        arrivals = checks.attempt(Arrivals, self.arrivals or "poisson")
        checks.finish()
        return Promise(share, arrivals)

    def _headroom(self) -> float:
        share = share_in(self.headroom or "0")
        if not 0 <= share <= 100:
            refuse("--headroom", f"must be a share of the rates from 0 to 100, e.g. 0.2 or 20%, is {self.headroom!r}")
        return share


def promise_rows(result: DeploymentResult) -> Rows:
    """Return the rows of a card that say what was promised, simulated and claimed; none without a promise."""
    from mig_opt.api.deploy.promises import PromiseResult

    if not isinstance(result, PromiseResult) or result.promise is None:
        return []
    promise, simulation = result.promise, result.simulation
    rows: list[tuple[str, Any]] = [
        ("promise", f"{100 * promise.share:g} % of the requests of each service in time, {promise.arrivals.kind}"),
    ]
    if simulation is not None:
        worst = simulation.worst
        low, high = worst.late_share_interval
        rows += [
            ("simulated", f"{percent(simulation.late_share, 4)} % late, {simulation.requests:,} requests"),
            (
                "worst",
                f"{worst.name}: {percent(worst.late_share, 3)} % late, {percent(low, 2)} to {percent(high, 2)} %",
            ),
            ("claim", result.claim),
        ]
    if result.headroom is not None:
        rows.append(("raised rates", f"by {percent(result.headroom, 0)} %"))
    return rows


def promise_document(result: DeploymentResult) -> dict[str, object]:
    """Return the keys that ``deploy --promise --json`` has beside the others; none without a promise."""
    from mig_opt.api.deploy.promises import PromiseResult

    if not isinstance(result, PromiseResult) or result.promise is None:
        return {}
    promise, simulation = result.promise, result.simulation
    return {
        "promise": promise.share,
        "arrivals": str(promise.arrivals.kind),
        "simulated_late_share": None if simulation is None else simulation.late_share,
        "simulated_services": [] if simulation is None else _late_shares(simulation),
        "claim": result.claim or None,
        "raised_rates": result.headroom,
        "capacities": [dataclasses.asdict(capacity) for capacity in result.capacities],
    }


def _late_shares(simulation: RequestSimulation) -> list[dict[str, object]]:
    return [
        {
            "name": service.name,
            "late_share": service.late_share,
            "late_share_interval": list(service.late_share_interval),
            "p99_s": service.p99_s,
        }
        for service in simulation.services
    ]


def day_promise_rows(result: DayResult) -> Rows:
    """Return the rows of the card of a day that say what was promised and simulated; none without a promise."""
    from mig_opt.api.deploy.day_promises import DayPromiseResult

    if not isinstance(result, DayPromiseResult) or result.promise is None or result.day is None:
        return []
    promise, worst = result.promise, result.worst
    rows: list[tuple[str, Any]] = [
        ("promise", f"{100 * promise.share:g} % of the requests of each service in time, {promise.arrivals.kind}"),
    ]
    if worst is not None:
        (_, service), begin = worst, result.day.clock(worst[0])
        low, high = service.late_share_interval
        interval = f"{percent(low, 2)} to {percent(high, 2)} %"
        rows.append(
            ("simulated", f"{service.name} at {begin} is worst: {percent(service.late_share, 3)} % late, {interval}")
        )
    return rows


def day_promise_document(result: DayResult) -> dict[str, object]:
    """Return the keys that ``deploy --rates --promise --json`` has beside the others; none without a promise."""
    from mig_opt.api.deploy.day_promises import DayPromiseResult

    if not isinstance(result, DayPromiseResult) or result.promise is None:
        return {}
    return {
        "promise": result.promise.share,
        "arrivals": str(result.promise.arrivals.kind),
        "simulated_steps": [None if one is None else _late_shares(one) for one in result.simulations],
    }


def planned(demand: Demand, headroom: float) -> Demand:
    """Return the demand that is planned for."""
    return demand.with_headroom(headroom) if headroom else demand
