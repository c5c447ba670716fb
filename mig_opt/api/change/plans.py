"""Plans the steps from a running deployment to a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Unpack

from mig_opt.api.change.greedy import greedy
from mig_opt.gpu.model import OperationCosts
from mig_opt.method.control import Control, Limits, interruptibly, run
from mig_opt.method.options import RunKeywords, run_options
from mig_opt.method.registry import Method
from mig_opt.serving.change_plan import ChangePlan, ChangeResult, operation_costs
from mig_opt.serving.change_problem import ChangeProblem, Timetable
from mig_opt.serving.demand import Demand, wrong_demand
from mig_opt.serving.deployment import Deployment
from mig_opt.validation import validate_change
from mig_opt.validation.serving.deployments import check_change

_METHOD = Method(
    "change",
    "exact",
    "greedy rounds, then the order of the steps by constraint programming",
    "this package, docs/explanation/changes.md",
    "mig_opt.api.change.plans:plan_change",
    packages=("ortools",),
)

MOST_LITERALS = 10_000
"""Number of literals above which no model is built; with fewer the solver gains in seconds: a hundred GPUs, say."""


def plan_change(
    running: Deployment,
    deployment: Deployment,
    *,
    demand: Demand | None = None,
    operations: Mapping[str, OperationCosts] | None = None,
    time_limit: float | None = 10.0,
    **options: Unpack[RunKeywords],
) -> ChangeResult:
    """Plan the way from a running deployment to a new one.

    Each instance that stays keeps serving; if it is filled in another way, its segment gives way to the new one in one
    moment. Other instances are destroyed and created; the driver of a GPU does one at a time. A segment that ends is
    *interrupted* if right after that its service has less throughput than it needs: what it had before, but no more
    than its rate. New segments count as soon as their instance is created. The plan has the fewest interrupted
    segments, and with these the shortest duration.

    No segment moves to a third place for the time of the change: an instance that is in neither deployment is not
    created, even where there are idle GPUs.

    Parameters
    ----------
    running : Deployment
        What is running now.
    deployment : Deployment
        What is to run. Its GPUs are those of ``running`` by number; :func:`mig_opt.align` sees to that. Either may have
        more of them at the end.
    demand : Demand, optional
        Has the rates of the services; without one, a service needs the smaller of what it has before and after.
    operations : mapping of str to OperationCosts, optional
        How long creations and destructions take, by name of the GPU, where it is not what the catalogue says.
    time_limit : float, optional
        Seconds for the solver, which is asked if greedy rounds do not settle the matter and the change is not too
        large; with None it takes the time it needs. Ctrl-C ends it, too; the best plan until then is kept.
    **options
        The other :class:`~mig_opt.method.options.RunOptions`, as for :func:`mig_opt.solve`. The objective is the number
        of interrupted segments; with a ``gap`` of 0, a shorter plan is looked for even where none has fewer
        interruptions.

    Returns
    -------
    ChangeResult
        Its plan has passed the validator. Its ``proven`` says what is proven to be best, and its ``method`` whether a
        solver was asked.

    Raises
    ------
    InputError
        If a deployment has instances that cannot exist or no throughput, their GPUs are not the same, or an argument is
        wrong.

    Examples
    --------
    >>> from mig_opt.serving.deployment import Segment
    >>> old = Segment("chat", 0, "2g.20gb", 0, batch=8, processes=1, throughput=230.0, latency=0.034)
    >>> new = Segment("chat", 0, "3g.40gb", 4, batch=8, processes=1, throughput=330.0, latency=0.024)
    >>> plan = plan_change(Deployment(("H100-80GB",), (old,)), Deployment(("H100-80GB",), (new,))).plan
    >>> [(step.kind, round(step.begin, 2), round(step.end, 2)) for step in plan.steps], plan.interrupted
    ([('create', 0.0, 0.33), ('destroy', 0.33, 0.56)], ())
    """
    check_change(running, deployment)
    wrong = () if demand is None else wrong_demand(demand)
    settings = run_options(also=wrong, time_limit=time_limit, **options)
    costs = operation_costs((*running.gpus, *deployment.gpus), operations)
    problem, parts, interrupted = _begun(running, deployment, demand, costs)
    control = Control[ChangePlan](settings, judge=lambda plan: (len(plan.interrupted), plan.duration))
    inevitable = sum(problem.inevitable(gpus) for gpus in problem.parts)

    def work() -> None:
        control.raise_bound(inevitable, "these segments cannot but be interrupted")
        control.report_plan(_change_plan(problem, parts))
        if interrupted:
            raise KeyboardInterrupt
        for part in parts:
            part.improve(control, lambda: control.report_plan(_change_plan(problem, parts)))
        control.raise_bound(sum(part.least for part in parts), "no order of the steps interrupts fewer segments")

    def make_result(*, plan: ChangePlan | None, lower_bound: float, **known: Any) -> ChangeResult:
        final = _change_plan(problem, parts)
        if plan is None or (len(plan.interrupted), plan.duration) == (len(final.interrupted), final.duration):
            plan = final  # the last claims of what is proven included
        return ChangeResult(
            plan=plan, lower_bound=int(lower_bound), **{**known, "method": plan.method, "proven": plan.proven}
        )

    check = partial(validate_change, running, deployment, demand=demand, operations=operations)
    return run(
        control,
        (running, deployment),
        _METHOD,
        work,
        violations=lambda plan: check(plan).violations,
        optimal=lambda: len(_change_plan(problem, parts).proven) == 2,
        make_result=make_result,
    )


def _begun(
    running: Deployment, deployment: Deployment, demand: Demand | None, costs: Mapping[str, OperationCosts]
) -> tuple[ChangeProblem, list[_Part], bool]:
    """Return a problem, its parts with their first plans, and whether Ctrl-C was pressed meanwhile.

    It ends nothing here: without a first plan, whoever asks would lose the deployment that the change leads to.
    """
    begun: list[tuple[ChangeProblem, list[_Part]]] = []

    def begin() -> None:
        problem = ChangeProblem.of(running, deployment, demand, costs)
        begun.append((problem, [_Part(problem, gpus) for gpus in problem.parts]))

    try:
        interruptibly(begin)
    except KeyboardInterrupt:
        if not begun:
            raise
        return *begun[0], True
    return *begun[0], False


class _Part:
    """GPUs that are planned apart, the best plan so far, and what is known about them."""

    def __init__(self, problem: ChangeProblem, gpus: Sequence[int]) -> None:
        self._problem, self._gpus = problem, gpus
        self.plan = greedy(problem, gpus)
        self.fewest = self.plan.interruptions == problem.inevitable(gpus)  # whether no plan has fewer interruptions
        self.asked = False  # whether the solver was asked
        self._nothing_shorter = False

    @property
    def shortest(self) -> bool:
        """True if no plan with as few interruptions is shorter."""
        meets = self.plan.ticks == self._problem.least_ticks(self._gpus)
        return self._problem.exact and (meets or self._nothing_shorter)

    @property
    def least(self) -> int:
        """Number of interruptions that no plan falls below."""
        return self.plan.interruptions if self.fewest else self._problem.inevitable(self._gpus)

    def improve(self, limits: Limits, report: Callable[[], object]) -> None:
        """Ask the solver, unless there is nothing to ask, or too much; ``report`` is called for each better plan."""
        if (self.fewest and (self.shortest or not self._problem.exact)) or limits.expired:
            return
        from mig_opt.models.serving.change_order import fewest_interruptions, least_duration, literals

        if literals(self._problem, self._gpus) > MOST_LITERALS:
            return
        self.asked = True

        def keep(plan: Timetable) -> None:
            if plan.cost < self.plan.cost and not limits.done:
                self.plan = plan
                report()

        if not self.fewest:
            least = fewest_interruptions(self._problem, self._gpus, self.plan, limits, keep)
            self.fewest = least >= self.plan.interruptions
        if self._problem.exact and not self.shortest:
            least = least_duration(self._problem, self._gpus, self.plan, limits, keep)
            self._nothing_shorter = least >= self.plan.ticks


def _change_plan(problem: ChangeProblem, parts: Sequence[_Part]) -> ChangePlan:
    moves = problem.moves
    whole = problem.timed(entry for part in parts for entry in part.plan.moves)
    steps = tuple(problem.step(index, begin) for index, begin in whole.moves)
    interrupted = problem.interrupted(index for index, _ in whole.moves)
    fewest = all(part.fewest for part in parts)
    # A part may last longer than it must, as long as another one that cannot be shorter lasts no less.
    shortest = fewest and (not whole.ticks or any(part.shortest and part.plan.ticks == whole.ticks for part in parts))
    cut = tuple(segment for index in interrupted if (segment := moves[index].ends) is not None)
    duration = max((step.end for step in steps), default=0.0)
    proven = ("interruptions", "duration")[: fewest + shortest]
    method: Literal["exact", "heuristic"] = "exact" if any(part.asked for part in parts) else "heuristic"
    return ChangePlan(problem.gpus, problem.kept, steps, cut, duration, proven, method, problem.devices)
