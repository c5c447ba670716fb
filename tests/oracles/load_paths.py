"""Longest paths through the load tree by definition: slow, sharing nothing with :mod:`mig_opt.batch.loads`."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mig_opt.batch.integer_batch import IntegerBatch


@dataclass
class Branch:
    """The inside of one footprint: perhaps a place, and the branches below."""

    slices: frozenset[int]
    place: int | None = None
    below: list["Branch"] = field(default_factory=list)

    def places(self) -> Iterator[int]:
        if self.place is not None:
            yield self.place
        for branch in self.below:
            yield from branch.places()


def branches(problem: IntegerBatch, gpu: int) -> Branch:
    """Nest the places of a GPU by their footprints; in equal ones the earlier place is outside."""
    whole = Branch(frozenset(range(problem.batch.gpu.memory_slices)))
    for placement in problem.batch.gpu.placements(problem.batch.profile_set):
        slices, around = frozenset(placement.footprint), whole
        while True:
            inner = [branch for branch in around.below if slices <= branch.slices]
            if not inner:
                break
            around = inner[0]
        places = [
            at
            for at, place in enumerate(problem.places)
            if place.gpu == gpu and place.placement.shape == placement.shape
        ]
        around.below.append(Branch(slices, places[0] if places else None))
    return whole


class LongestPaths:
    """Longest paths of the assignments of a batch."""

    def __init__(self, problem: IntegerBatch) -> None:
        self.problem = problem
        self.gpus = [branches(problem, gpu) for gpu in range(problem.batch.gpus)]
        live = {place.gpu for place in problem.places if place.free is not None}
        self.taking_turns = set() if problem.batch.parallel_operations else set(range(problem.batch.gpus))
        self.waiting = self.taking_turns - live

    def least(self) -> int:
        return min(self.length(places) for places in self.assignments())

    def assignments(self) -> Iterator[tuple[int, ...]]:
        able = [
            [at for at, place in enumerate(self.problem.places) if task in place.durations]
            for task in range(len(self.problem.batch.tasks))
        ]
        return itertools.product(*able)

    def length(self, places: Sequence[int], *, spared: bool = True) -> int:
        load: dict[int, int] = {}
        for task, at in enumerate(places):
            load[at] = load.get(at, 0) + self.problem.places[at].durations[task]
        return max(self._length(branch, gpu, load, spared, around=False) for gpu, branch in enumerate(self.gpus))

    def _length(self, branch: Branch, gpu: int, load: dict[int, int], spared: bool, *, around: bool) -> int:
        """Return the length of a branch; ``around`` tells whether something around it is used."""
        if not around and not any(at in load for at in branch.places()):
            return 0
        if branch.place is None:
            return self._side_by_side(branch.below, gpu, load, spared, around=around)
        place = self.problem.places[branch.place]
        if branch.place in load:
            most = max(self.problem.places[at].destroy for at in branch.places())
            ready = place.create if place.free is None else place.free
            taken = ready + load[branch.place] + place.destroy - (most if spared else 0)
            return taken + self._side_by_side(branch.below, gpu, load, spared=False, around=True)
        room = 0 if place.free is None else place.free + place.destroy
        return room + self._side_by_side(branch.below, gpu, load, spared, around=around)

    def _side_by_side(self, below: list[Branch], gpu: int, load: dict[int, int], spared: bool, *, around: bool) -> int:
        able = [branch for branch in below if any(True for _ in branch.places())]
        if not able:
            return 0
        paths = [self._length(branch, gpu, load, spared, around=around) for branch in able]
        assert len(able) <= 2, "which of three waits for which is not defined here"
        places = [[self.problem.places[at] for at in branch.places()] for branch in able]
        if around and gpu in self.taking_turns and all(any(at.free is not None for at in side) for side in places):
            # One of them is cleared last, and meanwhile there is nothing in the other.
            lost = [min(place.destroy for place in side) for side in places]
        elif gpu in self.waiting and all(any(at in load for at in branch.places()) for branch in able):
            lost = [min(place.create for place in side) for side in places]
        else:
            return max(paths)
        return min(
            max(length + (0 if at == chosen else lost[chosen]) for at, length in enumerate(paths))
            for chosen in range(len(able))
        )


def image(problem: IntegerBatch, places: Sequence[int]) -> str:
    """Return the same for mirror images of an assignment: for branches that are exchanged with others like them."""

    def of(branch: Branch) -> str:
        below = sorted(of(branch) for branch in branch.below if any(True for _ in branch.places()))
        if branch.place is None:
            # Several branches where nothing can run around them are side by side, however deep they are nested.
            return below[0] if len(below) == 1 else f"({' '.join(below)})"
        place = problem.places[branch.place]
        tasks = [task for task, at in enumerate(places) if at == branch.place]
        looks = place.placement.profile.name, place.free, tasks
        return f"{looks}({' '.join(below)})"

    return " ".join(sorted(of(branches(problem, gpu)) for gpu in range(problem.batch.gpus)))
