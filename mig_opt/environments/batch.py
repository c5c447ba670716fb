"""The environment ``mig_opt/Batch-v0``: the tasks of a batch are put on placements, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.environments.masked import Choice, Mask, MaskedEnv, Observation, chosen, slice_shares, unknown_keys
from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.heuristics.batch.list_schedule import ScheduleBuilder
from mig_opt.instances.batch import MOST_TASKS, generate_batch
from mig_opt.rules import wrong_integer
from mig_opt.validation import validate


class BatchView:
    """A batch of which some tasks have a place, as an agent sees it.

    Action ``task x places + place`` puts a task behind what its instance has to run; if there is none, it is created,
    and what is in the way is destroyed once its tasks have ended. Places are the placements of GPU 0, GPU 1 and so on.

    Parameters
    ----------
    batch : Batch
        The batch.
    slots : int
        Number of tasks that observations have room for, if the batch has not more.

    Raises
    ------
    InputError
        If a task fits on no instance.
    """

    def __init__(self, batch: Batch, slots: int = 0) -> None:
        if nowhere := batch.unplaceable():
            raise InputError(Problem(f"tasks[{index}]", "fits on no instance") for index in nowhere)
        self.batch, self.makespan = batch, 0.0
        self._builder = ScheduleBuilder(batch)
        kinds = [batch.kind(gpu) for gpu in range(batch.gpus)]
        placements = [kind.placements("double-memory") for kind in kinds]
        self._places = [(gpu, placement) for gpu, there in enumerate(placements) for placement in there]
        self._shares = np.vstack([slice_shares(kind, there) for kind, there in zip(kinds, placements, strict=True)])
        able = [[task.time_on(placement.profile) is not None for _, placement in self._places] for task in batch.tasks]
        sizes = [
            [profile for profile in kind.profiles_of("double-memory") if profile.compute_slices == size]
            for kind in batch.kinds
            for size in kind.sizes
        ]
        seconds = [[*(max(task.time_on(p) or 0.0 for p in own) for own in sizes), 1.0] for task in batch.tasks]
        empty = (0, max(slots - len(able), 0)), (0, 0)
        self._able, self._tasks = np.pad(able, empty), np.pad(seconds, empty).astype(np.float32)

    @property
    def over(self) -> bool:
        """True once every task has a place."""
        return not self._able.any()

    def observe(self) -> Observation:
        """Return what is to be seen: the tasks, the places, and the makespan so far, in seconds.

        A row of ``tasks`` has the seconds on each size of instance of each kind of GPU, smallest first (0 where a task
        cannot run), and 1 while it waits. A row of ``places`` has the second at which a task would begin there, 1 if
        the instance exists, and its shares of the compute and of the memory slices.
        """
        begins = [(self._builder.begin(*place), self._builder.exists(*place)) for place in self._places]
        places = np.hstack((np.array(begins, dtype=np.float32), self._shares))
        return {"tasks": self._tasks.copy(), "places": places, "makespan": np.array([self.makespan], np.float32)}

    def mask(self) -> Mask:
        """Return 1 for each action that is possible now; for all once it is over, when none has an effect."""
        return (self._able | self.over).ravel().astype(np.int8)

    def act(self, action: int) -> None:
        """Put a task on a placement."""
        if self.over:
            return
        task, place = divmod(action, len(self._places))
        self._builder.put(self.batch.tasks[task], *self._places[place])
        self._able[task], self._tasks[task, -1] = False, 0
        self.makespan = self._builder.schedule().makespan

    def schedule(self) -> Schedule:
        """Return the schedule of the tasks that have a place, which has passed the validator once all have."""
        schedule = self._builder.schedule()
        if self.over:
            verdict = validate(self.batch, schedule)
            assert verdict.valid, verdict.violations[0]
        return schedule


class BatchEnv(MaskedEnv[Batch]):
    """Batches on one or several GPUs; the rewards of an episode add up to minus the makespan.

    Observations and actions are those of :class:`BatchView`. The last ``info`` has the ``batch``, its ``schedule``, and
    the ``makespan`` in seconds.

    Parameters
    ----------
    tasks : int
        Number of tasks where batches are drawn, and of those for which there is room.
    gpu, gpus
        The kind of GPU, and how many.
    instance : Batch or str, optional
        The batch of every episode, on whatever GPUs. By default each has another one, by
        :func:`mig_opt.generate_batch`.
    penalty : float
        Cost of an action that the mask forbids, in seconds.
    **parameters
        Further arguments of :func:`mig_opt.generate_batch`.

    Examples
    --------
    >>> import gymnasium, mig_opt.environments
    >>> env = gymnasium.make("mig_opt/Batch-v0", tasks=8, gpu="A30")
    >>> _, info = env.reset(seed=1, options={"instance": "rodinia-a30"})
    >>> total, over = 0.0, False
    >>> while not over:
    ...     _, reward, over, _, info = env.step(info["action_mask"].argmax())
    ...     total -= float(reward)
    >>> f"{info['makespan']:.2f} s, {total:.2f} s"
    '56.05 s, 56.05 s'
    """

    def __init__(
        self,
        tasks: int = 12,
        *,
        gpu: str = "A100",
        gpus: int = 1,
        instance: Batch | str | None = None,
        penalty: float = 1.0,
        **parameters: Any,
    ) -> None:
        known = {*signature(BatchEnv).parameters, *signature(generate_batch).parameters} - {"n", "seed", "parameters"}
        raise_any([*wrong_integer("tasks", tasks, 1, MOST_TASKS), *unknown_keys(parameters, known)])
        self._slots, self._parameters = tasks, {"gpu": gpu, "gpus": gpus, **parameters}
        super().__init__(Batch, instance, penalty)

    def _draw(self, seed: int) -> Batch:
        return generate_batch(self._slots, seed=seed, **self._parameters)

    def _begin(self, instance: Batch) -> BatchView:
        self._state = BatchView(instance, self._slots)
        return self._state

    def _act(self, action: int) -> tuple[float, bool]:
        before = self._state.makespan
        self._state.act(action)
        return self._state.makespan - before, self._state.over

    def _outcome(self) -> dict[str, Any]:
        return {"batch": self._state.batch, "schedule": self._state.schedule(), "makespan": self._state.makespan}


@dataclass(eq=False)
class BatchAgent:
    """A trained model as a heuristic: called with a batch, it returns the schedule.

    :func:`mig_opt.solve` and :func:`mig_opt.compare` take it in place of the name of a method.

    Parameters
    ----------
    choose : callable
        The model: takes an observation and its mask, and returns an action.
    tasks : int
        Number of tasks that its observations have room for, if a batch has not more.

    Examples
    --------
    >>> from mig_opt import load
    >>> first = BatchAgent(lambda observation, mask: mask.argmax())
    >>> round(first(load("rodinia-a30")).makespan, 2)
    56.05
    """

    choose: Choice
    tasks: int = 0

    def __call__(self, batch: Batch) -> Schedule:
        """Return the schedule that the model makes."""
        view = BatchView(batch, self.tasks)
        while not view.over:
            view.act(chosen(self.choose, view))
        return view.schedule()
