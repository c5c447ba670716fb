"""The one mechanism by which every chart is checked, drawn and written to a file."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mig_opt.errors import InputError, Problem
from mig_opt.views.page import Page
from mig_opt.views.sheet import Sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "svg": {"Creator": None, "Date": None},
}
"""The formats of matplotlib, each with what has to be blanked so that equal charts are equal files."""

_PAGE = "html"

_SAVING: dict[Any, Any] = {
    "svg.hashsalt": "mig-opt",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "text.hinting": "none",
}


def check_plot_path(path: str | os.PathLike[str]) -> None:
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
    from mig_opt.files.documents import check_writable

    target, problems = Path(path), []
    if _format(target) not in {*_METADATA, _PAGE}:
        given = f"not as {target.suffix!r}" if target.suffix else "and the name has no suffix"
        problems.append(Problem(str(target), f"charts are written as .png, .pdf, .svg or .html, {given}"))
    try:
        check_writable(target)
    except InputError as error:
        problems += [Problem(str(target), problem.message) for problem in error.problems]
    problems += _bokeh_problems() if _format(target) == _PAGE else _matplotlib_problems()
    if problems:
        raise InputError(problems)


def draw_figure(problems: Iterable[Problem], chart: Callable[[], Sheet]) -> Figure:
    """Return the figure of a chart, which is made only if there is no problem and matplotlib is installed."""
    found = [*_matplotlib_problems(), *problems]
    if found:
        raise InputError(found)
    with _any_characters():
        return chart().draw()


def compose_page(problems: Iterable[Problem], page: Callable[[], Page]) -> Page:
    """Return a page to explore, which is made only if there is no problem and bokeh is installed."""
    found = [*_bokeh_problems(), *problems]
    if found:
        raise InputError(found)
    return page()


def save_chart(
    figure: Callable[[], Figure], page: Callable[[], Page], path: str | os.PathLike[str], dpi: float
) -> None:
    """Write a figure or a page, made once the path has been checked, to a file; the same one gives the same file."""
    check_plot_path(path)
    target = Path(path)
    data = page().html().encode() if _format(target) == _PAGE else _image(figure(), _format(target), dpi)
    try:
        # A folder rather than a file of tempfile, whose files only their owner can read.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".mig-opt-") as folder:
            (Path(folder) / "chart").write_bytes(data)
            (Path(folder) / "chart").replace(target)
    except OSError as error:
        raise InputError([Problem(str(target), f"cannot be written: {error.strerror or error}")]) from error


def _image(figure: Figure, kind: str, dpi: float) -> bytes:
    import matplotlib as mpl

    data = io.BytesIO()
    with mpl.rc_context(_SAVING), _any_characters():
        figure.savefig(data, format=kind, dpi=dpi, metadata=_METADATA[kind])
    return data.getvalue()


@contextlib.contextmanager
def _any_characters() -> Iterator[None]:
    """Silence matplotlib about characters that its font lacks: boxes stand for them, as everywhere."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from", UserWarning)
        warnings.filterwarnings("ignore", r"Matplotlib currently does not support .* natively", UserWarning)
        yield


def _format(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def _matplotlib_problems() -> list[Problem]:
    return _missing("matplotlib", "charts need matplotlib", "plot")


def _bokeh_problems() -> list[Problem]:
    return _missing("bokeh", "pages to explore (.html) need bokeh", "html")


def _missing(package: str, need: str, extra: str) -> list[Problem]:
    """Return the problem that a package is not installed, if that is so."""
    if importlib.util.find_spec(package) is not None:
        return []
    return [Problem("", f'{need}, which is not installed: pip install "mig-opt[{extra}]"')]
