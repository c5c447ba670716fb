"""Certificates as JSON."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from mig_opt.batch.certificate import Certificate, Claim, CriticalTask, SliceLoad
from mig_opt.files.batch.schedules import SCHEDULE, ScheduleFile
from mig_opt.files.kinds import FileKind
from mig_opt.files.shapes import WORDS, Versions, Words
from mig_opt.files.values import Findings, Raw, encoded, read_keys


@dataclass(frozen=True, slots=True)
class CertificateFile:
    """A claim about schedules that are shorter than one, and the evidence for it."""

    schema: Literal["mig-opt/certificate/1"]
    claim: Claim
    batch: Annotated[str, Field(description="SHA-256 of the batch as canonical JSON, defaults spelled out.")]
    schedule: Annotated[str, Field(description="SHA-256 of the schedule as canonical JSON.")]
    makespan: float
    tick: str
    exact: bool
    within: float
    lower_bound: float
    slice_load: SliceLoad
    critical_task: CriticalTask
    method: str
    seed: int
    runtime_s: float
    versions: Versions
    interrupted: bool
    better: ScheduleFile | None
    digest: str


_SHA = "0123456789abcdef" * 4
_LOAD = {"weights": [1, 1, 1, 1], "value": "109/25"}
_CRITICAL = {"task": "right", "value": "411/100"}
_EXAMPLE = {
    "schema": "mig-opt/certificate/1",
    "claim": "proved",
    "batch": _SHA,
    "schedule": _SHA,
    "makespan": 6.34,
    "tick": "1/100",
    "exact": True,
    "within": 0,
    "lower_bound": 6.34,
    "slice_load": _LOAD,
    "critical_task": _CRITICAL,
    "method": "milp",
    "seed": 0,
    "runtime_s": 0.5,
    "versions": {"mig-opt": "0.1.0"},
    "interrupted": False,
    "better": None,
    "digest": _SHA,
}
WORDS[SliceLoad] = Words(_LOAD)
WORDS[CriticalTask] = Words(_CRITICAL)
WORDS[CertificateFile] = Words(_EXAMPLE, described_by=Certificate)


def _certificate(raw: Raw, path: str, findings: Findings) -> Certificate:
    values = read_keys(CertificateFile, raw, findings, path, readers={"better": SCHEDULE.part})
    findings.check()
    return Certificate(**values)


def _encoded_certificate(certificate: Certificate) -> Raw:
    document = {field.name: getattr(certificate, field.name) for field in dataclasses.fields(CertificateFile)[1:]}
    weights = list(certificate.slice_load.weights)
    document |= {
        "slice_load": {"weights": weights, "value": certificate.slice_load.value},
        "critical_task": encoded(certificate.critical_task),
        "versions": dict(certificate.versions),
        "better": certificate.better and SCHEDULE.document(certificate.better),
    }
    return document


CERTIFICATE = FileKind("certificate", _certificate, _encoded_certificate)
read_certificate, write_certificate = CERTIFICATE.read, CERTIFICATE.write
certificate_from_json, certificate_to_json = CERTIFICATE.from_json, CERTIFICATE.to_json
