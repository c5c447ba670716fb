"""Services as the rows of a CSV table."""

from __future__ import annotations

from decimal import Decimal

from mig_opt.arguments import wrong_number
from mig_opt.errors import nearest
from mig_opt.files.reading import Findings, Raw
from mig_opt.files.tables import check_columns, number, read_rows, whole_number

SERVICE_COLUMNS = {
    "service": "name",
    "model": "model",
    "slo_s": "slo",
    "slo_ms": "slo",
    "slo_latency_ms": "slo",
    "rate_rps": "rate",
    "request_rate_rps": "rate",
    "min_replicas": "min_replicas",
    "scenario": "scenario",
}
"""The key of a service that each column gives; some columns have a second name, that of ParvaGPU's scenarios."""

_NEEDED = {
    "slo": "has no column with the SLOs; add slo_s (seconds) or slo_ms (milliseconds)",
    "rate": "has no column rate_rps; add one with requests per second",
}


def read_services(text: str, scenario: str | None, findings: Findings) -> tuple[list[Raw], list[int], dict[str, str]]:
    """Return the services of a CSV table, those of one scenario if it has several.

    Returns
    -------
    entries : list of dict
        The parts of a JSON document that would describe them.
    lines : list of int
        The line of each.
    columns : dict
        The column that each key is from.

    Raises
    ------
    InputError
        If this is no table of services at all, with everything found so far.
    """
    rows = read_rows(text, findings, _check_header, example="service,model,slo_s,rate_rps", what="service")
    columns = {SERVICE_COLUMNS[column]: column for column in (rows[0][1] if rows else ()) if column in SERVICE_COLUMNS}
    columns.setdefault("name", "model")
    chosen = _of_scenario(rows, scenario, columns.get("scenario"), findings)
    entries = [_service(cells, columns, f"line {line}", findings) for line, cells in chosen]
    return entries, [line for line, _ in chosen], columns


def _check_header(header: list[str], where: str, findings: Findings) -> bool:
    check_columns(header, where, findings, SERVICE_COLUMNS)
    columns: dict[str, str] = {}
    for column in header:
        other = columns.setdefault(SERVICE_COLUMNS[column], column) if column in SERVICE_COLUMNS else column
        if other != column:
            findings.add(f"{where}, {column}", f"says the same as the column {other}; keep one of them")
    complete = True
    if "name" not in columns and "model" not in columns:
        findings.add(where, "has no column service; add one with the names of the services")
        complete = False
    for key, message in _NEEDED.items():
        if key not in columns:
            findings.add(where, message)
            complete = False
    return complete


def _of_scenario(
    rows: list[tuple[int, dict[str, str]]], scenario: str | None, column: str | None, findings: Findings
) -> list[tuple[int, dict[str, str]]]:
    if column is None:
        if scenario is not None:
            findings.add("scenario", "the table has no column scenario; leave it out")
        return rows
    known = list(dict.fromkeys(cells[column] for _, cells in rows))
    wanted = known[0] if scenario is None and known else scenario
    if scenario is None and len(known) > 1:
        message = f'the table has {", ".join(known)}; choose one, for example scenario="{known[0]}"'
        findings.add("scenario", f"{message} (command line: --scenario {known[0]})")
    if rows and wanted not in known:
        findings.add("scenario", f"no row is of scenario {wanted!r}; {nearest(str(wanted), known)}")
        findings.check()
    return [(line, cells) for line, cells in rows if cells[column] == wanted]


def _service(cells: dict[str, str], columns: dict[str, str], where: str, findings: Findings) -> Raw:
    service: Raw = {"name": cells[columns["name"]]}
    if cells.get("model") and columns["name"] != "model":
        service["model"] = cells["model"]
    service["rate"] = number(cells[columns["rate"]])
    service["slo"] = _seconds(cells[columns["slo"]], columns["slo"], where, findings)
    if cells.get("min_replicas"):
        service["min_replicas"] = whole_number(cells["min_replicas"])
    return service


def _seconds(cell: str, column: str, where: str, findings: Findings) -> float | str:
    figure = number(cell)
    if isinstance(figure, str) or not column.endswith("_ms"):
        return figure
    problems = list(wrong_number(f"{where}, {column}", figure, "a finite number of milliseconds > 0", above=0))
    findings.extend(problems)
    # In decimal, so that 418.5 ms are the float 0.4185.
    return 1.0 if problems else float(Decimal(cell).scaleb(-3))
