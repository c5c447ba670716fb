"""Rates of requests over time, and recorded requests, as CSV."""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path

from mig_opt.files.documents import file_path, read_text
from mig_opt.files.tables import check_columns, number, read_rows
from mig_opt.files.values import Findings
from mig_opt.serving.arrivals import Arrivals
from mig_opt.serving.rates import RateTable

_CLOCK = re.compile(r"([0-9]{1,4}):([0-5][0-9])(?::([0-5][0-9]))?")


def read_rates(path: str | Path) -> RateTable:
    r"""Read rates of services over time from a CSV file.

    The column ``time`` has seconds, or the time of day as ``H:MM`` or ``H:MM:SS``; every other column is that of a
    service, with its requests per second from that time until the next row. The last row has a time only: it says when
    the last rates end. All problems are told, each with its line and column.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("time,chat\n0:00,10\n0:30:15,25\n1:00\n")
    ...     file.flush()
    ...     table = read_rates(file.name)
    >>> table.times, table.rates["chat"]
    ((0.0, 1815.0, 3600.0), (10.0, 25.0))
    """
    path = file_path(path)
    findings = Findings(str(path))

    def check(header: list[str], where: str, noted: Findings) -> bool:
        good = check_columns(header, where, noted, needed={"time": "; add one with seconds or times like 6:30"})
        if good and len(header) == 1:
            noted.add(where, "has no column for a service; add one for each, with its requests per second")
        return good and len(header) > 1

    rows = read_rows(read_text(path), findings, check, example="time,chat,search", what="time", end_alone=True)
    services = [column for column in rows[0][1] if column != "time"]
    times: list[float] = []
    rates: dict[str, list[float]] = {service: [] for service in services}
    for index, (line, cells) in enumerate(rows):
        last = index == len(rows) - 1
        times.append(_time(cells["time"], line, times, findings))
        given = [service for service in services if cells[service]]
        if last and given:
            message = "the rates of the last row have no end; add a row with a time only, when they end"
            findings.add(f"line {line}", message)
        for service in () if last else services:
            rate = number(cells[service])
            if isinstance(rate, str) or not 0 <= rate < math.inf:
                message = f"must be a number of requests per second >= 0, is {cells[service] or 'empty'}"
                findings.add(f"line {line}, {service}", message)
                rate = 0.0
            rates[service].append(rate)
    if len(rows) == 1:
        findings.add("", "needs two rows at least: rates, and the time when they end")
    findings.check()
    return RateTable(tuple(times), {service: tuple(row) for service, row in rates.items()})


def read_recorded(path: str | Path) -> dict[str, tuple[float, ...]]:
    """Return the times of each service in a CSV file with the columns ``time`` (seconds, ascending) and ``service``."""
    path = file_path(path)
    findings = Findings(str(path))
    needed = {"time": "; add one with seconds", "service": "; add one with the names of the services"}
    check = partial(check_columns, known=needed, needed=needed)
    found: dict[str, list[float]] = {}
    times: list[float] = []
    for line, cells in read_rows(read_text(path), findings, check, example="time,service", what="request"):
        times.append(_time(cells["time"], line, times, findings, strictly=False))
        if not cells["service"]:
            findings.add(f"line {line}, service", "must not be empty")
        found.setdefault(cells["service"], []).append(times[-1])
    findings.check()
    return {service: tuple(own) for service, own in found.items()}


def read_arrivals(path: str | Path) -> Arrivals:
    """Return arrivals at the moments that a file of recorded requests has."""
    return Arrivals(recorded=read_recorded(path))


def _time(cell: str, line: int, before: list[float], findings: Findings, *, strictly: bool = True) -> float:
    """Return the seconds in a cell; what is no time, or comes too early, is noted."""
    clock = _CLOCK.fullmatch(cell)
    if clock:
        hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        value: float | str = float(3600 * hours + 60 * minutes + seconds)
    else:
        value = number(cell)
    last = before[-1] if before else None
    if isinstance(value, str) or not 0 <= value < math.inf:
        shown = cell or "empty"
        findings.add(f"line {line}, time", f"must be seconds >= 0 with an end, or a time like 6:30, is {shown}")
        return last or 0.0
    if last is not None and (value < last or (strictly and value == last)):
        findings.add(f"line {line}, time", f"times must ascend; {value:g} s comes after {last:g} s")
        return last
    return value
