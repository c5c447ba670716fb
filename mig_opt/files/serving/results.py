"""Results of ``deploy``, and the change plans that they come with, as JSON."""

from __future__ import annotations

from mig_opt.files.kinds import FileKind, check_stated
from mig_opt.files.reading import Findings, Raw, read_keys
from mig_opt.files.serving.deployments import DEPLOYMENT
from mig_opt.files.shapes import DeploymentResultFile
from mig_opt.serving.change_plan import ChangePlan, ChangeStep
from mig_opt.serving.deployment import DeploymentResult


def _result(raw: Raw, path: str, findings: Findings) -> DeploymentResult:
    values = read_keys(DeploymentResultFile, raw, findings, path, readers={"deployment": DEPLOYMENT.part})
    stated = {key: values.pop(key) for key in ("gpus", "compute_slices")}
    findings.check()
    result = DeploymentResult(plan=values.pop("deployment"), **values)
    check_stated(raw, stated, result, "deployment", findings)
    return result


def deployment_result_summary(result: DeploymentResult) -> Raw:
    """Return a result of :func:`mig_opt.deploy` as ``mig-opt deploy --json`` prints it."""
    return {
        "status": result.status.value,
        "method": result.method,
        "gpus": result.gpus,
        "lower_bound": result.lower_bound,
        "compute_slices": result.compute_slices,
        "runtime_s": result.runtime_s,
        "deployment": None if result.deployment is None else DEPLOYMENT.document(result.deployment),
    }


def _encoded(result: DeploymentResult) -> Raw:
    return {
        **deployment_result_summary(result),
        "reason": result.reason,
        "proven": list(result.proven),
        "seed": result.seed,
        "versions": dict(result.versions),
    }


DEPLOYMENT_RESULT = FileKind("deployment-result", _result, _encoded)
read_deployment_result, write_deployment_result = DEPLOYMENT_RESULT.read, DEPLOYMENT_RESULT.write
deployment_result_from_json, deployment_result_to_json = DEPLOYMENT_RESULT.from_json, DEPLOYMENT_RESULT.to_json


def change_document(plan: ChangePlan) -> Raw:
    """Return a change plan as part of a document, with the names of services in place of segments.

    Returns
    -------
    dict
        ``kept``, the number of segments that go on all the time; ``interrupted``, the services that lack throughput on
        the way, each once; ``duration_s``; ``proven``; ``steps``, where ``begin`` and ``end`` are seconds, and ``ends``
        and ``begins`` the services whose segment ends or begins there (None if none does).
    """
    return {
        "kept": len(plan.kept),
        "interrupted": list(dict.fromkeys(segment.service for segment in plan.interrupted)),
        "duration_s": plan.duration,
        "proven": list(plan.proven),
        "steps": [_step_document(step) for step in plan.steps],
    }


def _step_document(step: ChangeStep) -> Raw:
    return {
        "kind": step.kind,
        "gpu": step.gpu,
        "profile": step.profile,
        "start": step.start,
        "begin": step.begin,
        "end": step.end,
        "ends": None if step.ends is None else step.ends.service,
        "begins": None if step.begins is None else step.begins.service,
    }
