"""The exact model of a batch as a file, for any solver of mixed-integer programs."""

from __future__ import annotations

import os
from pathlib import Path

from mig_opt._version import __version__
from mig_opt.api.solve import solve
from mig_opt.batch.batch import Batch, check_placeable
from mig_opt.errors import Problem, problems_of, raise_any
from mig_opt.files.documents import check_writable, write_text

_COMMENT = {".lp": "\\", ".mps": "*"}
"""The formats, each with what begins a line of comment."""


def export_model(batch: Batch, path: str | os.PathLike[str], *, strict: bool = False) -> None:
    r"""Write the mixed-integer program of a batch, in seconds.

    These are the programs that ``solve(method="milp")`` begins with, with readable names: ``run_lu_on_2g_12gb_at_0`` is
    1 if task ``lu`` runs there. FAR's schedule limits the time. docs/explanation/models.md has the constraints.

    Parameters
    ----------
    batch : Batch
        The batch.
    path : path-like
        The file; its suffix gives the format, ``.lp`` or ``.mps``. An existing file is replaced.
    strict : bool
        By default the *relaxed* program is written: its optimum is a lower bound of the makespan of every schedule, and
        most often the shortest makespan itself. The *strict* one has the schedules that create no placement twice: its
        optimum is the makespan of a schedule, but some schedule with re-creations may be shorter.

    Raises
    ------
    InputError
        If the suffix is another one, the file cannot be written, or a task can run nowhere.

    Examples
    --------
    >>> import tempfile
    >>> from mig_opt import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_model(load("rodinia-a30"), Path(folder, "rodinia.lp"))
    ...     text = Path(folder, "rodinia.lp").read_text()
    >>> text.startswith("\\ mig-opt"), "run_gaussian_on_2g_12gb_at_0" in text
    (True, True)
    """
    from mig_opt.batch.horizon import Horizon
    from mig_opt.batch.integer_batch import IntegerBatch
    from mig_opt.models.batch.block_formulation import BlockForm
    from mig_opt.models.batch.block_program import BlockProgram

    target = Path(path)
    check_model_path(target)
    check_placeable(batch, "model")
    makespan = solve(batch, "far").makespan
    assert makespan is not None
    problem = IntegerBatch(batch, Horizon.of(batch).until(makespan))
    ticks = problem.ticks
    block = BlockProgram(
        problem, BlockForm(at_most=ticks.of_model(makespan), relaxed=not strict), unit=1 / ticks.length
    )
    suffix = target.suffix.lower()
    head = "".join(f"{_COMMENT[suffix]} {line}\n" for line in _head(batch, strict=strict, exact=ticks.exact))
    write_text(target, head + block.linear.text(suffix))


def check_model_path(path: str | os.PathLike[str]) -> None:
    """Check, before a long computation, that :func:`export_model` will be able to write ``path``.

    Examples
    --------
    >>> check_model_path("model.txt")
    Traceback (most recent call last):
    ...
    mig_opt.errors.InputError: model.txt:
      programs are written as .lp or .mps, not as '.txt'
    """
    target, problems = Path(path), []
    if target.suffix.lower() not in _COMMENT:
        given = f"not as {target.suffix!r}" if target.suffix else "and the name has no suffix"
        problems.append(Problem("", f"programs are written as .lp or .mps, {given}"))
    problems += problems_of(check_writable, target)
    raise_any(problems, str(target))


def _head(batch: Batch, *, strict: bool, exact: bool) -> list[str]:
    """Return what a reader of the file should know."""
    gpus = batch.label if batch.gpus > 1 else batch.kind_names
    meaning = (
        "strict: the optimum is the shortest makespan without re-creation of a placement"
        if strict
        else "relaxed: the optimum is a lower bound of the makespan of every schedule"
    )
    lines = [
        f"mig-opt {__version__}: {len(batch.tasks)} tasks on {gpus}",
        f"Minimise the makespan in seconds ({meaning}).",
    ]
    if not exact:
        lines.append("Times are rounded down by at most a hundred-millionth of a schedule.")
    return lines
