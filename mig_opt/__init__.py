"""Optimal plans for NVIDIA Multi-Instance GPUs.

>>> from mig_opt import load_instance, solve
>>> result = solve(load_instance("rodinia-a30"))
>>> print(result.status, round(result.makespan, 3))
optimal 28.434

The public names are those of ``__all__``. Heavy parts (solvers, file formats) are imported when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mig_opt._version import __version__
from mig_opt.batch import Batch, LiveInstance, Task
from mig_opt.bounds import Bound, lower_bounds
from mig_opt.certificate import Certificate, Claim, CriticalTask, SliceLoad
from mig_opt.control import Callbacks
from mig_opt.errors import InputError, MigOptError, Problem, SolverError, UnknownGpuError, UnknownMethodError
from mig_opt.explaining import Conflict, Explanation, Remedy, Requirement, RequirementKind, Verdict, explain
from mig_opt.gpu import GpuModel, OperationCosts, Placement, Profile, catalogue, get_gpu
from mig_opt.proving import Check, check, prove
from mig_opt.registry import Method, methods
from mig_opt.result import Result, Status, TrajectoryPoint
from mig_opt.schedule import Operation, Run, Schedule
from mig_opt.solving import solve
from mig_opt.study import Study
from mig_opt.validation import Validation, Violation, ViolationCode, validate

if TYPE_CHECKING:
    from mig_opt.export import export_model
    from mig_opt.files import (
        json_schema,
        read_batch,
        read_certificate,
        read_result,
        read_schedule,
        write_batch,
        write_certificate,
        write_result,
        write_schedule,
    )
    from mig_opt.instances import generate_batch, instance_info, instance_names, load_instance
    from mig_opt.plotting import plot_schedule, save_plot
    from mig_opt.streaming import StreamPlan, concatenate, handover, plan_stream
    from mig_opt.studies import compare, read_study, run_study

_LAZY = {
    "export_model": "mig_opt.export",
    **dict.fromkeys(
        (
            "json_schema",
            "read_batch",
            "read_certificate",
            "read_result",
            "read_schedule",
            "write_batch",
            "write_certificate",
            "write_result",
            "write_schedule",
        ),
        "mig_opt.files",
    ),
    **dict.fromkeys(("generate_batch", "instance_info", "instance_names", "load_instance"), "mig_opt.instances"),
    **dict.fromkeys(("plot_schedule", "save_plot"), "mig_opt.plotting"),
    **dict.fromkeys(("compare", "read_study", "run_study"), "mig_opt.studies"),
    **dict.fromkeys(("StreamPlan", "concatenate", "handover", "plan_stream"), "mig_opt.streaming"),
}

__all__ = [
    "Batch",
    "Bound",
    "Callbacks",
    "Certificate",
    "Check",
    "Claim",
    "Conflict",
    "CriticalTask",
    "Explanation",
    "GpuModel",
    "InputError",
    "LiveInstance",
    "Method",
    "MigOptError",
    "Operation",
    "OperationCosts",
    "Placement",
    "Problem",
    "Profile",
    "Remedy",
    "Requirement",
    "RequirementKind",
    "Result",
    "Run",
    "Schedule",
    "SliceLoad",
    "SolverError",
    "Status",
    "StreamPlan",
    "Study",
    "Task",
    "TrajectoryPoint",
    "UnknownGpuError",
    "UnknownMethodError",
    "Validation",
    "Verdict",
    "Violation",
    "ViolationCode",
    "__version__",
    "catalogue",
    "check",
    "compare",
    "concatenate",
    "explain",
    "export_model",
    "generate_batch",
    "get_gpu",
    "handover",
    "instance_info",
    "instance_names",
    "json_schema",
    "load_instance",
    "lower_bounds",
    "methods",
    "plan_stream",
    "plot_schedule",
    "prove",
    "read_batch",
    "read_certificate",
    "read_result",
    "read_schedule",
    "read_study",
    "run_study",
    "save_plot",
    "solve",
    "validate",
    "write_batch",
    "write_certificate",
    "write_result",
    "write_schedule",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
