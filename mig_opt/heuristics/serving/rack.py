"""GPUs of one kind that are filled segment after segment."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from mig_opt.gpu.model import GpuModel, Placement, Profile
from mig_opt.serving.demand import Option


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment, wherever it may be.

    Attributes
    ----------
    service : int
        Index of the service in the demand.
    option : Option
        How it serves.
    """

    service: int
    option: Option

    @property
    def profile(self) -> Profile:
        """The instance."""
        return self.option.profile


def largest_first(pieces: Collection[Piece]) -> list[Piece]:
    """Return ``pieces`` by falling size, and falling memory where sizes are equal; else in the order given."""
    return sorted(pieces, key=lambda piece: (-piece.profile.compute_slices, -piece.profile.memory_slices))


class Rack:
    """GPUs of one kind and the segments on them, added one at a time.

    A segment goes to the first GPU that has room for it. GPUs only get fuller, but for those that are cleared, so the
    search goes on where the last one for the same instance ended: what it costs does not grow with the number of GPUs.

    Parameters
    ----------
    gpu : GpuModel
        The kind of GPU. On every GPU of the catalogue disjoint footprints are enough for plain instances to exist
        together, none has a ``max_count`` beyond that.

    Examples
    --------
    >>> from mig_opt.gpu.model import get_gpu
    >>> from mig_opt.serving.profile_table import Point
    >>> a100 = get_gpu("A100")
    >>> rack = Rack(a100)
    >>> piece = Piece(0, Option(0, a100.profile("3g.20gb"), Point(3, 8, 1, 100.0, 0.01)))
    >>> rack.put(piece, (4, 0))
    False
    >>> rack.put_new(piece, (4, 0))
    >>> rack.put(piece, (4, 0))
    True
    >>> [placement.start for _, placement in rack.on(0)]
    [4, 0]
    """

    def __init__(self, gpu: GpuModel) -> None:
        self.gpu = gpu
        self._held: list[list[tuple[Piece, Placement]]] = []
        self._taken: list[int] = []  # for each GPU its slices as bits
        # For an instance and the starts that are allowed to it the first GPU that may have room.
        self._cursors: dict[tuple[Profile, tuple[int, ...]], int] = {}

    def __len__(self) -> int:
        return len(self._held)

    def on(self, index: int) -> tuple[tuple[Piece, Placement], ...]:
        """Return what is on a GPU, in the order in which it came."""
        return tuple(self._held[index])

    def used(self) -> list[int]:
        """Return the GPUs that have segments, ascending."""
        return [index for index, held in enumerate(self._held) if held]

    def compute_slices(self, index: int) -> int:
        """Return the compute slices of all segments on a GPU."""
        return sum(piece.profile.compute_slices for piece, _ in self._held[index])

    def pieces(self) -> Iterator[Piece]:
        """Yield all segments, GPU after GPU."""
        return (piece for held in self._held for piece, _ in held)

    def put(self, piece: Piece, starts: tuple[int, ...]) -> bool:
        """Put ``piece`` on the first GPU that has room at one of ``starts``, there at the first that is free.

        Returns
        -------
        bool
            Whether there is such a GPU.
        """
        key = piece.profile, starts
        for index in range(self._cursors.get(key, 0), len(self._held)):
            if self._put_at(index, piece, starts):
                self._cursors[key] = index
                return True
        self._cursors[key] = len(self._held)
        return False

    def put_new(self, piece: Piece, starts: tuple[int, ...]) -> None:
        """Put ``piece`` on a further GPU, at the first of ``starts``."""
        self._held.append([])
        self._taken.append(0)
        self._put_at(len(self._held) - 1, piece, starts)

    def clear(self, index: int) -> list[Piece]:
        """Empty a GPU and return what was there."""
        pieces = [piece for piece, _ in self._held[index]]
        self._held[index], self._taken[index] = [], 0
        self._cursors = {key: min(cursor, index) for key, cursor in self._cursors.items()}
        return pieces

    def drop(self, indices: Collection[int]) -> list[Piece]:
        """Take GPUs out of the rack and return what was on them."""
        pieces = [piece for index in indices for piece, _ in self._held[index]]
        kept = [index for index in range(len(self)) if index not in set(indices)]
        self._held = [self._held[index] for index in kept]
        self._taken = [self._taken[index] for index in kept]
        self._cursors.clear()
        return pieces

    def _put_at(self, index: int, piece: Piece, starts: tuple[int, ...]) -> bool:
        footprint = (1 << piece.profile.memory_slices) - 1
        for start in starts:
            if not self._taken[index] & footprint << start:
                self._taken[index] |= footprint << start
                self._held[index].append((piece, self.gpu.placement(piece.profile.name, start)))
                return True
        return False
