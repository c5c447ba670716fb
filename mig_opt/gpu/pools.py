"""Pools: how many GPUs of which kinds a plan may use, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from mig_opt.errors import Problem
from mig_opt.gpu.catalogue import Gpu, without_mig
from mig_opt.gpu.model import GpuModel
from mig_opt.rules import Checked
from mig_opt.rules.vocabulary import Count, Number

Cost = Annotated[float, Number(at_least=0, at_most=1e20, words="a number from 0 (at no further cost) to 1e20")]


@dataclass(frozen=True, slots=True)
class Pool(Checked):
    """GPUs of one kind that a plan may use.

    Attributes
    ----------
    gpu : GpuModel
        The kind of GPU, see :func:`mig_opt.get_gpu`.
    count : int, optional
        How many there are. A demand may leave it out: as many as it takes.
    cost : float
        Cost of each GPU that is used, in any unit, the same for all pools; 0 for those that cost nothing more.
    mig : bool
        False if MIG is off: each GPU is then a whole one, and nothing is created or destroyed on it.

    Raises
    ------
    InputError
        If the kind is none, or a figure is out of range.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> pool = Pool(get_gpu("A100-80GB"), 4, cost=2.2, mig=False)
    >>> pool.kind.name, pool.kind.sizes
    ('A100-80GB without MIG', (7,))
    """

    gpu: Gpu
    count: Count | None = None
    cost: Cost = 1.0
    mig: bool = True

    @property
    def kind(self) -> GpuModel:
        """Model of each GPU; without MIG, one with nothing but the largest instance."""
        return self.gpu if self.mig else without_mig(self.gpu)


def pool_problems(pools: Sequence[Pool | None]) -> Iterator[Problem]:
    """Yield a problem for each pool of a kind that an earlier one has; None is a pool that could not be read.

    GPUs of one kind with MIG on and off are two kinds.
    """
    first: dict[tuple[str, bool | None], int] = {}
    for index, pool in enumerate(pools):
        if pool is None or pool.gpu is None:
            continue
        other = first.setdefault((pool.gpu.name, pool.mig), index)
        if other != index:
            message = f"{pool.gpu.name!r} is that of pools[{other}] already; each needs its own"
            yield Problem(f"pools[{index}].gpu", message)
