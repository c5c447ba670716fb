"""Large neighbourhoods searched exactly: the best new places for some ten tasks at once.

This is the destroy-and-repair step of a large-neighbourhood search (Shaw, 1998; Pisinger and Ropke, 2010). Some tasks
are *free* to move, all others stay where they are. For every subset of the free tasks the shortest longest path through
each branch is found by dynamic programming, as in :mod:`mig_opt.batch.loads.tables`, in about a millisecond; of all
best assignments one is drawn. One GPU or two take part at a time, mostly the one with the longest path among them. The
*length* of a GPU is that of the longest path through it.
"""

from __future__ import annotations

from mig_opt.batch.loads.state import Costs, FlatTree, LeastLoads
from mig_opt.batch.loads.subsets import Integers
from mig_opt.native import loop

_improve = loop("improve")


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
    length: int = _improve(costs, tree, least, places, most, rounds, seed, target, slack)
    if length < 0:
        raise MemoryError
    return length
