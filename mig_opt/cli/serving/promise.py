"""Options and reports of deployments that keep a promise to the requests."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from mig_opt.cli.checks import Checks, refuse
from mig_opt.cli.figures import percent
from mig_opt.cli.inputs import share_in
from mig_opt.cli.serving.serve import ARRIVALS, parsed_promise
from mig_opt.method.report import Facts

if TYPE_CHECKING:
    from mig_opt.serving.day import DayResult
    from mig_opt.serving.deployment import DeploymentResult
    from mig_opt.simulation.serving.capacity import Promise
    from mig_opt.simulation.serving.outcome import RequestSimulation, ServiceLatencies


@dataclass(frozen=True, slots=True)
class PromiseOptions:
    """Options of ``deploy`` about room for queues; None where they were not given."""

    promise: Annotated[
        str | None, "SHARE", "Share of the requests of each service to be in time, e.g. 99%; in simulation."
    ] = None
    arrivals: Annotated[str | None, "NAME", f"With --promise. {ARRIVALS}  [default: poisson]"] = None
    headroom: Annotated[str | None, "SHARE", "Raise all rates by so much, e.g. 20%."] = None

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


def promise_facts(result: DeploymentResult | DayResult) -> Facts:
    """Return what was promised, simulated and claimed; nothing without a promise."""
    from mig_opt.api.deploy.day_promises import DayPromiseResult
    from mig_opt.api.deploy.promises import PromiseResult

    if not isinstance(result, PromiseResult | DayPromiseResult) or result.promise is None:
        return []
    promise = result.promise
    wanted = f"{100 * promise.share:g} % of the requests of each service in time, {promise.arrivals.kind}"
    facts: list[tuple[str, str | None]] = [("promise", wanted)]
    if isinstance(result, DayPromiseResult):
        if result.worst is not None and result.day is not None:
            step, service = result.worst
            late = f"{service.name} at {result.day.clock(step)} is worst: {_late(service)}"
            facts.append(("simulated", late))
        return facts
    if result.simulation is not None:
        simulation, worst = result.simulation, result.simulation.worst
        facts += [
            ("simulated", f"{percent(simulation.late_share, 4)} % late, {simulation.requests:,} requests"),
            ("worst", f"{worst.name}: {_late(worst)}"),
            ("claim", result.claim),
        ]
    if result.headroom is not None:
        facts.append(("raised rates", f"by {percent(result.headroom, 0)} %"))
    return facts


def _late(service: ServiceLatencies) -> str:
    low, high = service.late_share_interval
    return f"{percent(service.late_share, 3)} % late, {percent(low, 2)} to {percent(high, 2)} %"


def promise_data(result: DeploymentResult | DayResult) -> dict[str, object]:
    """Return the keys that ``deploy --promise --json`` has beside the others; none without a promise."""
    from mig_opt.api.deploy.day_promises import DayPromiseResult
    from mig_opt.api.deploy.promises import PromiseResult

    if not isinstance(result, PromiseResult | DayPromiseResult) or result.promise is None:
        return {}
    data: dict[str, object] = {"promise": result.promise.share, "arrivals": str(result.promise.arrivals.kind)}
    if isinstance(result, DayPromiseResult):
        return data | {"simulated_steps": [None if one is None else _late_shares(one) for one in result.simulations]}
    simulation = result.simulation
    return data | {
        "simulated_late_share": None if simulation is None else simulation.late_share,
        "simulated_services": [] if simulation is None else _late_shares(simulation),
        "claim": result.claim or None,
        "raised_rates": result.headroom,
        "capacities": list(map(dataclasses.asdict, result.capacities)),
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
