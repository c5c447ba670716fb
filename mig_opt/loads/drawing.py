"""Draw one of all assignments of a few tasks that the height tables allow."""

from __future__ import annotations

import numpy as np

from mig_opt.loads.jit import loop
from mig_opt.loads.kernels import NEVER, Neighbours, Table, add_up
from mig_opt.loads.state import Costs, Integers, Shape, State


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
def _draw_stack(
    unused: Table, used: Table, here: Table, costs: tuple[int, int, int], whole: int, limit: int
) -> tuple[int, int]:
    """Draw which part of ``whole`` runs in the place of a stack; return it with what it takes.

    The tables are those below it, if it is not used and if it is. ``here`` are the ticks of each task there; ``costs``
    are what the place takes if it is used, if it is not but something below is, and if neither is.
    """
    members = np.empty(here.shape[0], np.int32)
    count = 0
    for index in range(here.shape[0]):
        if whole >> index & 1:
            members[count] = here[index]
            count += 1
    # The parts of a whole come in the order of the subsets of its members.
    sums = add_up(members[:count])
    seen, drawn, taken, part = 0, -1, 0, whole
    for subset in range(sums.shape[0] - 1, -1, -1):
        below = used[whole ^ part] if part else unused[whole]
        if sums[subset] < NEVER and below < NEVER:
            own = costs[0] + sums[subset] if part else (costs[1] if whole else costs[2])
            if own + below <= limit:
                seen += 1
                if np.random.randint(seen) == 0:
                    drawn, taken = part, own
        part = (part - 1) & whole
    return drawn, taken


@loop
def draw(
    costs: Costs, shape: Shape, state: State, gpu: int, free: Integers, tasks: int, limit: int, tables: Table,
    choice: Integers,
) -> None:  # fmt: skip
    """Draw an assignment of ``tasks`` to places of a GPU that is no higher than ``limit``.

    Parameters
    ----------
    costs, shape, state
        Of the search; nothing of ``free`` runs anywhere in the state.
    gpu : int
        Where they run.
    free : array of int64, shape (k,)
        The tasks for which there are tables.
    tasks : int
        Which of them to assign, a bit for each.
    limit : int
        Ticks, at least what the table of the root says.
    tables : array of int32, shape (nodes, 2**k)
        Least heights of each branch.
    choice : array of int64, shape (k,)
        Filled in place with the places of those tasks.
    """
    waiting = [(shape.last[gpu], tasks, limit)]
    here = np.empty(free.shape[0], np.int32)
    while waiting:
        node, whole, most = waiting.pop()
        one, two = shape.one[node], shape.two[node]
        if shape.kind[node] == 2:
            around = shape.around[node]
            neighbours = Neighbours(
                False,
                around or state.busy[one] > 0,
                around or state.busy[two] > 0,
                shape.wait_one[node],
                shape.wait_two[node],
            )
            part, most_one, most_two = _draw_split(tables[one], tables[two], neighbours, whole, most)
            waiting.append((one, part, most_one))
            waiting.append((two, whole ^ part, most_two))
        elif shape.kind[node] == 1:
            place = shape.place[node]
            for index in range(free.shape[0]):
                here[index] = costs.ticks[free[index], place]
            used = costs.fixed[place] + state.load[place]
            unused, inside = costs.room[place], shape.inside[node]
            idle = unused if state.busy[one] or shape.around[node] else 0
            if state.tasks[place]:
                unused = idle = used
                one = inside
            part, taken = _draw_stack(tables[one], tables[inside], here, (used, unused, idle), whole, most)
            for index in range(free.shape[0]):
                if part >> index & 1:
                    choice[index] = place
            waiting.append((inside if part else one, whole ^ part, most - taken))
