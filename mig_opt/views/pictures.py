"""The one way to a picture: the scene of what is given, checked, drawn as a figure or written to a file."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack, overload

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule, ScheduleResult
from mig_opt.errors import InputError, Problem, problems_of, raise_any
from mig_opt.rules import wrong_class, wrong_number
from mig_opt.serving.day import DayResult
from mig_opt.serving.deployment import Deployment, DeploymentResult
from mig_opt.simulation.fleet.simulator import Simulation
from mig_opt.simulation.serving.outcome import RequestSimulation
from mig_opt.views.batch.schedules import execution_scene, schedule_scene
from mig_opt.views.batch.tasks import batch_scene
from mig_opt.views.fleet.simulations import simulation_scene
from mig_opt.views.scene import Scene
from mig_opt.views.serving.days import day_scene
from mig_opt.views.serving.deployments import deployment_scene
from mig_opt.views.serving.latencies import latency_scene

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mig_opt.fleet.admission import Acceptance
    from mig_opt.fleet.bounds import TraceBounds
    from mig_opt.serving.demand import Demand

    _Bounds = TraceBounds | Acceptance

PathLike = str | os.PathLike[str]
_Simulations = Simulation | Sequence[Simulation]


class _Shown(TypedDict, total=False):
    """Keywords for a picture that is returned as a figure."""

    title: str | None


class _Written(_Shown, total=False):
    """Keywords for a picture that becomes a file."""

    to: Required[PathLike]
    dpi: float


_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "svg": {"Creator": None, "Date": None},
}
"""The formats of matplotlib, each with what has to be blanked so that equal charts are equal files."""

_PAGE = "html"
_LIBRARIES = (("matplotlib", "charts need", "plot"), ("bokeh", "pages to explore (.html) need", "html"))
"""Packages that draw images and pages: name, the words of who needs it, and the extra that has it."""

_SAVING: dict[Any, Any] = {
    "svg.hashsalt": "mig-opt",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "text.hinting": "none",
}


def check_plot_path(path: PathLike) -> None:
    """Check, before a long computation, that :func:`mig_opt.plot` will be able to write ``path``.

    Parameters
    ----------
    path : path-like
        The file to be written; its suffix gives the format: png, pdf, svg or html.

    Raises
    ------
    InputError
        If the suffix is another one, the folder does not exist or cannot be written, or what draws such a
        file (matplotlib, or bokeh for html) is not installed.

    Examples
    --------
    >>> check_plot_path("schedule.jpeg")
    Traceback (most recent call last):
    ...
    mig_opt.errors.InputError: schedule.jpeg: charts are written as .png, .pdf, .svg or .html, not as '.jpeg'
    """
    from mig_opt.files.documents import check_writable, file_path

    target, problems = file_path(path, "to"), []
    if _format(target) not in {*_METADATA, _PAGE}:
        given = f"not as {target.suffix!r}" if target.suffix else "and the name has no suffix"
        problems.append(Problem(str(target), f"charts are written as .png, .pdf, .svg or .html, {given}"))
    problems += [Problem(str(target), problem.message) for problem in problems_of(check_writable, target)]
    raise_any([*problems, *_missing(_format(target))])


def draw(scene: Scene) -> Figure:
    """Return a scene as a figure."""
    from mig_opt.views.image import Image

    with _any_characters():
        return Image(scene).draw()


def save(scene: Scene, path: PathLike, dpi: float) -> None:
    """Write a scene as image or page; the same one gives the same file."""
    from mig_opt.files.documents import write_bytes

    target = Path(path)
    if _format(target) == _PAGE:
        from mig_opt.views.page import compose_page

        data = compose_page(scene).encode()
    else:
        import matplotlib as mpl

        figure, image, kind = draw(scene), io.BytesIO(), _format(target)
        with mpl.rc_context(_SAVING), _any_characters():
            figure.savefig(image, format=kind, dpi=dpi, metadata=_METADATA[kind])
        data = image.getvalue()
    raise_any(Problem(str(target), problem.message) for problem in problems_of(write_bytes, target, data))


@contextlib.contextmanager
def _any_characters() -> Iterator[None]:
    """Silence matplotlib about characters that its font lacks: boxes stand for them, as everywhere."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from", UserWarning)
        warnings.filterwarnings("ignore", r"Matplotlib currently does not support .* natively", UserWarning)
        yield


def _format(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def _missing(kind: str) -> list[Problem]:
    """Return the problem that what draws a kind of file is not installed, if that is so."""
    package, need, extra = _LIBRARIES[kind == _PAGE]
    if importlib.util.find_spec(package) is not None:
        return []
    return [Problem("", f'{need} {package}, which is not installed: pip install "mig-opt[{extra}]"')]


_SCENES: dict[tuple[type, int], Callable[..., Scene]] = {
    (Batch, 0): batch_scene,
    (Batch, 1): schedule_scene,
    (Batch, 2): execution_scene,
    (Deployment, 0): deployment_scene,
    (DayResult, 0): day_scene,
    (RequestSimulation, 0): latency_scene,
    (Simulation, 0): simulation_scene,
}
"""The picture of a class with a number of schedules."""


@overload
def plot(batch: Batch, schedule: Schedule, /, *, lower_bound: float | None = None, **how: Unpack[_Shown]) -> Figure: ...
@overload
def plot(batch: Batch, schedule: Schedule, /, *, lower_bound: float | None = None, **how: Unpack[_Written]) -> None: ...
@overload
def plot(batch: Batch, plan: Schedule, measured: Schedule, /, **how: Unpack[_Shown]) -> Figure: ...
@overload
def plot(batch: Batch, plan: Schedule, measured: Schedule, /, **how: Unpack[_Written]) -> None: ...
@overload
def plot(content: Batch | DayResult, /, **how: Unpack[_Shown]) -> Figure: ...
@overload
def plot(content: Batch | DayResult, /, **how: Unpack[_Written]) -> None: ...
@overload
def plot(deployment: Deployment, /, *, demand: Demand | None = None, **how: Unpack[_Shown]) -> Figure: ...
@overload
def plot(deployment: Deployment, /, *, demand: Demand | None = None, **how: Unpack[_Written]) -> None: ...
@overload
def plot(requests: RequestSimulation, /, *, promise: float | None = None, **how: Unpack[_Shown]) -> Figure: ...
@overload
def plot(requests: RequestSimulation, /, *, promise: float | None = None, **how: Unpack[_Written]) -> None: ...
@overload
def plot(simulations: _Simulations, /, *, bounds: _Bounds | None = None, **how: Unpack[_Shown]) -> Figure: ...
@overload
def plot(simulations: _Simulations, /, *, bounds: _Bounds | None = None, **how: Unpack[_Written]) -> None: ...
def plot(
    content: Any, /, *more: Any, to: PathLike | None = None, title: str | None = None, dpi: float = 150, **options: Any
) -> Any:
    """Draw a batch, a schedule, an execution, a deployment, a day, latencies, or simulations.

    Equal arguments give equal files. An existing file is replaced only when the new one is complete.

    Parameters
    ----------
    content : Batch, Deployment, DayResult, RequestSimulation, Simulation or sequence of Simulation
        What to draw.
    *more : Schedule
        With a batch: its schedule, or the plan of an execution and what was measured.
    to : path-like, optional
        The file to write; its suffix gives the format: png, pdf, svg, or html for a page to explore.
    title : str, optional
        In place of the usual one.
    dpi : float
        Of a png.
    **options
        ``lower_bound`` of a schedule, ``demand`` of a deployment, ``promise`` of latencies, ``bounds`` of simulations:
        as for :func:`mig_opt.views.batch_scene`, :func:`mig_opt.views.schedule_scene`,
        :func:`mig_opt.views.execution_scene`, :func:`mig_opt.views.deployment_scene`,
        :func:`mig_opt.views.day_scene`, :func:`mig_opt.views.latency_scene` and
        :func:`mig_opt.views.simulation_scene`.

    Returns
    -------
    matplotlib.figure.Figure or None
        The figure, or None if a file was written.

    Raises
    ------
    InputError
        If there is nothing to draw, what draws it (matplotlib, or bokeh for html) is not installed, or the file cannot
        be written.

    Examples
    --------
    >>> from mig_opt import load, solve
    >>> batch = load("rodinia-a30")
    >>> figure = plot(batch, solve(batch, "far").schedule)
    >>> figure.axes[0].get_xlabel()
    'time in seconds'
    """
    first = content[0] if isinstance(content, list | tuple) and content else content
    given = len(more)
    made = next((made for (kind, number), made in _SCENES.items() if isinstance(first, kind) and number == given), None)
    if made is None:
        known = ", ".join(dict.fromkeys(kind.__name__ for kind, _ in _SCENES))
        names = " with ".join(type(each).__name__ for each in (first, *more))
        raise InputError([Problem("content", f"there is no picture of {names:.60}; there are some of {known}")])
    problems = [*wrong_number("dpi", dpi, "a finite number of dots per inch > 0", above=0)]
    raise_any([*problems, *(wrong_class("title", title, str) if title is not None else ())])
    if to is not None:
        check_plot_path(to)
    lacking = _missing("png") if to is None else []
    try:
        scene = made(content, *more, **options)
    except InputError as error:
        raise InputError([*lacking, *error.problems]) from None
    raise_any(lacking)
    if title is not None:
        scene = replace(scene, title=title)
    if to is None:
        return draw(scene)
    save(scene, to, dpi)
    return None


def plotted(thing: Any, *of: Any, **options: Any) -> Any:
    """Draw something with the problem that it is of; a result draws its plan, with all that it knows."""
    drawn: Any = plot  # checks what it gets itself
    match thing:
        case ScheduleResult(plan=None) | DeploymentResult(plan=None):
            noun = "schedule" if isinstance(thing, ScheduleResult) else "deployment"
            raise InputError([Problem(noun, f"there is none to draw: the result is {thing.status.value}")])
        case ScheduleResult(batch=None):
            message = "is not known, as the result comes from a file: plot(batch, result.schedule) draws it"
            raise InputError([Problem("batch", message)])
        case ScheduleResult():
            return drawn(thing.batch, thing.plan, lower_bound=thing.lower_bound, **options)
        case DeploymentResult():
            return drawn(thing.plan, demand=thing.demand, **options)
        case Schedule():
            return drawn(*of, thing, **options)
        case Deployment():
            return drawn(thing, **dict(zip(["demand"], of, strict=False)), **options)
    return drawn(thing, *of, **options)
