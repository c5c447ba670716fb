"""Logs of simulations as text, for programs that check or draw them: one JSON object on each line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence

from mig_opt.files.documents import file_path, write_text
from mig_opt.simulation.simulator import Simulation

SCHEMA = "mig-opt/log/1"


def log_lines(simulation: Simulation) -> Iterator[str]:
    """Yield the lines of a log: one for the simulation, then its runs by their ends, then its operations as decided.

    Examples
    --------
    >>> from mig_opt import Job, Trace, get_gpu, simulate
    >>> done = simulate(Trace((Job("a", 0.0, {4: 10.0}),), get_gpu("A30"), name="one"), "first-fit")
    >>> for line in log_lines(done):
    ...     print(line)
    {"schema": "mig-opt/log/1", "policy": "first-fit", "trace": "one", "gpu": "A30-24GB", "gpus": 1}
    {"run": "a", "gpu": 0, "profile": "4g.24gb", "start": 0, "begin": 0.13, "end": 10.13, "outcome": "finished"}
    {"operation": "create", "gpu": 0, "profile": "4g.24gb", "start": 0, "begin": 0.0, "end": 0.13}
    """
    trace = simulation.trace
    head = {"schema": SCHEMA, "policy": simulation.label, "trace": trace.name}
    yield _line({**head, "gpu": trace.gpu.name, "gpus": trace.gpus})
    for run in simulation.log.runs():
        place = {"gpu": run.gpu, "profile": run.placement.profile.name, "start": run.placement.start}
        times = {"begin": run.begin, "end": run.end, "outcome": run.outcome.name.lower().replace("_", "-")}
        yield _line({"run": trace.jobs[run.job].name, **place, **times})
    for operation in simulation.log.operations():
        place = {"gpu": operation.gpu, "profile": operation.profile, "start": operation.start}
        yield _line({"operation": operation.kind, **place, "begin": operation.begin, "end": operation.end})


def write_log(simulations: Sequence[Simulation], path: str | os.PathLike[str]) -> None:
    """Write the logs of some simulations to a file, one after the other.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    lines = (line for simulation in simulations for line in log_lines(simulation))
    write_text(file_path(path), "".join(f"{line}\n" for line in lines))


def _line(entry: dict[str, object]) -> str:
    return json.dumps(entry, ensure_ascii=False)
