"""Two versions of the package side by side: proofs, commands from a shell, constructors, files, a simulation, size.

Run: python -m bench.batch.house_speed OLD NEW, two Python interpreters, each of an environment with a version of the
package.
They take turns, each measurement in a process of its own, and each round gives the ratio of the new figure to the old
one. Seconds are those of the processor, of all threads: others on the machine disturb them least. The ratio of the
least figures says most, the median of the ratios whether to trust it.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench.report import markdown, start, tell

SCALINGS = ("MixedScaling", "PoorScaling", "GoodScaling")
Measure = Callable[[str], float]
"""Returns a figure for an interpreter."""

_BEFORE = """
import sys, time
def timed(work, *given):
    begin = time.process_time()
    work(*given)
    return time.process_time() - begin
loading = timed(__import__, "mig_opt")
import mig_opt as m
def read(kind, path):  # the reader has one name or another
    own = getattr(m, f"read_{kind.lower()}", None)
    return own(path) if own else m.read(getattr(m, kind), path)
"""
_PROOFS = """
batches, results = [read("Batch", name) for name in sys.argv[1:]], []
m.solve(batches[0], "far")
print(timed(lambda: results.extend(m.solve(batch, "cp", time_limit=300, workers=1) for batch in batches)))
assert all(result.status == "optimal" for result in results), [str(result.status) for result in results]
"""
_TASKS = "print(timed(lambda: [m.Task(f't{n}', {1: 9.0, 2: 5.0, 4: 3.0}, 4.0) for n in range(100_000)]))"
_BATCHES = """
tasks, gpu = [m.Task(f"t{n}", {1: 9.0, 2: 5.0, 4: 3.0}) for n in range(1000)], m.get_gpu("A30")
print(timed(lambda: [m.Batch(tuple(tasks), gpu) for _ in range(100)]))
"""
_FAR = "batch = read('Batch', 'thousand.json'); m.solve(batch, 'lpt'); print(timed(m.solve, batch, 'far'))"
_READ = "m.get_gpu('A100'); print(timed(read, 'Trace', 'jobs.json'))"
_SIMULATE = "trace = read('Trace', 'jobs.json'); m.simulate; print(timed(m.simulate, trace, 'first-fit'))"
_SIZE = """
from pathlib import Path
files = [path for path in Path(m.__file__).parent.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
print(sum(path.stat().st_size for path in files if path.suffix not in (".c", ".h")) / 1e6)
"""


def inside(folder: Path, code: str, names: Sequence[str], python: str) -> float:
    """Return the figure that a program prints, which runs in a new process."""
    program = [python, "-c", _BEFORE + code, *names]
    return float(subprocess.run(program, cwd=folder, capture_output=True, text=True, check=True).stdout)


def whole(folder: Path, arguments: Sequence[str], python: str) -> float:
    """Return the seconds of a command from a shell, its whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command(python, arguments), cwd=folder, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def command(python: str, arguments: Sequence[str]) -> list[str]:
    """Return a command of the package that an interpreter has."""
    return [str(Path(python).with_name("mig-opt")), *arguments]


def measures(folder: Path, python: str, *, cut: bool) -> Mapping[str, Measure]:
    """Write the files that are read, by the commands of one version, and return what is measured by its name."""
    sizes, many, jobs = ((4,), 10, 100) if cut else ((12, 15, 20), 1000, 100_000)
    seeds = range(1 if cut else 2)
    proofs = {n: [f"{n}-{scaling}-{seed}.json" for scaling in SCALINGS for seed in seeds] for n in sizes}
    for name in itertools.chain([f"7-{SCALINGS[0]}-0.json", f"{many}-{SCALINGS[0]}-0.json"], *proofs.values()):
        n, scaling, seed = name.removesuffix(".json").split("-")
        options = ["-n", n, "--scaling", scaling, "--seed", seed, "-o", name]
        subprocess.run(command(python, ["generate", *options]), cwd=folder, capture_output=True, check=True)
    (folder / f"{many}-{SCALINGS[0]}-0.json").rename(folder / "thousand.json")
    options = ["-n", str(jobs), "--gpus", "64", "-o", "jobs.json"]
    subprocess.run(
        command(python, ["trace", "generate", "normal-25", *options]), cwd=folder, capture_output=True, check=True
    )
    found: dict[str, Measure] = {
        f"`cp`, {n} tasks": partial(inside, folder, _PROOFS, names) for n, names in proofs.items()
    }
    shell = {
        "`--help`": ["--help"],
        "`solve`, 7 tasks": ["solve", f"7-{SCALINGS[0]}-0.json", "--method", "cp"],
        "`solve --plot`": ["solve", "rodinia-a30", "--plot", "plan.png"],
    }
    programs = {
        "`import mig_opt`": "print(loading)",
        "100,000 tasks": _TASKS,
        "100 batches of 1,000 tasks": _BATCHES,
        "`far`, 1,000 tasks": _FAR,
        f"trace of {jobs:,} jobs, read": _READ,
        f"trace of {jobs:,} jobs, simulated": _SIMULATE,
        "size of the package, MB": _SIZE,
    }
    found |= {name: partial(whole, folder, arguments) for name, arguments in shell.items()}
    return found | {name: partial(inside, folder, code, ()) for name, code in programs.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", help="Python interpreter of the one version")
    parser.add_argument("new", help="Python interpreter of the other one")
    parser.add_argument("--rounds", type=int, default=7, help="how often each of the two is measured")
    parser.add_argument("--only", default="", help="measure what has this in its name")
    parser.add_argument("--cut", action="store_true", help="one round of small ones, to see that it works")
    options = parser.parse_args(arguments)
    both = (options.old, options.new)
    with tempfile.TemporaryDirectory() as folder:
        found = measures(Path(folder), options.old, cut=options.cut)
        rows = []
        for name, measure in found.items():
            if options.only not in name:
                continue
            figures: dict[str, list[float]] = {"old": [], "new": []}
            for number in range(1 if options.cut else options.rounds):
                for which in ("old", "new") if number % 2 else ("new", "old"):
                    figures[which].append(measure(both[which == "new"]))
            old, new = min(figures["old"]), min(figures["new"])
            ratios = [after / before for before, after in zip(figures["old"], figures["new"], strict=True)]
            shown = (f"{old:.3f}", f"{new:.3f}", f"{new / old:.3f}", f"{statistics.median(ratios):.3f}")
            rows.append([name, *shown, f"{min(ratios):.2f} to {max(ratios):.2f}"])
            tell(name, *shown)
    print(*markdown(["seconds of", "least, old", "new", "ratio", "median of ratios", "from to"], rows), sep="\n")


if __name__ == "__main__":
    start(main)
