"""CBC, the program that comes with PuLP, in a process of its own."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from mig_opt.errors import SolverError
from mig_opt.method.result import Status
from mig_opt.models.solvers.backend import ProgramOutcome, ProgramRun, SolverOutcome, Values

_GRACE_SECONDS = 3.0
"""Seconds that CBC gets to end in good order, with its solution, before it is killed."""

_NUMBER = r"([-+]?[0-9.]+(?:e[-+]?\d+)?)"
_BOUND = re.compile(rf"best possible {_NUMBER}|^Lower bound:\s+{_NUMBER}|^Continuous objective value is {_NUMBER}")


class Cbc:
    """The backend CBC."""

    name = "CBC"
    tolerance = 1e-9

    def missing(self) -> str | None:
        """Return why CBC cannot be used here and how to mend that; None if it can."""
        if os.access(_program(), os.X_OK):
            return None
        return f'PuLP brings no program {_program()} for this machine; use HiGHS: pip install "highspy>=1.10,<1.15"'

    def run(self, run: ProgramRun) -> ProgramOutcome:
        """Solve a program.

        Raises
        ------
        SolverError
            If CBC ends without an answer.
        """
        with tempfile.TemporaryDirectory(prefix="mig-opt-", ignore_cleanup_errors=True) as folder:
            return _Execution(run, Path(folder), self.tolerance).outcome()


def _program() -> Path:
    from pulp.apis.coin_api import pulp_cbc_path  # slow to load

    return Path(f"{pulp_cbc_path}.exe" if os.name == "nt" else pulp_cbc_path).resolve()


class _Execution:
    """One run of the program CBC in a folder of its own."""

    def __init__(self, run: ProgramRun, folder: Path, tolerance: float) -> None:
        self._run = run
        self._solution = folder / "solution.txt"
        self._bound = -math.inf
        self._result = self._last = ""
        self._found = False
        self._limited = False
        self._infeasible = False
        self._stopped = False
        model, start = folder / "model.mps", folder / "start.txt"
        _, self._names, _, _ = run.program.writeMPS(str(model), rename=1)
        options = [str(model)]
        if run.start is not None:
            start.write_text(_listed(run.start, self._names), encoding="ascii")
            options += ["-mips", str(start)]
        self._seconds = run.left
        if self._seconds is not None:
            options += ["-sec", f"{self._seconds:.3f}", "-timeMode", "elapsed"]
        if run.nodes is not None:
            options += ["-maxNodes", str(run.nodes)]
        for option in ("primalT", "dualT", "integerT", "increment"):
            options += [f"-{option}", f"{tolerance:g}"]
        # CBC 2.10.3 was seen to "prove" wrong optima of programs that it had preprocessed, and that saves no time here.
        options += ["-preprocess", "off"]
        # Seeds of 0 and -1 have a meaning of their own.
        options += ["-ratio", "0", "-allow", "0", "-randomS", str(run.seed + 1), "-randomC", str(run.seed + 1)]
        self._command = [str(_program()), *options, "-solve"]

    def outcome(self) -> ProgramOutcome:
        code = self._execute("-printingOptions", "all", "-solution", str(self._solution))
        if code and not (self._stopped or self._limited):
            # CBC 2.10.3 crashes when it has to write a solution after it saw at first sight that there is none, and
            # what it said before is lost. Without that wish it says so again.
            self._solution.unlink(missing_ok=True)
            self._execute()
        return self._concluded()

    def _execute(self, *wishes: str) -> int:
        """Run CBC and read what it says; return its exit code."""
        # Its files are in the folder; so is whatever it leaves behind.
        began = time.monotonic()
        process = subprocess.Popen(  # noqa: S603  # the program is PuLP's, the arguments are ours
            [*self._command, *wishes],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=self._solution.parent,
            # Ctrl-C in a terminal is for this process, which passes it on once.
            start_new_session=True,
        )
        assert process.stdout is not None
        over = threading.Event()
        watchdog = threading.Thread(target=self._watch, args=(process, over, began), daemon=True)
        watchdog.start()
        try:
            for line in process.stdout:
                self._read(line)
        except BaseException:
            process.kill()
            raise
        finally:
            process.wait()
            over.set()
            watchdog.join()
            process.stdout.close()
        self._limited |= self._seconds is not None and time.monotonic() - began >= self._seconds
        return process.returncode

    def _watch(self, process: subprocess.Popen[str], over: threading.Event, began: float) -> None:
        """Tell CBC to end when it has to; kill it if it does not listen."""
        deadline = math.inf if self._seconds is None else began + self._seconds + _GRACE_SECONDS
        while not self._run.stop.wait(0.02) and time.monotonic() < deadline:
            if over.is_set():
                return
        self._stopped = self._run.stop.is_set()
        # Again and again: a program that is only just starting does not listen.
        deadline = time.monotonic() + _GRACE_SECONDS
        while sys.platform != "win32" and time.monotonic() < deadline:
            process.send_signal(signal.SIGINT)
            if over.wait(0.2):
                return
        process.kill()

    def _read(self, line: str) -> None:
        self._last = line.strip() or self._last
        if line.startswith("Result - "):
            self._result = line.removeprefix("Result - ").strip()
        self._found |= line.startswith("Objective value:")
        self._limited |= "maximum time" in line or "maximum nodes" in line or "on node limit" in line
        self._infeasible |= line.startswith("Problem is infeasible")
        found = _BOUND.search(line)
        if found is not None:
            number = next(group for group in found.groups() if group is not None)
            self._raise_bound(_below(number))

    def _raise_bound(self, bound: float) -> None:
        # 1e50 and the like stand for nothing.
        if self._bound < bound < 1e30:
            self._bound = bound
            self._run.on_bound(bound)

    def _concluded(self) -> ProgramOutcome:
        """Tell from the log and the file with the solution what happened.

        The file alone is not enough: when the time is up it may say "Infeasible", and its values may be those of a
        relaxation.
        """
        status, objective, values = self._read_solution()
        early = Status.INTERRUPTED if self._stopped else Status.NO_SOLUTION if self._limited else None
        # A program without integers has no line with a result.
        if status == "Optimal" and self._result in ("Optimal solution found", ""):
            return SolverOutcome(Status.OPTIMAL, float(objective), _below(objective), values)
        if status in ("Optimal", "Stopped") and self._found:
            found = Status.INTERRUPTED if self._stopped else Status.FEASIBLE
            return SolverOutcome(found, float(objective), self._bound, values)
        if (status in ("Infeasible", "Integer") or self._infeasible) and early is None:
            return SolverOutcome(Status.INFEASIBLE, None, math.inf, None)
        if early is not None:
            return SolverOutcome(early, None, self._bound, None)
        raise SolverError(f"CBC ends with {status or 'no answer'!r} ({self._result or self._last})")

    def _read_solution(self) -> tuple[str, str, Values]:
        """Return the first word of the file with the solution, the objective, and the values."""
        if not self._solution.exists():
            return "", "", {}
        head, *lines = self._solution.read_text(encoding="ascii", errors="replace").splitlines() or [""]
        # Number, name, value and reduced cost, behind ** if the value is out of bounds.
        cells = (line.removeprefix("**").split() for line in lines)
        known = {row[1]: float(row[2]) for row in cells if len(row) == 4}
        values = {name: known.get(short, 0.0) for name, short in self._names.items()}
        return head.partition(" ")[0], head.rpartition(" ")[2], values


def _listed(values: Mapping[str, float], names: Mapping[str, str]) -> str:
    """Return a solution in the form in which CBC writes them."""
    lines = [f"{at} {short} {values[name]:.15g} 0" for at, (name, short) in enumerate(names.items())]
    return "\n".join(["Stopped on time - objective value 0", *lines, ""])


def _below(number: str) -> float:
    """Return a number that is not above what was rounded to ``number``: one less in its last place."""
    digits = Decimal(number)
    return float(digits - Decimal(1).scaleb(int(digits.as_tuple().exponent)))
