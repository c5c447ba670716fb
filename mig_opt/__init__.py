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
from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.bounds import Bound, lower_bounds
from mig_opt.batch.certificate import Certificate, Claim, CriticalTask, SliceLoad
from mig_opt.batch.schedule import Operation, Run, Schedule, ScheduleResult
from mig_opt.control import Callbacks
from mig_opt.errors import (
    InputError,
    MigOptError,
    PolicyError,
    Problem,
    SolverError,
    UnknownGpuError,
    UnknownMethodError,
)
from mig_opt.explaining import Conflict, Explanation, Remedy, Requirement, RequirementKind, Verdict, explain
from mig_opt.fleet.state import DefragmentationResult, FleetState, HeldInstance, Migration, MigrationPlan
from mig_opt.gpu.catalogue import catalogue, get_gpu
from mig_opt.gpu.model import GpuModel, OperationCosts, Placement, Profile
from mig_opt.proving import Check, check, prove
from mig_opt.registry import Method, deploy_methods, methods, policies
from mig_opt.result import Result, Status, TrajectoryPoint
from mig_opt.serving.change_plan import ChangePlan, ChangeResult, ChangeStep
from mig_opt.serving.demand import Demand, GpuPool, Service, SloRule
from mig_opt.serving.deployment import Deployment, DeploymentResult, Segment
from mig_opt.serving.profile_table import Point, ProfileTable
from mig_opt.solving import solve
from mig_opt.study import Study
from mig_opt.validation import (
    ChangeValidation,
    ChangeViolationCode,
    DeploymentValidation,
    DeploymentViolationCode,
    MigrationValidation,
    MigrationViolationCode,
    Validation,
    Violation,
    ViolationCode,
    validate,
    validate_change,
    validate_deployment,
    validate_migrations,
)

if TYPE_CHECKING:
    from mig_opt.change import align, plan_change
    from mig_opt.defragmentation import defragment, excess_fragmentation, least_fragmentation
    from mig_opt.deploying import deploy
    from mig_opt.files import (
        import_deployment,
        import_profiles,
        import_trace,
        json_schema,
        read_batch,
        read_certificate,
        read_demand,
        read_deployment,
        read_profiles,
        read_result,
        read_schedule,
        read_state,
        read_trace,
        write_batch,
        write_certificate,
        write_demand,
        write_deployment,
        write_profiles,
        write_result,
        write_schedule,
        write_state,
        write_trace,
    )
    from mig_opt.files.batch.programs import export_model
    from mig_opt.instances import generate_batch, instance_info, instance_names, load_demand, load_instance
    from mig_opt.instances.fleet import generate_trace
    from mig_opt.models.fleet.arrivals import TraceOptimum
    from mig_opt.models.fleet.bounds import TraceBounds, trace_bounds, trace_optimum
    from mig_opt.plotting import (
        plot_deployment,
        plot_schedule,
        plot_simulation,
        save_deployment_plot,
        save_plot,
        save_simulation_plot,
    )
    from mig_opt.rollout import (
        KubernetesResources,
        MigPartedConfig,
        MigPartedEntry,
        ResourceRequest,
        change_script,
        deployment_script,
        kubernetes_resources,
        mig_parted_config,
        migration_script,
        schedule_script,
    )
    from mig_opt.serving.bounds import FleetBound, fleet_bounds
    from mig_opt.simulation import Job, Simulation, Trace, simulate
    from mig_opt.streaming import StreamPlan, concatenate, handover, plan_stream
    from mig_opt.studies import compare, read_study, run_study

_LAZY = {
    name: module
    for module, names in {
        "mig_opt.change": "align plan_change",
        "mig_opt.defragmentation": "defragment excess_fragmentation least_fragmentation",
        "mig_opt.deploying": "deploy",
        "mig_opt.files": (
            "import_deployment import_profiles import_trace json_schema read_batch read_certificate read_demand "
            "read_deployment read_profiles read_result read_schedule read_state read_trace write_batch "
            "write_certificate write_demand write_deployment write_profiles write_result write_schedule "
            "write_state write_trace"
        ),
        "mig_opt.files.batch.programs": "export_model",
        "mig_opt.instances": "generate_batch instance_info instance_names load_demand load_instance",
        "mig_opt.instances.fleet": "generate_trace",
        "mig_opt.models.fleet.arrivals": "TraceOptimum",
        "mig_opt.models.fleet.bounds": "TraceBounds trace_bounds trace_optimum",
        "mig_opt.plotting": (
            "plot_deployment plot_schedule plot_simulation save_deployment_plot save_plot save_simulation_plot"
        ),
        "mig_opt.rollout": (
            "KubernetesResources MigPartedConfig MigPartedEntry ResourceRequest change_script deployment_script "
            "kubernetes_resources mig_parted_config migration_script schedule_script"
        ),
        "mig_opt.serving.bounds": "FleetBound fleet_bounds",
        "mig_opt.simulation": "Job Simulation Trace simulate",
        "mig_opt.streaming": "StreamPlan concatenate handover plan_stream",
        "mig_opt.studies": "compare read_study run_study",
    }.items()
    for name in names.split()
}
"""The module of each name that is imported when first used, as type checkers see above."""

__all__ = [
    "Batch",
    "Bound",
    "Callbacks",
    "Certificate",
    "ChangePlan",
    "ChangeResult",
    "ChangeStep",
    "ChangeValidation",
    "ChangeViolationCode",
    "Check",
    "Claim",
    "Conflict",
    "CriticalTask",
    "DefragmentationResult",
    "Demand",
    "Deployment",
    "DeploymentResult",
    "DeploymentValidation",
    "DeploymentViolationCode",
    "Explanation",
    "FleetBound",
    "FleetState",
    "GpuModel",
    "GpuPool",
    "HeldInstance",
    "InputError",
    "Job",
    "KubernetesResources",
    "LiveInstance",
    "Method",
    "MigOptError",
    "MigPartedConfig",
    "MigPartedEntry",
    "Migration",
    "MigrationPlan",
    "MigrationValidation",
    "MigrationViolationCode",
    "Operation",
    "OperationCosts",
    "Placement",
    "Point",
    "PolicyError",
    "Problem",
    "Profile",
    "ProfileTable",
    "Remedy",
    "Requirement",
    "RequirementKind",
    "ResourceRequest",
    "Result",
    "Run",
    "Schedule",
    "ScheduleResult",
    "Segment",
    "Service",
    "Simulation",
    "SliceLoad",
    "SloRule",
    "SolverError",
    "Status",
    "StreamPlan",
    "Study",
    "Task",
    "Trace",
    "TraceBounds",
    "TraceOptimum",
    "TrajectoryPoint",
    "UnknownGpuError",
    "UnknownMethodError",
    "Validation",
    "Verdict",
    "Violation",
    "ViolationCode",
    "__version__",
    "align",
    "catalogue",
    "change_script",
    "check",
    "compare",
    "concatenate",
    "defragment",
    "deploy",
    "deploy_methods",
    "deployment_script",
    "excess_fragmentation",
    "explain",
    "export_model",
    "fleet_bounds",
    "generate_batch",
    "generate_trace",
    "get_gpu",
    "handover",
    "import_deployment",
    "import_profiles",
    "import_trace",
    "instance_info",
    "instance_names",
    "json_schema",
    "kubernetes_resources",
    "least_fragmentation",
    "load_demand",
    "load_instance",
    "lower_bounds",
    "methods",
    "mig_parted_config",
    "migration_script",
    "plan_change",
    "plan_stream",
    "plot_deployment",
    "plot_schedule",
    "plot_simulation",
    "policies",
    "prove",
    "read_batch",
    "read_certificate",
    "read_demand",
    "read_deployment",
    "read_profiles",
    "read_result",
    "read_schedule",
    "read_state",
    "read_study",
    "read_trace",
    "run_study",
    "save_deployment_plot",
    "save_plot",
    "save_simulation_plot",
    "schedule_script",
    "simulate",
    "solve",
    "trace_bounds",
    "trace_optimum",
    "validate",
    "validate_change",
    "validate_deployment",
    "validate_migrations",
    "write_batch",
    "write_certificate",
    "write_demand",
    "write_deployment",
    "write_profiles",
    "write_result",
    "write_schedule",
    "write_state",
    "write_trace",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
