"""Large neighbourhoods searched exactly: the best new places for some ten tasks at once.

This is the destroy-and-repair step of a large-neighbourhood search (Shaw, 1998; Pisinger and Ropke, 2010). Some tasks
are *free* to move, all others stay where they are. For every subset of the free tasks the shortest longest path through
each branch is found by dynamic programming, as in :mod:`mig_opt.loads.tables`, in about a millisecond; of all best
assignments one is drawn. One GPU or two take part at a time, mostly the one with the longest path among them. The
*length* of a GPU is that of the longest path through it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mig_opt.loads import loop
from mig_opt.loads.state import (
    Costs,
    FlatTree,
    LeastLoads,
    State,
    add_task,
    mark_longest_path,
    path_sums,
    state_of,
    update_paths,
)
from mig_opt.loads.subsets import (
    NEVER,
    SKIPPED,
    Integers,
    Siblings,
    Subsets,
    Table,
    add_tasks,
    choose_use,
    sets_within,
    split_tasks,
    subset_sums,
)

_DRAWS = 8
"""Number of best assignments that are drawn; the one of least weighted cost is taken."""

_TOGETHER = 0.5
"""Frequency with which tasks in the same places move together: else the tasks that stay decide what fits there."""

_FEW = 200
"""With more tasks, a place has more of them than can move."""

_ANYWHERE = 0.33
"""Frequency with which a round shortens other GPUs than the longest, which can then take its tasks later."""

_DEEP = 0.3
"""Frequency with which a round shortens the longest GPU further than to the length of the others."""


@loop
def improve(
    costs: Costs,
    tree: FlatTree,
    least: LeastLoads,
    places: Integers,
    most: int,
    rounds: int,
    seed: int,
    target: int,
    slack: int,
) -> int:
    """Improve an assignment for a number of rounds.

    Parameters
    ----------
    costs : Costs
        Ticks of tasks and places.
    tree : FlatTree
        The load tree.
    least : LeastLoads
        Least loads on that tree.
    places : array of int64, shape (tasks,)
        The place of each task, changed in place.
    most : int
        Tasks that may move at a time.
    rounds : int
        Number of rounds.
    seed : int
        Seed of the random choices.
    target : int
        Length in ticks at which to stop.
    slack : int
        Ticks by which the result of a round may be longer than necessary.

    Returns
    -------
    int
        The longest path of the assignment in ticks.
    """
    np.random.seed(seed)
    gpus = tree.last.shape[0]
    state = state_of(costs, tree, places)
    lengths = np.empty(gpus, np.int64)
    for gpu in range(gpus):
        update_paths(costs, tree, state, gpu)
        lengths[gpu] = state.longest[tree.last[gpu]]
    on_path = np.zeros(costs.used.shape[0], np.bool_)
    tables = np.empty((tree.kind.shape[0], 1), np.int32)
    for _ in range(rounds):
        if lengths.max() <= target:
            break
        longer, shorter, others = _choose_gpus(lengths)
        mark_longest_path(tree, state, longer, on_path)
        free = _choose_tasks(tree, places, on_path, (longer, shorter), most)
        for task in free:
            add_task(costs, state, task, places[task], -1)
        if tables.shape[1] != 1 << free.shape[0]:
            tables = np.empty((tree.kind.shape[0], 1 << free.shape[0]), np.int32)
        limits = (int(lengths[longer]) + slack, others, slack)
        chosen = _reassign(costs, tree, least, state, (longer, shorter), free, limits, tables)
        for index in range(free.shape[0]):
            places[free[index]] = chosen[index]
            add_task(costs, state, free[index], chosen[index], 1)
        for gpu in (longer, shorter):
            update_paths(costs, tree, state, gpu)
            lengths[gpu] = state.longest[tree.last[gpu]]
    return int(lengths.max())


@loop
def _choose_gpus(lengths: Integers) -> tuple[int, int, int]:
    """Return two GPUs to work on, the longer one first, and the length down to which they need not get."""
    gpus = lengths.shape[0]
    if gpus == 1:
        return 0, 0, 0
    longer = np.argmax(lengths)
    if gpus > 2 and np.random.random() < _ANYWHERE:
        longer = (longer + np.random.randint(1, gpus)) % gpus
    shorter = (longer + np.random.randint(1, gpus)) % gpus
    if lengths[shorter] > lengths[longer]:
        longer, shorter = shorter, longer
    others = 0
    for gpu in range(gpus):
        if gpu not in (longer, shorter):
            others = max(others, lengths[gpu])
    if others > lengths[longer] or np.random.random() < _DEEP:
        others = 0
    return int(longer), int(shorter), int(others)


@loop
def _choose_tasks(
    tree: FlatTree, places: Integers, on_path: npt.NDArray[np.bool_], gpus: tuple[int, int], most: int
) -> Integers:
    """Choose the tasks that may move: some from the longest path, the others from anywhere on the GPUs."""
    path, rest = np.empty(places.shape[0], np.int64), np.empty(places.shape[0], np.int64)
    on, off = 0, 0
    for task in range(places.shape[0]):
        if on_path[places[task]]:
            path[on] = task
            on += 1
        elif tree.gpu[places[task]] in gpus:
            rest[off] = task
            off += 1
    number = min(most, on + off)
    wanted = np.random.randint(max(1, most // 4), most // 2 + 2)
    wanted = max(min(wanted, on, number), number - off)
    if off <= _FEW and np.random.random() < _TOGETHER:
        ranks, order = np.random.permutation(on_path.shape[0]), np.empty(off, np.int64)
        for index in range(off):
            order[index] = ranks[places[rest[index]]]
        rest = rest[:off][np.argsort(order)]
        drawn = 0
    else:
        drawn = number - wanted
    _shuffle_first(path, on, wanted)
    _shuffle_first(rest, off, drawn)
    free = np.empty(number, np.int64)
    free[:wanted], free[wanted:] = path[:wanted], rest[: number - wanted]
    return free


@loop
def _shuffle_first(values: Integers, count: int, drawn: int) -> None:
    """Move so many of the first ``count`` values to the front, drawn at random."""
    for at in range(drawn):
        pick = np.random.randint(at, count)
        values[at], values[pick] = values[pick], values[at]


@loop
def _reassign(
    costs: Costs, tree: FlatTree, least: LeastLoads, state: State, gpus: tuple[int, int], free: Integers,
    limits: tuple[int, int, int], tables: Table,
) -> Integers:  # fmt: skip
    """Return the best places for the free tasks on one GPU or two: of some draws, the one of least weighted cost.

    ``limits`` are the length that is allowed in the tables, that down to which the GPUs need not get, and the slack.
    """
    longer, shorter = gpus
    limit, others, slack = limits
    for at in range(1 if shorter == longer else 2):
        update_paths(costs, tree, state, gpus[at])
    for at in range(1 if shorter == longer else 2):
        _fill_tables(costs, tree, least, state, (gpus[at], gpus[1 - at]), free, limit, tables)
    everything = tables.shape[1] - 1
    best, cheapest = np.empty(free.shape[0], np.int64), np.inf
    for _ in range(_DRAWS):
        length, here = int(tables[tree.last[longer], everything]), everything
        if shorter != longer:
            length, here = _divide(tables[tree.last[longer]], tables[tree.last[shorter]])
        length = max(length, others) + slack
        drawn = np.empty(free.shape[0], np.int64)
        _draw_assignment(costs, tree, state, longer, free, here, length, tables, drawn)
        if shorter != longer:
            _draw_assignment(costs, tree, state, shorter, free, everything ^ here, length, tables, drawn)
        cost = _weighted_cost(costs, state, free, drawn)
        if cost < cheapest:
            best, cheapest = drawn, cost
    return best


@loop
def _fill_tables(
    costs: Costs, tree: FlatTree, least: LeastLoads, state: State, gpus: tuple[int, int], free: Integers, limit: int,
    tables: Table,
) -> None:  # fmt: skip
    """Find the shortest longest path through each branch of a GPU for every subset of the free tasks.

    The others run on the second GPU, if that is another one.
    """
    first, last = tree.first[gpus[0]], tree.last[gpus[0]]
    here = np.empty(free.shape[0], np.int32)
    within, above = path_sums(costs, tree, state, gpus[0])
    leaves, elsewhere = tree.leaves[last], np.int64(0)
    if gpus[0] != gpus[1]:
        leaves += tree.leaves[tree.last[gpus[1]]]
        elsewhere = path_sums(costs, tree, state, gpus[1])[0][-1]
    for node in range(first, last + 1):
        table, one = tables[node], tree.one[node]
        if tree.kind[node] == 0:
            table[:] = NEVER
            table[0] = 0
        elif tree.kind[node] == 2:
            two, paths = tree.two[node], tree.leaves[node]
            siblings = _siblings(tree, state, node)
            own = within[node - first] + paths * above[node - first]
            room = (
                paths * limit - own,
                (leaves - paths) * limit - (within[-1] - own) - elsewhere,
                leaves * limit - within[-1] - elsewhere,
            )
            table[:] = SKIPPED
            subsets = _sets_of(tree, least, node, free, gpus, room)
            split_tasks(tables[one], tables[two], subsets, siblings, limit, table)
        else:
            for index in range(free.shape[0]):
                here[index] = costs.ticks[free[index], tree.place[node]]
            table[:] = tables[tree.inside[node]]
            add_tasks(table, here, limit)
            used, unused, idle, below = _stack_ticks(costs, tree, state, node)
            choose_use(table, tables[below], used, unused, limit)
            length = tables[below, 0] + idle
            table[0] = length if length <= limit else NEVER


@loop
def _sets_of(
    tree: FlatTree, least: LeastLoads, node: int, free: Integers, gpus: tuple[int, int], room: tuple[int, int, int]
) -> Subsets:
    """Return the sets of free tasks that can run in a branch of the first of two GPUs, or of one that is both.

    ``room`` is an argument of :func:`sets_within`.
    """
    row, count = least.row[node], free.shape[0]
    inside, around, beside = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    for index in range(count):
        task = free[index]
        inside[index] = least.inside[row, task]
        around[index], beside[index] = least.around[row, task], least.beside[row, task]
        if gpus[0] != gpus[1]:
            there = least.inside[least.row[tree.last[gpus[1]]], task]
            around[index], beside[index] = min(around[index], there), min(beside[index], there)
    return sets_within(inside, around, beside, room)


@loop
def _siblings(tree: FlatTree, state: State, node: int) -> Siblings:
    """Return the relation of the branches of a split."""
    around = tree.around[node]
    busy_one, busy_two = state.busy[tree.one[node]] > 0, state.busy[tree.two[node]] > 0
    return Siblings(False, around or busy_one, around or busy_two, tree.wait_one[node], tree.wait_two[node])


@loop
def _stack_ticks(costs: Costs, tree: FlatTree, state: State, node: int) -> tuple[int, int, int, int]:
    """Return the ticks of the place of a stack, and the node below if no free task runs there.

    The ticks are for three cases: a free task runs there; one runs below only; none runs at or below the place.
    """
    place, below = tree.place[node], tree.one[node]
    used = costs.used[place] + state.load[place]
    if state.tasks[place]:
        return used, used, used, tree.inside[node]
    clearing = costs.clearing[place]
    return used, clearing, clearing if state.busy[below] or tree.around[node] else 0, below


@loop
def _divide(one: Table, two: Table) -> tuple[int, int]:
    """Return the least length of two GPUs that divide the free tasks, and a best part of the first, drawn."""
    everything = one.shape[0] - 1
    shortest, seen, drawn = NEVER, 0, 0
    for part in range(one.shape[0]):
        length = max(one[part], two[everything ^ part])
        if length < shortest:
            shortest, seen = length, 0
        if length == shortest:
            seen += 1
            if np.random.randint(seen) == 0:
                drawn = part
    return shortest, drawn


@loop
def _weighted_cost(costs: Costs, state: State, free: Integers, choice: Integers) -> float:
    """Return the weighted cost of a choice of places for the free tasks."""
    total = 0.0
    for index in range(free.shape[0]):
        place = choice[index]
        total += costs.weighted[free[index], place]
        if not state.tasks[place] and place not in choice[:index]:
            total += costs.weighted_used[place]
    return total


@loop
def _draw_assignment(
    costs: Costs, tree: FlatTree, state: State, gpu: int, free: Integers, tasks: int, limit: int, tables: Table,
    choice: Integers,
) -> None:  # fmt: skip
    """Draw an assignment of ``tasks``, a subset of ``free``, to places of a GPU with no path longer than ``limit``.

    ``limit`` is at least the entry in the table of the root. The places are written into ``choice``, shape (free,);
    nothing of ``free`` runs anywhere in ``state``.
    """
    waiting = [(tree.last[gpu], tasks, limit)]
    here = np.empty(free.shape[0], np.int32)
    while waiting:
        node, whole, most = waiting.pop()
        one, two = tree.one[node], tree.two[node]
        if tree.kind[node] == 2:
            siblings = _siblings(tree, state, node)
            part, most_one, most_two = _draw_split(tables[one], tables[two], siblings, whole, most)
            waiting.append((one, part, most_one))
            waiting.append((two, whole ^ part, most_two))
        elif tree.kind[node] == 1:
            place, inside = tree.place[node], tree.inside[node]
            for index in range(free.shape[0]):
                here[index] = costs.ticks[free[index], place]
            used, unused, idle, below = _stack_ticks(costs, tree, state, node)
            part, taken = _draw_stack(tables[below], tables[inside], here, (used, unused, idle), whole, most)
            for index in range(free.shape[0]):
                if part >> index & 1:
                    choice[index] = place
            waiting.append((inside if part else below, whole ^ part, most - taken))


@loop
def _draw_split(one: Table, two: Table, siblings: Siblings, whole: int, limit: int) -> tuple[int, int, int]:
    """Draw the part of ``whole`` that runs in the first of two siblings; return it with the limits of both."""
    seen, drawn, most_one, most_two, part = 0, -1, limit, limit, whole
    while True:
        rest = whole ^ part
        if one[part] <= limit and two[rest] <= limit:
            both = (part or siblings.busy_one) and (rest or siblings.busy_two)
            wait_one, wait_two = (siblings.wait_one, siblings.wait_two) if both else (0, 0)
            for early, late in ((0, wait_two), (wait_one, 0)):
                if one[part] + early <= limit and two[rest] + late <= limit:
                    seen += 1
                    if np.random.randint(seen) == 0:
                        drawn, most_one, most_two = part, limit - early, limit - late
        if part == 0:
            return drawn, most_one, most_two
        part = (part - 1) & whole


@loop
def _draw_stack(
    unused: Table, used: Table, here: Table, ticks: tuple[int, int, int], whole: int, limit: int
) -> tuple[int, int]:
    """Draw the part of ``whole`` that runs in the place of a stack; return it with the ticks of the place.

    The tables are those below it, if it is not used and if it is. ``here`` are the ticks of each task there, ``ticks``
    those of the place in the three cases of :func:`_stack_ticks`.
    """
    members = np.empty(here.shape[0], np.int32)
    count = 0
    for index in range(here.shape[0]):
        if whole >> index & 1:
            members[count] = here[index]
            count += 1
    # The parts of a whole come in the order of the subsets of its members.
    sums = subset_sums(members[:count])
    seen, drawn, taken, part = 0, -1, 0, whole
    for subset in range(sums.shape[0] - 1, -1, -1):
        below = used[whole ^ part] if part else unused[whole]
        if sums[subset] < NEVER and below < NEVER:
            own = ticks[0] + sums[subset] if part else (ticks[1] if whole else ticks[2])
            if own + below <= limit:
                seen += 1
                if np.random.randint(seen) == 0:
                    drawn, taken = part, own
        part = (part - 1) & whole
    return drawn, taken
