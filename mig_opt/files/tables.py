"""Tasks as the rows of a CSV table."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator

from mig_opt.errors import nearest
from mig_opt.files.documents import shown
from mig_opt.files.parts import Findings, Raw
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
    rows = _rows(text, findings)
    line, header = next(rows, (1, []))
    if not header:
        findings.add("", "is empty; a line with the columns is wanted: task,t1_s,...")
    _check_header(header, line, gpu, findings)
    readable = "task" in header and any(map(_TIME.fullmatch, header))
    tasks: list[Raw] = []
    lines: list[int] = []
    given = 0
    for line, row in rows:
        given += 1
        if len(row) != len(header):
            findings.add(f"line {line}", f"has {len(row)} cells, the header has {len(header)}")
        elif readable:
            tasks.append(_task(dict(zip(header, row, strict=True)), gpu))
            lines.append(line)
    if header and not given:
        findings.add("", "has no rows; add at least one task below the header")
    if not tasks:
        findings.check()
    return tasks, lines


def _rows(text: str, findings: Findings) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank, with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        findings.add(f"line {line}", f"not valid CSV: {error}")
        findings.check()


def _check_header(header: list[str], line: int, gpu: GpuModel | None, findings: Findings) -> None:
    if len(header) == 1 and re.search(r"[;\t]", header[0]):
        findings.add(f"line {line}", "has one column only; separate the columns by commas")
        findings.check()
    for column, count in Counter(header).items():
        where = f"line {line}, {column or 'header'}"
        size = _TIME.fullmatch(column)
        if count > 1:
            findings.add(where, "this column is given more than once; keep one")
        if size and gpu and int(size[1]) not in gpu.sizes:
            sizes = ", ".join(map(str, gpu.sizes))
            findings.add(where, f"{gpu.name} has no instances of {size[1]} compute slices; its sizes are {sizes}")
        elif not size and column not in ("task", "memory_gb"):
            times = [f"t{size}_s" for size in (gpu.sizes if gpu else (1, 2, 3, 4, 7))]
            findings.add(where, f"unknown column {shown(column)}; {nearest(column, ['task', *times, 'memory_gb'])}")
    if header and "task" not in header:
        findings.add(f"line {line}", "has no column task; add one with the names of the tasks")
    if header and not any(map(_TIME.fullmatch, header)):
        findings.add(f"line {line}", "has no column with times; add t1_s, t2_s, ... with seconds")


def _task(cells: dict[str, str], gpu: GpuModel | None) -> Raw:
    times = {
        size[1]: _number(cell)
        for column, cell in cells.items()
        if cell and (size := _TIME.fullmatch(column)) and (gpu is None or int(size[1]) in gpu.sizes)
    }
    task: Raw = {"name": cells["task"], "times": times}
    if cells.get("memory_gb"):
        task["memory_gb"] = _number(cells["memory_gb"])
    return task


def _number(cell: str) -> float | str:
    """Return the number in a cell; what is none stays text, and is reported as such."""
    try:
        return cell if "_" in cell else float(cell)
    except ValueError:
        return cell
