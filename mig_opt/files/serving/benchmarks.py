"""Files of benchmarks of inference servers: each run as the figures of a point.

``perf_analyzer`` and Model Analyzer write tables, vLLM's serving benchmark, genai-perf and aiperf JSON. Times are
brought to seconds, and every run is held against Little's law: requests in flight are throughput x latency, so that a
figure in another unit does not pass unseen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

from mig_opt.errors import InputError, Problem
from mig_opt.files.documents import parsed, shown
from mig_opt.files.tables import check_columns, number, read_rows
from mig_opt.files.values import Findings
from mig_opt.rules import wrong_integer, wrong_number
from mig_opt.rules.vocabulary import is_real

Format = Literal["perf-analyzer", "model-analyzer", "vllm", "genai-perf"]
FORMATS: tuple[Format, ...] = get_args(Format)

_UNITS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Seconds of the units of times."""
_PER_SECOND = ("requests/sec", "requests/s", "req/sec", "req/s")
_APART = 30
"""Factor by which throughput x latency may differ from the requests in flight: latencies may be high quantiles."""
_ANSWERED = 0.99
"""Share of its requests with which a run counts: how fast errors come says nothing."""
_MOST = 2**31 - 1
"""Requests in flight beyond which nobody counts."""
_DIGITS = 12
"""Decimals of a second that are kept: products of floats have more."""


@dataclass(frozen=True, slots=True)
class Run:
    """Measurement of one way to serve a model; None where the file does not tell."""

    where: str  # of the file
    throughput: float
    latency: float
    ttft: float | None = None
    itl: float | None = None
    model: str | None = None
    batch: int | None = None
    processes: int | None = None
    quantile: float | None = None
    continuous: bool = False


class _Figures:
    """Figures of a row or a document by column or path; what is wrong with them is noted."""

    def __init__(self, document: Mapping[str, Any], place: str, findings: Findings) -> None:
        self._document, self.place, self._findings = document, place, findings
        self._known = len(findings.problems)

    def get(self, path: str) -> Any:
        """Return a value, of a list on the way that in its last entry; None if it is not there."""
        if path in self._document:
            return self._document[path]
        value: Any = self._document
        for key in path.split("."):
            value = value[-1] if isinstance(value, list) and value else value
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def add(self, path: str, message: str) -> None:
        """Note a problem."""
        self._findings.add(", ".join(filter(None, (self.place, path))), message)

    def figure(self, path: str, unit: str, *, zero: bool = False) -> float:
        """Return a number > 0, or from 0 on; 1 if it is none."""
        value = self.get(path)
        wanted = f"a finite number of {unit} {'>=' if zero else '>'} 0"
        problems = wrong_number("", value, wanted, **{"at_least" if zero else "above": 0.0})
        return float(value) if self._fine(path, value, problems) else 1.0

    def count(self, path: str) -> int:
        """Return a whole number > 0; 1 if it is none."""
        value = self.get(path)
        whole = int(value) if isinstance(value, float) and value.is_integer() else value
        return int(whole) if self._fine(path, value, wrong_integer("", whole, 1, _MOST)) else 1

    def _fine(self, path: str, value: object, problems: Iterator[Problem]) -> bool:
        """Return True if there are no problems of a value; note them."""
        problem = next(problems, None)
        if problem and isinstance(value, str):
            self.add(path, f"must be a number, is {shown(value)}")
        elif problem:
            self.add(path, "is missing" if value is None else problem.message)
        return problem is None

    def seconds(self, path: str, unit: str = "ms", *, zero: bool = False) -> float:
        """Return a time."""
        return round(self.figure(path, unit, zero=zero) * _UNITS.get(unit, 1.0), _DIGITS)

    def check_answered(self, path: str, answered: object, sent: object) -> None:
        """Note that many requests were not answered."""
        if is_real(answered) and is_real(sent) and answered < _ANSWERED * sent:
            self.add(path, f"only {answered:.0f} of {sent:.0f} requests were answered; measure again")

    def check_little(self, path: str, flying: float, throughput: float, latency: float) -> None:
        """Note that throughput x latency is far from the requests in flight."""
        fine = len(self._findings.problems) == self._known
        if fine and not flying / _APART < throughput * latency < flying * _APART:
            message = f"{throughput:g} requests/s of {latency:g} s each do not go with {flying:g} in flight"
            self.add(path, f"{message}; is a figure in another unit?")


def format_of(text: str, findings: Findings) -> Format | None:
    """Return the form of a text; None if it has none of them, which is noted."""
    first = text.lstrip().partition("\n")[0]
    if first.startswith("{") and (found := re.search(r'"request_throughput"\s*:\s*(\{)?', text)):
        return "genai-perf" if found[1] else "vllm"
    if "Inferences/Second" in first or "Model Config Path" in first:
        return "perf-analyzer" if "Inferences/Second" in first else "model-analyzer"
    known = "perf_analyzer and Model Analyzer (CSV), of vLLM's serving benchmark, genai-perf and aiperf (JSON)"
    findings.add("", f"is in no form that is known: those of {known}")
    return None


def _rows(text: str, findings: Findings, needed: Mapping[str, str], texts: tuple[str, ...] = ()) -> Iterator[_Figures]:
    """Yield the rows of a table; the needed columns have what is said if they are not there."""
    check = partial(check_columns, needed=needed)
    for line, cells in read_rows(text, findings, check, example=",".join(needed), what="run"):
        row = {column: cell if column in texts else number(cell) for column, cell in cells.items()}
        yield _Figures(row, f"line {line}", findings)


_WAITS = ("Client Send", "Network+Server Send/Recv", "Server Queue", "Client Recv")
_COMPUTE = ("Server Compute Input", "Server Compute Infer", "Server Compute Output")


def _perf_analyzer(text: str, findings: Findings, _: float | None) -> Iterator[Run]:
    """Yield the runs of a CSV file of ``perf_analyzer -f``, whose times are in microseconds.

    The latency is the time in which a batch is computed. The waits of requests are no part of it: they are those of the
    load that was measured with, and come anew with each plan.
    """
    needed = {"Inferences/Second": "", _COMPUTE[1]: "; only a server that tells how long it computes can be profiled"}
    for row in _rows(text, findings, needed):
        throughput = row.figure("Inferences/Second", "inferences per second")
        columns = [column for column in (*_WAITS, *_COMPUTE) if row.get(column) is not None]
        seconds = {column: row.seconds(column, "us", zero=column != _COMPUTE[1]) for column in columns}
        if row.get("Concurrency") is not None:
            # Each request is a batch of -b, which the file does not tell.
            flying, sent = row.count("Concurrency"), min(throughput * sum(seconds.values()), _MOST)
            row.check_little("Concurrency", max(flying, round(sent / flying) * flying), throughput, sent / throughput)
        latency = sum(seconds.get(column, 0.0) for column in _COMPUTE)
        yield Run(row.place, throughput, round(latency, _DIGITS))


def _model_analyzer(text: str, findings: Findings, quantile: float | None) -> Iterator[Run]:
    """Yield the runs of Model Analyzer's ``metrics-model-inference.csv`` that keep all processes equally busy.

    Of the requests in flight each process takes its share, at most ``Max Batch Size``. Runs with more in flight than
    the processes hold measure a queue: they are passed over.
    """
    rate, latency = "Throughput (infer/sec)", f"{'Avg' if quantile is None else f'p{100 * quantile:g}'} Latency (ms)"
    no_rates = "; measure with numbers of requests in flight, not at request rates"
    needed = {"Model": "", "Batch": "", "Concurrency": no_rates, "Instance Group": "", rate: "", latency: ""}
    for row in _rows(text, findings, needed, ("Model", "Instance Group")):
        throughput, seconds = row.figure(rate, "inferences per second"), row.seconds(latency)
        client = row.count("Batch")
        most = row.count("Max Batch Size") if row.get("Max Batch Size") is not None else client
        flying = client * row.count("Concurrency")
        row.check_little(latency, flying, throughput, seconds)
        group = re.fullmatch(r"([1-9][0-9]*)[:/]GPU", row.get("Instance Group"))
        if not group:
            given = shown(row.get("Instance Group"))
            row.add("Instance Group", f"must be a number of instances on the GPU, such as 2:GPU, is {given}")
            continue
        processes = int(group[1])
        if flying % processes == 0 and flying <= processes * max(most, client):
            way = {"model": row.get("Model"), "batch": flying // processes, "processes": processes}
            yield Run(row.place, throughput, seconds, quantile=quantile, **way)


def _documents(text: str, findings: Findings) -> Iterator[_Figures]:
    """Yield the document of a text, or those on its lines."""
    lines = {number: line for number, line in enumerate(text.split("\n"), 1) if line.strip()}
    several = len(lines) > 1 and next(iter(lines.values())).rstrip().endswith("}")
    for line, document in lines.items() if several else [(0, text)]:
        place = f"line {line}" if several else ""
        try:
            value, repeated = parsed(document, findings.source)
        except InputError as error:
            findings.extend(Problem(re.sub("^line 1", place or r"\g<0>", p.path), p.message) for p in error.problems)
            continue
        findings.extend(repeated, place)
        found = _Figures(value, place, findings)
        if found.get("was_cancelled"):
            found.add("was_cancelled", "the run was cancelled before its end; measure again")
        yield found


def _vllm(text: str, findings: Findings, quantile: float | None) -> Iterator[Run]:
    """Yield the runs of ``vllm bench serve --save-result``, one document or one on each line.

    Without ``e2el`` the time of a whole request is that to the first token, and that of each further one on average.
    """
    name = "mean" if quantile is None else "median" if quantile == 0.5 else f"p{100 * quantile:g}"

    def whole(run: _Figures, name: str) -> float:
        if run.get(f"{name}_e2el_ms") is not None:
            return run.seconds(f"{name}_e2el_ms")
        tokens = run.figure("total_output_tokens", "tokens") / run.figure("completed", "requests")
        further = run.seconds(f"{name}_tpot_ms") * max(tokens - 1, 0.0)
        return round(run.seconds(f"{name}_ttft_ms") + further, _DIGITS)

    for run in _documents(text, findings):
        run.check_answered("completed", run.get("completed"), run.get("num_prompts"))
        throughput, latency = run.figure("request_throughput", "requests per second"), whole(run, name)
        if run.get("max_concurrency") is not None:
            flying = run.count("max_concurrency")
        elif run.get("request_rate") in (None, "inf"):
            message = "all requests were sent at once; measure with --max-concurrency, or at a finite --request-rate"
            run.add("max_concurrency", message)
            continue
        else:
            flying = max(round(min(throughput * whole(run, "mean"), _MOST)), 1)  # on average, by Little's law
        run.check_little("request_throughput", flying, throughput, latency)
        tokens = run.seconds(f"{name}_ttft_ms"), run.seconds(f"{name}_itl_ms")
        yield Run(run.place, throughput, latency, *tokens, run.get("model_id"), flying, 1, quantile, continuous=True)


_CONCURRENCY = ("phases.concurrency", "loadgen.concurrency", "perf_analyzer.stimulus.concurrency", "concurrency")
_MODELS = ("models.items.name", "endpoint.model_names", "model_names", "model")


def _genai_perf(text: str, findings: Findings, quantile: float | None) -> Iterator[Run]:
    """Yield the run of a ``profile_export_genai_perf.json`` or ``profile_export_aiperf.json``."""
    name = "avg" if quantile is None else f"p{100 * quantile:g}"

    def seconds(run: _Figures, metric: str) -> float:
        unit = run.get(f"{metric}.unit")
        if unit not in _UNITS:
            run.add(f"{metric}.unit", f"must be one of {', '.join(_UNITS)}, is {shown(unit)}")
        return run.seconds(f"{metric}.{name}", unit if unit in _UNITS else "ms")

    for run in _documents(text, findings):
        unit = run.get("request_throughput.unit")
        if unit not in _PER_SECOND:
            run.add("request_throughput.unit", f"must be {_PER_SECOND[0]}, is {shown(unit)}")
        answered, failed = run.get("request_count.avg"), run.get("error_request_count.avg")
        if is_real(answered) and is_real(failed):
            run.check_answered("error_request_count", answered, answered + failed)
        throughput = run.figure("request_throughput.avg", "requests per second")
        latency = seconds(run, "request_latency")
        ttft, itl = (
            seconds(run, metric) if run.get(metric) is not None else None
            for metric in ("time_to_first_token", "inter_token_latency")
        )
        told = next((f"input_config.{key}" for key in _CONCURRENCY if run.get(f"input_config.{key}") is not None), None)
        flying = run.count(told) if told else None
        if told and flying:
            run.check_little(told, flying, throughput, latency)
        model: Any = next(filter(None, (run.get(f"input_config.{key}") for key in _MODELS)), None)
        named = model[0] if isinstance(model, list) and model else model
        yield Run(run.place, throughput, latency, ttft, itl, named, flying, 1, quantile, continuous=True)


READERS: Mapping[Format, Callable[[str, Findings, float | None], Iterator[Run]]] = {
    "perf-analyzer": _perf_analyzer,
    "model-analyzer": _model_analyzer,
    "vllm": _vllm,
    "genai-perf": _genai_perf,
}
"""The function that yields the runs in a text of each form; it notes what is wrong."""
