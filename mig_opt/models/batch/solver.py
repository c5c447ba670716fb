"""What a search asks of a solver of block models, and what it gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.schedule import Schedule
from mig_opt.control import Control


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The schedules that a block model has.

    Attributes
    ----------
    at_least, at_most : int
        Ticks between which the makespan is sought.
    relaxed : bool
        Whether placements may be created more often than ``copies``.
    copies : mapping of int to int
        Creations with a place in time, by index of place; one where nothing is given.
    """

    at_least: int = 0
    at_most: int
    relaxed: bool
    copies: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a solver is to do with a model.

    Attributes
    ----------
    at_least : int
        A known lower bound of the objective.
    share : float
        The part of the remaining time that the run may take. In a deterministic run this is time as the solver counts
        it, by its own operations.
    for_proof : bool
        Whether a proof is wanted rather than better solutions on the way.
    on_solution : callable or None
        Called with the values of every variable for each better solution.
    on_bound : callable or None
        Called with each better bound.
    """

    at_least: int = 0
    share: float = 1.0
    for_proof: bool = False
    on_solution: Callable[[Sequence[int]], None] | None = None
    on_bound: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a solver ended with, in ticks.

    Attributes
    ----------
    values : sequence of int or None
        The value of every variable in the best solution; None if there is none.
    objective : int or None
        Its objective.
    bound : int
        No solution has a smaller objective. (If there is no solution at all, ``infeasible`` says so.)
    proven : bool
        Whether the solution is optimal for the model.
    infeasible : bool
        Whether the model has no solution.
    blur : int
        Ticks that the tolerances of the solver do not tell apart: an optimum may be that much above its ``bound``.
    """

    values: Sequence[int] | None
    objective: int | None
    bound: int
    proven: bool
    infeasible: bool
    blur: int = 0


class Model(Protocol):
    """A block model, and what its solutions mean."""

    def places_of(self, values: Sequence[int]) -> list[int]:
        """Return the place of each task."""

    def loose_places(self, values: Sequence[int]) -> list[int]:
        """Return the places that are loose."""

    def schedule(self, values: Sequence[int]) -> Schedule:
        """Return the schedule of a solution without loose places, with the true times."""

    def hint(self, values: Sequence[int]) -> None:
        """Let the solver start from this solution."""


M = TypeVar("M", bound=Model)


class Solver(Protocol[M]):
    """Builds block models and solves them.

    Attributes
    ----------
    name : str
        For messages.
    """

    name: str

    def seconds_to_build(self, problem: IntegerBatch) -> float:
        """Return about how long it takes to build a model."""

    def build(self, problem: IntegerBatch, form: Form) -> M:
        """Return a model."""

    def improve(self, model: M, control: Control[Schedule], request: Request) -> Outcome:
        """Minimise, and report on the way."""

    def complete(self, model: M, places: Sequence[int], control: Control[Schedule], *, share: float) -> Outcome:
        """Find the best solution with each task at its given place, within that share of the time that is left."""
