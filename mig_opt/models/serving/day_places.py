"""Places of segments over a day: a model for CP-SAT that knows every GPU and start slice.

It is for some steps that follow each other, between the deployments of the steps before and after them. Each service
may be in each placement of each GPU in each step; a segment that was not in the same place in the step before costs its
price, and a GPU with a segment its cost for the hours. Interruptions are not part of it, so what it proves is a lower
bound. For the whole of a short day this is the exact model; of longer days it improves some steps at a time.

Where changes interrupt segments, the model looks for some *without interruption*. A change leaves a service undisturbed
if none of its segments ends, or if those that stay are enough for its rate: such services end their segments first. It
does so for another one, too, if those that begin in slices that are free by then are enough together with those that
stay: then it never lacks throughput. Other changes may do without interruptions too, so nothing is proven then.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ortools.sat.python import cp_model

from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import GpuPlacement, Placement
from mig_opt.method.control import Limits
from mig_opt.models.serving.day_counts import DayProblem
from mig_opt.models.solvers import cpsat
from mig_opt.models.solvers.backend import Request
from mig_opt.serving.demand import ENOUGH, NEEDED, Option, Service
from mig_opt.serving.deployment import Deployment, Segment, segment_of

_SHARES = 2**40
"""Parts of a rate: shares that are rounded up to them stay within the tolerance of the validator."""
_ENOUGH = math.floor(NEEDED * _SHARES)
_LARGEST = 2**28
"""Units of cost, about: beyond this the solver has to do with rounded ones."""

_Key = tuple[int, Placement, str]
"""GPU, placement and service."""
_Segments = Mapping[_Key, cp_model.IntVar]
"""Segments that there may be in a step, each with a literal for whether it is there."""


@dataclass(frozen=True, slots=True)
class Span:
    """Steps that follow each other, and what is fixed about them."""

    steps: range
    gpus: tuple[str, ...]  # kind of each GPU of the fleet
    usable: tuple[int, ...]  # indices of those that may be used
    # deployments of the steps before and after, where these are fixed
    before: Deployment | None = None
    after: Deployment | None = None


@dataclass(frozen=True, slots=True)
class PlaceOutcome:
    """Deployments for the steps of a span, and a lower bound on their cost."""

    deployments: tuple[Deployment, ...] | None  # None if none were found in time
    bound: Fraction | None  # with the changes at both ends of the span; None without a proof
    disturbed: int = 0  # services that changes may interrupt, one change after the other, if that was asked for


def best_places(
    problem: DayProblem,
    span: Span,
    control: Limits,
    *,
    known: Sequence[Deployment] = (),
    at_least: Fraction = Fraction(0),
    share: float = 1.0,
    proves: bool = False,
    undisturbed: bool = False,
    workers: int | None = None,
) -> PlaceOutcome:
    """Look for the places of least cost in the steps of a span.

    The solver may take a ``share`` of the time that is left, and starts from the ``known`` deployments of these steps,
    if there are some. No cost is below ``at_least``. Where ``proves`` is false better deployments are wanted
    soon, and no bound; ``workers`` are the threads then, by default those of the run: a step after a known one takes
    least with one. With ``undisturbed``, a change costs the price of an interruption for each service that it disturbs.
    """
    model = _PlaceModel(problem, span, known, undisturbed=undisturbed)
    if at_least and model.exact:
        model.model.add(model.cost >= math.ceil(at_least / model.unit))
    if not proves:
        values = cpsat.run(model.model, control, Request(share=share), workers=workers, presolve=True).values
        if values is None:
            return PlaceOutcome(None, None)
        return PlaceOutcome(model.deployments(values), None, model.disturbed_in(values))
    outcome = cpsat.run(model.model, control, Request(share=share, for_proof=True))
    found = None if outcome.values is None else model.deployments(outcome.values)
    return PlaceOutcome(found, outcome.bound * model.unit if model.exact else None)


class _PlaceModel:
    def __init__(
        self, problem: DayProblem, span: Span, known: Sequence[Deployment], *, undisturbed: bool = False
    ) -> None:
        self._problem, self._span = problem, span
        self.model = cp_model.CpModel()
        self._costs = {pool.kind.name: cost for pool, cost in zip(problem.pools, problem.costs.each, strict=True)}
        usable = sum((self._costs[span.gpus[gpu]] for gpu in span.usable), Fraction(0)) or problem.costs.unit
        prices = problem.creation_price + Fraction(problem.day.interruption_price) * undisturbed
        total = sum((problem.day.hours[step] for step in span.steps), Fraction(0)) * usable + prices
        self.exact = total / problem.unit <= _LARGEST
        self.unit: Fraction = problem.unit if self.exact else total / _LARGEST
        self._options: dict[_Key, Option] = {}
        self._throughputs: dict[_Key, float] = {}
        self._serving: list[dict[_Key, cp_model.IntVar]] = []
        self._used: list[dict[int, cp_model.IntVar]] = []
        self._objective: list[cp_model.LinearExprT] = []
        self._disturbed: list[cp_model.IntVar] = []
        self._tried: dict[int, bool] = {}
        places = self._places()
        for step in span.steps:
            self._fill(step, places)
            self._serve(step)
        for serving, used, deployment in zip(self._serving, self._used, known, strict=bool(known)):
            there, gpus = set(self._keys(deployment)), {segment.gpu for segment in deployment.segments}
            for key, variable in serving.items():
                self.try_first(variable, key in there)
            for gpu, variable in used.items():
                self.try_first(variable, gpu in gpus)
        if problem.creation_price:
            self._count_changes()
        if undisturbed:
            self._disturbances()
        self.cost = cp_model.LinearExpr.sum(self._objective)
        self.model.minimize(self.cost)

    def _units(self, cost: Fraction) -> int:
        return round(cost / self.unit)

    def _places(self) -> dict[str, list[tuple[GpuPlacement, Option]]]:
        """Return where each service may be, and in which way it is served there."""
        found: dict[str, list[tuple[GpuPlacement, Option]]] = defaultdict(list)
        for service, ways in self._problem.ways.items():
            for _, option in ways:
                name = self._problem.pools[option.pool].kind.name
                for gpu in self._span.usable:
                    if self._span.gpus[gpu] == name:
                        for start in option.profile.starts:
                            found[service].append(((gpu, Placement(option.profile, start)), option))
        return found

    def _fill(self, step: int, places: dict[str, list[tuple[GpuPlacement, Option]]]) -> None:
        """Let there be segments in a step whose instances can exist together, and count the GPUs that have some."""
        problem, span, model = self._problem, self._span, self.model
        serving: dict[_Key, cp_model.IntVar] = {}
        covering: dict[tuple[int, int], list[cp_model.IntVar]] = defaultdict(list)
        alike: dict[tuple[int, str], list[cp_model.IntVar]] = defaultdict(list)
        for service in problem.services(step):
            for (gpu, placement), option in places[service.name]:
                key = gpu, placement, service.name
                self._options[key] = option
                serving[key] = variable = model.new_bool_var("")
                for memory_slice in placement.footprint:
                    covering[gpu, memory_slice].append(variable)
                if placement.profile.max_count < len(placement.profile.starts):
                    alike[gpu, placement.profile.name].append(variable)
        used = {gpu: model.new_bool_var("") for gpu in span.usable}
        for (gpu, _), variables in covering.items():
            # A GPU that is used, or not, has one segment at most on each slice, or none.
            model.add(cp_model.LinearExpr.sum(variables) <= used[gpu])
        for (gpu, name), variables in alike.items():
            most = get_gpu(span.gpus[gpu]).profile(name).max_count
            model.add(cp_model.LinearExpr.sum(variables) <= most)
        costs = [self._costs[span.gpus[gpu]] for gpu in used]
        if self.exact:  # else these whole numbers may be too large for the solver
            units = [int(cost / problem.costs.unit) for cost in costs]
            every = cp_model.LinearExpr.weighted_sum(list(used.values()), units)
            model.add(every >= math.ceil(problem.least[step] / problem.costs.unit))
        for pool in problem.pools:
            mine = [variable for gpu, variable in used.items() if span.gpus[gpu] == pool.kind.name]
            if pool.count is not None and len(mine) > pool.count:
                model.add(cp_model.LinearExpr.sum(mine) <= pool.count)
        self._serving.append(serving)
        self._used.append(used)
        prices = [self._units(cost * problem.day.hours[step]) for cost in costs]
        self._objective.append(cp_model.LinearExpr.weighted_sum(list(used.values()), prices))

    def _serve(self, step: int) -> None:
        """Let each service have what it needs."""
        by_service: dict[str, list[tuple[_Key, cp_model.IntVar]]] = defaultdict(list)
        for key, variable in self._serving[-1].items():
            by_service[key[2]].append((key, variable))
        for service in self._problem.services(step):
            own = by_service[service.name]
            terms = [
                math.ceil(min(self._options[key].point.throughput / service.rate, 1.0) * _SHARES) * variable
                for key, variable in own
            ]
            self.model.add(cp_model.LinearExpr.sum(terms) >= _ENOUGH)
            if service.min_replicas > 1:
                segments = cp_model.LinearExpr.sum([variable for _, variable in own])
                self.model.add(segments >= service.min_replicas)

    def _count_changes(self) -> None:
        """Let each segment that begins cost its price."""
        price = self._units(self._problem.creation_price)
        span = self._span
        if span.before is not None:
            there = self._keys(span.before)
            begins = [variable for key, variable in self._serving[0].items() if key not in there]
            self._objective += [price * variable for variable in begins]
        for earlier, later in zip(self._serving, self._serving[1:], strict=False):
            for key, variable in later.items():
                old = earlier.get(key)
                if old is None:
                    self._objective.append(price * variable)
                else:
                    begins_here = self.model.new_bool_var("")
                    self.model.add_bool_or([~variable, old, begins_here])
                    self.try_first(begins_here, self.tried(variable) and not self.tried(old))
                    self._objective.append(price * begins_here)
        if span.after is not None:
            last = self._serving[-1]
            for key in self._keys(span.after):
                stays = last.get(key)
                self._objective.append(price if stays is None else price * ~stays)

    def _disturbances(self) -> None:
        """Let each change cost the price of an interruption for each service that it disturbs."""
        span, serving = self._span, self._serving
        states: list[tuple[int, _Segments]] = list(zip(span.steps, serving, strict=True))
        if span.before is not None:
            states.insert(0, (span.steps.start - 1, self._fixed(span.before)))
        if span.after is not None:
            states.append((span.steps.stop, self._fixed(span.after)))
        price = self._units(Fraction(self._problem.day.interruption_price))
        for (_, old), (step, new) in itertools.pairwise(states):
            change = _Change(self, old, new)
            services = self._problem.services(step)
            # Services that are undisturbed by what stays alone may end their segments before anything begins.
            at_once = {service.name: change.undisturbed(service, {}) for service in services}
            for service in services:
                disturbed = self.model.new_bool_var("")
                undisturbed = at_once[service.name], change.undisturbed(service, at_once)
                self.model.add_bool_or([*undisturbed, disturbed])
                self.try_first(disturbed, not any(map(self.tried, undisturbed)))
                self._disturbed.append(disturbed)
                self._objective.append(price * disturbed)

    def _fixed(self, deployment: Deployment) -> dict[_Key, cp_model.IntVar]:
        there = self._keys(deployment)
        for key, segment in zip(there, deployment.segments, strict=True):
            self._throughputs[key] = segment.throughput
        true = self.model.new_constant(1)
        self._tried[true.index] = True
        return dict.fromkeys(there, true)

    def factors(self, service: Service, keys: Iterable[_Key]) -> list[int]:
        """Return the share of the rate of a service that each of some segments answers."""
        throughputs = (self._throughputs.get(key) or self._options[key].point.throughput for key in keys)
        return [math.ceil(min(throughput / service.rate, 1.0) * _SHARES) for throughput in throughputs]

    def _keys(self, deployment: Deployment) -> list[_Key]:
        """Return the segments of a deployment; all of them are served in the best way of their size."""
        return [(one.gpu, deployment.placement(one), one.service) for one in deployment.segments]

    def try_first(self, variable: cp_model.IntVar, value: bool) -> None:
        """Let the solver start with a value."""
        self._tried[variable.index] = value
        self.model.add_hint(variable, value)

    def tried(self, literal: cp_model.LiteralT | None) -> bool:
        """Return the value that the solver starts with; False for what there is not, or without any."""
        return isinstance(literal, cp_model.IntVar) and self._tried.get(literal.index, False)

    def disturbed_in(self, values: Sequence[int]) -> int:
        """Return how often a change disturbs a service in a solution."""
        return sum(bool(values[variable.index]) for variable in self._disturbed)

    def deployments(self, values: Sequence[int]) -> tuple[Deployment, ...] | None:
        """Return the deployments of a solution; None if one serves too little within the rounding of shares."""
        found = []
        for step, serving in zip(self._span.steps, self._serving, strict=True):
            segments: list[Segment] = []
            for key, variable in serving.items():
                if values[variable.index]:
                    gpu, placement, service = key
                    segments.append(segment_of(service, gpu, placement, self._options[key]))
            segments.sort(key=lambda segment: (segment.gpu, segment.start))
            deployment = Deployment(self._span.gpus, tuple(segments))
            demand = self._problem.day.demands[step]
            if demand is not None and min(deployment.slack(demand).values()) < ENOUGH - 1:
                return None
            found.append(deployment)
        return tuple(found)


class _Change:
    """The change from the segments of one step to those of the next, in a model."""

    def __init__(self, model: _PlaceModel, old: _Segments, new: _Segments) -> None:
        self._places, self._model, self._old, self._new = model, model.model, old, new
        self._covering: dict[tuple[int, int], list[_Key]] = defaultdict(list)
        for key in old:
            for memory_slice in key[1].footprint:
                self._covering[key[0], memory_slice].append(key)

    def undisturbed(self, service: Service, at_once: Mapping[str, cp_model.IntVar]) -> cp_model.IntVar:
        """Return a literal that is true only if a change leaves a service undisturbed.

        Either none of its segments ends, or those that stay, and those that begin in slices that are free before, are
        enough. With ``at_once`` slices count as free if their segments belong to a service whose literal there is true;
        without any, only what stays counts.
        """
        model, places = self._model, self._places
        undisturbed, none_ends, enough = (model.new_bool_var("") for _ in range(3))
        model.add_bool_or([~undisturbed, none_ends, enough])
        own = {key: literal for key, literal in self._new.items() if key[2] == service.name}
        end = [(literal, own.get(key)) for key, literal in self._old.items() if key[2] == service.name]
        for literal, stays in end:
            model.add_bool_or([~none_ends, ~literal, *([] if stays is None else [stays])])
        counts = {key: model.new_bool_var("") for key in own if at_once or key in self._old}
        for key, count in counts.items():
            needs = [own[key]] if at_once else [own[key], self._old[key]]
            for needed in needs:
                model.add_implication(count, needed)
            free = all(map(places.tried, needs))
            # the old segments that would be in its way
            there = (self._covering.get((key[0], memory_slice), ()) for memory_slice in key[1].footprint)
            rivals = dict.fromkeys(other for others in there for other in others if other != key)
            for other in rivals if at_once else ():
                # A service that nobody asks for any more may end its segments whenever it is.
                if other[2] == service.name or other[2] in at_once:
                    freed = [] if other[2] == service.name else [at_once[other[2]]]
                    model.add_bool_or([~count, ~self._old[other], *freed])
                    free &= not places.tried(self._old[other]) or any(map(places.tried, freed))
            places.try_first(count, free)
        factors = places.factors(service, counts)
        served = cp_model.LinearExpr.weighted_sum(list(counts.values()), factors)
        model.add(served >= _ENOUGH).only_enforce_if(enough)
        known = sum(factor for factor, count in zip(factors, counts.values(), strict=True) if places.tried(count))
        places.try_first(none_ends, all(places.tried(stays) for literal, stays in end if places.tried(literal)))
        places.try_first(enough, known >= _ENOUGH)
        places.try_first(undisturbed, places.tried(none_ends) or places.tried(enough))
        return undisturbed


def usable_gpus(deployments: Collection[Deployment]) -> tuple[int, ...]:
    """Return the GPUs that some deployments use."""
    return tuple(sorted({segment.gpu for deployment in deployments for segment in deployment.segments}))
