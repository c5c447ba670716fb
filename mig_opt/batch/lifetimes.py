"""What a list of operations amounts to: instances that come and go."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mig_opt.batch.batch import LiveInstance
from mig_opt.batch.schedule import Operation

Where = tuple[int, str, int]
"""GPU, profile name, start slice: what runs, operations and instances at one place have in common."""


@dataclass(frozen=True, slots=True)
class Life:
    """One instance from its creation, or the start of the batch, to its destruction, or for ever.

    Attributes
    ----------
    gpu : int
        Index of the GPU.
    profile : str
        Profile name.
    start : int
        Start slice.
    free : float or None
        For an instance that exists when the batch starts: the second at which it becomes free.
    created, destroyed : int or None
        Its operations, by index: an initial instance has no creation, one that stays has no destruction.
    """

    gpu: int
    profile: str
    start: int
    free: float | None
    created: int | None
    destroyed: int | None


def lives_of(
    initial: Iterable[LiveInstance], operations: Sequence[Operation], tolerance: float = 1e-6
) -> tuple[list[Life], list[int]]:
    """Return the lives that operations make, place by place, and the operations that make no sense where they are.

    The latter are creations of what exists already and destructions of what does not exist; apart from being
    returned they are ignored.

    Parameters
    ----------
    initial : iterable of LiveInstance
        What exists at the start.
    operations : sequence of Operation
        In any order.
    tolerance : float
        Seconds by which operations may begin in the wrong order.

    Examples
    --------
    >>> there, gone = Operation("create", 0, "4g.24gb", 0, 0.0, 0.13), Operation("destroy", 0, "4g.24gb", 0, 2.0, 2.1)
    >>> lives_of((), (gone, there, there))
    ([Life(gpu=0, profile='4g.24gb', start=0, free=None, created=1, destroyed=0)], [2])
    """
    queues: dict[Where, list[int]] = defaultdict(list)
    for index in sorted(range(len(operations)), key=lambda index: (operations[index].begin, operations[index].end)):
        operation = operations[index]
        queues[operation.gpu, operation.profile, operation.start].append(index)
    free_at = {(live.gpu, live.profile, live.start): live.free for live in initial}
    lives: list[Life] = []
    stray: list[int] = []
    for where in dict.fromkeys((*free_at, *queues)):
        exists, free, created = where in free_at, free_at.get(where), None
        for index in _alternating(queues[where], operations, exists, tolerance):
            if (operations[index].kind == "destroy") != exists:
                stray.append(index)
            elif exists:
                lives.append(Life(*where, free, created, index))
                exists = False
            else:
                exists, free, created = True, None, index
        if exists:
            lives.append(Life(*where, free, created, None))
    return lives, stray


def _alternating(
    queue: Iterable[int], operations: Sequence[Operation], exists: bool, tolerance: float
) -> Iterator[int]:
    """Yield the operations of a placement by time; of two that begin together, the one that makes sense first."""
    rest = deque(queue)
    while rest:
        index = rest.popleft()
        operation = operations[index]
        if (
            rest
            and (operation.kind == "destroy") != exists
            and (operations[rest[0]].kind == "destroy") == exists
            and operations[rest[0]].begin <= operation.begin + tolerance
        ):
            index, rest[0] = rest[0], index
        if (operations[index].kind == "destroy") == exists:
            exists = not exists
        yield index
