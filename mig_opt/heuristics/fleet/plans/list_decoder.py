"""List decoder for waiting jobs, and simulated annealing over the lists that it decodes.

A list is an order of the jobs with a *mode* (profile) for some of them. It is decoded job by job, by a serial
schedule-generation scheme (Kolisch, EJOR 90, 1996), here with modes: each job takes the placement where it costs least,
after the jobs before it, so that a later job never delays an earlier one. The cost of a placement is the end of the job
there, plus what its *area* (share of the fleet x seconds) takes from later jobs (on a busy fleet each of them waits
longer by the area), plus what the objective says of ends after its horizon. So early jobs of a long queue take modes
that waste little, and the last ones those that end first.
The annealing (Kirkpatrick et al., Science 220, 1983) moves a job in the order, or fixes or frees its mode, and decodes
the list from there on, in some microseconds. All of it is in C: ``mig_opt/native/list_decoder.c``; the structures in
``mig_opt/native/loops.h`` have the fields of the named tuples here.

Operations are estimated as in :class:`mig_opt.heuristics.batch.list_schedule.ScheduleBuilder`, but for the queue of
the driver at the start. All seconds count from the moment of planning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.native import loop

_decode_each = loop("decode_each")
_anneal = loop("anneal")

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
    """Times at which slices and drivers are free.

    By GPU and memory slice: ``holder`` is the placement of the instance there or -1, ``free`` the second at which it is
    free (or, without an instance, the slice); a PCIe-bound job runs from the slice on until ``bound_until``, and slows
    down by ``bound_factor`` for each such job on the GPU. By GPU: ``driver`` is the second at which the driver has done
    all operations.
    """

    holder: Integers
    free: Floats
    bound_until: Floats
    bound_factor: Floats
    driver: Floats


class JobArrays(NamedTuple):
    """Jobs: weights, PCIe factors, limits of their ends, and modes.

    Beside others a PCIe-bound job of factor f takes f times as long for each of them, itself included, if that is
    longer than alone. It is late from ``due`` on; no plan is allowed in which it ends after ``latest``, and where that
    is finite, it takes the place where it ends first. The modes of job j begin at ``offsets[j]``: profile, seconds, and
    area (share of the whole fleet x seconds).
    """

    weight: Floats
    factor: Floats
    due: Floats
    latest: Floats
    offsets: Integers
    profile: Integers
    seconds: Floats
    area: Floats


class Objective(NamedTuple):
    """Coefficients of the value to minimise, see :func:`plan_value`."""

    balance: float
    later: float
    horizon: float = math.inf
    excess: float = 0.0
    tardiness: float = 0.0


class DecoderProblem(NamedTuple):
    """Planning problem for the decoder."""

    placements: Placements
    available: Availability
    jobs: JobArrays
    objective: Objective


class AnnealingLimits(NamedTuple):
    """Rounds of an annealing, its seconds (infinite: all rounds, however long they take), and its seed."""

    rounds: int
    seconds: float
    seed: int


class JobList(NamedTuple):
    """List to decode: jobs in order, the mode of each job or -1, and the weight of areas when places are compared."""

    order: Integers
    modes: Integers
    area_weight: float


class Workspace(NamedTuple):
    """Arrays that the decoder writes to: the run of each job, by position in the order."""

    gpu: Integers
    place: Integers
    begin: Floats
    end: Floats


class PlanSums(NamedTuple):
    """Sums over the jobs of a plan: ends, areas and seconds by which jobs are late, and the last end.

    Ends and late seconds are multiplied by the weight of their job, ``weight`` is the sum of the weights.
    """

    weight: float
    ends: float
    areas: float
    late: float
    last: float


def plan_value(objective: Objective, sums: PlanSums) -> float:
    """Return the value of a plan: a balance of mean completion time and last end, in seconds, with penalties.

    ``objective.later`` is the number of later jobs that areas delay. Each second of the last end after
    ``objective.horizon`` costs ``objective.excess``. The mean tardiness counts ``objective.tardiness``.
    """
    mean = (sums.ends + objective.later * sums.areas) / sums.weight
    excess = objective.excess * max(0.0, sums.last - objective.horizon)
    late = objective.tardiness * sums.late / sums.weight
    return (1 - objective.balance) * mean + objective.balance * sums.last + excess + late


def decode_each(problem: DecoderProblem, lists: Sequence[JobList], workspace: Workspace) -> list[PlanSums]:
    """Return the sums of the plan of each list; the workspace has the runs of the last one.

    As soon as a job ends too late, decoding stops, and the last end is infinite.
    """
    orders, modes = (np.array(rows) for rows in zip(*((own.order, own.modes) for own in lists), strict=True))
    sums = np.empty((len(lists), len(PlanSums._fields)))
    if not _decode_each(problem, orders, modes, np.array([own.area_weight for own in lists]), sums, workspace):
        raise MemoryError
    return list(map(PlanSums._make, sums.tolist()))


def anneal(problem: DecoderProblem, current: JobList, limits: AnnealingLimits, workspace: Workspace) -> float:
    """Improve a list in place by simulated annealing; return its value, and its runs in the workspace."""
    value: float = _anneal(problem, current, limits, workspace)
    if value < 0:
        raise MemoryError
    return value
