"""MIG-capable GPUs: profiles, placements, and which of them may exist together.

A GPU has memory slices. A *placement* is a profile at a start slice; its *footprint* is an interval of memory slices.
Two instances may exist together exactly when their footprints are disjoint (and no profile passes its
``max_count``). Everything else here - the conflict graph, the placed states, the maximal partitions and the
repartition tree of FAR (doi:10.1016/j.jpdc.2025.105128, Figure 4) - is derived from that rule.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.gpu.problems import model_problems
from mig_opt.gpu.states import placed_states
from mig_opt.rules import Checked, check_values
from mig_opt.rules.vocabulary import Count, Name, NotEmpty, Number, OfType, OperationSecondsByKind, Whole

if TYPE_CHECKING:
    import networkx as nx

ProfileSet = Literal["base", "double-memory", "all"]
"""A set of profiles that count.

``base``: for each number of compute slices the plain profile with the least memory. ``double-memory``: these and the
plain profiles with more memory for the same compute (1g.10gb beside 1g.5gb). ``all``: also the variants with attributes
(media engines, graphics), which run compute tasks exactly like the plain ones. Where a GPU has no plain profile of a
number of compute slices, those with the fewest attributes count as plain; of profiles of the same slices the one with
the most memory.
"""

_Slices = Annotated[int, Whole(1, 32)]
_Memory = Annotated[float, Number("GB", above=0)]
_Slice = Annotated[int, Whole(0, 31)]

WITHOUT_MIG = " without MIG"  # ending of the name of a kind of GPU whose MIG is off
KNOWN: dict[str, GpuModel] = {}
"""GPUs that are not the catalogue's and have been read in this program, by name: names in plans stand for them."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of GPU instance.

    Attributes
    ----------
    name : str
        NVIDIA's name, e.g. ``3g.20gb``.
    id : int
        GPU instance profile id, as ``nvidia-smi mig -lgip`` prints it.
    compute_slices, memory_slices : int
        Size in slices; execution times depend on ``compute_slices``, footprints on ``memory_slices``.
    memory_gb : float
        Nominal memory in GB, the figure in the name.
    max_count : int
        How many may exist on one GPU.
    starts : tuple of int
        Legal start slices.
    usable_mib, sm_count : int or None
        Usable memory in MiB and number of SMs, where known.
    attributes : tuple of str
        Extras such as ``me`` (media engines); plain profiles have none.
    gpu : str
        Name of the kind of GPU, which makes it one of its profiles.
    """

    name: Name
    id: Annotated[int, Whole(0, 2**31 - 1)]
    compute_slices: _Slices
    memory_slices: _Slices
    memory_gb: _Memory
    max_count: Count
    starts: Annotated[tuple[_Slice, ...], NotEmpty("at least one start slice")]
    usable_mib: Count | None = None
    sm_count: Count | None = None
    attributes: tuple[Name, ...] = ()
    gpu: str = field(default="", init=False, repr=False)

    def __hash__(self) -> int:  # the hash of all fields takes ten times as long
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class Placement:
    """A profile at a start slice.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> a100 = get_gpu("A100")
    >>> left, right = a100.placement("4g.20gb", 0), a100.placement("3g.20gb", 4)
    >>> list(left.footprint), left.conflicts(right)
    ([0, 1, 2, 3], False)
    """

    profile: Profile
    start: int

    @property
    def footprint(self) -> range:
        """The memory slices that an instance here occupies."""
        return range(self.start, self.start + self.profile.memory_slices)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Start, memory slices and compute slices: what matters for scheduling, whatever the attributes."""
        return self.start, self.profile.memory_slices, self.profile.compute_slices

    def conflicts(self, other: Placement) -> bool:
        """Return True if the footprints share a slice, so that the two cannot exist together."""
        return (
            self.start < other.start + other.profile.memory_slices
            and other.start < self.start + self.profile.memory_slices
        )

    def excludes(self, other: Placement) -> bool:
        """Return True if the two cannot exist together: by footprint, or as the only instance of their profile."""
        return self.conflicts(other) or (self.profile == other.profile and self.profile.max_count == 1)

    def obstacles(self, others: Iterable[Placement]) -> list[Placement]:
        """Return those of ``others`` beside which no instance can be created here, in their order.

        They share slices with it; or else they are as many of its profile as may exist on one GPU.

        Examples
        --------
        >>> from mig_opt import get_gpu
        >>> media, small = get_gpu("A30").profile("1g.6gb+me"), get_gpu("A30").profile("1g.6gb")
        >>> there = [Placement(media, 0), Placement(small, 1)]
        >>> [list(map(str, Placement(media, start).obstacles(there))) for start in (1, 2)]
        [['1g.6gb@1'], ['1g.6gb+me@0']]
        """
        sharing, alike = [], []
        for other in others:
            if self.conflicts(other):
                sharing.append(other)
            elif other.profile == self.profile:
                alike.append(other)
        return sharing or (alike if len(alike) >= self.profile.max_count else [])

    def fits_beside(self, others: Iterable[Placement]) -> bool:
        """Return True if an instance can be created here while ``others`` exist."""
        return not self.obstacles(others)

    def __str__(self) -> str:
        return f"{self.profile.name}@{self.start}"


GpuPlacement = tuple[int, Placement]
"""Index of a GPU, and a placement on it."""

Location = tuple[int, str, int]
"""The same by names: GPU, profile name and start slice, equal for all runs, operations and instances there."""


@dataclass(frozen=True, slots=True)
class OperationCosts(Checked):
    """Times that the driver takes to create and to destroy an instance.

    Attributes
    ----------
    create, destroy : mapping of int to float
        Seconds by number of compute slices; in a batch with several kinds of GPUs by the name of the kind first.
    source : str
        Where the figures come from.
    assumed : bool
        True if they were measured on another GPU.
    """

    create: OperationSecondsByKind
    destroy: OperationSecondsByKind
    source: str = ""
    assumed: bool = False

    def __hash__(self) -> int:
        return hash((tuple(self.create), tuple(self.destroy)))

    @classmethod
    def zero(cls, gpu: GpuModel) -> OperationCosts:
        """Return costs of 0 s for every size of ``gpu``."""
        return cls(dict.fromkeys(gpu.sizes, 0.0), dict.fromkeys(gpu.sizes, 0.0), source="set to zero")

    def of(self, kind: str, profile: Profile) -> float:
        """Return the seconds that an operation takes.

        Parameters
        ----------
        kind, profile : str, Profile
            ``create`` or ``destroy``; the profile of the instance.

        Returns
        -------
        float
        """
        table: Mapping[Any, Any] = self.create if kind == "create" else self.destroy
        found: float | None = table.get(profile.compute_slices)
        return table[profile.gpu][profile.compute_slices] if found is None else found

    def of_kind(self, gpu: GpuModel) -> OperationCosts:
        """Return the costs by number of compute slices of one kind of GPU."""
        create, destroy = (dict[Any, Any](table).get(gpu.name, table) for table in (self.create, self.destroy))
        return OperationCosts(create, destroy, self.source, self.assumed)


GivenCosts = Annotated[OperationCosts, OfType(OperationCosts | None, "OperationCosts")]
"""Costs of operations as they are given; None stands for the usual ones."""


@dataclass(frozen=True)
class GpuModel:
    """A MIG-capable GPU: one of the catalogue, or one of a file.

    Attributes
    ----------
    name : str
        Its name in files and options.
    label : str
        The board, as the driver calls it.
    memory_gb : float
        Nominal memory in GB.
    memory_slices, compute_slices : int
        Slices of the whole GPU.
    profiles : tuple of Profile
        The kinds of instances that it can have.
    operation_costs : OperationCosts
        Times that its driver takes. A file may leave them out: then they are those measured on an H100, and marked as
        assumed.
    aliases : tuple of str
        Other names.
    profiles_status, placements_status : str
        How sure profiles and start slices are.
    sources : tuple of str
        Where the figures come from.
    notes : str
        What else there is to know.

    Raises
    ------
    InputError
        If a value is wrong, or does not go with the others.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> a30 = get_gpu("A30")
    >>> [" + ".join(map(str, partition)) for partition in a30.maximal_partitions()][:2]
    ['4g.24gb@0', '2g.12gb@0 + 2g.12gb@2']
    """

    name: Name
    label: str
    memory_gb: _Memory
    memory_slices: _Slices
    compute_slices: _Slices
    profiles: Annotated[tuple[Profile, ...], NotEmpty("at least one profile")]
    operation_costs: GivenCosts
    aliases: tuple[Name, ...] = ()
    profiles_status: str = ""
    placements_status: str = ""
    sources: tuple[str, ...] = field(default=(), repr=False)
    notes: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        check_values(self)
        own = tuple(map(copy.copy, self.profiles))  # a profile is that of one kind, so that times by kind can be found
        for profile in own:
            object.__setattr__(profile, "gpu", self.name)
        object.__setattr__(self, "profiles", own)

    def _problems(self) -> Iterator[Problem]:
        return model_problems(self)

    def __hash__(self) -> int:
        return hash(self.name)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Plans name the GPU, and nobody has read its file in the process that it comes to.
        self.__dict__.update(state)
        KNOWN.setdefault(self.name.casefold(), self)

    @cached_property
    def mig(self) -> bool:
        """False for a kind whose MIG is off."""
        return not self.name.endswith(WITHOUT_MIG)

    @cached_property
    def _by_name(self) -> dict[str, Profile]:
        return {profile.name: profile for profile in self.profiles}

    @cached_property
    def _by_start(self) -> dict[tuple[str, int], Placement]:
        return {
            (profile.name, start): Placement(profile, start) for profile in self.profiles for start in profile.starts
        }

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of compute slices that an instance can have, ascending."""
        return tuple(sorted({profile.compute_slices for profile in self.profiles}))

    def profile(self, name: str) -> Profile:
        """Return the profile called ``name``.

        Raises
        ------
        InputError
            If this GPU has no such profile.
        """
        try:
            return self._by_name[name]
        except (KeyError, TypeError):  # of what is no name at all
            unknown = Problem("profile", f"{self.name} has no profile {name!r}; {nearest(name, self._by_name)}")
            raise InputError([unknown]) from None

    def placement(self, profile: str, start: int) -> Placement:
        """Return a profile at a memory slice.

        Parameters
        ----------
        profile : str
            Name of the profile.
        start : int
            Start slice, from 0.

        Returns
        -------
        Placement

        Raises
        ------
        InputError
            If this GPU has no such profile, or the profile cannot start there.
        """
        try:
            return self._by_start[profile, start]
        except (KeyError, TypeError):
            legal = ", ".join(map(str, self.profile(profile).starts))
            illegal = Problem("start", f"{profile} cannot start at slice {start}; legal starts: {legal}")
            raise InputError([illegal]) from None

    def profiles_of(self, profiles: ProfileSet = "base") -> tuple[Profile, ...]:
        """Return the profiles of a :data:`~mig_opt.gpu.model.ProfileSet`, largest compute and memory first."""
        fewest = {
            size: min(len(p.attributes) for p in self.profiles if p.compute_slices == size) for size in self.sizes
        }
        plain = [profile for profile in self.profiles if len(profile.attributes) == fewest[profile.compute_slices]]
        most = sorted(plain, key=lambda profile: (profile.memory_gb, len(profile.starts)))
        plain = list({(profile.compute_slices, profile.memory_slices): profile for profile in most}.values())
        least = {size: min(p.memory_slices for p in plain if p.compute_slices == size) for size in self.sizes}
        chosen = {
            "base": [profile for profile in plain if profile.memory_slices == least[profile.compute_slices]],
            "double-memory": plain,
            "all": list(self.profiles),
        }[profiles]
        return tuple(sorted(chosen, key=lambda profile: (-profile.compute_slices, -profile.memory_slices)))

    def profile_set(self, names: Iterable[str]) -> ProfileSet:
        """Return the smaller one of ``double-memory`` and ``all`` that has the profiles of these names."""
        plain = {profile.name for profile in self.profiles_of("double-memory")}
        return "double-memory" if plain.issuperset(names) else "all"

    def blocked_slices(self, profile: Profile) -> int:
        """Return the compute slices that an instance of a plain profile keeps from others.

        Those of a double-memory profile are as many as its memory slices: it also blocks the compute of the memory that
        it takes from its neighbour.
        """
        return profile.compute_slices if profile in self.profiles_of("base") else profile.memory_slices

    def placements(self, profiles: ProfileSet = "base") -> tuple[Placement, ...]:
        """Return every legal placement, those that contain others first."""
        return _placements(self, profiles)

    def placed_states(self, profiles: ProfileSet = "base") -> Iterator[tuple[Placement, ...]]:
        """Yield every set of placements that may exist together, the empty one included, each sorted by start."""
        return placed_states(self.placements(profiles))

    def maximal_partitions(self, profiles: ProfileSet = "base") -> tuple[tuple[Placement, ...], ...]:
        """Return the placed states to which no instance can be added (19 on an A100, 5 on an A30)."""
        return _maximal_partitions(self, profiles)

    def partition_multisets(self, profiles: ProfileSet = "base") -> tuple[tuple[str, ...], ...]:
        """Return the distinct multisets of profile names among the maximal partitions (14 on an A100)."""
        order = {profile.name: index for index, profile in enumerate(self.profiles_of(profiles))}
        multisets = {
            tuple(sorted((placement.profile.name for placement in partition), key=order.__getitem__))
            for partition in self.maximal_partitions(profiles)
        }
        return tuple(sorted(multisets, key=lambda names: [order[name] for name in names]))

    def repartition_tree(self, profiles: ProfileSet = "base") -> nx.DiGraph[Placement]:
        """Return FAR's repartitioning tree (its Figure 4), derived from the footprints.

        A placement's parent is the smallest placement whose footprint contains its own; of equal footprints the one
        with more compute is above (4g@0 above 3g@0). Edges point from parent to child.
        """
        import networkx as nx

        return nx.DiGraph(dict(self.children(profiles)))  # type: ignore[arg-type]  # tuples are iterables

    def children(self, profiles: ProfileSet = "base") -> Mapping[Placement, tuple[Placement, ...]]:
        """Return the children of each placement in :meth:`repartition_tree`, which takes less time than the graph.

        They are in the order of :meth:`placements`. A placement that is nobody's child is a root.
        """
        return _children(self, profiles)

    def below(self, profiles: ProfileSet = "base") -> Mapping[Placement, tuple[Placement, ...]]:
        """Return all descendants of each placement in :meth:`repartition_tree`, each after those around it."""
        found: dict[Placement, tuple[Placement, ...]] = {}
        for placement, children in reversed([*self.children(profiles).items()]):
            found[placement] = tuple(one for child in children for one in (child, *found[child]))
        return found

    def outermost(self, profiles: ProfileSet = "base") -> tuple[Placement, ...]:
        """Return the roots of :meth:`repartition_tree`, in the order of the placements."""
        children = self.children(profiles)
        inside = {child for below in children.values() for child in below}
        return tuple(placement for placement in children if placement not in inside)


@cache
def _placements(gpu: GpuModel, profiles: ProfileSet) -> tuple[Placement, ...]:
    found = (Placement(profile, start) for profile in gpu.profiles_of(profiles) for start in profile.starts)
    return tuple(sorted(found, key=lambda p: (-p.profile.memory_slices, -p.profile.compute_slices, p.start)))


@cache
def _children(gpu: GpuModel, profiles: ProfileSet) -> Mapping[Placement, tuple[Placement, ...]]:
    children: dict[Placement, list[Placement]] = {}
    for placement in gpu.placements(profiles):
        holders = [other for other in children if placement.conflicts(other)]
        if holders:
            children[holders[-1]].append(placement)
        children[placement] = []
    return MappingProxyType({placement: tuple(below) for placement, below in children.items()})


@cache
def _maximal_partitions(gpu: GpuModel, profiles: ProfileSet) -> tuple[tuple[Placement, ...], ...]:
    all_of_them = gpu.placements(profiles)
    states = placed_states(all_of_them, dense=True)
    return tuple(state for state in states if not any(placement.fits_beside(state) for placement in all_of_them))
