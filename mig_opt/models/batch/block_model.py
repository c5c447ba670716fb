"""The block model (:mod:`mig_opt.models.batch.block_formulation`) for CP-SAT."""

from __future__ import annotations

from collections.abc import Sequence

from ortools.sat.python import cp_model

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.models.batch.block_formulation import BlockForm, BlockFormulation
from mig_opt.models.solvers.cpsat import CpRows, weighted_sum


def seconds_to_build(problem: IntegerBatch) -> float:
    """Return about how long it takes to build a block model on a typical machine.

    A model has a literal for each task and place, and looks at each pair of places.
    """
    return 14e-6 * problem.choices + 0.3e-6 * len(problem.places) ** 2


class BlockModel(BlockFormulation):
    """A CP-SAT model of a batch, whose objective is the makespan in ticks."""

    def __init__(self, problem: IntegerBatch, form: BlockForm) -> None:
        self.model = cp_model.CpModel()  # its objective is the makespan in ticks
        super().__init__(problem, form, CpRows(self.model), int)
        self._horizon = form.at_most
        self._makespan = self.model.new_int_var(form.at_least, form.at_most, "makespan")
        self._build(form)
        self.model.minimize(self._makespan)

    def _use(self, choices: Sequence[Sequence[cp_model.IntVar]]) -> list[cp_model.IntVar]:
        return [self.rows.any("used", own) for own in choices]

    # The order in time

    def _order(self) -> None:
        model = self.model
        self._in_time = [self._tight(slot) for slot in range(len(self.slots.lifetimes))]
        operations: dict[int, list[cp_model.IntervalVar]] = {gpu: [] for gpu in self.problem.gpus}
        self._destroyed: list[cp_model.IntVar] = []
        for slot, lifetime in enumerate(self.slots.lifetimes):
            place, in_time = self._place(slot), self._in_time[slot]
            ready: cp_model.LinearExpr | int = place.free or 0
            if not lifetime.initial:
                creation = self.creation[slot] = model.new_int_var(0, self._horizon, f"creation{slot}")
                ready = creation + place.create
                operations[place.gpu].append(
                    model.new_optional_fixed_size_interval_var(creation, place.create, in_time, f"create{slot}")
                )
            end = weighted_sum(self._load[slot]) + ready
            runs = in_time if not lifetime.initial else self.used[slot]
            model.add(end <= self._makespan).only_enforce_if(runs)
            destruction = self.destruction[slot] = model.new_int_var(0, self._horizon, f"destruction{slot}")
            destroyed = model.new_bool_var(f"destroyed{slot}")
            self._destroyed.append(destroyed)
            model.add(destruction >= end).only_enforce_if(destroyed)
            operations[place.gpu].append(
                model.new_optional_fixed_size_interval_var(destruction, place.destroy, destroyed, f"destroy{slot}")
            )
        self._follow()
        if not self.problem.batch.parallel_operations:
            for intervals in operations.values():
                model.add_no_overlap(intervals)

    def _tight(self, slot: int) -> cp_model.LiteralT:
        """Return a literal, true if a lifetime has a place in time: it exists, and its place is not loose."""
        lifetime = self.slots.lifetimes[slot]
        loose: cp_model.IntVar | None = self.loose.get(lifetime.place)
        if lifetime.initial:
            return self.model.new_constant(1) if loose is None else ~loose
        used: cp_model.IntVar = self.used[slot]
        if loose is None:
            return used
        tight = self.model.new_bool_var(f"tight{slot}")
        self.model.add_implication(tight, used)
        self.model.add_implication(tight, ~loose)
        self.model.add_bool_or([tight, ~used, loose])
        return tight

    def _put_before(self, one: int, two: int) -> cp_model.IntVar:
        before = self.before[one, two] = self.model.new_bool_var(f"before{one}_{two}")
        for effect in (self._in_time[one], self._in_time[two], self._destroyed[one]):
            self.model.add_implication(before, effect)
        cleared = self.destruction[one] + self._place(one).destroy
        self.model.add(cleared <= self.creation[two]).only_enforce_if(before)
        return before

    def _exclude(self, one: int, two: int, orders: Sequence[cp_model.IntVar]) -> None:
        self.model.add_bool_or([*orders, ~self._in_time[one], ~self._in_time[two]])
        self.model.add_at_most_one(orders)

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
