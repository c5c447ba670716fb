"""Reading and writing batches, schedules, results and certificates; reading studies.

This is the edge of the package: nothing else parses, and only here pydantic is used. Whatever is wrong with an input
raises one :class:`~mig_opt.errors.InputError` that lists *all* its problems, each with its path
(``tasks[3].times.2: must be > 0 seconds, is -1.0``). Files are UTF-8 and carry the name of their format:

===========  =========================  =====================================================
kind         ``"schema"``               functions
===========  =========================  =====================================================
batch        ``mig-opt/batch/1``        :func:`read_batch`, :func:`write_batch`
schedule     ``mig-opt/schedule/1``     :func:`read_schedule`, :func:`write_schedule`
result       ``mig-opt/result/1``       :func:`read_result`, :func:`write_result`
certificate  ``mig-opt/certificate/1``  :func:`read_certificate`, :func:`write_certificate`
study        ``mig-opt/study/1``        :func:`mig_opt.studies.read_study`
===========  =========================  =====================================================

:func:`json_schema` describes each of them in full. All times are seconds, all memory is in GB, sizes are numbers of
compute slices.
"""

from mig_opt.files.batches import batch_from_json, batch_to_json, read_batch, write_batch
from mig_opt.files.certificates import (
    certificate_from_json,
    certificate_to_json,
    read_certificate,
    write_certificate,
)
from mig_opt.files.documents import check_writable
from mig_opt.files.schedules import (
    read_result,
    read_schedule,
    result_from_json,
    result_to_json,
    schedule_from_json,
    schedule_to_json,
    write_result,
    write_schedule,
)
from mig_opt.files.shapes import json_schema

__all__ = [
    "batch_from_json",
    "batch_to_json",
    "certificate_from_json",
    "certificate_to_json",
    "check_writable",
    "json_schema",
    "read_batch",
    "read_certificate",
    "read_result",
    "read_schedule",
    "result_from_json",
    "result_to_json",
    "schedule_from_json",
    "schedule_to_json",
    "write_batch",
    "write_certificate",
    "write_result",
    "write_schedule",
]
