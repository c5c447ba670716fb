"""Certificates as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from mig_opt.batch.certificate import Certificate, Claim, CriticalTask, SliceLoad
from mig_opt.files.batch.schedules import finite_number, schedule_at, schedule_document
from mig_opt.files.documents import Document, read_text, rendered, write_text
from mig_opt.files.parts import Raw, check_keys, encoded, part_or_null, read_document, read_object, read_value
from mig_opt.files.shapes import CertificateFile, key_names

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
    raw, findings = read_document(document, source)
    check_keys(raw, "certificate", findings)
    values: dict[str, Any] = {key: read_value(shape, raw, key, findings) for key, shape in _SIMPLE.items()}
    values |= {key: finite_number(raw, key, findings, annotation=float) for key in _NUMBERS}
    for key, shape in (("slice_load", SliceLoad), ("critical_task", CriticalTask)):
        if key in raw:
            values[key] = read_object(cast(type[Any], shape), raw[key], key, findings)
    better = part_or_null(schedule_at, raw, "better", findings)
    findings.check()
    return Certificate(**values, better=better)


def certificate_to_json(certificate: Certificate) -> str:
    """Return a certificate as JSON text.

    Raises
    ------
    InputError
        If a figure is not finite.
    """
    document: Raw = {key: getattr(certificate, key) for key in key_names(CertificateFile) if key != "schema"}
    document["claim"] = certificate.claim.value
    document["slice_load"] = {"weights": list(certificate.slice_load.weights), "value": certificate.slice_load.value}
    document["critical_task"] = encoded(certificate.critical_task)
    document["versions"] = dict(certificate.versions)
    document["better"] = None if certificate.better is None else schedule_document(certificate.better)
    return rendered({"schema": "mig-opt/certificate/1", **document})


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate to a JSON file; an existing file is replaced only when all is written.

    Raises
    ------
    InputError
        If a figure is not finite, or the file cannot be written.
    """
    write_text(path, certificate_to_json(certificate))
