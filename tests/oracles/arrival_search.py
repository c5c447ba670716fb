"""Every left-shifted schedule of a tiny trace, to compare the exact model and the bounds with.

A schedule is a sequence of actions (create an instance, begin a job on one, destroy one), each at the earliest moment
that is not before that of the action before it. Every schedule can be shifted to the left until it is one of these, and
no end becomes later by that. Nothing is shared with the model but the trace.
"""

import math
from dataclasses import dataclass

from mig_opt import Placement, Trace


@dataclass(frozen=True)
class _State:
    now: float
    drivers: tuple[float, ...]
    live: tuple[tuple[int, Placement, float, bool], ...]  # GPU, where, free from, whether it has run something
    clear: tuple[tuple[int, Placement, float], ...]  # what was destroyed, until when it was there
    waiting: frozenset[int]
    value: float


def least(trace: Trace, goal: str) -> float:
    """Return the least makespan or sum of ends of a trace of two or three jobs."""
    best = math.inf
    start = _State(0.0, (0.0,) * trace.gpus, (), (), frozenset(range(len(trace.jobs))), 0.0)
    stack = [start]
    while stack:
        state = stack.pop()
        if not state.waiting:
            best = min(best, state.value)
            continue
        stack += [after for after in _after(trace, goal, state) if after.value < best and after.now < best]
    return best


def _after(trace: Trace, goal: str, state: _State) -> list[_State]:
    found = []
    profiles = {index: trace.profiles(trace.jobs[index]) for index in state.waiting}
    wanted = {profile for each in profiles.values() for profile in each}
    for at, (gpu, place, free, used) in enumerate(state.live):
        others = state.live[:at] + state.live[at + 1 :]
        for index in state.waiting:
            job = trace.jobs[index]
            if place.profile in profiles[index]:
                begin = max(state.now, free, job.arrival)
                end = begin + job.times[place.profile.compute_slices]
                value = max(state.value, end) if goal == "makespan" else state.value + end
                live = (*others, (gpu, place, end, True))
                found.append(_State(begin, state.drivers, live, state.clear, state.waiting - {index}, value))
        if used:
            begin = max(state.now, free, state.drivers[gpu])
            end = begin + trace.operations.of("destroy", place.profile)
            clear = (*state.clear, (gpu, place, end))
            found.append(_State(begin, _with(state.drivers, gpu, end), others, clear, state.waiting, state.value))
    for gpu in range(trace.gpus):
        for place in trace.gpu.placements("double-memory"):
            if place.profile not in wanted or any(g == gpu and place.conflicts(p) for g, p, _, _ in state.live):
                continue
            gone = [until for g, p, until in state.clear if g == gpu and place.conflicts(p)]
            begin = max(state.now, state.drivers[gpu], *gone)
            end = begin + trace.operations.of("create", place.profile)
            live = (*state.live, (gpu, place, end, False))
            if sum(not used for *_, used in live) <= len(state.waiting):
                drivers = _with(state.drivers, gpu, end)
                found.append(_State(begin, drivers, live, state.clear, state.waiting, state.value))
    return found


def _with(values: tuple[float, ...], index: int, value: float) -> tuple[float, ...]:
    return (*values[:index], value, *values[index + 1 :])
