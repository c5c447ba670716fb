"""Certificates as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from mig_opt.certificate import Certificate, Claim, CriticalTask, SliceLoad
from mig_opt.files.documents import Document, parsed, read_text, rendered, write_text
from mig_opt.files.parts import Findings, Raw, check_schema, encoded, key_problems, read_object, read_value
from mig_opt.files.schedules import finite_number, schedule_at, schedule_document
from mig_opt.files.shapes import CertificateFile
from mig_opt.schedule import Schedule

_SIMPLE: dict[str, Any] = {
    "claim": Claim,
    **dict.fromkeys(("batch", "schedule", "tick", "method", "digest"), str),
    **dict.fromkeys(("exact", "interrupted"), bool),
    "seed": int,
    "versions": dict[str, str],
}
_NUMBERS = ("makespan", "within", "lower_bound", "runtime_s")


def read_certificate(path: str | Path) -> Certificate:
    """Read a certificate from a JSON file.

    Whether it is right is the question of :func:`mig_opt.check`.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    return certificate_from_json(read_text(path), source=str(path))


def certificate_from_json(document: Document, *, source: str = "") -> Certificate:
    """Return the certificate that a JSON document describes.

    Parameters
    ----------
    document : str, bytes or mapping
        JSON text, or the object that it stands for.
    source : str
        Where the document is from, for messages.

    Raises
    ------
    InputError
        With every problem of the document.
    """
    findings = Findings(source)
    raw, repeated = parsed(document, source)
    findings.extend(repeated)
    check_schema(raw, "certificate", findings)
    findings.extend(key_problems(CertificateFile, raw))
    values: dict[str, Any] = {key: read_value(shape, raw, key, findings) for key, shape in _SIMPLE.items()}
    values |= {key: finite_number(raw, key, findings, annotation=float) for key in _NUMBERS}
    for key, shape in (("slice_load", SliceLoad), ("critical_task", CriticalTask)):
        if key in raw:
            values[key] = read_object(cast(type[Any], shape), raw[key], key, findings)
    better: Schedule | None = None
    if isinstance(raw.get("better"), dict):
        better = schedule_at(raw["better"], "better", findings)
    else:
        read_value(None, raw, "better", findings)
    findings.check()
    return Certificate(**values, better=better)


def certificate_to_json(certificate: Certificate) -> str:
    """Return a certificate as JSON text.

    Raises
    ------
    InputError
        If a figure is not finite.
    """
    document: Raw = {"schema": "mig-opt/certificate/1", "claim": certificate.claim.value}
    for key in ("batch", "schedule", "makespan", "tick", "exact", "within", "lower_bound"):
        document[key] = getattr(certificate, key)
    document["slice_load"] = {
        "weights": list(certificate.slice_load.weights),
        "value": certificate.slice_load.value,
    }
    document["critical_task"] = encoded(certificate.critical_task)
    for key in ("method", "seed", "runtime_s"):
        document[key] = getattr(certificate, key)
    document["versions"] = dict(certificate.versions)
    document["interrupted"] = certificate.interrupted
    document["better"] = None if certificate.better is None else schedule_document(certificate.better)
    document["digest"] = certificate.digest
    return rendered(document)


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate to a JSON file; an existing file is replaced only when all is written.

    Raises
    ------
    InputError
        If a figure is not finite, or the file cannot be written.
    """
    write_text(path, certificate_to_json(certificate))
