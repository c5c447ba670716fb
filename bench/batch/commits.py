"""Speed of HEAD beside another commit of the repository: whole commands from a shell, and constructors.

Run: python -m bench.batch.commits REV. It installs both into environments of their own and takes about five minutes.
"""

import os
import shlex
import statistics
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.batch.first_run import ROOT, Shell
from bench.fleet.speed import make_trace
from bench.report import Page, parser_of, start, timed
from mig_opt import generate_batch
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.fleet.traces import TRACE

LOOP = "-c 'import timeit; from mig_opt import Job, Task; print(min(timeit.repeat(lambda: {}, number=20000)) / 20000)'"
CASES = {
    "`import mig_opt`": "python -c 'import mig_opt'",
    "`--help`": "mig-opt --help",
    "`solve`, 12 tasks": "mig-opt solve 12.json --method cp --json",
    "`solve rodinia-a30`": "mig-opt solve rodinia-a30 --method cp --json",
    "`solve`, 1000 tasks by `far`": "mig-opt solve 1000.json --method far --json",
    "`deploy parvagpu-s3`": "mig-opt deploy parvagpu-s3",
    "`simulate`, 20,000 jobs, `first-fit`": "mig-opt simulate jobs.json --policy first-fit --json",
    "`simulate`, 60 jobs, `planner`": "mig-opt simulate planned.json --policy planner --json",
    "`trace describe`, 20,000 jobs": "mig-opt trace describe jobs.json",
    "`Task(...)`": "python " + LOOP.format('Task("a", {1: 2.0, 2: 1.5, 3: 1.2, 4: 1.0, 7: 0.8})'),
    "`Job(...)`": "python " + LOOP.format('Job("a", 0.1, {1: 48.6}, "1g.5gb")'),
}


def installed(rev: str, folder: Path) -> Shell:
    """Return an environment into which a commit is installed."""
    folder.mkdir()
    subprocess.run(["git", "-C", ROOT, "archive", "-o", folder / "source.tar", rev], check=True)
    with tarfile.open(folder / "source.tar") as archive:
        archive.extractall(folder / "source", filter="data")
    shell = Shell(folder)
    shell.install(folder / "source")
    return shell


def figure(shell: Shell, command: str) -> float:
    """Return the seconds that a command takes, or those that it prints."""
    program, *arguments = shlex.split(command)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    words = [shell.folder / ".venv" / "bin" / program, *arguments]
    settings: Any = {"env": kept, "cwd": shell.folder.parent, "capture_output": True, "check": True}
    done, seconds = timed(partial(subprocess.run, words, **settings), time.perf_counter)
    return float(done.stdout) if "timeit" in command else seconds


def measured(shells: Sequence[Shell], repeats: int) -> Iterator[list[str]]:
    """Yield the medians of each case; the two take turns, and which is first changes."""
    for name, command in CASES.items():
        found: dict[Shell, list[float]] = {shell: [] for shell in shells}
        for repeat in range(repeats):
            for shell in shells[:: 1 if repeat % 2 else -1]:
                found[shell].append(figure(shell, command))
        then, now = map(statistics.median, found.values())
        shown = [f"{1e6 * one:.2f} us" if "timeit" in command else f"{one:.3f} s" for one in (then, now)]
        yield [name, *shown, f"{now / then:.2f}"]


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    parser = parser_of(__doc__, "commits.md")
    parser.add_argument("rev", help="the commit, branch or tag that HEAD is compared with")
    parser.add_argument("--repeat", type=int, default=9, help="runs of each (9)")
    options = parser.parse_args(arguments)
    git = ["git", "-C", str(ROOT), "rev-parse", "--short=8"]
    names = [subprocess.check_output([*git, rev], text=True).strip() for rev in (options.rev, "HEAD")]
    page = Page("commits", "The speed of two commits", "mig-opt", "numpy", "ortools", folder=options.results)
    with tempfile.TemporaryDirectory() as folder:
        shells = [installed(name, Path(folder, str(at))) for at, name in enumerate(names)]
        for n in (12, 1000):
            BATCH.write(generate_batch(n, seed=1), Path(folder, f"{n}.json"))
        for file, jobs, gpus in (("jobs", 20_000, 200), ("planned", 60, 4)):
            TRACE.write(make_trace(jobs, gpus), Path(folder, f"{file}.json"))
        page.add(f"""Medians of {options.repeat} runs of each, which take turns: seconds of whole commands, from the
            start of Python to its end, and microseconds of constructors. The commits are {names[0]} and {names[1]}; the
            ratio is that of the later one to the earlier one.""")
        page.table(["", *names, "ratio"], measured(shells, options.repeat))
    page.add(f"At the end {os.getloadavg()[0]:.1f} processes wanted the {os.cpu_count()} cores on average.")
    page.save()
