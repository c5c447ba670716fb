"""Certificates as JSON."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from mig_opt.batch.certificate import Certificate
from mig_opt.files.batch.schedules import SCHEDULE
from mig_opt.files.kinds import FileKind
from mig_opt.files.reading import Findings, Raw, encoded, read_keys
from mig_opt.files.shapes import CertificateFile


def read_certificate(path: str | Path) -> Certificate:
    """Read a certificate from a JSON file.

    Whether it is right is the question of :func:`mig_opt.check`.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    return CERTIFICATE.read(path)


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate to a JSON file; an existing file is replaced only when all is written.

    Parameters
    ----------
    certificate : Certificate
        The certificate.
    path : str or Path
        The file.

    Raises
    ------
    InputError
        If a figure is not finite, or the file cannot be written.
    """
    CERTIFICATE.write(certificate, path)


def _certificate(raw: Raw, path: str, findings: Findings) -> Certificate:
    values = read_keys(CertificateFile, raw, findings, path, readers={"better": SCHEDULE.part})
    findings.check()
    return Certificate(**values)


def _encoded(certificate: Certificate) -> Raw:
    document = {field.name: getattr(certificate, field.name) for field in dataclasses.fields(CertificateFile)[1:]}
    weights = list(certificate.slice_load.weights)
    document |= {
        "slice_load": {"weights": weights, "value": certificate.slice_load.value},
        "critical_task": encoded(certificate.critical_task),
        "versions": dict(certificate.versions),
        "better": certificate.better and SCHEDULE.document(certificate.better),
    }
    return document


CERTIFICATE = FileKind("certificate", _certificate, _encoded)
certificate_from_json, certificate_to_json = CERTIFICATE.from_json, CERTIFICATE.to_json
