"""Demands drawn at random: services of measured models at other rates, also over a day, and with other SLOs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from mig_opt.errors import raise_any
from mig_opt.gpu.pools import Pool
from mig_opt.instances.bundled import load
from mig_opt.rules import wrong_choice, wrong_integer
from mig_opt.serving.demand import Demand
from mig_opt.serving.rates import RateTable

Models = Literal["parvagpu-s6", "mlperf-offline"]
"""Bundled demand whose models are drawn from."""

_RATES = 20.0, 4000.0
_FACTORS = 0.02, 1.0
_SLO_FACTORS = 0.8, 2.0
_DAY = 86_400
_MOST = 1_000_000  # services or steps: more is taken for a slip of the pen


def generate_demand(
    services: int, *, seed: int = 0, models: Models = "parvagpu-s6", pools: Sequence[Pool] = ()
) -> Demand:
    """Return services of measured models.

    Each has one of the models of a bundled demand, and a latency limit between 0.8 and 2 times the one there (uniform,
    whole milliseconds). Its rate is log-uniform, in whole numbers: between 20 and 4,000 requests per second for the 11
    models of ParvaGPU's scenario S6, between a fiftieth and all of its rate there for the six of MLPerf.

    Parameters
    ----------
    services : int
        How many.
    seed : int
        The same arguments and seed give the same demand everywhere.
    models : str
        ``parvagpu-s6`` or ``mlperf-offline``.
    pools : sequence of Pool
        GPUs in place of those of the bundled demand.

    Raises
    ------
    InputError
        If there is to be no service, the models are not those of such a demand, or the seed is wrong.

    Examples
    --------
    >>> [(service.name, service.rate, service.slo) for service in generate_demand(2, seed=1).services]
    [('001-mobilenetv2', 3077.0, 0.162), ('002-vgg19', 104.0, 0.519)]
    """
    problems = [*wrong_choice("models", models, ("parvagpu-s6", "mlperf-offline"))]
    problems += [*wrong_integer("seed", seed, 0, 2**63 - 1), *wrong_integer("services", services, 1, _MOST)]
    raise_any(problems)
    base = load(models)
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn = []
    for number in range(1, services + 1):
        like = base.services[int(rng.random() * len(base.services))]
        low, high = _RATES if models == "parvagpu-s6" else (like.rate * _FACTORS[0], like.rate * _FACTORS[1])
        rate = max(1.0, float(round(low * (high / low) ** float(rng.random()))))
        slo = round(like.slo * (_SLO_FACTORS[0] + (_SLO_FACTORS[1] - _SLO_FACTORS[0]) * float(rng.random())), 3)
        drawn.append(dataclasses.replace(like, name=f"{number:03}-{like.model}", model=like.model, rate=rate, slo=slo))
    kept = {service.model for service in drawn}
    tables = tuple(table for table in base.tables if table.model in kept)
    name = f"{services} services, seed={seed}"
    return base.replace(services=tuple(drawn), tables=tables, pools=tuple(pools) or base.pools, name=name)


def generate_rates(demand: Demand, steps: int = 24, *, seed: int = 0) -> RateTable:
    """Return rates over a day for the services of a demand, between a tenth and all of those that it has.

    Each service has its own busy hour between 9:00 and 22:00, and rates that differ by up to 5 % from a smooth curve.

    Parameters
    ----------
    demand : Demand
        The services, with their greatest rates.
    steps : int
        Number of steps, all of the same length.
    seed : int
        The same arguments and seed give the same rates everywhere.

    Raises
    ------
    InputError
        If there is to be no step, or the seed is wrong.

    Examples
    --------
    >>> from mig_opt import load
    >>> generate_rates(load("parvagpu-s1"), 4, seed=1).rates["vgg19"]
    (163.4, 34.2, 124.5, 352.0)
    """
    raise_any([*wrong_integer("steps", steps, 1, _MOST), *wrong_integer("seed", seed, 0, 2**63 - 1)])
    rng = np.random.Generator(np.random.PCG64(seed))
    rates = {}
    for service in demand.services:
        busiest = 9 + 13 * float(rng.random())
        row = []
        for step in range(steps):
            wave = (0.5 + 0.5 * math.cos((step * 24 / steps - busiest) / 12 * math.pi)) ** 1.5
            noise = 0.95 + 0.05 * float(rng.random())
            row.append(round(service.rate * (0.1 + 0.9 * wave) * noise, 1))
        rates[service.name] = tuple(row)
    return RateTable(tuple(_DAY * step / steps for step in range(steps + 1)), rates)
