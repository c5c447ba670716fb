"""The method ``igniter``: each service on the smallest instance that serves it, where it disturbs others least.

After F. Xu et al., "iGniter: Interference-Aware GPU Resource Provisioning for Predictable DNN Inference in the Cloud",
IEEE TPDS 34 (2023), doi:10.1109/TPDS.2022.3232715 (their program is icloud-ecnu/igniter). It shares a GPU between
services by MPS. A fitted model predicts the latency of a service for a batch size and a share of the GPU, and what the
services of a GPU add to each other's. Here the profile tables tell the latency, and instances do not disturb each
other, so that there is nothing to fit and nothing to add: iGniter's allowance for disturbance is zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from mig_opt.heuristics.serving.demand_match import Need, match
from mig_opt.heuristics.serving.fill import FilledGpus, PlannedSegment, put_all, report_plans
from mig_opt.method.control import Control
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment


def igniter(demand: Demand, control: Control[Deployment]) -> None:
    """Report a deployment with one instance for each service, or several if none serves it.

    The instance is the smallest one that serves the rate in time (the paper's lower bound of resources). Instances are
    placed largest first, each on the GPU where it makes the others grow least; as none grows, that is the first GPU
    with room. The paper has no way to serve a rate that is too much for a whole GPU. The authors' program gives such a
    service whole GPUs until the rest is not; so does this method. It is soon done, limits come into effect only after
    it.
    """
    report_plans(demand, control, _planned)


def _planned(gpus: FilledGpus, needs: Sequence[Need]) -> None:
    # The option of greatest throughput, of equal ones the smallest: that of a whole GPU as a rule.
    most = (max(need.options, key=lambda option: option.point.throughput) for need in needs)
    matched = ((need.service, option) for need, best in zip(needs, most, strict=True) for option in match(need, best))
    put_all(gpus, [PlannedSegment(*each) for each in matched])
