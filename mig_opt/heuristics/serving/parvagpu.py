"""The methods ``parvagpu``, ``parvagpu-single`` and ``parvagpu-unoptimized``.

M. Lee et al.: "ParvaGPU: Efficient Spatial GPU Sharing for Large-Scale DNN Inference in Cloud Environments", SC 2024.
The best points of each instance size are :attr:`mig_opt.serving.demand.Demand.options`, the other stages are
:mod:`~mig_opt.heuristics.serving.demand_matching`, :mod:`~mig_opt.heuristics.serving.segment_relocation` and
:mod:`~mig_opt.heuristics.serving.allocation_optimization`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mig_opt.control import Control
from mig_opt.gpu.model import GpuModel
from mig_opt.heuristics.serving.allocation_optimization import optimize
from mig_opt.heuristics.serving.demand_matching import Need, match
from mig_opt.heuristics.serving.pools import offer_plans
from mig_opt.heuristics.serving.rack import Piece, Rack
from mig_opt.heuristics.serving.segment_relocation import relocate
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment


def parvagpu(demand: Demand, control: Control[Deployment]) -> None:
    """Offer the deployments before and after the last stage, of which the better one is kept.

    Parameters
    ----------
    demand : Demand
        Any demand; how GPUs of several kinds and limited numbers are dealt with is said in
        :mod:`~mig_opt.heuristics.serving.pools`.
    control : Control
        Limits and reports. The last stage looks at the limits, the others are soon done.
    """
    parvagpu_unoptimized(demand, control)

    def optimized(gpu: GpuModel, needs: Sequence[Need]) -> Rack:
        rack = _relocated(gpu, needs)
        optimize(rack, {need.service: need for need in needs}, control)
        return rack

    if not control.expired:
        offer_plans(demand, control, optimized)


def parvagpu_single(demand: Demand, control: Control[Deployment]) -> None:
    """Do the same as :func:`parvagpu` with one process in each instance."""
    parvagpu(demand.replace(max_processes=1), control)


def parvagpu_unoptimized(demand: Demand, control: Control[Deployment]) -> None:
    """Do the same as :func:`parvagpu` without its last stage."""
    offer_plans(demand, control, _relocated)


def _relocated(gpu: GpuModel, needs: Sequence[Need]) -> Rack:
    rack = Rack(gpu)
    relocate(rack, [Piece(need.service, option) for need in needs for option in match(need)])
    return rack
