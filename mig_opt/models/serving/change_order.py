"""Model for CP-SAT of the order of the moves of a change.

Every move has a rank. For each service that can lack throughput, literals say which of the moves that end or begin its
segments comes before which; after an end, what has not ended yet and what has begun must be enough, or the segment
counts as interrupted. A creation comes after the destructions that free its slices, or make room for one more of its
profile. Ranks are whole numbers, so a cycle of literals is impossible, and conversely every order of the moves is a
solution: the model misses none.

Whether a segment is interrupted depends on the order only, and every order can be followed in time. Hence there are two
models: one without time for the fewest interruptions, and one with time, which is given their number, for the shortest
duration. There each move has a begin, the driver of a GPU does one at a time, and the moments at which segments end and
begin follow each other as the ranks do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ortools.sat.python import cp_model

from mig_opt.method.control import Limits
from mig_opt.models.solvers import cpsat
from mig_opt.models.solvers.backend import Request
from mig_opt.serving.change_problem import ChangeProblem, Timetable

_Moment = Callable[[int], cp_model.LinearExprT]


def literals(problem: ChangeProblem, gpus: Sequence[int]) -> int:
    """Return about how many literals a model has for the GPUs of a part."""
    chosen = set(gpus)
    return sum(
        len(need.ending) * (len(need.ending) + len(need.beginning))
        for need in problem.needs.values()
        if any(problem.moves[index].gpu in chosen for index in (*need.ending, *need.beginning))
    )


class _Model:
    """The order of the moves of some GPUs, without time."""

    def __init__(self, problem: ChangeProblem, gpus: Sequence[int]) -> None:
        self.problem = problem
        self.moves = [index for gpu in gpus for index in problem.by_gpu[gpu]]
        self.model = cp_model.CpModel()
        self._rank = {index: self.model.new_int_var(0, len(self.moves) - 1, f"rank{index}") for index in self.moves}
        self._before: dict[tuple[int, int], cp_model.IntVar] = {}
        self._interrupted: list[cp_model.IntVar] = []
        for index in self.moves:
            for other in problem.moves[index].after:
                self.model.add(self._rank[other] < self._rank[index])
        # Of a creation and a destruction with the same rank any may be first.
        self._limit(lambda index: 2 * self._rank[index], lambda index: 2 * self._rank[index] + 1)
        for service, need in problem.needs.items():
            if any(index in self._rank for index in need.ending):
                self._watch(service)

    def _limit(self, begin: _Moment, end: _Moment) -> None:
        """Keep limits of instances, which exist from the begin of their creation to the end of their destruction."""
        for limit in self.problem.limits:
            if limit.creates[0] in self._rank:
                times = [*map(begin, limit.creates), *map(end, limit.destroys)]
                changes = [1] * len(limit.creates) + [-1] * len(limit.destroys)
                self.model.add_reservoir_constraint(times, changes, -len(limit.destroys), limit.free)

    def _watch(self, service: str) -> None:
        """Say which ends of a service's segments are interruptions."""
        need = self.problem.needs[service]
        for index in need.ending:
            interrupted = self.model.new_bool_var(f"interrupted{index}")
            self._interrupted.append(interrupted)
            live = [units * self.before(index, other) for other, units in need.ending.items() if other != index]
            live += [units * self.before(other, index) for other, units in need.beginning.items() if other != index]
            enough = cp_model.LinearExpr.sum(live) + need.kept >= need.least
            self.model.add(enough).only_enforce_if(~interrupted)

    def before(self, one: int, two: int) -> cp_model.LiteralT:
        """Return a literal that is true if a move comes before another."""
        if two in self.problem.moves[one].after:
            return self.model.new_constant(0)
        if one in self.problem.moves[two].after:
            return self.model.new_constant(1)
        if one > two:
            return ~self.before(two, one)
        if (one, two) not in self._before:
            literal = self._before[one, two] = self.model.new_bool_var(f"before{one}_{two}")
            self._follow(one, two, literal)
            self._follow(two, one, ~literal)
        return self._before[one, two]

    def _follow(self, one: int, two: int, literal: cp_model.LiteralT) -> None:
        """Let one move come before another if the literal is true."""
        self.model.add(self._rank[one] < self._rank[two]).only_enforce_if(literal)

    @property
    def interruptions(self) -> cp_model.LinearExprT:
        """Number of segments that are interrupted."""
        return cp_model.LinearExpr.sum(self._interrupted)

    def order(self, values: Sequence[int]) -> list[int]:
        """Return the moves in the order of a solution."""
        return sorted(self.moves, key=lambda index: values[self._rank[index].index])

    def timetable(self, values: Sequence[int]) -> Timetable:
        """Return the plan of a solution."""
        return self.problem.timetable(self.order(values))

    def hint(self, plan: Timetable) -> None:
        """Let the solver start from a plan."""
        place = {index: position for position, (index, _) in enumerate(plan.moves)}
        for index, rank in self._rank.items():
            self.model.add_hint(rank, place[index])
        for (one, two), literal in self._before.items():
            self.model.add_hint(literal, place[one] < place[two])


class _TimedModel(_Model):
    """The order of the moves, and when they begin."""

    def __init__(self, problem: ChangeProblem, gpus: Sequence[int], plan: Timetable) -> None:
        self._horizon = plan.ticks
        self._begin: dict[int, cp_model.IntVar] = {}
        super().__init__(problem, gpus)
        model = self.model
        self._duration = model.new_int_var(problem.least_ticks(gpus), plan.ticks, "duration")
        for gpu in gpus:
            intervals = []
            for index in problem.by_gpu[gpu]:
                begin, ticks = self._begins(index), problem.moves[index].ticks
                model.add(begin + ticks <= self._duration)
                if problem.moves[index].kind != "switch":
                    intervals.append(model.new_fixed_size_interval_var(begin, ticks, f"move{index}"))
                for other in problem.moves[index].after:
                    model.add(self._begins(other) + problem.moves[other].ticks <= begin)
            model.add_no_overlap(intervals)
        self._limit(self._begins, lambda index: self._begins(index) + problem.moves[index].ticks)
        model.add(self.interruptions <= plan.interruptions)
        model.minimize(self._duration)

    def _begins(self, index: int) -> cp_model.IntVar:
        if index not in self._begin:
            latest = self._horizon - self.problem.moves[index].ticks
            self._begin[index] = self.model.new_int_var(0, latest, f"begin{index}")
        return self._begin[index]

    def _moment(self, index: int) -> cp_model.LinearExprT:
        return self._begins(index) + self.problem.moves[index].delay

    def _follow(self, one: int, two: int, literal: cp_model.LiteralT) -> None:
        super()._follow(one, two, literal)
        self.model.add(self._moment(one) <= self._moment(two)).only_enforce_if(literal)

    def hint(self, plan: Timetable) -> None:
        """Let the solver start from a plan."""
        super().hint(plan)
        self.model.add_hint(self._duration, plan.ticks)
        for index, begin in plan.moves:
            self.model.add_hint(self._begin[index], begin)

    def timetable(self, values: Sequence[int]) -> Timetable:
        """Return the plan of a solution."""
        return self.problem.timed((index, values[self._begin[index].index]) for index in self.order(values))


def fewest_interruptions(
    problem: ChangeProblem, gpus: Sequence[int], plan: Timetable, limits: Limits, report: Callable[[Timetable], None]
) -> int:
    """Look for plans of a part with fewer interruptions than ``plan``; return a number that no plan falls below.

    Each plan that is found is reported.
    """
    model = _Model(problem, gpus)
    model.model.minimize(model.interruptions)
    return _bound(model, plan, problem.inevitable(gpus), limits, report)


def least_duration(
    problem: ChangeProblem, gpus: Sequence[int], plan: Timetable, limits: Limits, report: Callable[[Timetable], None]
) -> int:
    """Look for shorter plans with no more interruptions; return ticks that none falls below.

    Times have to be whole ticks.
    """
    return _bound(_TimedModel(problem, gpus, plan), plan, problem.least_ticks(gpus), limits, report)


def _bound(model: _Model, plan: Timetable, at_least: int, limits: Limits, report: Callable[[Timetable], None]) -> int:
    """Return the bound that the solver finds from a plan on, while better plans are reported."""
    model.hint(plan)
    request = Request(at_least=at_least, for_proof=True, on_solution=lambda values: report(model.timetable(values)))
    return cpsat.run(model.model, limits, request).bound
