"""Parts that the rules of several problems share: entries of a plan with their placements, and the search for overlaps.

The entries of a plan (runs, operations, segments, steps) each have a GPU, a profile and a start slice. Rules about
instances look only at those entries whose place exists; other rules report the rest.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from mig_opt.batch.problems import Located
from mig_opt.errors import Problem, problems_of
from mig_opt.gpu.model import GpuModel, Location, Placement

if TYPE_CHECKING:
    from mig_opt.batch.schedule import Operation, Run
    from mig_opt.serving.change_plan import ChangeStep

Entry = TypeVar("Entry", bound=Located)
Item = TypeVar("Item")
Key = TypeVar("Key")

_ROUNDING = 1e-15  # share of a time by which sums of floating-point numbers may differ from the true sum


@dataclass(frozen=True, slots=True)
class Placed(Generic[Entry]):
    """An entry of a plan whose GPU and placement exist."""

    index: int  # its index in the plan
    entry: Entry  # the entry
    placement: Placement  # its placement on its GPU

    @property
    def location(self) -> Location:
        """GPU, profile name and start slice."""
        return self.entry.gpu, self.entry.profile, self.entry.start


def placed_entries(kinds: Sequence[GpuModel | None], entries: Iterable[Entry]) -> Iterator[Placed[Entry]]:
    """Yield the entries whose place exists, on GPUs of these kinds (None for a kind that is not known)."""
    for index, entry in enumerate(entries):
        kind = kinds[entry.gpu] if 0 <= entry.gpu < len(kinds) else None
        if kind is not None and not placement_problems(kind, entry):
            yield Placed(index, entry, kind.placement(entry.profile, entry.start))


def placement_problems(kind: GpuModel, entry: Located) -> Sequence[Problem]:
    """Return the problems of an entry whose profile or start slice a kind of GPU does not have."""
    return problems_of(kind.placement, entry.profile, entry.start)


@dataclass(frozen=True, slots=True)
class Span(Generic[Key, Item]):
    """An interval of time in which something on a GPU is held."""

    # seconds
    begin: float
    end: float
    gpu: int  # index of the GPU
    key: Key  # the thing that is held, such as a placement
    item: Item  # the entry of the plan that holds it


def spans_of(placed_runs: Iterable[Placed[Run]]) -> Iterator[Span[Placement, Placed[Run]]]:
    """Yield the time that each run holds its placement."""
    for placed in placed_runs:
        run = placed.entry
        yield Span(run.begin, run.end, run.gpu, placed.placement, placed)


def overlaps(spans: Iterable[Span[Key, Item]], tolerance: float) -> Iterator[tuple[Span[Key, Item], Span[Key, Item]]]:
    """Yield (earlier, later) for spans of one GPU and one key that overlap, as :func:`clashes` does."""
    for later, earlier in _clashes(spans, lambda key, others: [key] if key in others else [], tolerance):
        yield earlier[0], later


def clashes(
    spans: Iterable[Span[Placement, Item]], tolerance: float
) -> Iterator[tuple[Span[Placement, Item], list[Span[Placement, Item]]]]:
    """Yield spans with the earlier ones of their GPU during which their instances cannot be created.

    That is the rule of :meth:`~mig_opt.gpu.model.Placement.obstacles`: all that overlap with one share slices with it,
    or else they are as many of its profile as may exist. Of several earlier spans with one placement, the one that ends
    last is named. Overlaps up to the :func:`leeway` are none.
    """
    return _clashes(spans, Placement.obstacles, tolerance)


def _clashes(
    spans: Iterable[Span[Key, Item]], obstacles: Callable[[Key, Collection[Key]], Sequence[Key]], tolerance: float
) -> Iterator[tuple[Span[Key, Item], list[Span[Key, Item]]]]:
    latest: dict[int, dict[Key, Span[Key, Item]]] = defaultdict(dict)
    for span in sorted(spans, key=lambda span: (span.begin, span.end)):
        here, begin = latest[span.gpu], span.begin + leeway(span.begin, tolerance)
        there = {
            key: other
            for key, other in here.items()
            if other.end > begin and span.end > other.begin + leeway(other.begin, tolerance)
        }
        found = obstacles(span.key, there)
        if found:
            yield span, [there[key] for key in found]
        if span.key not in here or span.end > here[span.key].end:
            here[span.key] = span


def clash_message(later: Span[Placement, Item], earlier: Sequence[Span[Placement, Item]]) -> str:
    """Return what is wrong with an instance that is created although earlier ones exist that exclude it."""
    created = f"{later.key} is created on GPU {later.gpu} at {in_seconds(later.begin)}"
    if not later.key.conflicts(earlier[0].key):
        profile = later.key.profile
        count = f"{len(earlier)} of {profile.name} exist already; at most {profile.max_count} may exist at once"
        return f"{created}, when {count}"
    until = (
        f"{other.key}, which shares memory slices with it, "
        + ("is never destroyed" if math.isinf(other.end) else f"exists until {in_seconds(other.end)}")
        for other in earlier
    )
    return f"{created}, while {', and '.join(until)}"


def time_problems(entry: Run | Operation | ChangeStep, tolerance: float) -> Iterator[Problem]:
    """Yield the problems of an entry with its times."""
    for name, seconds in (("begin", entry.begin), ("end", entry.end)):
        if not math.isfinite(seconds):
            yield Problem(name, f"must be a finite number of seconds, is {seconds}")
    if entry.begin < -tolerance:
        yield Problem("begin", f"must not be negative, is {in_seconds(entry.begin)}")
    if entry.end < entry.begin - tolerance:
        yield Problem("end", f"ends at {in_seconds(entry.end)}, before it begins at {in_seconds(entry.begin)}")


def leeway(moment: float, tolerance: float) -> float:
    """Return the seconds by which two times may differ: a tolerance, or what is lost in rounding if that is more.

    With a tolerance of 0 they may not.
    """
    return tolerance and max(tolerance, _ROUNDING * min(abs(moment), sys.float_info.max))


def too_late(begin: float, end: float, seconds: float, tolerance: float = 0.0) -> bool:
    """Return True if times are so large that, rounded, they do not tell how long it is from one to the other.

    2.5 s after 1e17 s it is 1e17 s. A thousandth of the seconds, or ``tolerance``, may be lost in that way.
    """
    return abs(end - begin - seconds) > max(tolerance, seconds / 1000)


def in_seconds(seconds: float) -> str:
    """Return a time to be read by people, to the nanosecond at most."""
    return f"{round(seconds, 9):.12g} s"
