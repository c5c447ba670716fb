"""List decoder for waiting jobs, and simulated annealing over the lists that it decodes.

A list is an order of the jobs with a *mode* (profile) for some of them. It is decoded job by job, by a serial
schedule-generation scheme (Kolisch, EJOR 90, 1996), here with modes: each job takes the placement where it costs least,
after the jobs before it, so that a later job never delays an earlier one. The cost of a placement is the end of the job
there, plus what its *area* (share of the fleet x seconds) takes from later jobs: on a busy fleet each of them waits
longer by the area. So early jobs of a long queue take modes that waste little, and the last ones those that end first.
The annealing (Kirkpatrick et al., Science 220, 1983) moves a job in the order, or fixes or frees its mode, and decodes
the list each time, in some ten microseconds. All of it is in C: ``mig_opt/native/list_decoder.c``, whose structures
have the fields of the named tuples here.

Operations are estimated as in :class:`mig_opt.heuristics.batch.list_scheduling.Placing`, but for the driver's queue
at the start. All seconds count from the moment of planning.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.native import NUMBER, loop

_update_begins = loop("update_begins")
_decode = loop("decode", NUMBER)
_anneal = loop("anneal", NUMBER)

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Placements(NamedTuple):
    """Placements of a GPU: first slice, number of slices, seconds to create and destroy, placements excluded by each.

    ``members[offsets[p] : offsets[p + 1]]`` are the placements of profile ``p``.
    """

    first: Integers
    width: Integers
    create: Floats
    destroy: Floats
    excludes: Integers
    offsets: Integers
    members: Integers


class Availability(NamedTuple):
    """Times at which slices, drivers and placements are free.

    By GPU and memory slice: ``holder`` is the placement of the instance there or -1, ``free`` the second at which it is
    free (or, without an instance, the slice); a PCIe-bound job runs from the slice on until ``bound_until``, and slows
    down by ``bound_factor`` for each such job on the GPU. By GPU: ``driver`` is the second at which the driver has done
    all operations. By GPU and placement: ``begin`` is the second at which another job can begin there, and ``creates``
    is True if an instance is created for it.
    """

    holder: Integers
    free: Floats
    bound_until: Floats
    bound_factor: Floats
    driver: Floats
    begin: Floats
    creates: npt.NDArray[np.bool_]


class JobArrays(NamedTuple):
    """Jobs: weights, PCIe factors, and modes.

    Beside others a PCIe-bound job of factor f takes f times as long for each of them, itself included, if that is
    longer than alone. The modes of job j begin at ``offsets[j]``: profile, seconds, and area (share of the whole fleet
    x seconds). ``least`` is the weight times the shortest seconds.
    """

    weight: Floats
    factor: Floats
    offsets: Integers
    profile: Integers
    seconds: Floats
    area: Floats
    least: Floats


class Objective(NamedTuple):
    """Coefficients of the value to minimise, see :func:`plan_value`."""

    balance: float
    later: float


class DecoderProblem(NamedTuple):
    """Planning problem for the decoder."""

    placements: Placements
    available: Availability
    jobs: JobArrays
    objective: Objective


class JobList(NamedTuple):
    """List to decode: jobs in order, the mode of each job or -1, and the weight of areas when places are compared."""

    order: Integers
    modes: Integers
    area_weight: float


class Workspace(NamedTuple):
    """Arrays that the decoder writes to: availability after all jobs, and the run of each by position in the order."""

    available: Availability
    gpu: Integers
    place: Integers
    begin: Floats
    end: Floats


def plan_value(objective: Objective, ends: float, areas: float, weight: float, last: float) -> float:
    """Return the value of a plan: a balance of mean completion time and last end, in seconds.

    ``ends`` is the sum of the ends, each times the weight of its job, ``areas`` that of the areas, and ``weight`` that
    of the weights. ``objective.later`` is the number of later jobs that areas delay.
    """
    return (1 - objective.balance) * (ends + objective.later * areas) / weight + objective.balance * last


def update_begins(placements: Placements, available: Availability) -> None:
    """Compute ``begin`` and ``creates`` of all GPUs from the other times."""
    _update_begins(placements, available)


def decode(problem: DecoderProblem, jobs: JobList, limit: float, workspace: Workspace) -> float:
    """Decode a list into runs in the workspace, and return the value of the plan.

    As soon as the value is sure to exceed the limit, decoding stops and it is infinite.
    """
    value: float = _decode(problem, jobs, float(limit), workspace)
    return value


def anneal(problem: DecoderProblem, current: JobList, rounds: int, seed: int, workspace: Workspace) -> float:
    """Improve a list in place by so many rounds of simulated annealing; return its value, as :func:`decode` does."""
    value: float = _anneal(problem, current, rounds, seed, workspace)
    if value < 0:
        raise MemoryError
    return value
