"""The public names of :mod:`mig_opt.simulation`."""

from mig_opt.fleet.admission import Acceptance
from mig_opt.fleet.job import Job
from mig_opt.fleet.log import Log, LoggedRun, RunOutcome
from mig_opt.fleet.sensitivity import ProfiledRun, SensitivityFit, fit_sensitivity
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.reachability import partition_state_machine, reachable_configurations
from mig_opt.simulation.fleet.cluster import Cluster, Policy, RejectingPolicy
from mig_opt.simulation.fleet.metrics import Metrics, PowerModel, Spread, fragmentation_series, measure
from mig_opt.simulation.fleet.simulator import Simulation, simulate
from mig_opt.validation.fleet.logs import check_log

__all__ = [
    "Acceptance",
    "Cluster",
    "Job",
    "Log",
    "LoggedRun",
    "Metrics",
    "Policy",
    "PowerModel",
    "ProfiledRun",
    "RejectingPolicy",
    "RunOutcome",
    "SensitivityFit",
    "Simulation",
    "Spread",
    "Trace",
    "check_log",
    "fit_sensitivity",
    "fragmentation_series",
    "measure",
    "partition_state_machine",
    "reachable_configurations",
    "simulate",
]
