"""Cards, frames and pictures of problems, plans and results, for notebooks; all are made by :mod:`mig_opt.views`."""

from __future__ import annotations

from typing import Any

from mig_opt.method.functions import imported

_VIEWS = "mig_opt.views"  # imported when something is shown, so that the package stays fast to import


class Carded:
    """Object that a notebook shows as a card."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(imported(f"{_VIEWS}.cards:card_of")(self))


class Shown(Carded):
    """Object that a notebook shows as a card, and that can become a frame and a picture."""

    __slots__ = ()

    def to_frame(self) -> Any:
        """Return the entries as a pandas frame.

        Of a batch these are the tasks, with the columns of a CSV file that :func:`mig_opt.read` reads: ``task``, for
        each size of instance its seconds (``t1_s``, ``t2_s`` ...), ``memory_gb``. Of a schedule they are the runs, by
        GPU and begin; of a deployment the segments, by GPU and start slice; of a result those of its plan; of a
        simulation the jobs, in the order of their arrivals, with ``arrival``, ``scheduled``, ``finished``, ``wait`` and
        ``flow_time`` in seconds, and ``done``; of a simulation of requests the services with their latencies.

        Returns
        -------
        pandas.DataFrame
            A column for each attribute of the entries; what an entry does not have is missing.

        Raises
        ------
        InputError
            If pandas is not installed.

        Examples
        --------
        >>> from mig_opt import Batch, Run, Schedule, Task, get_gpu
        >>> frame = Batch((Task("a", {1: 4.0, 2: 2.5}), Task("b", {4: 3.0})), get_gpu("A30")).to_frame()
        >>> print(frame[["task", "t1_s", "t2_s", "t4_s"]].to_string(index=False, na_rep="-"))
        task  t1_s  t2_s  t4_s
           a   4.0   2.5     -
           b     -     -   3.0
        >>> schedule = Schedule((Run("a", 0, "4g.24gb", 0, begin=0.13, end=2.13),))
        >>> print(schedule.to_frame().to_string(index=False))
        task  gpu profile  start  begin  end
           a    0 4g.24gb      0   0.13 2.13
        """
        return imported(f"{_VIEWS}.cards:frame_of")(self)

    def plot(self, *of: Any, **options: Any) -> Any:
        """Draw the picture of it, as :func:`mig_opt.plot` does.

        Parameters
        ----------
        *of : Batch or Demand
            Of a schedule the batch that was planned. Of a deployment, where it is to be drawn with its rates, the
            demand that it is for.
        **options
            ``title``, in place of the usual one; of a schedule ``lower_bound`` in seconds, a dashed line beside the
            makespan. Results draw their plans with what they know of both.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which a notebook shows.

        Raises
        ------
        InputError
            If matplotlib is not installed, or there is nothing to draw: a schedule does not belong to GPUs as those of
            the batch, or a result has no plan, or is from a file and knows no batch.

        Examples
        --------
        >>> from mig_opt import load, solve
        >>> load("rodinia-a30").plot().axes[0].get_xlabel()
        'seconds on an instance (logarithmic)'
        >>> figure = solve(load("rodinia-a30"), "far").plot(title="eight kernels")
        >>> figure.axes[0].get_xlabel()
        'time in seconds'
        """
        return imported(f"{_VIEWS}.pictures:plotted")(self, *of, **options)
