"""Fleets of several kinds of GPUs, shaped like the nodes of a production cluster."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mig_opt.errors import raise_any
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import GpuModel, Placement
from mig_opt.rules import wrong_integer, wrong_share
from mig_opt.rules.vocabulary import MOST_GPUS

OPENB_NODES = (
    ("G2", 8, 549, "A30-24GB"),
    ("G3", 8, 39, "H100-80GB"),
    ("V100M32", 8, 21, "A100-80GB"),
    ("V100M32", 4, 9, "A100-80GB"),
    ("V100M16", 8, 8, "A100-40GB"),
    ("V100M16", 4, 28, "A100-40GB"),
    ("V100M16", 1, 19, "A100-40GB"),
)
"""Model, GPUs of a node and number of such nodes in the list of nodes of Alibaba's ``openb`` cluster
(hkust-adsl/kubernetes-scheduler-simulator, Apache-2.0), and the kind that stands for the model here.

None of the models has MIG: that a kind stands for it is assumed. Nodes with T4, P100 and A10 are left out.
"""


def openb_cluster(nodes: int = 30, *, load: float = 0.5, seed: int = 0) -> FleetState:
    """Return a fleet whose nodes are drawn like those of the ``openb`` cluster, with instances at random places.

    Parameters
    ----------
    nodes : int
        How many nodes.
    load : float
        Share of the compute slices that are in use, about: instances of all plain profiles come to each GPU in turn
        until it is reached or nothing fits.
    seed : int
        Seed of the draws.

    Returns
    -------
    FleetState
        The kinds of the GPUs, their nodes and what is on them.

    Raises
    ------
    InputError
        If a figure is out of range.

    Examples
    --------
    >>> state = openb_cluster(12, seed=4)
    >>> state.fleet, len(state.instances)
    ('5 x A100-40GB + 64 x A30-24GB + 8 x H100-80GB + 8 x A100-80GB', 142)
    """
    problems = [*wrong_integer("nodes", nodes, 1, MOST_GPUS // 8), *wrong_share("load", load)]
    problems += wrong_integer("seed", seed, 0, 2**63 - 1)
    raise_any(problems)
    rng = np.random.default_rng(seed)
    weights = np.array([count for _, _, count, _ in OPENB_NODES], dtype=float)
    names, kinds = list[str](), list[GpuModel]()
    for number, drawn in enumerate(rng.choice(len(OPENB_NODES), nodes, p=weights / weights.sum())):
        _, gpus, _, kind = OPENB_NODES[drawn]
        names += [f"node-{number:0{len(str(nodes - 1))}}"] * gpus
        kinds += [get_gpu(kind)] * gpus
    held = (
        HeldInstance(gpu, place.profile.name, place.start, f"job-{gpu}-{place.start}")
        for gpu, kind in enumerate(kinds)
        for place in _instances(kind, load, rng)
    )
    return FleetState(None, len(kinds), tuple(held), f"openb-{nodes}-{seed}", tuple(names), kinds=tuple(kinds))


def _instances(kind: GpuModel, load: float, rng: np.random.Generator) -> Iterator[Placement]:
    """Yield instances of a GPU at random places, until as many of its slices are in use."""
    there: list[Placement] = []
    places = [place for place in kind.placements("base") if place.profile.compute_slices < kind.compute_slices]
    for at in rng.permutation(len(places)):
        used = sum(place.profile.compute_slices for place in there)
        if used + places[at].profile.compute_slices <= load * kind.compute_slices and places[at].fits_beside(there):
            there.append(places[at])
            yield places[at]
