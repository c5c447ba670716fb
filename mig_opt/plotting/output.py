"""Checks the input of a chart, draws it and writes it to a file."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import math
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.model import GpuModel, get_gpu
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, check_deployments

if TYPE_CHECKING:
    from matplotlib.figure import Figure

from mig_opt.plotting.batch import Chart
from mig_opt.plotting.serving import FleetChart
from mig_opt.plotting.texts import spell_seconds

_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "svg": {"Creator": None, "Date": None},
}
"""The formats, each with what has to be blanked so that equal charts are equal files."""

_SAVING: dict[Any, Any] = {
    "svg.hashsalt": "mig-opt",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "text.hinting": "none",
}


def check_plot_path(path: str | os.PathLike[str]) -> None:
    """Check, before a long computation, that :func:`save_plot` will be able to write ``path``.

    Parameters
    ----------
    path : path-like
        The file to be written; its suffix gives the format: png, pdf or svg.

    Raises
    ------
    InputError
        If the suffix is another one, the folder does not exist or cannot be written, or matplotlib is not installed.

    Examples
    --------
    >>> check_plot_path("schedule.jpeg")
    Traceback (most recent call last):
    ...
    mig_opt.errors.InputError: schedule.jpeg: charts are written as .png, .pdf or .svg, not as '.jpeg'
    """
    from mig_opt.files import check_writable

    target, problems = Path(path), []
    if _format(target) not in _METADATA:
        given = f"not as {target.suffix!r}" if target.suffix else "and the name has no suffix"
        problems.append(Problem(str(target), f"charts are written as .png, .pdf or .svg, {given}"))
    try:
        check_writable(target)
    except InputError as error:
        problems += [Problem(str(target), problem.message) for problem in error.problems]
    problems += matplotlib_problems()
    if problems:
        raise InputError(problems)


def save_plot(
    batch: Batch,
    schedule: Schedule,
    path: str | os.PathLike[str],
    *,
    lower_bound: float | None = None,
    title: str | None = None,
    dpi: float = 150,
) -> None:
    """Write the chart of :func:`plot_schedule` to a file.

    Equal arguments give equal files. An existing file is replaced only when the new one is complete.

    Parameters
    ----------
    batch, schedule, lower_bound, title
        As for :func:`plot_schedule`.
    path : path-like
        The file; its suffix gives the format: png, pdf or svg.
    dpi : float
        Dots per inch of a png.

    Raises
    ------
    InputError
        As :func:`plot_schedule` and :func:`check_plot_path`, and if the file cannot be written.
    """
    check_plot_path(path)
    save_figure(plot_schedule(batch, schedule, lower_bound=lower_bound, title=title), Path(path), dpi)


def save_figure(figure: Figure, target: Path, dpi: float) -> None:
    """Write a figure to a file whose path has been checked; the same figure gives the same file."""
    import matplotlib as mpl

    data, kind = io.BytesIO(), _format(target)
    with mpl.rc_context(_SAVING), any_characters():
        figure.savefig(data, format=kind, dpi=dpi, metadata=_METADATA[kind])
    try:
        # A folder rather than a file of tempfile, whose files only their owner can read.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".mig-opt-") as folder:
            (Path(folder) / "chart").write_bytes(data.getvalue())
            (Path(folder) / "chart").replace(target)
    except OSError as error:
        raise InputError([Problem(str(target), f"cannot be written: {error.strerror or error}")]) from error


def save_deployment_plot(
    deployment: Deployment,
    path: str | os.PathLike[str],
    *,
    demand: Demand | None = None,
    title: str | None = None,
    dpi: float = 150,
) -> None:
    """Write the chart of :func:`plot_deployment` to a file, as :func:`save_plot` does for schedules.

    Parameters
    ----------
    deployment, demand, title
        As for :func:`plot_deployment`.
    path : path-like
        The file; its suffix gives the format: png, pdf or svg.
    dpi : float
        Dots per inch of a png.

    Raises
    ------
    InputError
        As :func:`plot_deployment` and :func:`check_plot_path`, and if the file cannot be written.
    """
    check_plot_path(path)
    save_figure(plot_deployment(deployment, demand, title=title), Path(path), dpi)


def plot_deployment(deployment: Deployment, demand: Demand | None = None, *, title: str | None = None) -> Figure:
    """Draw a deployment: each GPU is a row of memory slices, in which segments have the colours of their services.

    A segment shows as much as fits of its service, its profile, and its batch size x processes; at least the number of
    the service, which the legend explains. Compute slices in no segment are hatched in grey, those that an instance
    takes without being able to use them (a 3g at slice 0 of an A100) in the colour of its service. Of more than 16 GPUs
    those with the same segments share a row. The deployment need not be valid.

    Parameters
    ----------
    deployment : Deployment
        What to draw.
    demand : Demand, optional
        What it is for: the legend then has the rates of the services beside the throughputs.
    title : str, optional
        By default the name of the demand, the number of GPUs and their kinds, compute slices and fragmentation.

    Returns
    -------
    matplotlib.figure.Figure
        The group ids of the artists say what they are: ``segment:<index>`` (in the deployment), ``label:<index>``,
        ``lost:<index>``, ``gpu:<first of the row>``, ``row:<...>`` and ``empty:<...>`` and ``unused:<...>:<slice>``.

    Raises
    ------
    InputError
        If matplotlib is not installed, or a segment names a GPU or profile that is not there.

    Examples
    --------
    >>> from mig_opt.serving.deployment import Deployment, Segment
    >>> segment = Segment("chat", 0, "3g.40gb", 4, batch=8, processes=2, throughput=410.0, latency=0.04)
    >>> figure = plot_deployment(Deployment(("A100-80GB",), (segment,)))
    >>> figure.axes[0].get_xlabel()
    'memory slice (slice 7 has no compute)'
    """
    check_deployments(deployment=deployment)
    problems = [*matplotlib_problems(), *_deployment_problems(deployment)]
    if problems:
        raise InputError(problems)
    with any_characters():
        wording = _deployment_title(deployment, demand) if title is None else title
        return FleetChart(deployment, demand, wording).draw()


def plot_schedule(
    batch: Batch, schedule: Schedule, *, lower_bound: float | None = None, title: str | None = None
) -> Figure:
    """Draw a schedule as a Gantt chart over the memory slices of the GPUs.

    A task whose name does not fit into its rectangle shows a number instead, explained below the chart. The schedule
    need not be valid: a chart is a good way to see what is wrong with it.

    Parameters
    ----------
    batch : Batch
        What was planned.
    schedule : Schedule
        The plan. Without operations, only runs are drawn.
    lower_bound : float, optional
        Seconds; drawn as a dashed line beside the makespan.
    title : str, optional
        By default the batch's name, the GPUs and the makespan.

    Returns
    -------
    matplotlib.figure.Figure
        One panel (``figure.axes``) for each GPU. The group ids of the artists say what they are: ``run:<task>``,
        ``label:<task>``, ``create:<index>`` and ``destroy:<index>`` (of the operation), ``instance:<index>``,
        ``profile:<index>``, ``earlier:<index>`` (of ``batch.initial``), ``makespan``, ``lower-bound``
        and their ``...-label``.

    Raises
    ------
    InputError
        If matplotlib is not installed, or the schedule names a GPU or profile that the batch does not have, or a time
        that is not finite.

    Examples
    --------
    >>> from mig_opt import Batch, Run, Schedule, Task, get_gpu
    >>> batch = Batch((Task("a", {4: 2.0}),), get_gpu("A30"))
    >>> figure = plot_schedule(batch, Schedule((Run("a", 0, "4g.24gb", 0, begin=0.13, end=2.13),)))
    >>> figure.axes[0].get_xlabel()
    'time in seconds'
    """
    problems = [*matplotlib_problems(), *_schedule_problems(batch, schedule, lower_bound)]
    if problems:
        raise InputError(problems)
    with any_characters():
        return Chart(batch, schedule, lower_bound, _default_title(batch, schedule) if title is None else title).draw()


@contextlib.contextmanager
def any_characters() -> Iterator[None]:
    """Silence matplotlib about characters that its font lacks: boxes stand for them, as everywhere."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from", UserWarning)
        warnings.filterwarnings("ignore", r"Matplotlib currently does not support .* natively", UserWarning)
        yield


def _format(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def matplotlib_problems() -> list[Problem]:
    """Return what is wrong if there is no matplotlib."""
    if importlib.util.find_spec("matplotlib") is not None:
        return []
    return [Problem("", 'charts need matplotlib, which is not installed: pip install "mig-opt[plot]"')]


def _schedule_problems(batch: Batch, schedule: Schedule, lower_bound: float | None) -> Iterator[Problem]:
    parts: list[tuple[str, Run | Operation]] = [(f"runs[{i}]", run) for i, run in enumerate(schedule.runs)]
    parts += [(f"operations[{i}]", operation) for i, operation in enumerate(schedule.operations or ())]
    for path, part in parts:
        if not 0 <= part.gpu < batch.gpus:
            yield Problem(f"{path}.gpu", f"must be from 0 to {batch.gpus - 1}, is {part.gpu}")
        try:
            batch.gpu.profile(part.profile)
        except InputError as error:
            yield from (problem.below(path) for problem in error.problems)
        for key, seconds in (("begin", part.begin), ("end", part.end)):
            if not math.isfinite(seconds):
                yield Problem(f"{path}.{key}", f"must be a finite number of seconds, is {seconds}")
    if lower_bound is not None and not math.isfinite(lower_bound):
        yield Problem("lower_bound", f"must be a finite number of seconds, is {lower_bound}")


def _deployment_problems(deployment: Deployment) -> Iterator[Problem]:
    models: dict[int, GpuModel] = {}
    for gpu, name in enumerate(deployment.gpus):
        try:
            models[gpu] = get_gpu(name)
        except InputError as error:
            yield from (Problem(f"gpus[{gpu}]", problem.message) for problem in error.problems)
    for index, segment in enumerate(deployment.segments):
        if not 0 <= segment.gpu < len(deployment.gpus):
            message = f"must be from 0 to {len(deployment.gpus) - 1}, is {segment.gpu}"
            yield Problem(f"segments[{index}].gpu", message)
        elif segment.gpu in models:
            try:
                models[segment.gpu].profile(segment.profile)
            except InputError as error:
                yield from (problem.below(f"segments[{index}]") for problem in error.problems)


def _deployment_title(deployment: Deployment, demand: Demand | None) -> str:
    kinds = Counter(model.name for model in map(get_gpu, deployment.gpus))
    gpus = " + ".join(f"{count} x {kind}" for kind, count in kinds.items()) or "no GPUs"
    idle = len(deployment.gpus) - deployment.used_gpus
    slices = sum(deployment.model(gpu).compute_slices for gpu in {segment.gpu for segment in deployment.segments})
    parts = [demand.name if demand else "", f"{gpus}{f' ({idle} without segments)' if idle else ''}"]
    parts.append(f"{deployment.compute_slices} of {slices} compute slices")
    parts.append(f"fragmentation {100 * deployment.external_fragmentation:.3g} %")
    return " · ".join(filter(None, parts))


def _default_title(batch: Batch, schedule: Schedule) -> str:
    gpus = batch.gpu.label if batch.gpus == 1 else f"{batch.gpus} x {batch.gpu.label}"
    return " · ".join(filter(None, [batch.name, gpus, f"makespan {spell_seconds(schedule.makespan)}"]))
