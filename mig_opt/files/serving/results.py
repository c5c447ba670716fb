"""Results of ``deploy`` as JSON."""

from __future__ import annotations

from pathlib import Path

from mig_opt.files.batch.schedules import finite_number
from mig_opt.files.documents import Document, read_text, rendered, write_text
from mig_opt.files.parts import Raw, check_keys, check_stated, part_or_null, read_document, read_value
from mig_opt.files.serving.deployments import deployment_at, deployment_document
from mig_opt.result import DeploymentResult, Status


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
    raw, findings = read_document(document, source)
    check_keys(raw, "deployment-result", findings)
    deployment = part_or_null(deployment_at, raw, "deployment", findings)
    result = DeploymentResult(
        status=read_value(Status, raw, "status", findings),
        method=read_value(str, raw, "method", findings),
        deployment=deployment,
        lower_bound=read_value(int, raw, "lower_bound", findings),
        reason=read_value(str, raw, "reason", findings) or "",
        runtime_s=finite_number(raw, "runtime_s", findings, annotation=float) or 0.0,
        proven=read_value(tuple[str, ...], raw, "proven", findings) or (),
        seed=read_value(int, raw, "seed", findings) or 0,
        versions=read_value(dict[str, str], raw, "versions", findings) or {},
    )
    stated = {key: read_value(int | None, raw, key, findings) for key in ("gpus", "compute_slices")}
    check_stated(raw, stated, result, "deployment", findings)
    findings.check()
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
