"""The block model: tasks are assigned to placements, and each placement becomes one block of time.

Tasks on the same instance can follow each other in any order, so only the *load* of an instance matters, the sum of
its tasks' seconds. The model has a boolean for each task and placement, and for each placement one optional creation,
one block as long as its load, and one optional destruction; blocks of conflicting placements exclude each other from
creation to destruction, and the operations of a GPU do not overlap.

In its *strict* form the model allows each placement at most ``copies`` creations: what it finds is a schedule, but its
bound holds for such schedules only. In its *relaxed* form a placement may be created more often than that. Such a
*loose* placement pays for one creation and one destruction more on every slice that it covers, but is otherwise free
of any order in time. Every schedule, whatever it re-creates, satisfies the relaxed model, so its bound holds for
every schedule; and where its optimum has nothing loose, the two forms agree.

Every form contains the slice loads: on each memory slice the creations, runs and destructions of the instances that
cover it follow each other, and all but the last instance are destroyed before the makespan.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from ortools.sat.python import cp_model

from mig_opt.batch.integer_batch import IntegerBatch, Place
from mig_opt.models.batch.slots import BlockForm, BlockFormulation, Slots

Expression = cp_model.LinearExprT


def seconds_to_build(problem: IntegerBatch) -> float:
    """Return about how long it takes to build a block model on a typical machine.

    A model has a literal for each task and place, and looks at each pair of places.
    """
    return 14e-6 * problem.choices + 0.3e-6 * len(problem.places) ** 2


class BlockModel(BlockFormulation):
    """A CP-SAT model of a problem; the module says what it contains.

    Parameters
    ----------
    problem : IntegerBatch
        The batch in ticks.
    form : BlockForm
        Choice of the schedules that it has.
    """

    def __init__(self, problem: IntegerBatch, form: BlockForm) -> None:
        super().__init__()
        self.problem = problem
        self.model = cp_model.CpModel()  # its objective is the makespan in ticks
        self.slots = Slots(problem, form.copies)
        self._horizon = form.at_most
        self._makespan = self.model.new_int_var(form.at_least, form.at_most, "makespan")
        self._assign()
        if form.relaxed and not problem.operations_take_no_time:
            self._loosen()
        self._bound_slices()
        if not problem.operations_take_no_time:
            self._order()
        self._break_symmetry()
        self.model.minimize(self._makespan)

    # What runs where

    def _assign(self) -> None:
        model, places = self.model, self.problem.places
        self.assigned: list[dict[int, cp_model.IntVar]] = [
            {slot: model.new_bool_var(f"task{task}_slot{slot}") for slot in self.slots.choices(task, self._horizon)}
            for task in range(len(self.problem.batch.tasks))
        ]
        entries: list[list[tuple[cp_model.IntVar, int]]] = [[] for _ in self.slots.lifetimes]
        for task, choices in enumerate(self.assigned):
            model.add_exactly_one(choices.values())
            for slot, choice in choices.items():
                entries[slot].append((choice, places[self.slots.lifetimes[slot].place].durations[task]))
        self._load: list[cp_model.LinearExpr] = [
            cp_model.LinearExpr.weighted_sum([choice for choice, _ in column], [ticks for _, ticks in column])
            for column in entries
        ]
        self.used = [self._any([choice for choice, _ in column], f"used{at}") for at, column in enumerate(entries)]
        self._place_used = [
            self._any([self.used[slot] for slot in slots], f"place_used{at}")
            for at, slots in enumerate(self.slots.of_place)
        ]
        for at in range(len(places)):
            for earlier, later in itertools.pairwise(self.slots.created(at)):
                model.add_implication(self.used[later], self.used[earlier])

    def _any(self, literals: Sequence[cp_model.IntVar], name: str) -> cp_model.IntVar:
        """Return a boolean that is true exactly if one of ``literals`` is."""
        if len(literals) == 1:
            return literals[0]
        result = self.model.new_bool_var(name)
        for literal in literals:
            self.model.add_implication(literal, result)
        self.model.add_bool_or([*literals, ~result])
        return result

    def _loosen(self) -> None:
        """Let places be created once more than they have slots, or oftener.

        That makes sense only if a conflicting instance exists in between. The lifetime in which a task of a loose place
        runs does not matter: all tasks are booked on the first created one.
        """
        places = self.problem.places
        for at, place in enumerate(places):
            loose = self.loose[at] = self.model.new_bool_var(f"loose{at}")
            first, *others = sorted(self.slots.of_place[at], key=lambda slot: self.slots.lifetimes[slot].initial)
            self.model.add_implication(loose, self.used[first])
            for slot in others:
                self.model.add_implication(loose, ~self.used[slot])
            created = len(self.slots.created(at))
            # Each lifetime runs something: without that, one lifetime less would do.
            tasks = [choices[first] for choices in self.assigned if first in choices]
            self.model.add(cp_model.LinearExpr.sum(tasks) >= created + 1).only_enforce_if(loose)
            between = [self._place_used[to] for to, other in enumerate(places) if place.conflicts(other)]
            self.model.add_bool_or([*between, ~loose])

    # The slice loads

    def _bound_slices(self) -> None:
        model, places = self.model, self.problem.places
        self._gone = {
            slot: self._any(
                [self._place_used[to] for to, other in enumerate(places) if places[lifetime.place].conflicts(other)]
                + [self.used[other] for other in self.slots.of_place[lifetime.place] if other != slot],
                f"gone{slot}",
            )
            for slot, lifetime in enumerate(self.slots.lifetimes)
            if lifetime.initial
        }
        for covering in self.problem.slices():
            terms: list[Expression] = []
            lasts = []
            for at in covering:
                place, slots = places[at], self.slots.of_place[at]
                created = len(self.slots.created(at))
                if at in self.loose:
                    terms.append(created * (place.create + place.destroy) * self.loose[at])
                for slot in slots:
                    lasts.append(model.new_bool_var(f"last{slot}_of{len(terms)}"))
                    terms += [self._load[slot], *self._operation_terms(place, slot, lasts[-1])]
            model.add_at_most_one(lasts)
            model.add(sum(terms, start=0) <= self._makespan)

    def _operation_terms(self, place: Place, slot: int, last: cp_model.IntVar) -> list[Expression]:
        """Return what the operations of ``slot`` (and the earlier work of a live instance) take on one slice."""
        used = self.used[slot]
        if slot not in self._gone:
            self.model.add_implication(last, used)
            return [(place.create + place.destroy) * used, -place.destroy * last]
        # A live instance holds the slice until it is free, if it runs something or makes room for something here.
        gone = self._gone[slot]
        holds = self.model.new_bool_var(f"holds{slot}")
        leaves = self.model.new_bool_var(f"leaves{slot}")
        self.model.add_bool_or([~gone, last, leaves])
        self.model.add_implication(leaves, holds)
        self.model.add_implication(used, holds)
        return [(place.free or 0) * holds, place.destroy * leaves]

    # The order in time

    def _order(self) -> None:
        model = self.model
        self._in_time = [self._tight(slot) for slot in range(len(self.slots.lifetimes))]
        operations: dict[int, list[cp_model.IntervalVar]] = {gpu: [] for gpu in self.problem.gpus}
        gone: dict[int, cp_model.IntVar] = {}
        end: list[Expression] = []
        for slot, lifetime in enumerate(self.slots.lifetimes):
            place, in_time = self.problem.places[lifetime.place], self._in_time[slot]
            ready: cp_model.LinearExpr | int = place.free or 0
            if not lifetime.initial:
                creation = self.creation[slot] = model.new_int_var(0, self._horizon, f"creation{slot}")
                ready = creation + place.create
                operations[place.gpu].append(
                    model.new_optional_fixed_size_interval_var(creation, place.create, in_time, f"create{slot}")
                )
            end.append(self._load[slot] + ready)
            runs = in_time if not lifetime.initial else self.used[slot]
            model.add(end[slot] <= self._makespan).only_enforce_if(runs)
            destruction = self.destruction[slot] = model.new_int_var(0, self._horizon, f"destruction{slot}")
            gone[slot] = model.new_bool_var(f"destroyed{slot}")
            model.add(destruction >= end[slot]).only_enforce_if(gone[slot])
            operations[place.gpu].append(
                model.new_optional_fixed_size_interval_var(destruction, place.destroy, gone[slot], f"destroy{slot}")
            )
        self._exclude(gone)
        if not self.problem.batch.parallel_operations:
            for intervals in operations.values():
                model.add_no_overlap(intervals)

    def _tight(self, slot: int) -> cp_model.LiteralT:
        """Return a literal, true if a lifetime has a place in time: it exists, and its place is not loose."""
        lifetime = self.slots.lifetimes[slot]
        loose: cp_model.IntVar | None = self.loose.get(lifetime.place)
        if lifetime.initial:
            return self.model.new_constant(1) if loose is None else ~loose
        if loose is None:
            used: cp_model.IntVar = self.used[slot]
            return used
        tight = self.model.new_bool_var(f"tight{slot}")
        self.model.add_implication(tight, self.used[slot])
        self.model.add_implication(tight, ~loose)
        self.model.add_bool_or([tight, ~self.used[slot], loose])
        return tight

    def _exclude(self, gone: Mapping[int, cp_model.IntVar]) -> None:
        """Let conflicting lifetimes follow each other, destruction before creation; destroy only what is followed."""
        model, places = self.model, self.problem.places
        followers: list[list[cp_model.IntVar]] = [[] for _ in self.slots.lifetimes]

        def put_before(one: int, two: int) -> cp_model.IntVar:
            before = self.before[one, two] = model.new_bool_var(f"before{one}_{two}")
            model.add_implication(before, self._in_time[one])
            model.add_implication(before, self._in_time[two])
            model.add_implication(before, gone[one])
            destroy = places[self.slots.lifetimes[one].place].destroy
            model.add(self.destruction[one] + destroy <= self.creation[two]).only_enforce_if(before)
            followers[one].append(before)
            return before

        for one, two, possible in self.slots.exclusions():
            orders = [put_before(*pair) for pair in possible]
            model.add_bool_or([*orders, ~self._in_time[one], ~self._in_time[two]])
            model.add_at_most_one(orders)
        for slot, literals in enumerate(followers):
            model.add_bool_or([*literals, ~gone[slot]])

    # Symmetry

    def _break_symmetry(self) -> None:
        """Order interchangeable sets of places by the area that they run, and identical tasks by their slots."""
        for tasks in self.problem.identical:
            slots: list[Expression] = [
                cp_model.LinearExpr.weighted_sum(list(self.assigned[task].values()), list(self.assigned[task]))
                for task in tasks
            ]
            for one, two in itertools.pairwise(slots):
                self.model.add(one <= two)
        for group in self.problem.interchangeable:
            areas: list[Expression] = [
                sum(
                    (
                        self.problem.places[at].placement.profile.memory_slices * self._load[slot]
                        for at in members
                        for slot in self.slots.of_place[at]
                    ),
                    start=0,
                )
                for members in group
            ]
            for one, two in itertools.pairwise(areas):
                self.model.add(one >= two)

    # Solutions

    def fixed(self, places: Sequence[int]) -> cp_model.CpModel:
        """Return a copy of the model in which each task is at its given place, in any lifetime of it."""
        model = self.model.clone()
        for choices, at in zip(self.assigned, places, strict=True):
            there = [choices[slot].index for slot in self.slots.of_place[at] if slot in choices]
            # A task that is longer than the limit at this place has no choice: then there is no solution.
            model.add_bool_or([model.get_bool_var_from_proto_index(index) for index in there])
        return model

    def hint(self, values: Sequence[int]) -> None:
        """Give the solver a complete solution to start from: the value of every variable."""
        self.model.clear_hints()  # type: ignore[no-untyped-call]  # OR-Tools leaves it without a signature
        for index, value in enumerate(values):
            self.model.add_hint(self.model.get_int_var_from_proto_index(index), value)

    def _at(self, variable: cp_model.IntVar) -> int:
        return variable.index
