"""The rules for the instances of a fleet, whomever they serve: one small function per rule, each yielding violations.

Rules look at a :class:`Fleet`, a deployment in which the segments that are nowhere are set aside: they are reported as
that and cannot upset the other rules.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mig_opt.errors import InputError
from mig_opt.gpu.model import GpuModel, Placement, get_gpu
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.validation.violations import DeploymentViolationCode as Code
from mig_opt.validation.violations import Violation


@dataclass(frozen=True, slots=True)
class PlacedSegment:
    """A segment whose GPU and placement exist.

    Attributes
    ----------
    index : int
        Its index in the deployment.
    segment : Segment
        Itself.
    placement : Placement
        Where it is on its GPU.
    """

    index: int
    segment: Segment
    placement: Placement


@dataclass(frozen=True, slots=True)
class Fleet:
    """A deployment, sorted out for the rules.

    Attributes
    ----------
    deployment : Deployment
        Itself.
    kinds : tuple of GpuModel or None
        The kind of each GPU, where the catalogue has it.
    placed : tuple of PlacedSegment
        The segments that are somewhere.
    """

    deployment: Deployment
    kinds: tuple[GpuModel | None, ...]
    placed: tuple[PlacedSegment, ...]

    @classmethod
    def of(cls, deployment: Deployment) -> Fleet:
        """Return ``deployment``, sorted out."""
        kinds = tuple(map(_kind, deployment.gpus))
        placed = []
        for index, segment in enumerate(deployment.segments):
            kind = kinds[segment.gpu] if 0 <= segment.gpu < len(kinds) else None
            if kind is not None:
                with contextlib.suppress(InputError):
                    placed.append(PlacedSegment(index, segment, kind.placement(segment.profile, segment.start)))
        return cls(deployment, kinds, tuple(placed))

    def kind(self, gpu: int) -> GpuModel | None:
        """Return the kind of a GPU; None if there is no such GPU, or no such kind."""
        return self.kinds[gpu] if 0 <= gpu < len(self.kinds) else None

    def by_gpu(self) -> Iterator[tuple[int, list[PlacedSegment]]]:
        """Yield the GPUs that have segments somewhere, with these by start slice."""
        found: dict[int, list[PlacedSegment]] = defaultdict(list)
        for placed in self.placed:
            found[placed.segment.gpu].append(placed)
        for gpu in sorted(found):
            yield gpu, sorted(found[gpu], key=lambda placed: (placed.placement.start, placed.index))


FleetRule = Callable[[Fleet], Iterator[Violation]]


def _kind(name: str) -> GpuModel | None:
    try:
        return get_gpu(name)
    except InputError:
        return None


def _unknown_kinds(fleet: Fleet) -> Iterator[Violation]:
    for gpu, name in enumerate(fleet.deployment.gpus):
        try:
            get_gpu(name)
        except InputError as error:
            for problem in error.problems:
                yield Violation(Code.UNKNOWN_GPU_KIND, f"gpus[{gpu}]", problem.message)


def _unknown_gpus(fleet: Fleet) -> Iterator[Violation]:
    count = len(fleet.deployment.gpus)
    known = {0: "no GPUs", 1: "only GPU 0"}.get(count, f"GPUs 0 to {count - 1}")
    for index, segment in enumerate(fleet.deployment.segments):
        if not 0 <= segment.gpu < count:
            message = f"the deployment has {known}, not GPU {segment.gpu}"
            yield Violation(Code.UNKNOWN_GPU, f"segments[{index}].gpu", message)


def _unknown_placements(fleet: Fleet) -> Iterator[Violation]:
    for index, segment in enumerate(fleet.deployment.segments):
        kind = fleet.kind(segment.gpu)
        if kind is None:
            continue
        try:
            kind.placement(segment.profile, segment.start)
        except InputError as error:
            for problem in error.problems:
                path = problem.below(f"segments[{index}]").path
                yield Violation(Code.UNKNOWN_PLACEMENT, path, f"GPU {segment.gpu}: {problem.message}")


def _instances_overlap(fleet: Fleet) -> Iterator[Violation]:
    for gpu, on_gpu in fleet.by_gpu():
        for position, later in enumerate(on_gpu):
            clashing = [other for other in on_gpu[:position] if other.placement.conflicts(later.placement)]
            if not clashing:
                continue
            one, two = clashing[0].segment, later.segment
            path = f"segments[{later.index}]"
            if clashing[0].placement == later.placement:
                message = (
                    f"the segment of {two.service!r} is in {later.placement} of GPU {gpu}, in which is that of "
                    f"{one.service!r} (segments[{clashing[0].index}]) already"
                )
                yield Violation(Code.INSTANCE_USED_TWICE, path, message)
            else:
                message = (
                    f"{later.placement} of GPU {gpu}, for {two.service!r}, shares memory slices with "
                    f"{clashing[0].placement}, for {one.service!r} (segments[{clashing[0].index}])"
                )
                yield Violation(Code.INSTANCES_OVERLAP, path, message)


def _instance_counts(fleet: Fleet) -> Iterator[Violation]:
    for gpu, on_gpu in fleet.by_gpu():
        places: dict[str, set[int]] = defaultdict(set)
        for placed in on_gpu:
            profile, starts = placed.placement.profile, places[placed.placement.profile.name]
            # A place that is used twice is reported as that.
            if placed.placement.start in starts:
                continue
            starts.add(placed.placement.start)
            if len(starts) == profile.max_count + 1:
                message = f"GPU {gpu} has more than {profile.max_count} of {profile.name}, which is all that may exist"
                yield Violation(Code.TOO_MANY_INSTANCES, f"segments[{placed.index}].profile", message)


FLEET_RULES: tuple[FleetRule, ...] = (
    _unknown_kinds,
    _unknown_gpus,
    _unknown_placements,
    _instances_overlap,
    _instance_counts,
)


def fleet_violations(deployment: Deployment) -> tuple[Violation, ...]:
    """Return what is wrong with the instances of a deployment, whomever they serve."""
    fleet = Fleet.of(deployment)
    return tuple(violation for rule in FLEET_RULES for violation in rule(fleet))
