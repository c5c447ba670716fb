"""List decoder for waiting jobs, and simulated annealing over the lists that it decodes.

A list is an order of the jobs with a *mode* (profile) for some of them. It is decoded job by job, as by a serial
schedule-generation scheme for jobs with several modes (Kolisch, EJOR 90, 1996): each job takes the placement where it
costs least, after the jobs before it, so that a later job never delays an earlier one. The cost of a placement is the
end of the job there, plus what its *area* (share of the fleet x seconds) takes from later jobs: on a busy fleet each of
them waits longer by the area. So early jobs of a long queue take modes that waste little, and the last ones those that
end first. The annealing (Kirkpatrick et al., Science 220, 1983) moves a job in the order, or fixes or frees its mode,
and decodes the list each time, in some ten microseconds.

Operations are estimated as in :class:`mig_opt.heuristics.batch.placing.Placing`, but for the driver's queue at the
start. All seconds count from the moment of planning.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.loads import loop

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_EPSILON = 1e-9
"""Seconds that do not count."""

_ORDER_MOVES = 0.65
"""Share of the moves that change the order; the others change a mode."""

_NEAR = 3
"""Positions by which half of the moves in the order are limited."""

_TEMPERATURE = 0.003
"""Temperature at the start, as a share of the best value; it falls linearly to 0."""


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


class _Candidate(NamedTuple):
    """Run that a job may have, with its cost."""

    gpu: int
    place: int
    mode: int
    begin: float
    end: float
    cost: float


@loop
def plan_value(objective: Objective, ends: float, areas: float, weight: float, last: float) -> float:
    """Return the value of a plan: a balance of mean completion time and last end, in seconds.

    ``ends`` is the sum of the ends, each times the weight of its job, ``areas`` that of the areas, and ``weight`` that
    of the weights. ``objective.later`` is the number of later jobs that areas delay.
    """
    return (1 - objective.balance) * (ends + objective.later * areas) / weight + objective.balance * last


@loop
def update_begins(placements: Placements, available: Availability, gpu: int) -> None:
    """Compute ``begin`` and ``creates`` of a GPU from the other times."""
    for place in range(placements.first.shape[0]):
        first = placements.first[place]
        if available.holder[gpu, first] == place:
            available.begin[gpu, place] = available.free[gpu, first]
            available.creates[gpu, place] = False
            continue
        clear = max(0.0, available.driver[gpu])
        for at in range(first, first + placements.width[place]):
            free = available.free[gpu, at]
            if available.holder[gpu, at] >= 0:
                free += placements.destroy[available.holder[gpu, at]]
            clear = max(clear, free)
        available.begin[gpu, place] = clear + placements.create[place]
        available.creates[gpu, place] = True


@loop
def _assign(placements: Placements, available: Availability, gpu: int, place: int, end: float) -> None:
    """Give an instance to a job until its end; instances in the way are destroyed."""
    first, last = placements.first[place], placements.first[place] + placements.width[place]
    if available.creates[gpu, place]:
        for at in range(first, last):
            holder = available.holder[gpu, at]
            if holder >= 0:
                clear = available.free[gpu, at] + placements.destroy[holder]
                for other in range(placements.first[holder], placements.first[holder] + placements.width[holder]):
                    available.holder[gpu, other] = -1
                    available.free[gpu, other] = clear
        # Later on the driver is mostly free; at the start many creations queue.
        begin = available.begin[gpu, place]
        if begin - placements.create[place] <= available.driver[gpu] + _EPSILON:
            available.driver[gpu] = begin
    for at in range(first, last):
        available.holder[gpu, at] = place
        available.free[gpu, at] = end
    update_begins(placements, available, gpu)


@loop
def _contention(available: Availability, factor: float, gpu: int, begin: float) -> tuple[float, float]:
    """Return the slowdown of a PCIe-bound job on a GPU, and the seconds that it costs the PCIe-bound jobs there."""
    count = 1
    for at in range(available.bound_until.shape[1]):
        if available.bound_until[gpu, at] > begin:
            count += 1
    delay = 0.0
    for at in range(available.bound_until.shape[1]):
        left = available.bound_until[gpu, at] - begin
        if left > 0:
            before = max(1.0, available.bound_factor[gpu, at] * (count - 1))
            delay += left * (max(1.0, available.bound_factor[gpu, at] * count) / before - 1.0)
    return max(1.0, factor * count), delay


@loop
def _load_after(available: Availability, gpu: int, begin: float) -> float:
    """Return the slice-seconds for which a GPU is used after some second."""
    load = 0.0
    for at in range(available.free.shape[1]):
        load += max(0.0, available.free[gpu, at] - begin)
    return load


@loop
def _wins_tie(placements: Placements, available: Availability, one: _Candidate, two: _Candidate) -> bool:
    """Return True if of two candidates of equal cost the first one is better.

    That is the one with least free beside it, then one that exists, then the one that excludes the fewest placements.
    """
    load, other = _load_after(available, one.gpu, one.begin), _load_after(available, two.gpu, two.begin)
    if abs(load - other) > _EPSILON:
        return load > other
    creates, existing = available.creates[one.gpu, one.place], available.creates[two.gpu, two.place]
    if creates != existing:
        return bool(existing)
    return bool(placements.excludes[one.place] < placements.excludes[two.place])


@loop
def _cheapest(problem: DecoderProblem, available: Availability, job: int, mode: int, area_cost: float) -> _Candidate:
    """Return where a job costs least, in one mode or (-1) in any."""
    placements, jobs = problem.placements, problem.jobs
    best = _Candidate(-1, -1, -1, 0.0, 0.0, np.inf)
    factor = jobs.factor[job]
    first, stop = jobs.offsets[job], jobs.offsets[job + 1]
    if mode >= 0:
        first, stop = first + mode, first + mode + 1
    for at in range(first, stop):
        profile, seconds = jobs.profile[at], jobs.seconds[at]
        fixed = seconds + area_cost * jobs.area[at]
        for index in range(placements.offsets[profile], placements.offsets[profile + 1]):
            place = placements.members[index]
            for gpu in range(available.begin.shape[0]):
                begin = available.begin[gpu, place]
                cost = begin + fixed
                if cost > best.cost + _EPSILON:
                    continue
                end = begin + seconds
                if factor > 0:
                    slowdown, delay = _contention(available, factor, gpu, begin)
                    end = begin + seconds * slowdown
                    cost += end - begin - seconds + delay
                found = _Candidate(gpu, place, at, begin, end, cost)
                tie = cost <= best.cost + _EPSILON
                if cost < best.cost - _EPSILON or (tie and _wins_tie(placements, available, found, best)):
                    best = found
    return best


@loop
def decode(problem: DecoderProblem, jobs: JobList, limit: float, workspace: Workspace) -> float:
    """Decode a list into runs in the workspace, and return the value of the plan.

    As soon as the value is sure to exceed the limit, decoding stops and it is infinite.
    """
    available, start = workspace.available, problem.available
    available.holder[:] = start.holder
    available.free[:] = start.free
    available.bound_until[:] = start.bound_until
    available.bound_factor[:] = start.bound_factor
    available.driver[:] = start.driver
    available.begin[:] = start.begin
    available.creates[:] = start.creates
    arrays, later = problem.jobs, problem.objective.later
    weight, least = 0.0, 0.0
    for job in jobs.order:
        weight += arrays.weight[job]
        least += arrays.least[job]
    left, ends, areas, last = weight, 0.0, 0.0, 0.0
    for at, job in enumerate(jobs.order):
        left -= arrays.weight[job]
        least -= arrays.least[job]
        area_cost = jobs.area_weight * (left + later) / arrays.weight[job]
        best = _cheapest(problem, available, job, jobs.modes[job], area_cost)
        workspace.gpu[at], workspace.place[at] = best.gpu, best.place
        workspace.begin[at], workspace.end[at] = best.begin, best.end
        _assign(problem.placements, available, best.gpu, best.place, best.end)
        if arrays.factor[job] > 0:
            available.bound_until[best.gpu, problem.placements.first[best.place]] = best.end
            available.bound_factor[best.gpu, problem.placements.first[best.place]] = arrays.factor[job]
        ends += arrays.weight[job] * best.end
        areas += arrays.area[best.mode]
        last = max(last, best.end)
        if plan_value(problem.objective, ends + least, areas, weight, last) > limit:
            return np.inf
    return plan_value(problem.objective, ends, areas, weight, last)


@loop
def _move_job(order: Integers) -> None:
    """Move a random job to another position, or swap it with the job there."""
    source = np.random.randint(order.shape[0])
    if np.random.random() < 0.5:
        target = np.random.randint(order.shape[0])
    else:
        target = min(order.shape[0] - 1, max(0, source + np.random.randint(-_NEAR, _NEAR + 1)))
    moved = order[source]
    if np.random.random() < 0.6:
        step = 1 if source < target else -1
        for at in range(source, target, step):
            order[at] = order[at + step]
    else:
        order[source] = order[target]
    order[target] = moved


@loop
def anneal(problem: DecoderProblem, current: JobList, rounds: int, seed: int, workspace: Workspace) -> float:
    """Improve a list in place by so many rounds of simulated annealing; return its value, as :func:`decode` does."""
    np.random.seed(seed)
    value = decode(problem, current, np.inf, workspace)
    count, offsets = current.order.shape[0], problem.jobs.offsets
    most_modes = 0
    for job in current.order:
        most_modes = max(most_modes, offsets[job + 1] - offsets[job])
    if count < 2 and most_modes < 2:
        return value
    best_value, best_order, best_modes = value, current.order.copy(), current.modes.copy()
    trial = JobList(current.order.copy(), current.modes.copy(), current.area_weight)
    for at_round in range(rounds):
        trial.order[:] = current.order
        trial.modes[:] = current.modes
        if count > 1 and (most_modes < 2 or np.random.random() < _ORDER_MOVES):
            _move_job(trial.order)
        else:
            job = current.order[np.random.randint(count)]
            trial.modes[job] = np.random.randint(-1, offsets[job + 1] - offsets[job])
        # Metropolis rule: the rise that is accepted has an exponential distribution with the temperature as its mean.
        rise = _TEMPERATURE * best_value * (1 - at_round / rounds) * -np.log(1.0 - np.random.random())
        found = decode(problem, trial, value + rise, workspace)
        if found <= value + rise:
            value = found
            current.order[:] = trial.order
            current.modes[:] = trial.modes
            if value < best_value:
                best_value = value
                best_order[:] = current.order
                best_modes[:] = current.modes
    current.order[:] = best_order
    current.modes[:] = best_modes
    return decode(problem, current, np.inf, workspace)
