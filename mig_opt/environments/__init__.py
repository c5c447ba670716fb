"""Environments for learners, as gymnasium has them: batches are placed task by task, fleets served job by job.

``import mig_opt.environments`` registers ``mig_opt/Batch-v0`` and ``mig_opt/Fleet-v0``; it needs the extra ``rl``.
"""

try:
    import gymnasium
except ModuleNotFoundError:
    raise ModuleNotFoundError('the environments need gymnasium: pip install "mig-opt[rl]"', name="gymnasium") from None

from mig_opt.environments.batch import BatchAgent, BatchEnv, BatchView
from mig_opt.environments.fleet import FleetAgent, FleetEnv, FleetView

__all__ = ["BatchAgent", "BatchEnv", "BatchView", "FleetAgent", "FleetEnv", "FleetView"]

gymnasium.register("mig_opt/Batch-v0", "mig_opt.environments.batch:BatchEnv")
gymnasium.register("mig_opt/Fleet-v0", "mig_opt.environments.fleet:FleetEnv")
