"""Rules for the instances of a deployment, whatever they serve, and checks of deployments by these rules.

Rules look at a :class:`PlacedDeployment`, in which the segments without a place are set aside: they are reported as
that and cannot upset the other rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from mig_opt.errors import Problem, problems_of, raise_any
from mig_opt.gpu.catalogue import get_gpu, known_gpu
from mig_opt.gpu.model import GpuModel
from mig_opt.serving.deployment import Deployment, Segment, check_deployments
from mig_opt.validation.placed import Placed, Span, clashes, placed_entries, placement_problems
from mig_opt.validation.violations import DeploymentViolationCode as Code
from mig_opt.validation.violations import Violation

_MOST_THROUGHPUT = 1e15


@dataclass(frozen=True, slots=True)
class PlacedDeployment:
    """A deployment, sorted out for the rules."""

    deployment: Deployment  # the deployment
    kinds: tuple[GpuModel | None, ...]  # the kind of each GPU, where the catalogue has it
    placed: tuple[Placed[Segment], ...]  # the segments whose GPU and placement exist

    @classmethod
    def of(cls, deployment: Deployment) -> PlacedDeployment:
        """Return ``deployment``, sorted out."""
        kinds = tuple(map(known_gpu, deployment.gpus))
        return cls(deployment, kinds, tuple(placed_entries(kinds, deployment.segments)))

    def kind(self, gpu: int) -> GpuModel | None:
        """Return the kind of a GPU; None if there is no such GPU, or no such kind."""
        return self.kinds[gpu] if 0 <= gpu < len(self.kinds) else None


def _unknown_kinds(case: PlacedDeployment) -> Iterator[Violation]:
    for gpu, name in enumerate(case.deployment.gpus):
        for problem in problems_of(get_gpu, name):
            yield Violation(Code.UNKNOWN_GPU_KIND, f"gpus[{gpu}]", problem.message)


def _unknown_gpus(case: PlacedDeployment) -> Iterator[Violation]:
    count = len(case.deployment.gpus)
    known = {0: "no GPUs", 1: "only GPU 0"}.get(count, f"GPUs 0 to {count - 1}")
    for index, segment in enumerate(case.deployment.segments):
        if not 0 <= segment.gpu < count:
            message = f"the deployment has {known}, not GPU {segment.gpu}"
            yield Violation(Code.UNKNOWN_GPU, f"segments[{index}].gpu", message)


def _unknown_placements(case: PlacedDeployment) -> Iterator[Violation]:
    for index, segment in enumerate(case.deployment.segments):
        kind = case.kind(segment.gpu)
        for problem in () if kind is None else placement_problems(kind, segment):
            path = problem.below(f"segments[{index}]").path
            yield Violation(Code.UNKNOWN_PLACEMENT, path, f"GPU {segment.gpu}: {problem.message}")


def _instances_exclude(case: PlacedDeployment) -> Iterator[Violation]:
    ordered = sorted(case.placed, key=lambda placed: (placed.entry.gpu, placed.placement.start, placed.index))
    spans = (Span(0.0, math.inf, placed.entry.gpu, placed.placement, placed) for placed in ordered)
    for later, (earlier, *_) in clashes(spans, 0.0):
        gpu, profile, path = later.gpu, later.key.profile, f"segments[{later.item.index}]"
        one, two = f"{earlier.item.entry.service!r} (segments[{earlier.item.index}])", later.item.entry.service
        if earlier.key == later.key:
            message = f"the segment of {two!r} is in {later.key} of GPU {gpu}, in which is that of {one} already"
            yield Violation(Code.INSTANCE_USED_TWICE, path, message)
        elif earlier.key.conflicts(later.key):
            message = f"{later.key} of GPU {gpu}, for {two!r}, shares memory slices with {earlier.key}, for {one}"
            yield Violation(Code.INSTANCES_OVERLAP, path, message)
        else:
            message = f"GPU {gpu} has more than {profile.max_count} of {profile.name}, which is all that may exist"
            yield Violation(Code.TOO_MANY_INSTANCES, f"{path}.profile", message)


INSTANCE_RULES = (_unknown_kinds, _unknown_gpus, _unknown_placements, _instances_exclude)


def deployment_problems(deployment: Deployment) -> list[Problem]:
    """Return everything that keeps the instances of a deployment from existing together."""
    case = PlacedDeployment.of(deployment)
    return [violation.problem() for rule in INSTANCE_RULES for violation in rule(case)]


def check_instances(**deployments: Deployment) -> None:
    """Refuse deployments, by the names of arguments, with every instance that cannot exist, or of another type."""
    check_deployments(**deployments)
    raise_any(problem.below(name) for name, one in deployments.items() for problem in deployment_problems(one))


def check_change(running: Deployment, deployment: Deployment) -> None:
    """Refuse deployments between which there is no change.

    Their instances cannot exist, GPUs of the same number differ in kind, or throughputs are negative or immense.
    """
    both = {"running": running, "deployment": deployment}
    check_instances(**both)
    differ = [
        Problem(
            f"deployment.gpus[{gpu}]",
            f"is {new}, but GPU {gpu} of the running fleet is {old}; align(running, deployment) numbers them alike",
        )
        for gpu, (old, new) in enumerate(zip(running.gpus, deployment.gpus, strict=False))
        if get_gpu(old) != get_gpu(new)
    ]
    wanted = f"a number of requests per second from 0 to {_MOST_THROUGHPUT:g}"
    raise_any(
        differ
        or [
            Problem(f"{name}.segments[{index}].throughput", f"must be {wanted}, is {segment.throughput}")
            for name, one in both.items()
            for index, segment in enumerate(one.segments)
            if not 0 <= segment.throughput <= _MOST_THROUGHPUT
        ]
    )
