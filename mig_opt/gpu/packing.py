"""The number of GPUs that instances take, and a packing of the instances.

Instances of given profiles fill GPUs as lengths fill rods in the cutting-stock problem: each GPU takes one of a few
patterns, the multisets of its maximal partitions. *Weights* of the profiles such that no pattern weighs more than 1
(feasible dual prices of Gilmore and Gomory's linear program, doi:10.1287/opre.9.6.849) bound the number of GPUs from
below by the weight of all instances. The largest such bound over all weights is the number of GPUs if these could be
divided, and it is reached at a vertex of the polytope of weights. An A100 has four that count: shares of the compute
slices, shares of the memory slices, one third for 2g and 3g, one for 4g.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter
from collections.abc import Collection, Sequence
from fractions import Fraction
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from mig_opt.gpu.model import GpuModel, Placement, Profile

Numbers = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Counts = tuple[int, ...]
"""Instances of each profile."""
Vector = TypeVar("Vector", Counts, tuple[Fraction, ...])

_NOISE = 1e-9


class Packer:
    """Packs instances of some profiles on GPUs of one kind.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> a100 = get_gpu("A100-80GB")
    >>> packer = packer_for(a100, tuple(a100.profile(name) for name in ("4g.40gb", "3g.40gb", "2g.20gb", "1g.10gb")))
    >>> packer.gpus_for((1, 2, 1, 0))
    2
    >>> for placements in packer.pack((1, 2, 1, 0)):
    ...     print(" + ".join(map(str, placements)))
    4g.40gb@0 + 3g.40gb@4
    2g.20gb@0 + 3g.40gb@4
    """

    def __init__(self, gpu: GpuModel, profiles: tuple[Profile, ...]) -> None:
        self.gpu = gpu  # the kind of GPU
        self.profiles = profiles  # profiles of the instances
        self._placed = _placed_patterns(gpu, profiles)
        # the largest sets of instances that one GPU takes, as counts of each profile
        self.patterns = tuple(self._placed)
        # the vertices of the polytope of weights that no other one covers, of shape (vertices, profiles)
        self.weights: Numbers = np.array(sorted(_largest(_vertices(self.patterns))), dtype=float)
        self._slices = np.array([profile.compute_slices for profile in profiles])

    def divisible(self, counts: Sequence[int] | Numbers | Whole) -> float:
        """Return how many GPUs the instances take if GPUs could be divided: the largest weight."""
        return float((self.weights @ np.asarray(counts, dtype=float)).max())

    def gpus_for(self, counts: Sequence[int] | Numbers | Whole) -> int:
        """Return the divisible number rounded up: no packing takes fewer GPUs, and :meth:`pack` seldom more."""
        return math.ceil(self.divisible(counts) - _NOISE)

    def pack(self, counts: Counts) -> list[tuple[Placement, ...]]:
        """Return the placements of the instances, GPU by GPU.

        Takes a pattern as often as what is left then needs no more GPUs than are left, so that it ends with
        :meth:`gpus_for` GPUs unless no pattern is like that (which never happened on GPUs of the catalogue).
        """
        left = np.array(counts, dtype=np.int64)
        packed: list[tuple[Placement, ...]] = []
        while left.any():
            needed = self.gpus_for(left)
            pattern, times = self._step(left, needed)
            taken = np.minimum(pattern, left)
            packed += [self._place(pattern, taken)] * times
            left = left - times * taken
        return packed

    def _step(self, left: Whole, needed: int) -> tuple[Counts, int]:
        """Return a pattern that wastes little, and how often to take it."""
        good = [each for each in self.patterns if self.gpus_for(left - np.minimum(each, left)) < needed]
        pattern = max(good or self.patterns, key=lambda each: int(np.minimum(each, left) @ self._slices))
        most = min(int(have) // want for have, want in zip(left, pattern, strict=True) if want)
        # Fewer and fewer at once: the last ones may need another pattern.
        while most > 1 and self.gpus_for(left - most * np.array(pattern)) > needed - most:
            most //= 2
        return pattern, max(most, 1)

    def placed(self, pattern: Counts) -> tuple[Placement, ...]:
        """Return the placements of one of :attr:`patterns`."""
        return self._placed[pattern]

    def _place(self, pattern: Counts, taken: Sequence[int] | Whole) -> tuple[Placement, ...]:
        left = {profile: int(count) for profile, count in zip(self.profiles, taken, strict=True)}
        chosen = []
        for placement in self._placed[pattern]:
            if left.get(placement.profile, 0):
                left[placement.profile] -= 1
                chosen.append(placement)
        return tuple(chosen)


@cache
def packer_for(gpu: GpuModel, profiles: tuple[Profile, ...]) -> Packer:
    """Return the packer of some profiles, made once."""
    return Packer(gpu, profiles)


def _placed_patterns(gpu: GpuModel, profiles: tuple[Profile, ...]) -> dict[Counts, tuple[Placement, ...]]:
    """Return for each largest pattern one way to place it."""
    base = set(gpu.profiles_of("base"))
    found: dict[Counts, tuple[Placement, ...]] = {}
    for partition in gpu.maximal_partitions("base" if base.issuperset(profiles) else "double-memory"):
        held = Counter(placement.profile for placement in partition)
        counts = tuple(held[profile] for profile in profiles)
        if any(counts):
            found.setdefault(counts, tuple(p for p in partition if p.profile in profiles))
    return {counts: found[counts] for counts in sorted(_largest(found), reverse=True)}


def _largest(vectors: Collection[Vector]) -> list[Vector]:
    """Return the vectors that no other one covers in every component."""
    return [
        one
        for one in vectors
        if not any(
            other != one and all(more >= less for more, less in zip(other, one, strict=True)) for other in vectors
        )
    ]


def _vertices(patterns: Sequence[Counts]) -> list[tuple[Fraction, ...]]:
    """Return the vertices of the polytope of weights >= 0 for which no pattern weighs more than 1, exactly.

    Double description (Motzkin et al., 1953; Fukuda and Prodon, 1996) of the cone over the polytope, in whole numbers:
    a ray is the weights of a vertex, times a scale that stands last.
    """

    def product(row: Counts, ray: Counts) -> int:
        return sum(map(operator.mul, row, ray))

    size = len(patterns[0]) + 1
    rows = [tuple(int(at == axis) for at in range(size)) for axis in range(size)]
    rays = list(rows)
    for row in ((*(-count for count in pattern), 1) for pattern in patterns):
        tight = {ray: frozenset(at for at, known in enumerate(rows) if not product(known, ray)) for ray in rays}
        value = {ray: product(row, ray) for ray in rays}
        kept = [ray for ray in rays if value[ray] >= 0]
        for one, two in itertools.product(kept, (ray for ray in rays if value[ray] < 0)):
            common = tight[one] & tight[two]
            # Two rays span an edge unless a third one is tight wherever both are.
            if value[one] and not any(common <= tight[ray] for ray in rays if ray not in (one, two)):
                cut = [value[one] * low - value[two] * high for high, low in zip(one, two, strict=True)]
                kept.append(tuple(entry // math.gcd(*cut) for entry in cut))
        rays, rows = kept, [*rows, row]
    return [tuple(Fraction(entry, ray[-1]) for entry in ray[:-1]) for ray in rays if ray[-1]]
