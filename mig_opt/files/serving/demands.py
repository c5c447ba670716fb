"""Services with their profile tables as JSON, and services as CSV.

A table has the columns ``service``, ``model`` (one of the two is enough), ``slo_s`` or ``slo_ms``, ``rate_rps`` and
optionally ``slo_ttft_s`` and ``slo_itl_s`` (or ``_ms``), ``min_replicas`` and ``scenario``, in any order. The names of
ParvaGPU's published scenarios, ``slo_latency_ms`` and ``request_rate_rps``, mean the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.files.kinds import POOL, FileKind
from mig_opt.files.serving.profiles import table_document, with_gpus
from mig_opt.files.tables import Table, check_columns, entries_of_rows, gpu_of_table, number, read_rows
from mig_opt.files.values import REPORTED, Findings, Raw, read_value, with_places
from mig_opt.gpu.catalogue import Gpu, KnownName, get_gpu
from mig_opt.gpu.pools import Pool
from mig_opt.rules import entries_of, wrong_number
from mig_opt.rules.vocabulary import Count, NotEmpty
from mig_opt.serving.demand import TABLE_WANTED, Demand, Service, SloRule, SloShare, demand_problems
from mig_opt.serving.profile_table import ProfileTable


@dataclass(frozen=True, slots=True)
class ServicesFile:
    """Services that have to be served within their limits of latency with as few GPUs as possible."""

    gpu: Annotated[Gpu | None, Field(description="The only kind of GPU, as many as it takes; else pools.")]
    pools: Annotated[tuple[Pool, ...], NotEmpty("at least one entry")] | None
    slo_share: Annotated[
        SloShare,
        Field(description="Share of the SLO that latency may take; the rest is for requests that wait for a batch."),
    ]
    whole_ms: Annotated[
        bool,
        Field(description="True if the SLO is cut to whole milliseconds and latency must be below the share of it."),
    ]
    max_processes: Count | None
    services: Annotated[tuple[Service, ...], NotEmpty("at least one entry")]
    profiles: Annotated[
        tuple[ProfileTable, ...],
        Field(
            description="What the models achieve; one for each model and kind of GPU. "
            "May be left out where profiles are given from elsewhere."
        ),
    ]


_DEFAULTS = {"gpu": None, "pools": None, "slo_share": 0.5, "whole_ms": False, "max_processes": None, "profiles": ()}
_SERVICE = {"name": "chat", "model": "bert", "slo": 0.4, "rate": 250}
_WHOLE = {
    "oneOf": [
        {"required": ["gpu"], "properties": {"gpu": {"type": ["string", "object"]}}},
        {"required": ["pools"], "properties": {"pools": {"type": "array"}}},
    ]
}

SERVICE_COLUMNS = {
    "service": "name",
    "model": "model",
    "slo_s": "slo",
    "slo_ms": "slo",
    "slo_latency_ms": "slo",
    "rate_rps": "rate",
    "request_rate_rps": "rate",
    "min_replicas": "min_replicas",
    "slo_ttft_s": "slo_ttft",
    "slo_ttft_ms": "slo_ttft",
    "slo_itl_s": "slo_itl",
    "slo_itl_ms": "slo_itl",
    "scenario": "scenario",
}
"""The key of a service that each column gives; some columns have a second name, that of ParvaGPU's scenarios."""

_NEEDED = {
    ("name", "model"): "has no column service; add one with the names of the services",
    ("slo",): "has no column with the SLOs; add slo_s (seconds) or slo_ms (milliseconds)",
    ("rate",): "has no column rate_rps; add one with requests per second",
}
"""Messages where none of some keys has a column."""

_NO_PROFILES = (
    "is missing; add the profile tables of the models, or give them as tables=... (command line: --profiles FILE)"
)
_SEVERAL_KINDS = (
    "is missing; the file names several kinds of GPU, so each of its profiles has to say which one it is of"
)


def _prepared(
    raw: Raw, _: str, findings: Findings, *, gpu: str | None = None, scenario: str | None = None, **_given: object
) -> Raw:
    if scenario is not None and raw.get("profiles") is not REPORTED:
        message = f"{findings.source} is no CSV file with a column scenario; leave it out"
        raise InputError([Problem("scenario", message)])
    if gpu is not None and raw.get("gpu") is None and raw.get("pools") is None:
        raw = {**raw, "gpu": gpu}
    if (raw.get("gpu") is None) == (raw.get("pools") is None):
        message = 'needs one of "gpu" (one kind, as many as it takes) and "pools" (kinds and how many), and only one'
        findings.add("gpu", message)
        names = []
    else:
        pools = [raw] if raw.get("pools") is None else raw["pools"]
        names = [pool.get("gpu") if isinstance(pool, dict) else None for pool in pools] if type(pools) is list else []
    kinds = {None if KnownName().wrong(name) else get_gpu(str(name)).name for name in names}
    only = kinds.pop() if len(kinds) == 1 else None
    no_gpu = _SEVERAL_KINDS if kinds and None not in kinds else ""
    return with_gpus(raw, only, no_gpu, findings)


def _demand(
    values: Raw,
    _: Raw,
    _path: str,
    findings: Findings,
    *,
    gpu: str | None = None,
    tables: Iterable[ProfileTable] = (),
    name: str = "",
    **_given: object,
) -> Demand:
    given = entries_of("tables", tables, ProfileTable, TABLE_WANTED)
    if gpu is not None:
        model = read_value(Gpu, gpu, "gpu", findings)
        pools = [model and Pool(model)]
    else:
        pools = values["pools"] or [values["gpu"] and Pool(values["gpu"])]
    known, paths = _tables(values["profiles"], given, findings)

    def located(problem: Problem) -> Problem:
        """Return a problem of ``tables[i]`` as one of the place that the table is from."""
        path, message = (with_places(text, r"\btables", paths) for text in (problem.path, problem.message))
        own = path == "tables" and any(place.startswith("profiles") for place in paths)
        return Problem("profiles" if own else path, message)

    findings.extend(map(located, demand_problems(values["services"] or [None], known, pools)))
    findings.check()
    rule = SloRule(values["slo_share"], values["whole_ms"])
    return Demand(values["services"], tuple(filter(None, known)), tuple(pools), rule, values["max_processes"], name)


def _tables(
    own: list[ProfileTable | None] | None, given: tuple[ProfileTable, ...], findings: Findings
) -> tuple[list[ProfileTable | None], list[str]]:
    """Return the tables of the document, None if these are none, and those given, with the path of each."""
    replaced = {(table.model, table.gpu) for table in given}
    kept = [
        (table, f"profiles[{index}]")
        for index, table in enumerate(own or ())
        if not table or (table.model, table.gpu) not in replaced
    ]
    kept += [(table, f"tables[{index}]") for index, table in enumerate(given)]
    if not kept and own is not None and not own:
        findings.add("profiles", _NO_PROFILES)
    return [table for table, _ in kept] or [None], [path for _, path in kept]


def _shaped(demand: Demand, *, profiles: bool = True) -> ServicesFile:
    only = demand.pools[0].gpu if demand.pools == (Pool(demand.pools[0].gpu),) else None
    rule, pools = demand.rule, None if only else demand.pools
    tables = demand.tables if profiles else ()
    return ServicesFile(only, pools, rule.share, rule.whole_ms, demand.max_processes, demand.services, tables)


def _finished(file: ServicesFile, document: Raw) -> Raw:
    for service in document["services"]:
        if service["model"] == service["name"]:
            del service["model"]
    kinds = [file.gpu] if file.gpu else [pool.gpu for pool in file.pools or ()]
    if "profiles" in document:
        only = kinds[0].name if len(kinds) == 1 else None
        document["profiles"] = [table_document(table, only) for table in file.profiles]
    return document


def _table(
    text: str,
    findings: Findings,
    *,
    gpu: str | None = None,
    tables: tuple[ProfileTable, ...] = (),
    scenario: str | None = None,
    **_: object,
) -> Table:
    gpu_of_table(gpu, findings, example="A100-80GB")
    if not tables:
        findings.add(
            "tables", "a CSV file holds no profile tables; give them as tables=... (command line: --profiles FILE)"
        )
    rows = read_rows(text, findings, _check_header, example="service,model,slo_s,rate_rps", what="service")
    columns = {SERVICE_COLUMNS[column]: column for column in (rows[0][1] if rows else ()) if column in SERVICE_COLUMNS}
    if "name" not in columns and "model" in columns:
        columns["name"] = columns.pop("model")
    chosen = _of_scenario(rows, scenario, columns.get("scenario"), findings)
    keys = {column: key for key, column in columns.items() if key != "scenario"}
    services = entries_of_rows((cells for _, cells in chosen), keys, Service)
    for service, (line, cells) in zip(services, chosen, strict=True):
        for key in ("slo", "slo_ttft", "slo_itl"):
            if key in service:
                service[key] = _seconds(cells[columns[key]], columns[key], f"line {line}", findings)
    lines = [line for line, _ in chosen]
    raw = {"services": services, "profiles": REPORTED}
    return Table(raw, "services", lines, lambda _, key: columns.get(key, key))


def _check_header(header: list[str], where: str, findings: Findings) -> bool:
    check_columns(header, where, findings, SERVICE_COLUMNS)
    columns: dict[str, str] = {}
    for column in header:
        other = columns.setdefault(SERVICE_COLUMNS[column], column) if column in SERVICE_COLUMNS else column
        if other != column:
            findings.add(f"{where}, {column}", f"says the same as the column {other}; keep one of them")
    missing = [Problem(where, message) for keys, message in _NEEDED.items() if columns.keys().isdisjoint(keys)]
    findings.extend(missing)
    return not missing


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


def _seconds(cell: str, column: str, where: str, findings: Findings) -> float | str:
    figure = number(cell)
    if isinstance(figure, str) or not column.endswith("_ms"):
        return figure
    problems = list(wrong_number(f"{where}, {column}", figure, "a finite number of milliseconds > 0", above=0))
    findings.extend(problems)
    # In decimal, so that 418.5 ms are the float 0.4185.
    return 1.0 if problems else float(Decimal(cell).scaleb(-3))


DEMAND = FileKind(
    "services",
    ServicesFile,
    {ServicesFile: {"services": [_SERVICE], "gpu": "A100-80GB"}, Service: _SERVICE, Pool: POOL},
    defaults=_DEFAULTS,
    whole=_WHOLE,
    described_by={ServicesFile: Demand},
    options=("gpu", "tables", "scenario"),
    prepare=_prepared,
    build=_demand,
    shaped=_shaped,
    finish=_finished,
    table=_table,
    named=True,
)
