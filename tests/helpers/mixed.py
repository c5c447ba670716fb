"""Random batches on several kinds of GPUs."""

import dataclasses
from collections.abc import Sequence
from random import Random

from mig_opt import Batch, LiveInstance, OperationCosts, Pool, Task, get_gpu
from mig_opt.gpu.catalogue import add_gpu

A30, A100, H100 = get_gpu("A30"), get_gpu("A100"), get_gpu("H100")
SLOW_A30 = add_gpu(
    dataclasses.replace(
        A30,
        name="slow-A30",
        aliases=(),
        operation_costs=OperationCosts({1: 0.2, 2: 0.3, 4: 0.1}, {1: 0.05, 2: 0.25, 4: 0.3}),
    )
)
"""Another kind of GPU that is as small, for methods that try everything."""


def mixed_batch(rng: Random, count: int, pools: Sequence[Pool], *, missing: float = 0.1, live: bool = True) -> Batch:
    """Return a batch of tasks that scale like real ones and can run on one of the kinds at least.

    A task has no time on a kind, or for a size of it, with probability ``missing``.
    """

    def task(name: str) -> Task:
        whole = rng.uniform(2.0, 30.0)
        by_kind = {}
        for pool in pools:
            scaling, speed = rng.uniform(0.0, 1.2), rng.uniform(0.6, 1.7)
            times = {size: round(whole * speed / size**scaling, 2) for size in pool.gpu.sizes}
            kept = {size: time for size, time in times.items() if rng.random() >= missing or size == max(times)}
            if rng.random() >= missing:
                by_kind[pool.gpu.name] = kept
        only = rng.choice(pools)
        return Task(name, by_kind or {only.gpu.name: {max(only.gpu.sizes): round(whole, 2)}})

    batch = Batch(tuple(task(f"t{index}") for index in range(count)), pools=tuple(pools))
    if live and rng.random() < 0.4:
        gpu = rng.choice([gpu for gpu in range(batch.gpus) if batch.has_mig(gpu)])
        state = rng.choice(list(batch.kind(gpu).placed_states()))
        there = (LiveInstance(gpu, one.profile.name, one.start, round(rng.uniform(0, 4), 1)) for one in state)
        batch = batch.replace(initial=(*batch.initial, *there))
    return batch.replace(parallel_operations=rng.random() < 0.2)
