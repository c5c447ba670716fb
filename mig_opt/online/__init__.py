"""Jobs that arrive over time on a fleet of MIG GPUs: traces, one simulator, and the schedulers that run in it."""

from __future__ import annotations

from mig_opt.online.checking import check_log
from mig_opt.online.cluster import Cluster
from mig_opt.online.forecast import MemoryForecast
from mig_opt.online.log import Log, LoggedRun, Outcome
from mig_opt.online.metrics import Metrics, PowerModel, Spread, fragmentation_series, measure
from mig_opt.online.policy import Policy
from mig_opt.online.reachability import partition_state_machine, reachable_configurations
from mig_opt.online.registry import PolicyEntry, get_policy, policies
from mig_opt.online.sensitivity import ProfiledRun, SensitivityFit, fit_sensitivity
from mig_opt.online.simulator import Simulation, simulate
from mig_opt.trace import Job, Trace

__all__ = [
    "Cluster",
    "Job",
    "Log",
    "LoggedRun",
    "MemoryForecast",
    "Metrics",
    "Outcome",
    "Policy",
    "PolicyEntry",
    "PowerModel",
    "ProfiledRun",
    "SensitivityFit",
    "Simulation",
    "Spread",
    "Trace",
    "check_log",
    "fit_sensitivity",
    "fragmentation_series",
    "get_policy",
    "measure",
    "partition_state_machine",
    "policies",
    "reachable_configurations",
    "simulate",
]
