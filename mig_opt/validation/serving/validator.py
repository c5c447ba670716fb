"""Runs every rule over a deployment and collects what is broken."""

from __future__ import annotations

from dataclasses import dataclass

from mig_opt.arguments import wrong_number
from mig_opt.errors import InputError, Problem
from mig_opt.serving.demand import Demand, wrong_demand
from mig_opt.serving.deployment import Deployment, check_deployments
from mig_opt.validation.serving.instance_rules import FLEET_RULES, Fleet
from mig_opt.validation.serving.rules import DEMAND_RULES, FleetCase
from mig_opt.validation.violations import Verdict, Violation


@dataclass(frozen=True, slots=True)
class DeploymentValidation(Verdict):
    """What the validator says about a deployment.

    Attributes
    ----------
    gpus : int
        GPUs with a segment, counted again.
    violations : tuple of Violation
        Everything that is wrong; empty if the deployment is valid.
    """

    gpus: int
    violations: tuple[Violation, ...]

    @property
    def _figures(self) -> str:
        return f"{self.gpus} GPU{'' if self.gpus == 1 else 's'}"


def validate_deployment(demand: Demand, deployment: Deployment, *, tolerance: float = 1e-9) -> DeploymentValidation:
    """Check a deployment against every rule of the serving problem.

    Parameters
    ----------
    demand : Demand
        The services, what their models achieve, and the GPUs that there are.
    deployment : Deployment
        The segments and where they are. GPUs without segments do not count against the pools.
    tolerance : float
        Relative difference up to which throughput and rate, or a stated and a measured figure, count as equal.

    Returns
    -------
    DeploymentValidation
        All violations, not only the first. A segment that is nowhere (unknown GPU or placement) is reported as that,
        and does not make its service lack throughput besides. A service's throughput is the sum of what was measured
        for its segments, whatever they state.

    Raises
    ------
    InputError
        If the tolerance is negative or not finite, or an argument is of another type.

    Examples
    --------
    >>> from mig_opt.serving.deployment import Segment
    >>> from mig_opt.gpu.model import get_gpu
    >>> from mig_opt.serving.profile_table import Point, ProfileTable
    >>> from mig_opt.serving.demand import Demand, GpuPool, Service
    >>> table = ProfileTable("bert", "A100-80GB", (Point(1, 1, 1, 74.4, 0.013), Point(2, 8, 1, 230.0, 0.034)))
    >>> demand = Demand((Service("chat", 0.1, 300, "bert"),), (table,), (GpuPool(get_gpu("A100-80GB")),))
    >>> small = Segment("chat", 0, "1g.10gb", 6, batch=1, processes=1, throughput=74.4, latency=0.013)
    >>> large = Segment("chat", 0, "2g.20gb", 0, batch=8, processes=1, throughput=230.0, latency=0.034)
    >>> print(validate_deployment(demand, Deployment(("A100-80GB",), (large, small))))
    valid, 1 GPU
    >>> print(validate_deployment(demand, Deployment(("A100-80GB",), (large,))).violations[0])
    services[0]: the segments of 'chat' answer 230 requests/s together, but 300 requests/s arrive (rate-not-met)
    """
    problems = [*wrong_demand(demand), *wrong_number("tolerance", tolerance, "a finite number >= 0")]
    if not problems and tolerance < 0:
        problems.append(Problem("tolerance", f"must be a finite number >= 0, is {tolerance}"))
    if problems:
        raise InputError(problems)
    check_deployments(deployment=deployment)
    fleet = Fleet.of(deployment)
    case = FleetCase.of(demand, fleet, tolerance)
    violations = [violation for rule in FLEET_RULES for violation in rule(fleet)]
    violations += [violation for demand_rule in DEMAND_RULES for violation in demand_rule(case)]
    return DeploymentValidation(deployment.used_gpus, tuple(violations))
