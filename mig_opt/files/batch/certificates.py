"""Certificates as JSON."""

from __future__ import annotations

from mig_opt.batch.certificate import Certificate, CriticalTask, PricedWork, SliceLoad
from mig_opt.files.batch.schedules import SCHEDULE  # noqa: F401  # a better schedule is one
from mig_opt.files.kinds import FileKind

_SHA = "0123456789abcdef" * 4
_LOAD = {"weights": [1, 1, 1, 1], "value": "109/25"}
_CRITICAL = {"task": "right", "value": "411/100"}
_PRICED = {"prices": [1000000, 640000], "value": "109/25"}
_CLAIM = {"claim": "proved", "batch": _SHA, "schedule": _SHA, "makespan": 6.34, "tick": "1/100", "exact": True}
_PROOF = {"within": 0, "lower_bound": 6.34, "slice_load": _LOAD, "critical_task": _CRITICAL}
_RUN = {"method": "milp", "seed": 0, "runtime_s": 0.5, "versions": {"mig-opt": "0.1.0"}, "interrupted": False}
_EXAMPLE = {**_CLAIM, **_PROOF, **_RUN, "better": None, "digest": _SHA}

CERTIFICATE: FileKind[Certificate] = FileKind(
    "certificate",
    Certificate,
    {Certificate: _EXAMPLE, SliceLoad: _LOAD, CriticalTask: _CRITICAL, PricedWork: _PRICED},
    complete=True,
)
