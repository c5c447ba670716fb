"""Demands drawn at random: services of the measured models at other rates and with other latency limits."""

from __future__ import annotations

import dataclasses

import numpy as np

from mig_opt.errors import InputError, Problem
from mig_opt.instances.bundled import load
from mig_opt.serving.demand import Demand

_RATES = 20.0, 4000.0
_SLO_FACTORS = 0.8, 2.0


def generate_demand(services: int, *, seed: int = 0, gpu: str | None = None) -> Demand:
    """Return services of ParvaGPU's measured models on the fewest GPUs.

    Each has one of the 11 models, a rate between 20 and 4,000 requests per second (log-uniform, whole numbers), and a
    latency limit between 0.8 and 2 times that of the model in scenario S6 (uniform, whole milliseconds).

    Parameters
    ----------
    services : int
        How many.
    seed : int
        The same arguments and seed give the same demand everywhere.
    gpu : str, optional
        Name of the GPU; by default the one that was measured, an A100-80GB.

    Raises
    ------
    InputError
        If there is to be no service, or nothing was measured on that GPU.

    Examples
    --------
    >>> [(service.name, service.rate, service.slo) for service in generate_demand(2, seed=1).services]
    [('001-mobilenetv2', 3077.0, 0.162), ('002-vgg19', 104.0, 0.519)]
    """
    base = load("parvagpu-s6")
    if gpu not in (None, base.pools[0].gpu.name):
        raise InputError([Problem("gpu", f"the models were measured on {base.pools[0].gpu.name}, is {gpu!r:.60}")])
    if services < 1:
        raise InputError([Problem("services", f"must be at least 1, is {services}")])
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn = []
    for number in range(1, services + 1):
        like = base.services[int(rng.random() * len(base.services))]
        low, high = _RATES
        rate = float(round(low * (high / low) ** float(rng.random())))
        slo = round(like.slo * (_SLO_FACTORS[0] + (_SLO_FACTORS[1] - _SLO_FACTORS[0]) * float(rng.random())), 3)
        drawn.append(dataclasses.replace(like, name=f"{number:03}-{like.model}", model=like.model, rate=rate, slo=slo))
    models = {service.model for service in drawn}
    tables = tuple(table for table in base.tables if table.model in models)
    return base.replace(services=tuple(drawn), tables=tables, name=f"{services} services, seed={seed}")
