"""Tasks as the rows of a CSV table."""

from __future__ import annotations

from mig_opt.files.parts import Findings, Raw
from mig_opt.files.rows import check_names, number, read_rows, time_columns, times_in
from mig_opt.gpu.model import GpuModel


def read_tasks(text: str, gpu: GpuModel | None, findings: Findings) -> tuple[list[Raw], list[int]]:
    """Return the tasks of a CSV table as the parts of a JSON document that would describe them, and their lines.

    Parameters
    ----------
    text : str
        The table.
    gpu : GpuModel or None
        Whose sizes there may be columns for; None if it is not known.
    findings : Findings
        Takes the problems of header and rows.

    Raises
    ------
    InputError
        If this is no table of tasks at all, with everything found so far.
    """
    rows = read_rows(
        text,
        lambda header, where: _check_header(header, where, gpu, findings),
        findings,
        example="task,t1_s,...",
        what="task",
    )
    return [_task(cells, gpu) for _, cells in rows], [line for line, _ in rows]


def _check_header(header: list[str], where: str, gpu: GpuModel | None, findings: Findings) -> bool:
    times, known = time_columns(header, where, gpu, findings)
    others = [column for column in header if column not in times]
    check_names(others, where, ["task", *known, "memory_gb"], findings)
    if "task" not in header:
        findings.add(where, "has no column task; add one with the names of the tasks")
    if not times:
        findings.add(where, "has no column with times; add t1_s, t2_s, ... with seconds")
    return "task" in header and bool(times)


def _task(cells: dict[str, str], gpu: GpuModel | None) -> Raw:
    task: Raw = {"name": cells["task"], "times": times_in(cells, gpu)}
    if cells.get("memory_gb"):
        task["memory_gb"] = number(cells["memory_gb"])
    return task
