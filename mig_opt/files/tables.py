"""Tasks as the rows of a CSV table."""

from __future__ import annotations

import re

from mig_opt.files.parts import Findings, Raw
from mig_opt.files.rows import check_names, number, read_rows
from mig_opt.gpu import GpuModel

_TIME = re.compile(r"t([1-9][0-9]?)_s")


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
    sizes = {column: int(found[1]) for column in header if (found := _TIME.fullmatch(column))}
    for column, size in sizes.items():
        if gpu and size not in gpu.sizes:
            known = ", ".join(map(str, gpu.sizes))
            findings.add(
                f"{where}, {column}", f"{gpu.name} has no instances of {size} compute slices; its sizes are {known}"
            )
    times = [f"t{size}_s" for size in (gpu.sizes if gpu else (1, 2, 3, 4, 7))]
    others = [column for column in header if column not in sizes]
    check_names(others, where, ["task", *times, "memory_gb"], findings)
    if "task" not in header:
        findings.add(where, "has no column task; add one with the names of the tasks")
    if not sizes:
        findings.add(where, "has no column with times; add t1_s, t2_s, ... with seconds")
    return "task" in header and bool(sizes)


def _task(cells: dict[str, str], gpu: GpuModel | None) -> Raw:
    times = {
        size[1]: number(cell)
        for column, cell in cells.items()
        if cell and (size := _TIME.fullmatch(column)) and (gpu is None or int(size[1]) in gpu.sizes)
    }
    task: Raw = {"name": cells["task"], "times": times}
    if cells.get("memory_gb"):
        task["memory_gb"] = number(cells["memory_gb"])
    return task
