"""Orders of jobs turned into plans, and a local search for the best order and sizes.

An order is turned into a plan job by job: each one takes the place where it costs least, after what has been put
there before, so that a later job never delays an earlier one. What a place costs is the end of the job there, plus what
its *area* (share of a GPU x seconds) keeps from those that come later: on a fleet that is busy, each of them waits
longer by area / GPUs. So early jobs of a long queue take the sizes that waste little, and the last ones those that
end first. The search moves jobs in the order, ties them to a profile or sets them free again, and turns that into a
plan each time, in some ten microseconds.

Operations are estimated as in :class:`mig_opt.heuristics.batch.placing.Placing`, but for the driver's queue at the
start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.loads.jit import loop

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_SAME = 1e-9
"""Seconds that do not count."""

_MOVES, _NEAR = 0.65, 3
"""Share of the steps that change the order, half of them by so many places at most; the others change a tie."""

_HEAT = 0.003
"""By which share of the value a step may make it worse at the beginning, in the mean of an exponential distribution."""


class Shape(NamedTuple):
    """The placements of each GPU: first slice, slices, seconds to create and destroy, how many others each excludes.

    ``offsets`` and ``members`` list the placements of each profile.
    """

    first: Integers
    width: Integers
    create: Floats
    destroy: Floats
    excludes: Integers
    offsets: Integers
    members: Integers


class Ground(NamedTuple):
    """What there is at the start, by GPU and memory slice, in seconds from then.

    ``holder`` is the placement of the instance there or -1, ``until`` when that is free, or since when the slice is;
    PCIe-bound jobs run from the slice until ``bound_until`` and slow down by ``bound_slope`` for each of them there.
    ``driver`` is by GPU: when it has done what it was given. By GPU and placement, ``begin`` is when a job that is put
    there next begins, and ``creates`` whether an instance is created for it.
    """

    holder: Integers
    until: Floats
    driver: Floats
    bound_until: Floats
    bound_slope: Floats
    begin: Floats
    creates: npt.NDArray[np.bool_]


class Work(NamedTuple):
    """The jobs: their weights, how PCIe slows them down, and their options.

    Beside others a PCIe-bound job of slope s takes s times as long for each of them, itself included, if that is longer
    than alone. The options of job j are those from ``offsets[j]`` on: profile, seconds, and area (share of the whole
    fleet x seconds). ``least`` is the weight times the shortest seconds.
    """

    weight: Floats
    slope: Floats
    offsets: Integers
    profile: Integers
    seconds: Floats
    area: Floats
    least: Floats


class Aim(NamedTuple):
    """What is least: ``(1 - balance) * (ends + later * areas) / weight + balance * last end``.

    ``ends`` is the weighted sum of the ends, ``areas`` the sum of the areas, and ``weight`` that of the weights.
    """

    balance: float
    later: float


class Spot(NamedTuple):
    """A place for a job: GPU, placement, option, begin and end, and what it costs."""

    gpu: int
    place: int
    option: int
    begin: float
    end: float
    cost: float


class Put(NamedTuple):
    """Where each job of the order runs: GPU, placement, option, begin and end."""

    gpu: Integers
    place: Integers
    option: Integers
    begin: Floats
    end: Floats


@loop
def look(shape: Shape, ground: Ground, gpu: int) -> None:
    """Note when a job that is put on each placement of a GPU next begins, and whether an instance is created for it."""
    for place in range(shape.first.shape[0]):
        first = shape.first[place]
        if ground.holder[gpu, first] == place:
            ground.begin[gpu, place] = ground.until[gpu, first]
            ground.creates[gpu, place] = False
            continue
        clear = ground.driver[gpu] if ground.driver[gpu] > 0 else 0.0
        late = 0.0
        for at in range(first, first + shape.width[place]):
            there = ground.until[gpu, at]
            if ground.holder[gpu, at] >= 0:
                there += shape.destroy[ground.holder[gpu, at]]
            late = max(late, there)
        ground.begin[gpu, place] = max(clear, late) + shape.create[place]
        ground.creates[gpu, place] = True


@loop
def _hold(shape: Shape, ground: Ground, gpu: int, place: int, end: float) -> None:
    """Give an instance to a job; what is in the way is destroyed."""
    first, last = shape.first[place], shape.first[place] + shape.width[place]
    if ground.creates[gpu, place]:
        for at in range(first, last):
            holder = ground.holder[gpu, at]
            if holder >= 0:
                clear = ground.until[gpu, at] + shape.destroy[holder]
                for other in range(shape.first[holder], shape.first[holder] + shape.width[holder]):
                    ground.holder[gpu, other] = -1
                    ground.until[gpu, other] = clear
        # Later on the driver is mostly free; at the start many creations queue.
        begin = ground.begin[gpu, place]
        if begin - shape.create[place] <= ground.driver[gpu] + _SAME:
            ground.driver[gpu] = begin
    for at in range(first, last):
        ground.holder[gpu, at] = place
        ground.until[gpu, at] = end
    look(shape, ground, gpu)


@loop
def _slowed(ground: Ground, slope: float, gpu: int, begin: float) -> tuple[float, float]:
    """Return by how much PCIe slows down a job, and how many seconds it costs those that run there already."""
    count = 1
    for at in range(ground.bound_until.shape[1]):
        if ground.bound_until[gpu, at] > begin:
            count += 1
    harm = 0.0
    for at in range(ground.bound_until.shape[1]):
        left = ground.bound_until[gpu, at] - begin
        if left > 0:
            before = max(1.0, ground.bound_slope[gpu, at] * (count - 1))
            harm += left * (max(1.0, ground.bound_slope[gpu, at] * count) / before - 1.0)
    return max(1.0, slope * count), harm


@loop
def _load(ground: Ground, gpu: int, begin: float) -> float:
    """Return the slice-seconds that a GPU is held after some second."""
    load = 0.0
    for slot in range(ground.until.shape[1]):
        load += max(0.0, ground.until[gpu, slot] - begin)
    return load


@loop
def _nicer(shape: Shape, ground: Ground, one: Spot, two: Spot) -> bool:
    """Whether of two places that cost the same the first one is the better one.

    It is the one where least is free beside it, then one that exists, then the one that excludes the fewest others.
    """
    load, other = _load(ground, one.gpu, one.begin), _load(ground, two.gpu, two.begin)
    if abs(load - other) > _SAME:
        return load > other
    creates, existing = ground.creates[one.gpu, one.place], ground.creates[two.gpu, two.place]
    if creates != existing:
        return bool(existing)
    return bool(shape.excludes[one.place] < shape.excludes[two.place])


@loop
def _best_spot(shape: Shape, ground: Ground, work: Work, job: int, options: tuple[int, int], rate: float) -> Spot:
    """Return where a job costs least, on options from the first to before the second one."""
    best = Spot(-1, -1, -1, 0.0, 0.0, np.inf)
    slope = work.slope[job]
    for option in range(options[0], options[1]):
        profile, seconds = work.profile[option], work.seconds[option]
        fixed = seconds + rate * work.area[option]
        for index in range(shape.offsets[profile], shape.offsets[profile + 1]):
            place = shape.members[index]
            for gpu in range(ground.begin.shape[0]):
                begin = ground.begin[gpu, place]
                cost = begin + fixed
                if cost > best.cost + _SAME:
                    continue
                end = begin + seconds
                if slope > 0:
                    slowdown, harm = _slowed(ground, slope, gpu, begin)
                    end = begin + seconds * slowdown
                    cost += end - begin - seconds + harm
                spot = Spot(gpu, place, option, begin, end, cost)
                if cost < best.cost - _SAME or (cost <= best.cost + _SAME and _nicer(shape, ground, spot, best)):
                    best = spot
    return best


@loop
def sequence(
    shape: Shape, start: Ground, work: Work, aim: Aim, order: Integers, tied: Integers, price: float, most: float,
    ground: Ground, put: Put,
) -> float:  # fmt: skip
    """Put the jobs in an order, and return the value of the plan; infinite as soon as it is sure to pass ``most``.

    Parameters
    ----------
    shape, start, work, aim
        The problem.
    order : array
        The jobs.
    tied : array
        For each job the number of the option it is tied to, or -1.
    price : float
        How much the seconds that later jobs lose by an area count when places are compared.
    most : float
        What is worth to know.
    ground : Ground
        Scratch.
    put : Put
        Takes the plan, by position in the order.
    """
    ground.holder[:] = start.holder
    ground.until[:] = start.until
    ground.driver[:] = start.driver
    ground.bound_until[:] = start.bound_until
    ground.bound_slope[:] = start.bound_slope
    ground.begin[:] = start.begin
    ground.creates[:] = start.creates
    total, rest = 0.0, 0.0
    for job in order:
        total += work.weight[job]
        rest += work.least[job]
    left, ends, areas, last = total, 0.0, 0.0, 0.0
    for at, job in enumerate(order):
        left -= work.weight[job]
        rest -= work.least[job]
        options = work.offsets[job], work.offsets[job + 1]
        if tied[job] >= 0:
            options = options[0] + tied[job], options[0] + tied[job] + 1
        spot = _best_spot(shape, ground, work, job, options, price * (left + aim.later) / work.weight[job])
        put.gpu[at], put.place[at], put.option[at] = spot.gpu, spot.place, spot.option
        put.begin[at], put.end[at] = spot.begin, spot.end
        _hold(shape, ground, spot.gpu, spot.place, spot.end)
        if work.slope[job] > 0:
            ground.bound_until[spot.gpu, shape.first[spot.place]] = spot.end
            ground.bound_slope[spot.gpu, shape.first[spot.place]] = work.slope[job]
        ends += work.weight[job] * spot.end
        areas += work.area[spot.option]
        last = max(last, spot.end)
        if (1 - aim.balance) * (ends + rest + aim.later * areas) / total + aim.balance * last > most:
            return np.inf
    return (1 - aim.balance) * (ends + aim.later * areas) / total + aim.balance * last


@loop
def improve(
    shape: Shape, start: Ground, work: Work, aim: Aim, order: Integers, tied: Integers, price: float, rounds: int,
    seed: int, ground: Ground, put: Put,
) -> float:  # fmt: skip
    """Search for a better order and better ties for some rounds; both are changed in place. Return the value."""
    np.random.seed(seed)
    count = order.shape[0]
    value = sequence(shape, start, work, aim, order, tied, price, np.inf, ground, put)
    choices = 0
    for job in order:
        choices = max(choices, work.offsets[job + 1] - work.offsets[job])
    if count < 2 and choices < 2:
        return value
    best, best_order, best_tied = value, order.copy(), tied.copy()
    trial, loose = order.copy(), tied.copy()
    for at_round in range(rounds):
        trial[:] = order
        loose[:] = tied
        if count > 1 and (choices < 2 or np.random.random() < _MOVES):
            one = np.random.randint(count)
            if np.random.random() < 0.5:
                two = np.random.randint(count)
            else:
                two = min(count - 1, max(0, one + np.random.randint(-_NEAR, _NEAR + 1)))
            moved = trial[one]
            if np.random.random() < 0.6:
                step = 1 if one < two else -1
                for at in range(one, two, step):
                    trial[at] = trial[at + step]
            else:
                trial[one] = trial[two]
            trial[two] = moved
        else:
            job = order[np.random.randint(count)]
            loose[job] = np.random.randint(-1, work.offsets[job + 1] - work.offsets[job])
        worse = _HEAT * best * (1 - at_round / rounds) * -np.log(1.0 - np.random.random())
        found = sequence(shape, start, work, aim, trial, loose, price, value + worse, ground, put)
        if found <= value + worse:
            value = found
            order[:] = trial
            tied[:] = loose
            if value < best:
                best = value
                best_order[:] = order
                best_tied[:] = tied
    order[:] = best_order
    tied[:] = best_tied
    return sequence(shape, start, work, aim, order, tied, price, np.inf, ground, put)
