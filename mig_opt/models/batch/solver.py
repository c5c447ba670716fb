"""What a search asks of a solver of block models, and what it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.schedule import Schedule
from mig_opt.control import Control
from mig_opt.models.solvers.backend import IntegerOutcome, Request


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

    def improve(self, model: M, control: Control[Schedule], request: Request) -> IntegerOutcome:
        """Minimise, and report on the way."""

    def complete(self, model: M, places: Sequence[int], control: Control[Schedule], *, share: float) -> IntegerOutcome:
        """Find the best solution with each task at its given place, within that share of the time that is left."""
