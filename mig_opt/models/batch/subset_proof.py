"""Proofs for up to some twenty tasks: dynamic programming over subsets, then every assignment that is left.

The tables (:mod:`mig_opt.batch.loads.subset_tables`) give the shortest longest path through the load tree exactly. No
schedule is shorter than that, and few assignments of tasks to places have paths as short as the best schedule: often
none, and then it is optimal. Otherwise they are listed, and for each of them a block model decides whether any order in
time, with any re-creations, is shorter.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from mig_opt.batch.loads.subset_tables import MAX_TASKS_OF_TABLES, Assignments, SubsetTables
from mig_opt.batch.loads.subsets import NEVER
from mig_opt.models.batch.block_search import BlockSearch, M

_CASES_PER_SECOND = 4e8
"""Cases that a thread looks at."""

_TABLES_SHARE = 0.5
"""Largest share of the time for the tables; else it is not worth to begin."""

_MAX_CASES = 3e11
"""Cases above which the tables would take many minutes even where there is no limit of time."""

_SECONDS_PER_CANDIDATE = 1e-4
"""Seconds to list an assignment."""

_MAX_CANDIDATES = 20_000
"""Assignments above which the block model with all of them at once is quicker."""


def prove_by_subsets(search: BlockSearch[M]) -> None:
    """Prove the best schedule of a search optimal, or find a better one, if the batch is small enough.

    All that is proven is reported to the search; it may be less than that, where the time is up or too many assignments
    are left. The better the schedule, the quicker.
    """
    problem, control = search.problem, search.control
    if len(problem.batch.tasks) > MAX_TASKS_OF_TABLES or not search.open:
        return
    tables = SubsetTables(problem, search.upper - 1)
    work = tables.cases() / _CASES_PER_SECOND / control.workers
    time = control.remaining
    if work > (_MAX_CASES / _CASES_PER_SECOND if time is None else time * _TABLES_SHARE):
        return
    control.spend(work)
    if not tables.fill(control.workers, lambda: control.expired):
        return
    if tables.least >= NEVER:
        search.raise_lower(search.upper)
        return
    search.raise_lower(tables.least)
    _decide_all(search, Assignments(problem, tables))


def _decide_all(search: BlockSearch[M], assignments: Assignments) -> None:
    """Decide one assignment after the other; if all are, the best schedule is optimal."""
    # Shortest paths first: they are the most likely to give a better schedule, after which fewer are left.
    for places in itertools.islice(assignments.within(search.lower), 1):
        search.polish(places)
    while search.open:
        upper = search.upper
        if not _few(search, assignments.within(upper - 1)):
            return
        for places in assignments.within(upper - 1):
            if not search.decide(places):
                return
            if search.upper < upper:
                break
        else:
            search.raise_lower(upper)


def _few(search: BlockSearch[M], assignments: Iterator[list[int]]) -> bool:
    """Return True if few enough assignments are left to look at each; False if the time is up before."""
    for number, _ in enumerate(assignments):
        search.control.spend(_SECONDS_PER_CANDIDATE)
        if number == _MAX_CANDIDATES or search.control.expired:
            return False
    return True
