"""Partition state machine of MIGM, and the future-configuration reachability of a state.

From *Managing Multi Instance GPUs for High Throughput and Energy Savings* (MIGM), section 4.2. A state is a set of
placed instances. Creating one is a transition (destroying one goes back). A state to which nothing can be added is a
final state, a full configuration. The *reachability* of a state is how many final states can be reached from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mig_opt.errors import InputError, Problem
from mig_opt.gpu.geometry import Geometry
from mig_opt.gpu.model import GpuModel, Placement, ProfileSet

if TYPE_CHECKING:
    import networkx as nx

State = tuple[Placement, ...]
"""Instances that exist together, by start."""


def partition_state_machine(gpu: GpuModel, profiles: ProfileSet = "base") -> nx.DiGraph[State]:
    """Return the partition state machine of a GPU.

    Parameters
    ----------
    gpu : GpuModel
        The kind of GPU.
    profiles : ProfileSet
        The profiles of its instances.

    Returns
    -------
    networkx.DiGraph
        Its nodes are all placed states. An edge is the creation of an instance; its attribute ``placement`` says which.
        Destructions are the same edges backwards.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> machine = partition_state_machine(get_gpu("A100"))
    >>> machine.number_of_nodes(), sum(machine.out_degree(state) == 0 for state in machine)
    (298, 19)
    """
    import networkx as nx

    machine: nx.DiGraph[State] = nx.DiGraph()
    for state in gpu.placed_states(profiles):
        machine.add_node(state)
        # Every state is what one of its instances was added to last.
        for index, placement in enumerate(state):
            machine.add_edge(state[:index] + state[index + 1 :], state, placement=placement)
    return machine


def reachable_configurations(
    gpu: GpuModel, state: Iterable[Placement], profiles: ProfileSet = "base"
) -> tuple[State, ...]:
    """Return the final states that can be reached from a state by creations alone; their number is its reachability.

    Parameters
    ----------
    gpu : GpuModel
        The kind of GPU.
    state : iterable of Placement
        What exists.
    profiles : ProfileSet
        The profiles of its instances.

    Raises
    ------
    InputError
        If the instances of the state cannot exist together, or have other profiles.

    Examples
    --------
    MIGM prints 7 for a 5 GB instance on the first slice of an A100 and 9 for one on the last.

    >>> from mig_opt import get_gpu
    >>> gpu = get_gpu("A100")
    >>> [len(reachable_configurations(gpu, [gpu.placement("1g.5gb", start)])) for start in range(7)]
    [6, 6, 6, 6, 6, 6, 12]
    """
    begin = tuple(sorted(state, key=lambda placement: placement.start))
    if begin not in gpu.placed_states(profiles):
        shown = " + ".join(map(str, begin))
        raise InputError([Problem("state", f"{shown} is no state of {gpu.name} with the profiles {profiles!r}")])
    return tuple(final for final in gpu.maximal_partitions(profiles) if set(final).issuperset(begin))


class Reachability:
    """Reachability of states that are masks of placements, each computed once.

    The final states of a state are the maximal cliques of the graph that joins the free placements which may exist
    together. The state itself may have instances of other profiles than ``profiles``, those that may be added.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> from mig_opt.gpu.geometry import geometry_of
    >>> tables = geometry_of(get_gpu("A100"))
    >>> reachability = Reachability(tables)
    >>> reachability.of(0), reachability.of(tables.mask([tables.index("1g.5gb", 6)]))
    (19, 12)
    """

    def __init__(self, geometry: Geometry, profiles: ProfileSet = "base") -> None:
        import networkx as nx

        self._conflicts = geometry.conflicts
        counted = set(geometry.gpu.profiles_of(profiles))
        self._counted = [index for index, placement in enumerate(geometry.placements) if placement.profile in counted]
        self._compatible: nx.Graph[int] = nx.Graph()
        self._compatible.add_nodes_from(self._counted)
        self._compatible.add_edges_from(
            (one, two) for one in self._counted for two in self._counted if not self._conflicts[one] >> two & 1
        )
        self._known: dict[tuple[int, ...], int] = {}

    def of(self, state: int) -> int:
        """Return the reachability of a state."""
        import networkx as nx

        free = tuple(index for index in self._counted if not self._conflicts[index] & state)
        found = self._known.get(free)
        if found is None:
            cliques = nx.find_cliques(self._compatible.subgraph(free)) if free else [[]]
            found = self._known[free] = sum(1 for _ in cliques)
        return found
