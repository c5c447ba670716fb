"""Bounds that anybody can recompute, in exact arithmetic.

They say the same as :mod:`mig_opt.batch.bounds` in other words, placement by placement and without ticks, so that a
mistake in one of the two shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from mig_opt.batch.batch import Batch
from mig_opt.batch.bounds import slice_dual_prices
from mig_opt.batch.certificate import CriticalTask, SliceLoad
from mig_opt.batch.integer_time import as_decimal
from mig_opt.errors import InputError, Problem

_LARGEST_DENOMINATOR = 2 * 10**6
"""The sum of the weights that the search for prices returns is below that: a price leads back to whole weights."""


def slice_load_of(batch: Batch) -> SliceLoad:
    """Return the slice-load bound with weights that make it about as large as it can be."""
    shares = [Fraction(price).limit_denominator(_LARGEST_DENOMINATOR) for price in slice_dual_prices(batch)]
    scale = math.lcm(*(share.denominator for share in shares))
    weights = tuple(int(share * scale) for share in shares)
    return SliceLoad(weights, str(slice_load_value(batch, weights)))


def slice_load_value(batch: Batch, weights: Sequence[int]) -> Fraction:
    """Return the slice-load bound of these weights in seconds, exactly.

    Raises
    ------
    InputError
        Unless there is a weight >= 0 for each memory slice, not all of them 0.
    """
    wanted = batch.gpu.memory_slices
    if len(weights) != wanted or min(weights, default=0) < 0 or not any(weights):
        raise InputError([Problem("weights", f"must be {wanted} whole numbers >= 0, not all 0")])
    load = Fraction(0)
    create: list[Fraction] = []
    for task in batch.tasks:
        options = batch.options(task)
        load += min(
            _exactly(seconds) * sum(weights[at] for at in placement.footprint) for placement, seconds in options
        )
        create += [_exactly(batch.operations.of("create", placement.profile)) for placement, _ in options]
    return load / (sum(weights) * batch.gpus) + (Fraction(0) if batch.initial else min(create))


def critical_task_of(batch: Batch) -> CriticalTask:
    """Return the longest of the tasks' shortest times, each with the creation of its instance or the wait for one."""
    shapes = [(batch.gpu.placement(live.profile, live.start).shape, _exactly(live.free)) for live in batch.initial]
    least: list[tuple[Fraction, str]] = []
    for task in batch.tasks:
        ends = []
        for placement, seconds in batch.options(task):
            ready = [_exactly(batch.operations.of("create", placement.profile))]
            ready += [free for shape, free in shapes if shape[1:] == placement.shape[1:]]
            ends.append(min(ready) + _exactly(seconds))
        least.append((min(ends), task.name))
    value, name = max(least)
    return CriticalTask(name, str(value))


def _exactly(seconds: float) -> Fraction:
    return Fraction(as_decimal(seconds))
