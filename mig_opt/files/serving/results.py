"""Results of ``deploy``, and the change plans that they come with, as JSON."""

from __future__ import annotations

from pathlib import Path

from mig_opt.files.documents import Document, read_text, rendered, write_text
from mig_opt.files.reading import Raw, check_stated, read_document, read_keys
from mig_opt.files.serving.deployments import deployment_at, deployment_document
from mig_opt.files.shapes import DeploymentResultFile
from mig_opt.result import DeploymentResult
from mig_opt.serving.change_plan import ChangePlan, ChangeStep


def read_deployment_result(path: str | Path) -> DeploymentResult:
    """Read a result of :func:`mig_opt.deploy` from a JSON file.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    return deployment_result_from_json(read_text(path), source=str(path))


def deployment_result_from_json(document: Document, *, source: str = "") -> DeploymentResult:
    """Return the result of :func:`mig_opt.deploy` that a JSON document describes.

    Parameters
    ----------
    document : str, bytes or mapping
        JSON text, or the object that it stands for.
    source : str
        Where the document is from, for messages.

    Raises
    ------
    InputError
        With every problem of the document. It is one, too, if ``gpus`` or ``compute_slices`` contradict the deployment.
    """
    raw, findings = read_document(document, "deployment-result", source)
    values = read_keys(DeploymentResultFile, raw, findings, readers={"deployment": deployment_at})
    stated = {key: values.pop(key) for key in ("gpus", "compute_slices")}
    findings.check()
    result = DeploymentResult(**values)
    check_stated(raw, stated, result, "deployment", findings)
    return result


def deployment_result_to_json(result: DeploymentResult, *, details: bool = False) -> str:
    """Return a result of :func:`mig_opt.deploy` as JSON text.

    Parameters
    ----------
    result : DeploymentResult
        The result.
    details : bool
        Whether to add the name of the format, the reason, what is proven, the seed and the versions. Only with them the
        text can be read again as a result; without them it is what ``mig-opt deploy --json`` prints.

    Raises
    ------
    InputError
        If a figure is not finite.

    Examples
    --------
    >>> result = DeploymentResult(Status.INFEASIBLE, "exact", None, 0, "chat can run nowhere", 0.25)
    >>> print(deployment_result_to_json(result), end="")
    {
      "status": "infeasible",
      "method": "exact",
      "gpus": null,
      "lower_bound": 0,
      "compute_slices": null,
      "runtime_s": 0.25,
      "deployment": null
    }
    """
    document = deployment_result_document(result)
    if details:
        document = {
            "schema": "mig-opt/deployment-result/1",
            **document,
            "reason": result.reason,
            "proven": list(result.proven),
            "seed": result.seed,
            "versions": dict(result.versions),
        }
    return rendered(document)


def deployment_result_document(result: DeploymentResult) -> Raw:
    """Return a result of :func:`mig_opt.deploy` as a document without details."""
    return {
        "status": result.status.value,
        "method": result.method,
        "gpus": result.gpus,
        "lower_bound": result.lower_bound,
        "compute_slices": result.compute_slices,
        "runtime_s": result.runtime_s,
        "deployment": None if result.deployment is None else deployment_document(result.deployment),
    }


def write_deployment_result(result: DeploymentResult, path: str | Path) -> None:
    """Write a result of :func:`mig_opt.deploy` to a JSON file, with all details.

    An existing file is replaced only when all is written.

    Raises
    ------
    InputError
        If a figure is not finite, or the file cannot be written.
    """
    write_text(path, deployment_result_to_json(result, details=True))


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
