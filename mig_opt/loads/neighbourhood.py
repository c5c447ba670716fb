"""Large neighbourhoods searched exactly: the best new places for some ten tasks at once.

Everything else stays where it is. For the chosen tasks the least height of the load tree is found by dynamic
programming over their subsets, as in :mod:`mig_opt.loads.tables`, in about a millisecond; of all best assignments one
is drawn. One GPU or two take part at a time, one of them mostly the highest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mig_opt.loads.drawing import draw
from mig_opt.loads.jit import loop
from mig_opt.loads.kernels import NEVER, SKIPPED, Neighbours, Subsets, Table, add_tasks, choose_use, split_heights
from mig_opt.loads.reach import Reach, sets_within, taken
from mig_opt.loads.state import Costs, Integers, Shape, State, highest_way, measure, nothing, put

_DRAWS = 8
"""Of so many best assignments the cheapest is taken."""

_TOGETHER = 0.5
"""How often tasks that run in the same places move together: what is left there otherwise says what fits."""

_FEW = 200
"""With more tasks, a place has more of them than can move."""

_ANYWHERE = 0.33
"""How often a round lowers GPUs that are not the highest: what they gain the highest ones can have later."""

_DEEP = 0.3
"""How often a round lowers the highest GPU further than to the height of the others."""


@loop
def _sets_of(
    shape: Shape, reach: Reach, node: int, free: Integers, gpus: tuple[int, int], room: tuple[int, int, int]
) -> Subsets:
    """Return the sets of free tasks that can run in a branch of the first of two GPUs, or of one that is both.

    ``room`` is what :func:`sets_within` takes.
    """
    row, count = reach.row[node], free.shape[0]
    inside, around, beside = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    for index in range(count):
        task = free[index]
        inside[index] = reach.inside[row, task]
        around[index], beside[index] = reach.around[row, task], reach.beside[row, task]
        if gpus[0] != gpus[1]:
            there = reach.inside[reach.row[shape.last[gpus[1]]], task]
            around[index], beside[index] = min(around[index], there), min(beside[index], there)
    return sets_within(inside, around, beside, room)


@loop
def _fill_tables(
    costs: Costs, shape: Shape, reach: Reach, state: State, gpus: tuple[int, int], free: Integers, limit: int,
    tables: Table,
) -> None:  # fmt: skip
    """Find the least heights of the branches of a GPU for every subset of the free tasks.

    The others run on the second GPU, if that is another one.
    """
    first, last = shape.first[gpus[0]], shape.last[gpus[0]]
    here = np.empty(free.shape[0], np.int32)
    within, above = taken(costs, shape, state, gpus[0])
    tips, elsewhere = shape.tips[last], np.int64(0)
    if gpus[0] != gpus[1]:
        tips += shape.tips[shape.last[gpus[1]]]
        elsewhere = taken(costs, shape, state, gpus[1])[0][-1]
    for node in range(first, last + 1):
        table, one = tables[node], shape.one[node]
        if shape.kind[node] == 0:
            table[:] = NEVER
            table[0] = 0
        elif shape.kind[node] == 2:
            two, ways = shape.two[node], shape.tips[node]
            around = shape.around[node]
            neighbours = Neighbours(
                False,
                around or state.busy[one] > 0,
                around or state.busy[two] > 0,
                shape.wait_one[node],
                shape.wait_two[node],
            )
            own = within[node - first] + ways * above[node - first]
            room = (
                ways * limit - own,
                (tips - ways) * limit - (within[-1] - own) - elsewhere,
                tips * limit - within[-1] - elsewhere,
            )
            table[:] = SKIPPED
            subsets = _sets_of(shape, reach, node, free, gpus, room)
            split_heights(tables[one], tables[two], subsets, neighbours, limit, table)
        else:
            place = shape.place[node]
            for index in range(free.shape[0]):
                here[index] = costs.ticks[free[index], place]
            table[:] = tables[shape.inside[node]]
            add_tasks(table, here, limit)
            used = costs.fixed[place] + state.load[place]
            unused = costs.room[place]
            idle = unused if state.busy[one] or shape.around[node] else 0
            if state.tasks[place]:
                unused = idle = used
                one = shape.inside[node]
            choose_use(table, tables[one], used, unused, limit)
            lowest = tables[one, 0] + idle
            table[0] = lowest if lowest <= limit else NEVER


@loop
def _pick(shape: Shape, places: Integers, on_way: npt.NDArray[np.bool_], gpus: tuple[int, int], most: int) -> Integers:
    """Pick the tasks that may move: some from the highest way, the others from anywhere on the GPUs."""
    way, rest = np.empty(places.shape[0], np.int64), np.empty(places.shape[0], np.int64)
    on, off = 0, 0
    for task in range(places.shape[0]):
        if on_way[places[task]]:
            way[on] = task
            on += 1
        elif shape.gpu[places[task]] in gpus:
            rest[off] = task
            off += 1
    number = min(most, on + off)
    wanted = np.random.randint(max(1, most // 4), most // 2 + 2)
    wanted = max(min(wanted, on, number), number - off)
    if off <= _FEW and np.random.random() < _TOGETHER:
        ranks, order = np.random.permutation(on_way.shape[0]), np.empty(off, np.int64)
        for index in range(off):
            order[index] = ranks[places[rest[index]]]
        rest = rest[:off][np.argsort(order)]
        drawn = 0
    else:
        drawn = number - wanted
    _draw_first(way, on, wanted)
    _draw_first(rest, off, drawn)
    free = np.empty(number, np.int64)
    free[:wanted], free[wanted:] = way[:wanted], rest[: number - wanted]
    return free


@loop
def _draw_first(values: Integers, count: int, drawn: int) -> None:
    """Move so many of the first ``count`` values to the front, drawn at random."""
    for at in range(drawn):
        pick = np.random.randint(at, count)
        values[at], values[pick] = values[pick], values[at]


@loop
def _pair(tops: Integers) -> tuple[int, int, int]:
    """Return two GPUs to work on, the higher one first, and the height down to which they need not get."""
    gpus = tops.shape[0]
    if gpus == 1:
        return 0, 0, 0
    higher = np.argmax(tops)
    if gpus > 2 and np.random.random() < _ANYWHERE:
        higher = (higher + np.random.randint(1, gpus)) % gpus
    lower = (higher + np.random.randint(1, gpus)) % gpus
    if tops[lower] > tops[higher]:
        higher, lower = lower, higher
    others = 0
    for gpu in range(gpus):
        if gpu not in (higher, lower):
            others = max(others, tops[gpu])
    if others > tops[higher] or np.random.random() < _DEEP:
        others = 0
    return int(higher), int(lower), int(others)


@loop
def _price(costs: Costs, state: State, free: Integers, choice: Integers) -> float:
    """Return what a choice of places for the free tasks costs."""
    total = 0.0
    for index in range(free.shape[0]):
        place = choice[index]
        total += costs.price[free[index], place]
        if not state.tasks[place] and place not in choice[:index]:
            total += costs.rent[place]
    return total


@loop
def _share(one: Table, two: Table) -> tuple[int, int]:
    """Return the least height of two GPUs that share the free tasks, and the part of one of them, drawn."""
    everything = one.shape[0] - 1
    lowest, seen, drawn = NEVER, 0, 0
    for part in range(one.shape[0]):
        height = max(one[part], two[everything ^ part])
        if height < lowest:
            lowest, seen = height, 0
        if height == lowest:
            seen += 1
            if np.random.randint(seen) == 0:
                drawn = part
    return lowest, drawn


@loop
def _choose(
    costs: Costs, shape: Shape, reach: Reach, state: State, gpus: tuple[int, int], free: Integers,
    limits: tuple[int, int, int], tables: Table,
) -> Integers:  # fmt: skip
    """Return the best places for the free tasks on one GPU or two: among the lowest, the cheapest of some draws.

    ``limits`` are the height that is allowed for the tables, that down to which they need not get, and the slack.
    """
    highest, other = gpus
    limit, others, slack = limits
    for at in range(1 if other == highest else 2):
        measure(costs, shape, state, gpus[at])
    for at in range(1 if other == highest else 2):
        _fill_tables(costs, shape, reach, state, (gpus[at], gpus[1 - at]), free, limit, tables)
    everything = tables.shape[1] - 1
    best, cheapest = np.empty(free.shape[0], np.int64), np.inf
    for _ in range(_DRAWS):
        lowest, here = int(tables[shape.last[highest], everything]), everything
        if other != highest:
            lowest, here = _share(tables[shape.last[highest]], tables[shape.last[other]])
        lowest = max(lowest, others) + slack
        drawn = np.empty(free.shape[0], np.int64)
        draw(costs, shape, state, highest, free, here, lowest, tables, drawn)
        if other != highest:
            draw(costs, shape, state, other, free, everything ^ here, lowest, tables, drawn)
        price = _price(costs, state, free, drawn)
        if price < cheapest:
            best, cheapest = drawn, price
    return best


@loop
def improve(
    costs: Costs,
    shape: Shape,
    reach: Reach,
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
        What takes how long.
    shape : Shape
        The load tree.
    reach : Reach
        Of that tree.
    places : array of int64, shape (tasks,)
        The place of each task, changed in place.
    most : int
        Tasks that may move at a time.
    rounds : int
        How often.
    seed : int
        For the choices.
    target : int
        Ticks at which to stop.
    slack : int
        Ticks by which a round may end higher than it could.

    Returns
    -------
    int
        The height of the assignment in ticks.
    """
    np.random.seed(seed)
    gpus = shape.last.shape[0]
    state = nothing(costs, shape)
    for task in range(places.shape[0]):
        put(costs, state, task, places[task], 1)
    tops = np.empty(gpus, np.int64)
    for gpu in range(gpus):
        measure(costs, shape, state, gpu)
        tops[gpu] = state.height[shape.last[gpu]]
    on_way = np.zeros(costs.fixed.shape[0], np.bool_)
    tables = np.empty((shape.kind.shape[0], 1), np.int32)
    for _ in range(rounds):
        if tops.max() <= target:
            break
        highest, other, others = _pair(tops)
        highest_way(shape, state, highest, on_way)
        free = _pick(shape, places, on_way, (highest, other), most)
        for task in free:
            put(costs, state, task, places[task], -1)
        if tables.shape[1] != 1 << free.shape[0]:
            tables = np.empty((shape.kind.shape[0], 1 << free.shape[0]), np.int32)
        limits = (int(tops[highest]) + slack, others, slack)
        choice = _choose(costs, shape, reach, state, (highest, other), free, limits, tables)
        for index in range(free.shape[0]):
            places[free[index]] = choice[index]
            put(costs, state, free[index], choice[index], 1)
        for gpu in (highest, other):
            measure(costs, shape, state, gpu)
            tops[gpu] = state.height[shape.last[gpu]]
    return int(tops.max())


@loop
def spread(costs: Costs, shape: Shape) -> Integers:
    """Assign all tasks, the most expensive first, each to the one of its places with the lowest loads.

    Parameters
    ----------
    costs : Costs
        What takes how long, NEVER in all but the cheap places of a task; no instance is live.
    shape : Shape
        The load tree.

    Returns
    -------
    array of int64, shape (tasks,)
        The place of each task.
    """
    tasks, number = costs.price.shape
    cheapest = np.empty(tasks)
    for task in range(tasks):
        cheapest[task] = np.inf
        for place in range(number):
            if costs.ticks[task, place] < NEVER:
                cheapest[task] = min(cheapest[task], costs.price[task, place])
    state = nothing(costs, shape)
    places = np.empty(tasks, np.int64)
    for task in np.argsort(-cheapest):
        lowest, chosen = np.int64(NEVER), -1
        for place in range(number):
            if costs.ticks[task, place] < NEVER:
                put(costs, state, task, place, 1)
                measure(costs, shape, state, shape.gpu[place])
                height = state.height[shape.last[shape.gpu[place]]]
                put(costs, state, task, place, -1)
                if height < lowest:
                    lowest, chosen = height, place
        places[task] = chosen
        put(costs, state, task, chosen, 1)
    return places
