"""States of fleets drawn at random: GPUs that were full, and of which some instances have ended."""

from __future__ import annotations

import numpy as np

from mig_opt.errors import InputError
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.gpu.catalogue import gpu_noting
from mig_opt.gpu.model import GpuModel, Placement
from mig_opt.rules import wrong_integer, wrong_share
from mig_opt.rules.vocabulary import MOST_GPUS


def generate_state(gpus: int, *, gpu: str | GpuModel = "A100", share: float = 0.6, seed: int = 0) -> FleetState:
    """Return a fleet on which instances have come and gone.

    Each GPU is filled with instances, each on one of the placements that are still possible (uniform), until nothing
    fits; then instances end one by one (uniform over the fleet) until at most a share of the memory slices is in use.

    Parameters
    ----------
    gpus : int
        Number of GPUs.
    gpu : str or GpuModel
        The kind of GPU.
    share : float
        Largest share of the memory slices that is in use at the end (0 to 1).
    seed : int
        The same arguments and seed give the same state everywhere.

    Raises
    ------
    InputError
        If there is no such GPU, or a figure is out of range.

    Examples
    --------
    >>> state = generate_state(2, share=0.5, seed=3)
    >>> [(held.gpu, held.profile, held.start) for held in state.instances]
    [(0, '2g.10gb', 4), (0, '1g.5gb', 6), (1, '1g.5gb', 2), (1, '1g.5gb', 3)]
    """
    problems = [*wrong_integer("gpus", gpus, 1, MOST_GPUS), *wrong_share("share", share)]
    problems += wrong_integer("seed", seed, 0, 2**63 - 1)
    model = gpu_noting(gpu, problems)
    if problems or model is None:
        raise InputError(problems)
    rng = np.random.Generator(np.random.PCG64(seed))
    placements, held = model.placements("base"), list[tuple[int, Placement]]()
    for index in range(gpus):
        there: list[Placement] = []
        while fitting := [one for one in placements if one.fits_beside(there)]:
            there.append(fitting[int(rng.random() * len(fitting))])
        held += [(index, one) for one in there]
    used = sum(len(one.footprint) for _, one in held)
    while used > share * gpus * model.memory_slices:
        used -= len(held.pop(int(rng.random() * len(held)))[1].footprint)
    held.sort(key=lambda entry: (entry[0], entry[1].start))
    instances = tuple(
        HeldInstance(index, one.profile.name, one.start, f"job-{number:03}")
        for number, (index, one) in enumerate(held, 1)
    )
    return FleetState(model, gpus, instances, name=f"{gpus} GPUs, seed={seed}")
