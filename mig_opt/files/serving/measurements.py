"""Profile tables from what benchmarks have measured: several files join into one table of each model."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from mig_opt.errors import InputError, Problem, nearest, raise_any
from mig_opt.files.documents import file_path, read_text
from mig_opt.files.serving.benchmarks import FORMATS, READERS, Format, Run, format_of
from mig_opt.files.values import Findings
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import GpuModel
from mig_opt.gpu.problems import wrong_size
from mig_opt.rules import Checked
from mig_opt.rules.vocabulary import Count, Gigabytes, Name, Number
from mig_opt.serving.profile_table import Point, ProfileTable

_FIELDS = {
    "model": "[^/]+?",
    "profile": r"[0-9]+g\.[0-9]+gb[^/]*?",
    **dict.fromkeys(("size", "batch", "processes"), "[1-9][0-9]{0,8}"),
}
"""Patterns of what the names of files may tell."""

_Quantile = Annotated[float, Number(above=0, at_most=0.999999, words="a share > 0 and < 1, such as 0.99")]


@dataclass(frozen=True, slots=True)
class _Told(Checked):
    """Figures of the runs of a file that are told beside it."""

    model: Name | None
    size: Count | None
    batch: Count | None
    processes: Count | None
    quantile: _Quantile | None
    memory_gb: Gigabytes | None


def import_benchmarks(
    *paths: str | Path,
    gpu: str,
    format: Format | None = None,  # noqa: A002
    names: str | None = None,
    model: str | None = None,
    size: int | None = None,
    batch: int | None = None,
    processes: int | None = None,
    quantile: float | None = 0.99,
    memory_gb: float | None = None,
) -> tuple[ProfileTable, ...]:
    """Read profile tables from what benchmarks of inference servers have written.

    Parameters
    ----------
    *paths : str or Path
        Files of ``perf_analyzer -f`` or of Model Analyzer (``metrics-model-inference.csv``), or JSON of vLLM's serving
        benchmark (also one run on each line), genai-perf or aiperf.
    gpu : str
        Name or alias of the GPU that was measured.
    format : str, optional
        ``perf-analyzer``, ``model-analyzer``, ``vllm`` or ``genai-perf``; by default each file shows it.
    names : str, optional
        How the files are called, to tell what is not in them: a pattern for the end of their paths with ``{model}``,
        ``{size}`` or ``{profile}``, ``{batch}`` and ``{processes}``, and ``*`` for anything else within a name, such as
        ``"{model}/{profile}-b{batch}-p{processes}.csv"``.
    model : str, optional
        Name of the model; by default that of the file, or the file's name without its ending.
    size : int, optional
        Compute slices of the instances; no file tells them.
    batch : int, optional
        Requests that each process answers together, where the files do not tell.
    processes : int, optional
        Processes that share an instance, where the files do not tell; by default one.
    quantile : float, optional
        Which latencies count: 0.99 for the 99th percentile, None for means. ``perf_analyzer`` tells only on average how
        long a batch is computed.
    memory_gb : float, optional
        Memory that the models need in GB.

    Returns
    -------
    tuple of ProfileTable
        One for each model, by name. The runs of language models are those of continuous batching: the batch size of a
        point is the number of requests in flight. Of several runs in a file that measure the same way the one of
        greatest throughput counts.

    Raises
    ------
    InputError
        With every problem of all files, each with its line and column, or its key.
    """
    problems = [
        Problem("names", f"unknown {{{field}}}; {nearest(field, _FIELDS)}")
        for field in re.findall(r"\{(.*?)\}", names or "")
        if field not in _FIELDS
    ]
    if format is not None and format not in FORMATS:
        problems.append(Problem("format", f"no form is called {format!r:.60}; {nearest(str(format), FORMATS)}"))
    if not paths:
        problems.append(Problem("paths", "is missing; name at least one file"))
    try:
        told = _Told(model, size, batch, processes, quantile, memory_gb)
    except InputError as error:
        problems += error.problems
    raise_any(problems)
    files = [file_path(path) for path in paths]
    findings = Findings(str(files[0]) if len(files) == 1 else "")
    tables = _Tables(get_gpu(gpu), findings)
    for file in files:
        own = Findings(str(file))
        try:
            known = told if names is None else _told_by_name(file, names, told, tables.gpu)
            text = read_text(file)
            form = format or format_of(text, own)
            runs = list(READERS[form](text, own, quantile)) if form else []
            own.check()
            tables.add(file, runs, known, own)
            own.check()
        except InputError as error:
            place = "" if findings.source else str(file)
            for problem in error.problems:
                findings.add(", ".join(filter(None, (place, problem.path))), problem.message)
    findings.check()
    return tables.made(memory_gb)


def _told_by_name(file: Path, names: str, told: _Told, gpu: GpuModel) -> _Told:
    """Return what the name of a file tells, and beside it what is told of all.

    Raises
    ------
    InputError
        If it does not follow the pattern, or names a profile that the GPU does not have.
    """
    parts = re.split(r"(\{\w+\}|\*)", names)
    pattern = re.escape(parts[0])
    for index, (part, text) in enumerate(zip(parts[1::2], parts[2::2], strict=True)):
        field = part[1:-1]
        again = part in parts[1 : 2 * index + 1 : 2]
        pattern += "[^/]*" if part == "*" else f"(?P={field})" if again else f"(?P<{field}>{_FIELDS[field]})"
        pattern += re.escape(text)
    found = re.search(rf"(?:^|/){pattern}$", file.as_posix())
    if not found:
        raise InputError([Problem("", f"is not called like {names}, as the pattern of names says")])
    known: dict[str, Any] = {
        name: text if name == "model" else int(text) for name, text in found.groupdict().items() if name != "profile"
    }
    if "profile" in found.groupdict():
        known["size"] = gpu.profile(found["profile"]).compute_slices
    return replace(told, **known)


class _Tables:
    """Runs by model, size, batch size and processes, each with the file that it is from."""

    def __init__(self, gpu: GpuModel, findings: Findings) -> None:
        self.gpu, self._findings = gpu, findings
        self._runs: dict[str, dict[tuple[int, int, int], tuple[Run, Path]]] = {}

    def add(self, file: Path, runs: list[Run], told: _Told, findings: Findings) -> None:
        """Add the runs of a file; what is wrong with them is noted there, what was not told with all."""
        if not runs:
            findings.add("", "no run keeps all processes equally busy; measure with batch x processes in flight")
        if told.size is None:
            self._findings.add("size", "is in no file; give size=1 (command line: --size 1), or a pattern of names")
        else:
            findings.extend(wrong_size("", self.gpu, told.size))
        for run in sorted(runs, key=lambda run: -run.throughput):
            batch = run.batch or told.batch
            if batch is None:
                message = "is not in the files; give batch=8 (command line: --batch 8), or a pattern of names"
                self._findings.add("batch", message)
                break
            way = told.size or 1, batch, run.processes or told.processes or 1
            _, other = self._runs.setdefault(told.model or run.model or file.stem, {}).setdefault(way, (run, file))
            if other != file:
                message = f"size {way[0]}, batch {batch}, processes {way[2]} is in {other} already; keep one of them"
                findings.add(run.where, message)

    def made(self, memory_gb: float | None) -> tuple[ProfileTable, ...]:
        """Return the tables."""
        tables = []
        for model, runs in sorted(self._runs.items()):
            kinds = {(run.quantile, run.continuous) for run, _ in runs.values()}
            if len(kinds) > 1:
                several = "means and quantiles, or whole batches and tokens; import each kind by itself"
                raise InputError([Problem("paths", f"the runs of {model!r} are of several kinds: {several}")])
            points = (
                Point(*way, throughput=run.throughput, latency=run.latency, ttft=run.ttft, itl=run.itl)
                for way, (run, _) in sorted(runs.items())
            )
            tables.append(ProfileTable(model, self.gpu.name, tuple(points), memory_gb, *kinds.pop()))
        return tuple(tables)
