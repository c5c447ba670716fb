"""Counters of inference servers in the text format of Prometheus, as what the services did meanwhile."""

from __future__ import annotations

import http.client
import math
import re
import time
import urllib.request
from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePath

from mig_opt.api.deploy.drift import Observed
from mig_opt.errors import InputError, Problem, nearest
from mig_opt.files.documents import read_text, shown
from mig_opt.files.values import Findings
from mig_opt.serving.demand import Demand
from mig_opt.texts import number_in

_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)\s*(?:\{(.*)\})?\s+(\S+)(?:\s+(-?[0-9]{1,18}))?\s*")
_LABEL = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')

_COUNTERS = {
    "nv_inference_request_success": ("model", "requests", 1.0),
    "nv_inference_request_failure": ("model", "failures", 1.0),
    "nv_inference_request_duration_us": ("model", "latency", 1e-6),
    "nv_inference_compute_input_duration_us": ("model", "batch_seconds", 1e-6),
    "nv_inference_compute_infer_duration_us": ("model", "batch_seconds", 1e-6),
    "nv_inference_compute_output_duration_us": ("model", "batch_seconds", 1e-6),
    "nv_inference_count": ("model", "batch", 1.0),
    "nv_inference_exec_count": ("model", "batches", 1.0),
    "vllm:request_success_total": ("model_name", "requests", 1.0),
    "vllm:e2e_request_latency_seconds_sum": ("model_name", "latency", 1.0),
    "vllm:time_to_first_token_seconds_sum": ("model_name", "ttft", 1.0),
    "vllm:time_to_first_token_seconds_count": ("model_name", "firsts", 1.0),
    "vllm:inter_token_latency_seconds_sum": ("model_name", "itl", 1.0),
    "vllm:inter_token_latency_seconds_count": ("model_name", "further", 1.0),
}
"""Counters of Triton and of vLLM: the label with the model, the sum to which each adds, and its unit."""

_PER = {"latency": "requests", "batch_seconds": "requests", "batch": "batches", "ttft": "firsts", "itl": "further"}
"""Number by which each sum has to be divided."""
_TIMEOUT = 10.0
"""Seconds in which a server has to tell its counters."""
_MEANWHILE = 10.0
"""Seconds between the two times that servers are asked, by default."""

_Sums = dict[str, float]


def observe_services(demand: Demand, sources: Sequence[str], seconds: float | None = None) -> dict[str, Observed]:
    """Return what the services of a demand did, by the counters of their servers.

    Parameters
    ----------
    demand : Demand
        The services. A server tells the model that it serves; where several services have it, the file or the URL
        names the service: its name begins with that of the service, as the servers of an export are called.
    sources : sequence of str
        Files with the counters of a server, or URLs of such (``http://HOST:8002/metrics``), which are asked twice. A
        file with one reading counts since the start of the server; with several, the last is held against the first.
    seconds : float, optional
        How long was counted; by default 10 for URLs, and for files the time between their timestamps.

    Returns
    -------
    dict of str to Observed
        By service, those that are in the sources.

    Raises
    ------
    InputError
        With every problem: lines that are no samples, models of no service, files that do not tell how long they count,
        servers that do not answer.
    """
    findings = Findings(sources[0] if len(sources) == 1 else "")
    totals: dict[str, _Sums] = defaultdict(lambda: defaultdict(float))
    for source, readings in _read(sources, _MEANWHILE if seconds is None else seconds, findings).items():
        place = "" if findings.source else source
        counts = _counted(readings, place, findings)
        if not counts:
            findings.add(place, f"has no counters of Triton (nv_inference_...) or vLLM (vllm:...){_advice(source)}")
        for model, sums in counts.items():
            lasted = sums.pop("seconds", _MEANWHILE if seconds is None and _is_url(source) else seconds)
            if lasted is None:
                findings.add("seconds", "how long was counted? Give it (command line: --seconds S), or URLs of servers")
            for service in _service_of(demand, model, source, place, findings):
                own = totals[service]
                for name, value in sums.items():
                    own[name] += value
                own["seconds"] = max(own["seconds"], lasted or 0.0)
    findings.check()
    return {name: _observed(sums) for name, sums in totals.items()}


def _read(sources: Sequence[str], seconds: float, findings: Findings) -> dict[str, list[tuple[str, float | None]]]:
    """Return the texts of sources: of a file one, of a URL two with the moments at which they were told."""
    urls = [*filter(_is_url, sources)]
    readings: dict[str, list[tuple[str, float | None]]] = {source: [] for source in sources}
    for turn, asked in enumerate([[*readings], urls] if urls else [[*readings]]):
        time.sleep(turn * seconds)
        for source in asked:
            try:
                text = _told_by(source) if source in urls else read_text(source)
                readings[source].append((text, time.monotonic() if source in urls else None))
            except InputError as error:
                findings.extend(error.problems, "" if findings.source else source)
        findings.check()
    return readings


def _told_by(url: str) -> str:
    """Return what a server tells at a URL."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:  # noqa: S310  # http, by its beginning
            text: bytes = answer.read()
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or shown(str(error))
        raise InputError([Problem("", f"does not answer: {reason}{_advice(url)}")]) from None
    return text.decode(errors="replace")


def _is_url(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def _advice(source: str) -> str:
    """Return words on a URL that tells nothing; none for a file."""
    return "; give the URL of a server that runs, such as http://HOST:8002/metrics" if _is_url(source) else ""


def _counted(readings: list[tuple[str, float | None]], place: str, findings: Findings) -> dict[str, _Sums]:
    """Return for each model what its counters have grown by, and their seconds if these are known.

    What is no sample is noted, unless the texts are of something else altogether.
    """
    if not any(counter in text for text, _ in readings for counter in _COUNTERS):
        return {}
    values: dict[tuple[str, str], list[tuple[float, float | None]]] = defaultdict(list)
    for text, moment in readings:
        for line, words in enumerate(text.splitlines(), 1):
            if not words.strip() or words.lstrip().startswith("#"):
                continue
            where = ", ".join(filter(None, (place, f"line {line}")))
            found = _SAMPLE.fullmatch(words.strip())
            if not found or _LABEL.sub("", found[2] or "").strip():
                findings.add(where, f'must be a sample such as name{{label="value"}} 12.5, is {shown(words)}')
            elif found[1] in _COUNTERS:
                figure = number_in(found[3])
                if isinstance(figure, str) or not math.isfinite(figure):
                    findings.add(where, f"{found[1]} must be a finite number, is {shown(found[3])}")
                else:
                    told = int(found[4]) / 1000 if found[4] else moment
                    values[found[1], found[2] or ""].append((float(figure), told))
    grown: dict[str, _Sums] = defaultdict(lambda: defaultdict(float))
    for (counter, labels), entries in values.items():
        label, name, unit = _COUNTERS[counter]
        sums = grown[dict(_LABEL.findall(labels)).get(label, "")]
        (first, begin), (last, end) = entries[0], entries[-1]
        # A counter that is less than before has begun anew.
        sums[name] += unit * (last - first if len(entries) > 1 and last >= first else last)
        if begin is not None and end is not None and end > begin:
            sums["seconds"] = end - begin
    return grown


def _service_of(demand: Demand, model: str, source: str, place: str, findings: Findings) -> list[str]:
    """Return the service that a model of a source is of; none if there are several, or none, which is noted."""
    names = [service.name for service in demand.services if model in (service.name, service.model)]
    if len(names) > 1:
        # Of chat and chat-large, chat-large-0-1g.10gb-0-8x1 is a server of the second.
        names = sorted(filter(PurePath(source).name.startswith, names), key=len)[-1:] or names
    if len(names) > 1:
        message = f"several services have the model {model!r} ({', '.join(names)})"
        findings.add(place, f"{message}; give a file that is called after its service")
    elif not names:
        known = [name for service in demand.services for name in (service.name, service.model)]
        findings.add(place, f"no service has the model {model!r}; {nearest(model, known)}")
    return names if len(names) == 1 else []


def _observed(sums: dict[str, float]) -> Observed:
    means = {name: sums[name] / sums[of] if sums[name] and sums[of] else None for name, of in _PER.items()}
    return Observed(sums["seconds"], round(sums["requests"]), round(sums["failures"]), **means)
