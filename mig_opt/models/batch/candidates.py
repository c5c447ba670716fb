"""Candidates: assignments of tasks to places that the loads allow to be shorter than the best schedule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mig_opt.models.batch.search import BlockSearch, M


def decide(search: BlockSearch[M], places: Sequence[int]) -> bool:
    """Search for a shorter schedule with given places; return True if one is found, or proven not to exist.

    As in the search as a whole, loose places get another lifetime, until none is left.

    Parameters
    ----------
    search : BlockSearch
        Gets the schedule.
    places : sequence of int
        The place of each task.
    """
    copies: Counter[int] = Counter()
    places = search.problem.canonical(places)
    while search.open:
        model = search.model(relaxed=True, copies={at: 1 + extra for at, extra in copies.items()}, below=True)
        outcome = search.complete(model, places, share=1.0)
        if outcome.infeasible:
            return True
        if outcome.values is None:
            return False
        loose = model.loose_places(outcome.values)
        if not loose:
            search.offer(model, outcome)
            return outcome.proven
        copies.update(loose)
    return False
