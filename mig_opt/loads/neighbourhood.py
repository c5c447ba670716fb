"""Large neighbourhoods searched exactly: the best new places for some ten tasks at once.

Everything else stays where it is. For the chosen tasks the least height of the load tree is found by dynamic
programming over their subsets, as in :mod:`mig_opt.loads.tables`, in less than a millisecond; of all best assignments
one is drawn. One GPU or two take part at a time, one of them always the highest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.loads.jit import loop
from mig_opt.loads.kernels import NEVER, Neighbours, Table, add_tasks, add_up, joint_height, split_heights

_DRAWS = 8
"""Of so many best assignments the cheapest is taken."""

_CHEAP = 1.002
"""What costs at most so many times as much is as good at the start: prices are not exact."""

Integers = npt.NDArray[np.int64]


class Costs(NamedTuple):
    """What takes how long, in ticks.

    Attributes
    ----------
    ticks : array of int32, shape (tasks, places)
        Each task in each place; NEVER where it cannot run.
    fixed : array of int64, shape (places,)
        A used place, besides its tasks.
    room : array of int64, shape (places,)
        An unused place, if something below it is used.
    price : array of float64, shape (tasks, places)
        Each task in each place, weighted by what it covers: what is left for others counts.
    rent : array of float64, shape (places,)
        The same for a used place, besides its tasks.
    """

    ticks: npt.NDArray[np.int32]
    fixed: Integers
    room: Integers
    price: npt.NDArray[np.float64]
    rent: npt.NDArray[np.float64]


class Shape(NamedTuple):
    """The load tree.

    Attributes
    ----------
    kind : array of int64, shape (nodes,)
        0 for a leaf, 1 for a stack, 2 for a split. The nodes of one GPU follow those of another, and each node those
        below it.
    place, one, two : array of int64, shape (nodes,)
        The place of a stack; what is below.
    first, last : array of int64, shape (gpus,)
        The first node of each GPU, and the last, its root.
    gpu : array of int64, shape (places,)
        The GPU of each place.
    wait_one, wait_two : array of int64, shape (nodes,)
        Ticks that one branch of a split loses if the other one comes first.
    """

    kind: Integers
    place: Integers
    one: Integers
    two: Integers
    first: Integers
    last: Integers
    gpu: Integers
    wait_one: Integers
    wait_two: Integers


class State(NamedTuple):
    """What runs where.

    Attributes
    ----------
    load, tasks : array of int64, shape (places,)
        Ticks and number of the tasks in each place.
    height, busy : array of int64, shape (nodes,)
        Of each branch: the longest way through it, and the number of tasks in it.
    """

    load: Integers
    tasks: Integers
    height: Integers
    busy: Integers


@loop
def _put(costs: Costs, state: State, task: int, place: int, sign: int) -> None:
    """Put a task into a place (``sign`` 1), or take it out (-1)."""
    state.load[place] += sign * costs.ticks[task, place]
    state.tasks[place] += sign


@loop
def _measure(costs: Costs, shape: Shape, state: State, gpu: int) -> None:
    """Find the height of each branch of a GPU, and how many tasks run in it."""
    height, busy = state.height, state.busy
    for node in range(shape.first[gpu], shape.last[gpu] + 1):
        one, two = shape.one[node], shape.two[node]
        if shape.kind[node] == 0:
            height[node] = busy[node] = 0
        elif shape.kind[node] == 1:
            place = shape.place[node]
            busy[node] = busy[one] + state.tasks[place]
            height[node] = height[one]
            if state.tasks[place]:
                height[node] += state.load[place] + costs.fixed[place]
            elif busy[one]:
                height[node] += costs.room[place]
        else:
            busy[node] = busy[one] + busy[two]
            waits = busy[one] > 0 and busy[two] > 0
            height[node] = joint_height(
                height[one], height[two], shape.wait_one[node] * waits, shape.wait_two[node] * waits
            )


@loop
def _fill_tables(costs: Costs, shape: Shape, state: State, gpu: int, free: Integers, limit: int, tables: Table) -> None:
    """Find the least heights of the branches of a GPU for every subset of the free tasks."""
    size = tables.shape[1]
    everything = np.arange(size).astype(np.int32)
    here = np.empty(free.shape[0], np.int32)
    for node in range(shape.first[gpu], shape.last[gpu] + 1):
        table, one = tables[node], shape.one[node]
        if shape.kind[node] == 0:
            table[:] = NEVER
            table[0] = 0
        elif shape.kind[node] == 2:
            two = shape.two[node]
            neighbours = Neighbours(
                False, state.busy[one] > 0, state.busy[two] > 0, shape.wait_one[node], shape.wait_two[node]
            )
            split_heights(tables[one], tables[two], everything, neighbours, limit, table)
        else:
            place = shape.place[node]
            for index in range(free.shape[0]):
                here[index] = costs.ticks[free[index], place]
            table[:] = tables[one]
            add_tasks(table, here, limit)
            taken = costs.fixed[place] + state.load[place]
            for subset in range(size):
                height = table[subset] + taken
                if not state.tasks[place]:
                    without = np.int64(tables[one, subset])
                    if subset or state.busy[one]:
                        without += costs.room[place]
                    height = min(height, without)
                table[subset] = height if height <= limit else NEVER


@loop
def _draw_split(one: Table, two: Table, neighbours: Neighbours, whole: int, limit: int) -> tuple[int, int, int]:
    """Draw which part of ``whole`` runs in the first of two neighbours; return it with the limits of both."""
    seen, drawn, most_one, most_two, part = 0, -1, limit, limit, whole
    while True:
        rest = whole ^ part
        if one[part] <= limit and two[rest] <= limit:
            both = (part or neighbours.busy_one) and (rest or neighbours.busy_two)
            wait_one, wait_two = (neighbours.wait_one, neighbours.wait_two) if both else (0, 0)
            for early, late in ((0, wait_two), (wait_one, 0)):
                if one[part] + early <= limit and two[rest] + late <= limit:
                    seen += 1
                    if np.random.randint(seen) == 0:
                        drawn, most_one, most_two = part, limit - early, limit - late
        if part == 0:
            return drawn, most_one, most_two
        part = (part - 1) & whole


@loop
def _draw_stack(below: Table, sums: Table, costs: tuple[int, int, int], whole: int, limit: int) -> tuple[int, int]:
    """Draw which part of ``whole`` runs in the place of a stack; return it with what it takes.

    ``costs`` are what the place takes if it is used, if it is not but something below is, and if neither is.
    """
    seen, drawn, taken, part = 0, -1, 0, whole
    while True:
        if sums[part] < NEVER and below[whole ^ part] < NEVER:
            own = costs[0] + sums[part] if part else (costs[1] if whole else costs[2])
            if own + below[whole ^ part] <= limit:
                seen += 1
                if np.random.randint(seen) == 0:
                    drawn, taken = part, own
        if part == 0:
            return drawn, taken
        part = (part - 1) & whole


@loop
def _draw(
    costs: Costs, shape: Shape, state: State, gpu: int, free: Integers, tasks: int, limit: int, tables: Table,
    choice: Integers,
) -> None:  # fmt: skip
    """Draw an assignment of ``tasks`` to places of a GPU that is no higher than ``limit``."""
    waiting = [(shape.last[gpu], tasks, limit)]
    here = np.empty(free.shape[0], np.int32)
    while waiting:
        node, whole, most = waiting.pop()
        one, two = shape.one[node], shape.two[node]
        if shape.kind[node] == 2:
            neighbours = Neighbours(
                False, state.busy[one] > 0, state.busy[two] > 0, shape.wait_one[node], shape.wait_two[node]
            )
            part, most_one, most_two = _draw_split(tables[one], tables[two], neighbours, whole, most)
            waiting.append((one, part, most_one))
            waiting.append((two, whole ^ part, most_two))
        elif shape.kind[node] == 1:
            place = shape.place[node]
            for index in range(free.shape[0]):
                here[index] = costs.ticks[free[index], place]
            used = costs.fixed[place] + state.load[place]
            unused, nothing = costs.room[place], (costs.room[place] if state.busy[one] else 0)
            if state.tasks[place]:
                unused = nothing = used
            part, taken = _draw_stack(tables[one], add_up(here), (used, unused, nothing), whole, most)
            for index in range(free.shape[0]):
                if part >> index & 1:
                    choice[index] = place
            waiting.append((one, whole ^ part, most - taken))


@loop
def _highest_way(shape: Shape, state: State, gpu: int, on_way: npt.NDArray[np.bool_]) -> None:
    """Mark the places on the highest way through a GPU."""
    on_way[:] = False
    node = shape.last[gpu]
    while shape.kind[node]:
        one, two = shape.one[node], shape.two[node]
        if shape.kind[node] == 1:
            on_way[shape.place[node]] = True
            node = one
        else:
            node = one if state.height[one] >= state.height[two] else two


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
    free = np.empty(number, np.int64)
    for index in range(number):
        source, at, count = (way, index, on) if index < wanted else (rest, index - wanted, off)
        pick = np.random.randint(at, count)
        source[at], source[pick] = source[pick], source[at]
        free[index] = source[at]
    return free


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
def _empty(costs: Costs, shape: Shape) -> State:
    """Return the state in which nothing runs."""
    places, nodes = costs.fixed.shape[0], shape.kind.shape[0]
    return State(
        np.zeros(places, np.int64), np.zeros(places, np.int64), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    )


@loop
def _choose(
    costs: Costs, shape: Shape, state: State, gpus: tuple[int, int], free: Integers, limits: tuple[int, int, int],
    tables: Table,
) -> Integers:  # fmt: skip
    """Return the best places for the free tasks on one GPU or two: among the lowest, the cheapest of some draws.

    ``limits`` are the height that is allowed for the tables, the height of the other GPUs, and the slack.
    """
    highest, other = gpus
    limit, others, slack = limits
    for at in range(1 if other == highest else 2):
        _measure(costs, shape, state, gpus[at])
        _fill_tables(costs, shape, state, gpus[at], free, limit, tables)
    everything = tables.shape[1] - 1
    best, cheapest = np.empty(free.shape[0], np.int64), np.inf
    for _ in range(_DRAWS):
        lowest, here = int(tables[shape.last[highest], everything]), everything
        if other != highest:
            lowest, here = _share(tables[shape.last[highest]], tables[shape.last[other]])
        lowest = max(lowest, others) + slack
        drawn = np.empty(free.shape[0], np.int64)
        _draw(costs, shape, state, highest, free, here, lowest, tables, drawn)
        if other != highest:
            _draw(costs, shape, state, other, free, everything ^ here, lowest, tables, drawn)
        price = _price(costs, state, free, drawn)
        if price < cheapest:
            best, cheapest = drawn, price
    return best


@loop
def improve(
    costs: Costs, shape: Shape, places: Integers, most: int, rounds: int, seed: int, target: int, slack: int
) -> int:
    """Improve an assignment for a number of rounds.

    Parameters
    ----------
    costs : Costs
        What takes how long.
    shape : Shape
        The load tree.
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
    state = _empty(costs, shape)
    for task in range(places.shape[0]):
        _put(costs, state, task, places[task], 1)
    tops = np.empty(gpus, np.int64)
    for gpu in range(gpus):
        _measure(costs, shape, state, gpu)
        tops[gpu] = state.height[shape.last[gpu]]
    on_way = np.zeros(costs.fixed.shape[0], np.bool_)
    tables = np.empty((shape.kind.shape[0], 1), np.int32)
    for _ in range(rounds):
        highest = int(np.argmax(tops))
        if tops[highest] <= target:
            break
        other = (highest + np.random.randint(1, gpus)) % gpus if gpus > 1 else highest
        tops[highest], top = 0, int(tops[highest])
        tops[other] = 0
        others = int(tops.max())
        _highest_way(shape, state, highest, on_way)
        free = _pick(shape, places, on_way, (highest, other), most)
        for task in free:
            _put(costs, state, task, places[task], -1)
        if tables.shape[1] != 1 << free.shape[0]:
            tables = np.empty((shape.kind.shape[0], 1 << free.shape[0]), np.int32)
        limits = (top + slack, others, slack)
        choice = _choose(costs, shape, state, (highest, other), free, limits, tables)
        for index in range(free.shape[0]):
            places[free[index]] = choice[index]
            _put(costs, state, free[index], choice[index], 1)
        for gpu in (highest, other):
            _measure(costs, shape, state, gpu)
            tops[gpu] = state.height[shape.last[gpu]]
    return int(tops.max())


@loop
def spread(costs: Costs, shape: Shape) -> Integers:
    """Assign all tasks, the longest first, each to one of its cheapest places: the one with the lowest loads.

    Parameters
    ----------
    costs : Costs
        What takes how long; no instance is live.
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
    state = _empty(costs, shape)
    places = np.empty(tasks, np.int64)
    for task in np.argsort(-cheapest):
        lowest, chosen = np.int64(NEVER), -1
        for place in range(number):
            if costs.ticks[task, place] < NEVER and costs.price[task, place] <= cheapest[task] * _CHEAP:
                _put(costs, state, task, place, 1)
                _measure(costs, shape, state, shape.gpu[place])
                height = state.height[shape.last[shape.gpu[place]]]
                _put(costs, state, task, place, -1)
                if height < lowest:
                    lowest, chosen = height, place
        places[task] = chosen
        _put(costs, state, task, chosen, 1)
    return places
