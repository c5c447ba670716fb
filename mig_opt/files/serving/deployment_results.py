"""Results of ``deploy`` and change plans as JSON."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mig_opt.files.kinds import FileKind, check_stated
from mig_opt.files.serving import deployments  # noqa: F401  # a deployment is a file of its own
from mig_opt.files.values import Findings, Raw
from mig_opt.method.result import Result
from mig_opt.serving.change_plan import ChangePlan
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, DeploymentResult


def _result(values: Raw, raw: Raw, _: str, findings: Findings) -> DeploymentResult:
    stated = {key: values.pop(key) for key in ("gpus", "compute_slices")}
    findings.check()
    result = DeploymentResult(plan=values.pop("deployment"), **values)
    check_stated(raw, stated, result, "deployment", findings)
    return result


def deployment_shares(demand: Demand, deployment: Deployment | None) -> Raw:
    """Return what a deployment leaves unused, outside and inside of its segments, as part of a document."""
    return {
        "external_fragmentation": None if deployment is None else deployment.external_fragmentation,
        "internal_slack": None if deployment is None else deployment.internal_slack(demand),
    }


def deployment_result_summary(result: DeploymentResult, demand: Demand | None = None) -> Raw:
    """Return a result of :func:`mig_opt.deploy` as ``mig-opt deploy --json`` prints it, with its ``demand``."""
    document = DEPLOYMENT_RESULT.document(result)
    shares = {} if demand is None else deployment_shares(demand, result.deployment)
    keys = DEPLOYMENT_RESULT.keys
    return {**{key: document[key] for key in keys[:6]}, **shares, **{key: document[key] for key in keys[6:8]}}


_KEYS = "status method gpus cost lower_bound compute_slices runtime_s deployment reason proven seed versions"
_EXAMPLE = {"status": "optimal", "method": "exact", "lower_bound": 2, "runtime_s": 0.5, "deployment": None}
DEPLOYMENT_RESULT = FileKind(
    "deployment-result",
    DeploymentResult,
    {DeploymentResult: _EXAMPLE},
    tuple(_KEYS.split()),
    {
        "gpus": Annotated[int | None, Field(description="GPUs with a segment; null without a deployment.")],
        "cost": Annotated[
            float | None,
            Field(description="Cost of these GPUs, their number if each costs 1; null without a deployment."),
        ],
        "lower_bound": Annotated[float, Field(description="No deployment costs less; 0 if that is not known.")],
        "compute_slices": Annotated[
            int | None, Field(description="Compute slices of all segments; null without a deployment.")
        ],
        "deployment": Annotated[Deployment | None, Field(description="The best deployment; null if there is none.")],
    },
    defaults={"gpus": None, "compute_slices": None},
    described_by={DeploymentResult: Result},
    build=_result,
    complete=True,
)


def change_document(plan: ChangePlan) -> Raw:
    """Return a change plan as part of a document, with the names of services in place of segments.

    ``kept`` is the number of segments that go on all the time; ``interrupted`` are the services that lack throughput
    on the way, each once.
    """
    return {
        "kept": len(plan.kept),
        "interrupted": list(dict.fromkeys(segment.service for segment in plan.interrupted)),
        "duration_s": plan.duration,
        "proven": list(plan.proven),
        "steps": [
            {
                **{key: getattr(step, key) for key in ("kind", "gpu", "profile", "start", "begin", "end")},
                "ends": step.ends and step.ends.service,
                "begins": step.begins and step.begins.service,
                "batch": step.begins and step.begins.batch,
                "processes": step.begins and step.begins.processes,
            }
            for step in plan.steps
        ],
    }
