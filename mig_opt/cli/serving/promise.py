"""Options and documents of deployments that keep a promise to the requests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from mig_opt.cli.answers import Call
from mig_opt.cli.inputs import share_in
from mig_opt.cli.serving.serve import ARRIVALS, DELAY, OVERHEAD, SERVER, named_server, parsed_promise
from mig_opt.method.report import data_of

if TYPE_CHECKING:
    from mig_opt.simulation.serving.capacity import Promise
    from mig_opt.simulation.serving.outcome import RequestSimulation


@dataclass(frozen=True, slots=True)
class PromiseOptions:
    """Options of ``deploy`` about room for queues; None where they were not given."""

    promise: Annotated[
        str | None, "SHARE", "Share of the requests of each service to be in time, e.g. 99%; in simulation."
    ] = None
    arrivals: Annotated[str | None, "NAME", f"With --promise. {ARRIVALS}  [default: poisson]"] = None
    server: Annotated[str | None, "NAME", f"With --promise. {SERVER}  [default: ideal]"] = None
    delay: Annotated[float | None, "S", f"With --promise. {DELAY}"] = None
    overhead: Annotated[float | None, "S", f"With --promise. {OVERHEAD}  [default: 0]"] = None
    headroom: Annotated[str | None, "SHARE", "Share by which all rates are raised, e.g. 20%."] = None

    def read(self, call: Call) -> tuple[Promise | None, float]:
        """Return the promise, if there is one, and the headroom."""
        promise, headroom = call.attempt(self._promise, call), share_in(self.headroom or "0")
        wanted = f"must be a share of the rates from 0 to 100, e.g. 0.2 or 20%, is {self.headroom!r}"
        call.require(0 <= headroom <= 100, "--headroom", wanted)
        return promise, headroom

    def _promise(self, call: Call) -> Promise | None:
        from mig_opt.serving.arrivals import Arrivals
        from mig_opt.simulation.serving.capacity import Promise
        from mig_opt.simulation.serving.requests import Batching

        if self.promise is None:
            own = ("--arrivals", "--server", "--delay", "--overhead")
            call.none_of(own, "is for --promise; give one, for example --promise 99%, or leave it out")
            return None
        share = call.attempt(parsed_promise, self.promise)
        arrivals = call.attempt(Arrivals, self.arrivals or "poisson")
        named = call.attempt(named_server, self.server or "ideal")
        kind = named[1] if named else Batching()
        batching = call.attempt(replace, kind, delay=self.delay, overhead=self.overhead or 0.0)
        return None if named is None or call.errors else Promise(share, arrivals, named[0], batching)


def promise_document(result: Any) -> dict[str, Any]:
    """Return the keys of a document for what was promised, simulated and claimed of a deployment or a day."""
    promise = getattr(result, "promise", None)
    if promise is None:
        return {}
    data = {"promise": promise.share, "arrivals": str(promise.arrivals.kind), "server": promise.server}
    if hasattr(result, "simulations"):  # of a day, one for each step
        return {**data, "simulated_steps": [each and _late_shares(each) for each in result.simulations]}
    simulation = result.simulation
    return {
        **data,
        "simulated_late_share": simulation and simulation.late_share,
        "simulated_services": [] if simulation is None else _late_shares(simulation),
        "claim": result.claim or None,
        "raised_rates": result.headroom,
        **data_of(result, "capacities"),
    }


def _late_shares(simulation: RequestSimulation) -> list[dict[str, Any]]:
    return [data_of(service, "name", "late_share", "late_share_interval", "p99_s") for service in simulation.services]
