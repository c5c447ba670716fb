"""Times of commands in a shell: whole ones in a fresh environment, from the first one on, also on a busy machine.

Run: python -m bench.batch.first_run. It installs the package of this checkout into an environment of its own and takes
about fifteen minutes. *First* runs find no file of that environment in the memory of the machine, and an empty home;
*second* ones find what the command before has left; *busy* ones have two processes beside them that compute without
end.
"""

import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.report import Page, parser_of, start
from mig_opt import generate_batch, solve
from mig_opt.files.batch.batches import BATCH
from mig_opt.instances.batch import SCALINGS

ROOT = Path(__file__).parents[2]
LIMIT = 30.0  # seconds of the method, at most
OVERRUN = 0.3  # seconds by which a limit may be missed
SHORT_LIMITS = (0.001, 0.05, 0.2, 1.0)
METHODS = ("cp", "milp", "brute-force", "search", "far")


class Goal(NamedTuple):
    """Row of the table: tasks, conditions, and the seconds that a whole command may take."""

    sizes: tuple[int, ...]
    seeds: int
    condition: str
    seconds: float


SMALL = (7, 8, 9, 10, 11, 12)
GOALS = (
    Goal(SMALL, 2, "first", 2.0),
    Goal(SMALL, 2, "second", 2.0),
    Goal(SMALL, 1, "first, busy", 5.0),
    Goal(SMALL, 1, "second, busy", 5.0),
    Goal((15,), 3, "first", 15.0),
    Goal((15,), 3, "second", 2.5),
    Goal((20,), 3, "first", 20.0),
    Goal((20,), 3, "second", 6.0),
)


class Command(NamedTuple):
    """One command that has ended."""

    seconds: float  # of the whole process
    result: dict[str, object]  # what it printed


class Shell:
    """Environment into which the package is installed, and the commands that run there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._program = str(folder / ".venv" / "bin" / "mig-opt")

    def install(self, source: Path = ROOT) -> float:
        """Make the environment as README says, and return the seconds that it takes."""
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-m", "venv", str(self.folder / ".venv")], check=True)
        pip = [str(self.folder / ".venv" / "bin" / "pip"), "install", "--quiet", f"{source}[plot]"]
        subprocess.run(pip, check=True)
        return time.perf_counter() - begin

    @property
    def megabytes(self) -> float:
        """Size of what is installed, without pip and what comes with every environment."""
        packages = next((self.folder / ".venv" / "lib").glob("python*/site-packages"))
        files = (file for file in packages.rglob("*") if file.is_file() and not file.is_symlink())
        named = ((file.relative_to(packages).parts[0].split("-")[0], file) for file in files)
        return sum(file.stat().st_size for name, file in named if name not in ("pip", "setuptools")) / 1e6

    def forget(self) -> None:
        """Let the machine drop the files of the environment from its memory, so that they are read anew."""
        for file in filter(Path.is_file, (self.folder / ".venv").rglob("*")):
            with contextlib.suppress(OSError, AttributeError), file.open("rb") as opened:  # not on every system
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def run(self, *arguments: str, first: bool = False) -> Command:
        """Run a command."""
        if first:
            self.forget()
        with tempfile.TemporaryDirectory() as home:
            kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "XDG_"))}
            own = {"HOME": home} if first else {}
            begin = time.perf_counter()
            done = subprocess.run(
                [self._program, *arguments], env=kept | own, cwd=self.folder, capture_output=True, text=True, check=True
            )
            seconds = time.perf_counter() - begin
        return Command(seconds, json.loads(done.stdout) if "--json" in arguments else {})


@contextlib.contextmanager
def busy(wanted: bool) -> Iterator[None]:
    """Let two processes compute without end."""
    with contextlib.ExitStack() as stack:
        for _ in range(2 if wanted else 0):
            program = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(program.kill)
        yield


def write_batches(folder: Path, sizes: Sequence[int], seeds: int) -> list[str]:
    """Write batches, and return the names of their files."""
    names = []
    for n, scaling, seed in itertools.product(sizes, SCALINGS, range(seeds)):
        names.append(f"{scaling}-{n}-{seed}.json")
        BATCH.write(generate_batch(n, scaling=scaling, seed=seed), folder / names[-1])
    return names


def proofs(shell: Shell, goals: Sequence[Goal], most: int) -> Iterator[list[str]]:
    """Yield for each goal how many batches are proven, and the seconds of the whole commands."""
    for goal in goals:
        commands = []
        names = write_batches(shell.folder, goal.sizes, goal.seeds)[:most]
        with busy("busy" in goal.condition):
            for name in names:
                arguments = ("solve", name, "--method", "cp", "--time-limit", f"{LIMIT:g}", "--json", "--quiet")
                commands.append(shell.run(*arguments, first="first" in goal.condition))
        proven = sum(command.result["status"] == "optimal" for command in commands)
        seconds = [command.seconds for command in commands]
        met = proven == len(names) and max(seconds) <= goal.seconds
        tasks = str(goal.sizes[0]) if len(goal.sizes) == 1 else f"{goal.sizes[0]} to {goal.sizes[-1]}"
        shown = (f"{statistics.median(seconds):.2f} s", f"{max(seconds):.2f} s", f"{goal.seconds:g} s")
        yield [tasks, goal.condition, f"{proven} of {len(names)}", *shown, "yes" if met else "**no**"]


def short_limits(shell: Shell, most: int) -> Iterator[list[str]]:
    """Yield for each method how often a short limit is kept, and whether FAR's phases 1 and 2 are ever better."""
    names = write_batches(shell.folder, (7, 40, 100), 1)[:most]
    least = {}
    for name in names:
        makespan = shell.run("solve", name, "--method", "far-unrefined", "--json").result["makespan"]
        assert isinstance(makespan, float)
        least[name] = makespan
    with busy(True):
        for method in METHODS:
            overruns, worse = [], 0
            for name, limit in itertools.product(names, SHORT_LIMITS):
                result = shell.run("solve", name, "--method", method, "--time-limit", f"{limit:g}", "--json").result
                runtime, makespan = result["runtime_s"], result["makespan"]
                assert isinstance(runtime, float)
                overruns.append(runtime - limit)
                worse += not isinstance(makespan, float) or makespan > least[name] + 1e-9
            late = sum(overrun > OVERRUN for overrun in overruns)
            yield [f"`{method}`", str(len(overruns)), f"{max(*overruns, 0.0):.2f} s", str(late), str(worse)]


def others(shell: Shell, runs: int) -> Iterator[list[str]]:
    """Yield the seconds of other commands, first and later runs."""
    for name, command, goal in (
        ("`far`, 1000 tasks", "solve thousand.json --method far", "0.6 s"),
        ("`cp`, `rodinia-a30`", "solve rodinia-a30", "2 s"),
        ("`--help`", "--help", ""),
    ):
        first = shell.run(*command.split(), first=True).seconds
        later = [shell.run(*command.split()).seconds for _ in range(runs)]
        yield [name, f"{first:.2f} s", f"{statistics.median(later):.2f} s", f"{max(later):.2f} s", goal]


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    options = parser_of(__doc__, "first_run.md", "two batches of each row, to see that it works").parse_args(arguments)
    most, goals, runs = (2, GOALS[:4], 2) if options.cut else (10**6, GOALS, 9)
    page = Page("first_run", "From the shell", "mig-opt", "ortools", "numpy", folder=options.results)
    page.add("""Whole commands, timed from outside: the start of Python, imports, the method, its output. *First*: the
        files of a fresh environment are read from the disk, the home is empty. *Busy*: two processes compute beside
        it.""")
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(Path(folder))
        installing = shell.install()
        main_job = shell.run("solve", "rodinia-a30", "-o", "rodinia.json", "--plot", "rodinia.png", first=True).seconds
        thousand = generate_batch(1000, seed=1)
        BATCH.write(thousand, shell.folder / "thousand.json")
        command = f"`mig-opt solve BATCH --method cp --time-limit {LIMIT:g}`"
        page.section("Proofs", f"{command}, batches of an A100 of three scalings.")
        head = ["tasks", "run", "proven", "median", "worst", "goal", "met"]
        page.table(head, proofs(shell, goals, most), texts=(0, 1, 6))
        page.section("Other commands")
        page.table(["command", "first", "median", "worst", "goal"], others(shell, runs))
        loaded = solve(thousand, "far").runtime_s
        page.add(f"In a process where all is loaded, FAR takes {loaded:.2f} s for these 1000 tasks.")
        limits = ", ".join(f"{limit:g}" for limit in SHORT_LIMITS)
        page.section("Short limits on a busy machine")
        page.add(f"""Batches of 7, 40 and 100 tasks with limits of {limits} s. A limit counts from when the method is
            loaded; it is missed if it is passed by more than {OVERRUN:g} s.""")
        head = ["method", "runs", "longest overrun", "limits missed", "worse than FAR's phases 1 and 2"]
        page.table(head, short_limits(shell, most))
        page.section("Installation")
        page.add(f"""`pip install '.[plot]'` from nothing: {installing:.0f} s with the packages from the index or pip's
            cache, {shell.megabytes:.0f} MB without pip (goal: under 600 MB). README's main job then takes
            {main_job:.1f} s.""")
    page.save()
