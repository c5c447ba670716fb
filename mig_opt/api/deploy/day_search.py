"""The search for a plan of a day with lookahead: numbers of segments first, then their places, then the changes.

1. The least cost of each step is proven by itself; with the hours they bound the cost of every plan.
2. A path through deployments that are good for several steps (:mod:`mig_opt.api.deploy.day_paths`) is the first plan.
3. Programs for the numbers of segments improve it, some steps at a time; a day of a dozen steps is one such program.
4. The numbers get places step by step, with the fewest new segments. Where all GPUs are needed numbers and places are
   found together, step by step, by the model with places: changes that interrupt nobody come first there.
   It then improves some steps at a time.
5. Programs for spans of steps, each solved without regard for the others, give the lower bound.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial

from mig_opt.api.change import align
from mig_opt.api.deploy.day_changes import Changes
from mig_opt.api.deploy.day_paths import Pool, counts_of, packed
from mig_opt.api.deploy.deployment import deploy, why_unservable
from mig_opt.method.control import Control
from mig_opt.method.result import Status
from mig_opt.models.serving.day_counts import Counts, DayProblem, best_counts
from mig_opt.models.serving.day_places import Span, best_places, usable_gpus
from mig_opt.models.serving.fewest_changes import fewest_new
from mig_opt.serving.day import Day, DayPlan
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, DeploymentResult

ALONE = 12
"""Steps of a day that is planned as a whole."""
_SPAN, _STRIDE, _PLACED, _UNDISTURBED = 8, 4, 3, (2, 4)
"""Steps of a program for numbers and from one to the next, and of models with places, also for undisturbed services."""
_UNDISTURBED_UNTIL = 0.7
"""Share of the time after which the search for changes that disturb no service ends, in favour of the lower bound."""
_UNDISTURBED_SHARE = 0.5
"""Share of the remaining time for such changes, about, step after step; most are found at once, so that a step may take
three times its part."""
_BOUND_SPAN = 6  # steps of a program for the lower bound
_NOISE = Fraction(1, 10**9)  # share of a bound by which its last digit may be rounded up
_NEARLY_PROVEN = 1e-9  # gap with which a method ends once the fewest GPUs are proven, before it looks for fewer slices


def serving_alone(day: Day, control: Control[DayPlan]) -> list[DeploymentResult | None] | None:
    """Return a deployment of least cost for each step, None where nothing is asked for; None if there is none.

    Why there is none is reported.
    """
    found: dict[Demand, DeploymentResult] = {}
    results: list[DeploymentResult | None] = []
    for step, demand in enumerate(day.demands):
        if demand is None:
            results.append(None)
            continue
        if demand not in found:
            found[demand] = run_method(demand, "exact", control, gap=_NEARLY_PROVEN)
        result = found[demand]
        if result.status is Status.INFEASIBLE:
            control.report_infeasible(f"at {day.clock(step)}: {'; '.join(why_unservable(demand)) or result.reason}")
            return None
        if result.deployment is None:
            return None
        results.append(result)
    return results


def run_method(
    demand: Demand, method: str, control: Control[DayPlan], *, gap: float = 0.0, running: Deployment | None = None
) -> DeploymentResult:
    """Return what a method finds for one step, within the limits of the run."""
    result = deploy(demand, method, running=running, gap=gap, **control.inner()).uninterrupted()
    control.spend(0.1)
    return result


class DaySearch:
    """One run: each service that has requests can be served, ``alone`` by a deployment for each step that has some."""

    def __init__(self, day: Day, control: Control[DayPlan], alone: Sequence[DeploymentResult | None]) -> None:
        self._day, self._control, self._alone = day, control, alone
        self._problem = DayProblem(day, [0 if result is None else result.lower_bound for result in alone])
        self._changes = Changes(day, control)
        self._counts: list[Counts] = []
        self._deployments: list[Deployment] = []
        self._best: list[Deployment] = []
        self._interrupted: list[int] = []
        self._idle: set[tuple[range, tuple[Deployment, ...]]] = set()

    def run(self) -> None:
        """Search until nothing is left to do or the time is up."""
        steps = self._day.steps
        pool = Pool(self._problem)
        for result in self._alone:
            if result is not None and result.deployment is not None:
                pool.add(result.deployment)
        fewest = partial(run_method, method="exact", control=self._control, gap=_NEARLY_PROVEN)
        pool.add_longer(lambda demand: fewest(demand).deployment, enough=lambda: self._used_up(0.25))
        self._counts = pool.path()
        self._place(range(steps))
        self._offer(self._deployments)
        self._improve_parts()
        for length in _UNDISTURBED:
            self._improve_places(length, only_interrupted=True)
        if steps > ALONE:
            self._bound(list(_spans(steps, _BOUND_SPAN)), share=0.7)
        self._improve_places(_PLACED)
        if steps <= ALONE and not self._control.expired:
            self._improve_span(range(steps), share=0.4)
        if steps <= ALONE and not self._control.expired:
            self._prove(range(steps))

    def _improve_parts(self) -> None:
        """Improve numbers and places, part after part of a day, or of a short one all numbers first."""
        steps, parts = self._day.steps, self._parts()
        if steps <= ALONE:
            self._improve_counts(range(steps))
            self._deployments = []
            self._place(range(steps))
            self._offer(self._deployments)
        if steps > ALONE or any(tight for tight, _ in parts):
            self._deployments = []
            for tight, part in parts:
                if tight:
                    self._place_undisturbed(part)
                else:
                    self._improve_counts(part)
                    self._place(part)
            self._offer(self._deployments)

    def _used_up(self, share: float) -> bool:
        """Return True if the run has used a share of its time, or is over."""
        control = self._control
        return control.expired or control.clock > share * (control.clock + control.left)

    def _parts(self) -> list[tuple[bool, range]]:
        """Return the day in parts: where steps in a row need all GPUs, each with the step after them, and the rest.

        The first figure is True for the former: their changes may interrupt segments.
        """
        needs_all = [*map(self._problem.needs_all, range(self._day.steps)), False]
        in_a_row = [own and (needs_all[at - 1] or needs_all[at + 1]) for at, own in enumerate(needs_all[:-1])]
        tight = [one or before for one, before in zip(in_a_row, [False, *in_a_row], strict=False)]
        found: list[tuple[bool, range]] = []
        for flag, run in itertools.groupby(enumerate(tight), operator.itemgetter(1)):
            part = [step for step, _ in run]
            found.append((flag, range(part[0], part[-1] + 1)))
        return found

    # Numbers of segments

    def _improve_counts(self, part: range) -> None:
        """Improve the numbers of segments of some steps that follow each other, a few of them at a time."""
        counts, steps = self._counts, self._day.steps
        length = ALONE if steps <= ALONE else _SPAN
        last = max(part.stop - length, part.start)
        begins = [*range(part.start, last, _STRIDE), last]
        spans = [range(begin, min(begin + length, part.stop)) for begin in begins]
        for at, span in enumerate(spans):
            if self._control.expired:
                return
            found, bound = best_counts(
                self._problem,
                span,
                self._control,
                before=counts[span.start - 1] if span.start else None,
                after=counts[span.stop] if span.stop < steps else None,
                known=counts[span.start : span.stop],
                share=0.4 * len(part) / steps / (len(spans) - at),
            )
            if found is not None:
                counts[span.start : span.stop] = found
            if span == range(steps):
                self._control.raise_bound(float(self._problem.raised(bound)), "numbers of segments alone")

    def _bound(self, spans: Sequence[range], share: float) -> None:
        """Prove a lower bound by spans that share their end steps."""
        problem, day, control = self._problem, self._day, self._control
        # The changes of a span come on top of the least cost of its steps.
        total = sum((cost * hours for cost, hours in zip(problem.least, day.hours, strict=True)), start=Fraction(0))
        for at, span in enumerate(spans):
            weights = [day.hours[step] / (2 if self._shared(step, span) else 1) for step in span]
            least = sum((problem.least[step] * hours for step, hours in zip(span, weights, strict=True)), Fraction(0))
            known, part = self._counts[span.start : span.stop], share / (len(spans) - at)
            _, bound = best_counts(problem, span, control, weights=weights, known=known, share=part)
            total += max(problem.raised(bound, halves=True) - least, Fraction(0))
            if control.expired:
                break
        control.raise_bound(float(total), "numbers of segments alone, in spans of steps")

    def _shared(self, step: int, span: range) -> bool:
        return (step == span[0] and step > 0) or (step == span[-1] and step < self._day.steps - 1)

    # Places

    def _place(self, part: range) -> None:
        """Place the numbers of some steps after the steps before them, with as few new segments as can be."""
        for step in part:
            before, counts = self._deployments[-1] if self._deployments else None, self._counts[step]
            same = before is not None and counts == self._counts[step - 1]
            self._deployments.append(before if before and same else self._placed_after(before, step, counts))

    def _place_undisturbed(self, part: range) -> None:
        """Place steps one after the other, each by a change without interruption if there is one; numbers follow.

        Where that is not possible the step before is placed anew with it, if that disturbs fewer services.
        """
        done = self._deployments
        for step in part:
            fresh = packed(self._problem, self._counts[step])
            done.append(align(done[-1], fresh) if done else fresh)
            if len(done) == 1 or self._day.demands[step] is None:
                continue
            share = _UNDISTURBED_SHARE / (4 + part.stop - step)
            disturbed = self._undisturb(range(step, step + 1), None, share=share, workers=1)
            if disturbed and step - 1 in part and step > 1 and self._day.demands[step - 1] is not None:
                self._undisturb(range(step - 1, step + 1), disturbed, share=2 * share)

    def _undisturb(self, span: range, most: int | None, *, share: float, workers: int | None = None) -> int:
        """Place the last steps anew, if that disturbs fewer services than ``most``; return how many it disturbs."""
        done = self._deployments
        there = Counter(done[-1].gpus)
        more = ([pool.kind.name] * ((pool.count or 0) - there[pool.kind.name]) for pool in self._problem.pools)
        gpus = (*done[-1].gpus, *itertools.chain.from_iterable(more))  # all that there are
        before, *known = (one.replace(gpus=gpus) for one in done[span.start - 1 :])
        everywhere = tuple(range(len(gpus)))
        where = Span(span, gpus, everywhere, before)
        outcome = best_places(
            self._problem, where, self._control, known=known, share=share, undisturbed=True, workers=workers
        )
        if outcome.deployments is None:
            # Nothing is known: as if every service was disturbed.
            return len(self._problem.services(span[-1]))
        if most is None or outcome.disturbed < most:
            done[span.start :] = outcome.deployments
            for step, deployment in zip(span, outcome.deployments, strict=True):
                self._counts[step] = counts_of(self._problem, deployment)
        return outcome.disturbed

    def _placed_after(self, before: Deployment | None, step: int, counts: Counts) -> Deployment:
        fresh = packed(self._problem, counts)
        deployment = fresh if before is None else align(before, fresh)
        if before is None or not counts:
            return deployment
        old = before.replace(gpus=deployment.gpus)
        there = counts_of(self._problem, old)
        least = sum(abs(counts.get(key, 0) - there.get(key, 0)) for key in {*counts, *there})
        found = fewest_new(self._problem, step, old, counts, self._control, known=deployment, least=least, share=0.05)
        # The program adds GPUs where idle ones may do.
        return align(before, found)

    def _improve_places(self, length: int, *, only_interrupted: bool = False) -> None:
        """Improve places and numbers together, ``length`` steps at a time; where changes interrupt segments, first."""
        length = min(length, self._day.steps)
        while not self._control.expired and (worst := self._worst(length)) is not None:
            interrupted, span = worst
            if only_interrupted and (not interrupted or self._used_up(_UNDISTURBED_UNTIL)):
                return
            self._idle.add((span, self._around(span)))
            self._improve_span(span, share=0.1, undisturbed=interrupted > 0)

    def _prove(self, day: range) -> None:
        """Prove a plan of a whole day, or find a better one; if need be with more GPUs than it uses, too."""
        self._improve_span(day, share=1.0, proves=True)
        objective, gpus = self._control.objective, self._best[0].gpus
        elsewhere = self._least_with_more([gpus[gpu] for gpu in usable_gpus(self._best)])
        if not self._control.expired and objective is not None and elsewhere < objective:
            self._improve_span(day, share=1.0, proves=True, more=True)

    def _improve_span(
        self, span: range, *, share: float, proves: bool = False, undisturbed: bool = False, more: bool = False
    ) -> None:
        best, steps = self._best, self._day.steps
        inside, whole = best[span.start : span.stop], len(span) == steps
        before = best[span.start - 1] if span.start else None
        after = best[span.stop] if span.stop < steps else None
        gpus, usable = inside[0].gpus, usable_gpus(self._around(span))
        if more:
            gpus, usable = self._with_more(gpus, usable)
        outcome = best_places(
            self._problem,
            Span(span, gpus, usable, before, after),
            self._control,
            known=[one.replace(gpus=gpus) for one in inside],
            at_least=Fraction(self._control.lower_bound) * (1 - _NOISE) if whole and not undisturbed else Fraction(0),
            share=share,
            proves=proves,
            undisturbed=undisturbed,
        )
        if whole and outcome.bound is not None:
            elsewhere = self._least_with_more([gpus[gpu] for gpu in usable])
            self._control.raise_bound(min(float(outcome.bound), elsewhere), "places of all segments")
        if outcome.deployments is not None and not self._control.done:
            self._offer([*best[: span.start], *outcome.deployments, *best[span.stop :]])

    def _with_more(self, gpus: Sequence[str], usable: Sequence[int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Return GPUs and which of them may be used, with one more of each kind of which there are more."""
        found, more = list(gpus), list(usable)
        for pool in self._problem.pools:
            idle = [at for at, name in enumerate(found) if name == pool.kind.name and at not in more]
            if not idle and (pool.count is None or pool.count > found.count(pool.kind.name)):
                idle = [len(found)]
                found.append(pool.kind.name)
            more += idle[:1]
        return tuple(found), tuple(sorted(more))

    def _least_with_more(self, gpus: Sequence[str]) -> float:
        """Return a cost that no plan falls below that uses more GPUs of some kind than these in some step.

        All other plans are possible with these GPUs: one that begins to be used can be one that is idle.
        """
        problem, there = self._problem, Counter(gpus)
        steps = list(zip(problem.least, self._day.hours, strict=True))
        total = sum((least * hours for least, hours in steps), start=Fraction(0))
        more = (
            hours * max((there[pool.kind.name] + 1) * cost - least, Fraction(0))
            for pool, cost in zip(problem.pools, problem.costs.each, strict=True)
            if pool.count is None or pool.count > there[pool.kind.name]
            for least, hours in steps
        )
        return min((float(total + each) for each in more), default=math.inf)

    def _worst(self, length: int) -> tuple[int, range] | None:
        """Return the steps where most segments are interrupted, then where most begin, with how many are interrupted.

        None if all have been looked at.
        """
        steps, found = self._day.steps, []
        for begin in range(max(steps - length, 0) + 1):
            span = range(begin, min(begin + length, steps))
            around = self._around(span)
            created = sum(one.changes_to(two) for one, two in itertools.pairwise(around))
            changes = range(max(begin - 1, 0), min(span.stop, steps - 1))
            interrupted = sum(self._interrupted[change] for change in changes)
            if created and (span, around) not in self._idle:
                found.append((-interrupted, -created, begin, span))
        if not found:
            return None
        interrupted, *_, span = min(found, key=lambda entry: entry[:3])
        return -interrupted, span

    def _around(self, span: range) -> tuple[Deployment, ...]:
        """Return the deployments of a span and of the steps beside it."""
        return tuple(self._best[max(span.start - 1, 0) : span.stop + 1])

    def _offer(self, deployments: Sequence[Deployment]) -> None:
        """Plan the changes between deployments, and keep them if they are the best."""
        plan = self._changes.plan(deployments)
        if self._control.report_plan(plan) or not self._best:
            self._best = list(plan.deployments)
            self._interrupted = [len(change.interrupted) for change in plan.changes]


def _spans(steps: int, length: int) -> Iterator[range]:
    """Yield spans of steps of a whole day; each begins with the last step of the one before."""
    for begin in range(0, max(steps - 1, 1), length):
        yield range(begin, min(begin + length + 1, steps))
