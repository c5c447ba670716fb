"""States of a GPU: the sets of placements that may exist together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

P = TypeVar("P", bound=Any)
"""A placement; models of GPUs import this module, so nothing is known of its class here."""


def placed_states(placements: Iterable[P], *, dense: bool = False) -> Iterator[tuple[P, ...]]:
    """Yield every set of placements that may exist together, the empty one included, each sorted by start.

    If they are to be ``dense``, those are passed over that leave room in front of a placement for another one whose
    profile is not counted: nothing can be added to a maximal partition.
    """
    ordered = sorted(placements, key=lambda p: (p.start, -p.profile.memory_slices))
    uncounted = [p for p in ordered if dense and p.profile.max_count >= len(p.profile.starts)]

    def extend(state: tuple[P, ...], free: int) -> Iterator[tuple[P, ...]]:
        yield state
        for placement in ordered:
            if any(free <= other.start and other.footprint.stop <= placement.start for other in uncounted):
                return  # all that follow leave that room, too
            if placement.start >= free and placement.fits_beside(state):
                yield from extend((*state, placement), placement.footprint.stop)

    return extend((), 0)
