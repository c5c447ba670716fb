"""Certificates as JSON."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from mig_opt.batch.certificate import Certificate
from mig_opt.files.batch.schedules import schedule_at, schedule_document
from mig_opt.files.documents import Document, read_text, rendered, write_text
from mig_opt.files.reading import encoded, read_document, read_keys
from mig_opt.files.shapes import CertificateFile


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
    raw, findings = read_document(document, "certificate", source)
    values = read_keys(CertificateFile, raw, findings, readers={"better": schedule_at})
    findings.check()
    return Certificate(**values)


def certificate_to_json(certificate: Certificate) -> str:
    """Return a certificate as JSON text.

    Raises
    ------
    InputError
        If a figure is not finite.
    """
    document = {field.name: getattr(certificate, field.name) for field in dataclasses.fields(CertificateFile)[1:]}
    weights = list(certificate.slice_load.weights)
    document |= {
        "slice_load": {"weights": weights, "value": certificate.slice_load.value},
        "critical_task": encoded(certificate.critical_task),
        "versions": dict(certificate.versions),
        "better": certificate.better and schedule_document(certificate.better),
    }
    return rendered({"schema": "mig-opt/certificate/1", **document})


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate to a JSON file; an existing file is replaced only when all is written.

    Raises
    ------
    InputError
        If a figure is not finite, or the file cannot be written.
    """
    write_text(path, certificate_to_json(certificate))
