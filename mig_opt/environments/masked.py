"""Base class of the environments: discrete actions with a mask, on problems that are drawn, given or named."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import NDArray

from mig_opt.errors import InputError, Problem, nearest, problems_of, raise_any
from mig_opt.gpu.model import GpuModel, Placement
from mig_opt.instances.bundled import load
from mig_opt.rules import wrong_class, wrong_integer, wrong_number, wrong_type
from mig_opt.rules.vocabulary import is_integer

Observation = dict[str, Any]
Mask = NDArray[np.int8]
Choice = Callable[[Observation, Mask], int]
"""A trained model: takes an observation and its mask, and returns the number of an action that the mask allows."""

MOST_FORBIDDEN = 1000  # number of forbidden actions after which an episode is truncated

_Instance = TypeVar("_Instance")


class View(Protocol):
    """State of a problem as an agent sees it."""

    def observe(self) -> Observation:
        """Return what is to be seen."""

    def mask(self) -> Mask:
        """Return 1 for each action that is possible now, 0 for the others."""


def chosen(choose: Choice, view: View) -> int:
    """Return the action that a model takes; refuse one that the mask forbids."""
    mask = view.mask()
    action = _single(choose(view.observe(), mask))
    if not (is_integer(action) and 0 <= action < len(mask) and mask[action]):
        raise InputError([Problem("choose", f"must return an action that the mask allows, returned {action!r:.60}")])
    return int(action)


def unknown_keys(given: Iterable[str], known: Collection[str], prefix: str = "") -> Iterator[Problem]:
    """Yield a problem for each name that is not known."""
    for name in given:
        if name not in known:
            message = "is an argument of reset" if name == "seed" else f"is unknown; {nearest(name, sorted(known))}"
            yield Problem(f"{prefix}{name}", message)


def _single(action: Any) -> Any:
    """Return the only entry of an array, as models return it; anything else as it is."""
    return np.asarray(action).item() if np.size(action) == 1 else action


class MaskedEnv(gymnasium.Env[Observation, np.int64], Generic[_Instance]):
    """Environment with discrete actions, of which a mask allows some; each step is some seconds of an objective.

    The mask is in each ``info`` as ``action_mask``, and what :meth:`action_masks` returns. A forbidden action changes
    nothing and costs ``penalty`` seconds; after a thousand of them the episode is truncated.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # as gymnasium declares it

    def __init__(self, kind: type[_Instance], instance: _Instance | str | None, penalty: float) -> None:
        raise_any(wrong_number("penalty", penalty, "a finite number of seconds >= 0", at_least=0))
        self._kind, self._instance, self._penalty = kind, instance, penalty
        view = self._view = self._begin(self._found(instance, 0))
        self._forbidden = 0
        self.action_space = Discrete(len(view.mask()))
        most = np.finfo(np.float32).max
        self.observation_space = Dict({name: Box(0.0, most, seen.shape) for name, seen in view.observe().items()})

    @abstractmethod
    def _draw(self, seed: int) -> _Instance:
        """Return an instance drawn at random."""

    @abstractmethod
    def _begin(self, instance: _Instance) -> View:
        """Begin an episode, and return its view."""

    @abstractmethod
    def _act(self, action: int) -> tuple[float, bool]:
        """Carry out an action that is possible; return the seconds that it costs, and True if the episode is over."""

    @abstractmethod
    def _outcome(self) -> dict[str, Any]:
        """Return what the last ``info`` says of the episode."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode.

        Parameters
        ----------
        seed : int, optional
            From here on all that is drawn follows from it.
        options : dict, optional
            ``{"instance": NAME}`` for a bundled instance, or with the batch or the trace itself in place of the name.

        Raises
        ------
        InputError
            If there is no such instance, or this environment has no room for it.
        """
        super().reset(seed=seed)
        raise_any(wrong_class("options", options := options or {}, dict))
        raise_any(unknown_keys(options, ["instance"], "options."))
        self._forbidden = 0
        drawn = int(self.np_random.integers(2**31))
        self._view = self._begin(self._found(options.get("instance", self._instance), drawn))
        seen = self._view.observe()
        if not self.observation_space.contains(seen):
            message = "has no room in this environment; give it to make as instance=..., and there is room for it"
            raise InputError([Problem("instance", message)])
        return seen, {"action_mask": self._view.mask()}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Carry out an action. The last ``info`` has the schedule, which has passed the validator."""
        mask, number = self._view.mask(), _single(action)
        raise_any(wrong_integer("action", number, 0, len(mask) - 1))
        if not mask[number]:
            self._forbidden += 1
            info = {"action_mask": mask, "forbidden": True}
            return self._view.observe(), -self._penalty, False, self._forbidden >= MOST_FORBIDDEN, info
        seconds, over = self._act(int(number))
        outcome = self._outcome() if over else {}
        return self._view.observe(), -seconds, over, False, {"action_mask": self._view.mask(), **outcome}

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the mask as truth values, as maskable PPO asks for it."""
        return self._view.mask().astype(bool)

    def _found(self, given: _Instance | str | None, seed: int) -> _Instance:
        """Return what is given, the bundled instance of that name, or one that is drawn."""
        if isinstance(given, str):
            raise_any(Problem("instance", problem.message) for problem in problems_of(load, given))
        instance: Any = load(given) if isinstance(given, str) else self._draw(seed) if given is None else given
        if not isinstance(instance, self._kind):
            raise InputError([wrong_type("instance", instance, f"a {self._kind.__name__}, or the name of one")])
        return instance


def slice_shares(gpu: GpuModel, placements: Iterable[Placement]) -> NDArray[np.float32]:
    """Return for each placement its shares of the compute and of the memory slices of a GPU."""
    compute, memory = gpu.compute_slices, gpu.memory_slices
    shares = [(placed.profile.compute_slices / compute, placed.profile.memory_slices / memory) for placed in placements]
    return np.array(shares, dtype=np.float32)
