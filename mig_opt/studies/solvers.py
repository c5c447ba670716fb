"""Solvers of other people: a command or a function is run on an instance, and what it leaves is judged.

Each runs in a process of its own, which may crash, hang, or write anything.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import select
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from mig_opt.errors import InputError, MigOptError
from mig_opt.files.documents import decoded, write_text
from mig_opt.instances.bundled import InstanceInfo, Library, file_text
from mig_opt.instances.goals import goal_of
from mig_opt.instances.trace_goals import is_policy, scheduled_by
from mig_opt.method.functions import found_at, planned_by
from mig_opt.studies import supervisor
from mig_opt.studies.rows import CRASHED, Outcome
from mig_opt.texts import listed

VALID, INVALID, GARBAGE, NO_PLAN, LATE, TIMEOUT = "valid", "invalid", "garbage", "no plan", "late", "timeout"
"""Outcome of a run: a valid plan, one that breaks rules, a file that is no plan, no file, a file of a solver that
had to be ended at the limit, and no file of such a one. A solver that ends with an exit code has ``crashed``, unless it
has written a valid plan before."""

_GRACE = 1.0
"""Seconds after the limit until a solver is ended: a program that keeps to the limit takes a while to end, too."""

_LEAST_S = 0.1  # seconds for a method of our own, at least

_ANSWER_S = 60.0
"""Seconds after that until who watches a solver must have answered: one that is stopped or killed never does."""

_LONGEST_REASON, _MOST_BYTES = 300, 2**26  # letters of a reason, and bytes of a plan, at most


def judged_text(library: Library, info: InstanceInfo, text: str, source: str) -> tuple[str, float | None, str]:
    """Return the status of a plan, its value, and what is wrong with it."""
    problem, goal = library.load(info.name), goal_of(info)
    try:
        plan = goal.read(problem, info.question, text, source)
    except InputError as error:
        return GARBAGE, None, "; ".join(map(str, error.problems))
    try:
        judged = goal.judge(problem, plan, info.question)
    except MigOptError as error:
        return INVALID, None, str(error)
    return VALID if judged.valid else INVALID, judged.value, listed(list(map(str, judged.violations)), 1)


@dataclass(frozen=True)
class SolverRun:
    """Run of a solver on an instance.

    The solver is a command with placeholders, a function or scheduler (``module:name`` or ``file.py:name``), or our own
    method.
    """

    solver: str
    how: str  # command, function or method
    what: str
    instance: str
    folder: str
    time_limit: float
    plan: str  # the file in which a valid plan is kept

    @property
    def key(self) -> str:
        """All that decides the run."""
        return json.dumps(dataclasses.asdict(self))

    @property
    def batch_key(self) -> str:
        """Name of the instance."""
        return self.instance

    @property
    def label(self) -> str:
        """Name of the run in messages."""
        return f"{self.solver} on {self.instance}"


def perform(run: SolverRun) -> Outcome:
    """Run a solver in a process of its own, which is ended when its time is over, and judge what it leaves."""
    library = Library(Path(run.folder))
    info = library.info(run.instance)
    with tempfile.TemporaryDirectory(prefix="mig-opt-score-") as folder:
        instance, plan = Path(folder, f"{info.name}.json"), Path(folder, "plan.json")
        write_text(instance, file_text(info.kind, library.load(info.name)))
        ended, said, seconds = _ended(_arguments(run, info, instance, plan), run.time_limit + _GRACE)
        text, status, value, reason = left_plan(library, info, plan, said)
    if ended is None:
        status, reason = (TIMEOUT if status == NO_PLAN else LATE), f"had to be ended after {run.time_limit:g} s"
    elif ended != 0 and status != VALID:
        status, reason = CRASHED, f"exit code {ended}: {said}" if ended > 0 else f"signal {-ended}: {said}"
    if status == VALID:
        write_text(run.plan, text)
    return Outcome(status, seconds, makespan=value if status == VALID else None, error=reason[:_LONGEST_REASON])


def left_plan(library: Library, info: InstanceInfo, plan: Path, said: str) -> tuple[str, str, float | None, str]:
    """Return the text that a solver has left as its plan, with its status, its value, and what is wrong with it."""
    try:
        about = plan.stat()
        if not stat.S_ISREG(about.st_mode):  # a pipe has no end
            return "", GARBAGE, None, "is no file"
        if about.st_size > _MOST_BYTES:
            return "", GARBAGE, None, f"has {about.st_size} bytes, which no plan has"
        text = decoded(plan.read_bytes(), "plan.json")
    except OSError:
        return "", NO_PLAN, None, said
    except InputError as error:
        return "", GARBAGE, None, "; ".join(map(str, error.problems))
    return text, *judged_text(library, info, text, "plan.json")


def _arguments(run: SolverRun, info: InstanceInfo, instance: Path, plan: Path) -> list[str]:
    """Return the command line of a solver."""
    values = {"instance": str(instance), "plan": str(plan), "seconds": f"{run.time_limit:g}", "name": info.name}
    values |= {"goal": info.goal, "question": json.dumps(dict(info.question))}
    if run.how != "command":
        given = json.dumps([run.how, run.what, info.name, run.folder, run.time_limit, str(plan), time.monotonic()])
        return [sys.executable, "-c", "from mig_opt.studies.solvers import call_solver; call_solver()", given]
    # Braces of other kinds stay as they are.
    return [re.sub(r"{(\w+)}", lambda found: values.get(found[1], found[0]), word) for word in shlex.split(run.what)]


def _ended(arguments: list[str], limit: float) -> tuple[int | None, str, float]:
    """Return the exit code of a program, None if it had to be ended, the last line that it printed, and its seconds."""
    paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    environment = {**os.environ, "PYTHONPATH": paths} if arguments[0] == sys.executable else None
    # Not to be struck by Ctrl-C, and with as little of this process as can be.
    watched = [sys.executable, "-I", "-S", supervisor.__file__]
    asks = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True, "env": environment}
    with subprocess.Popen(watched, **asks) as process:  # type: ignore[call-overload]  # noqa: S603
        process.stdin.write(json.dumps([arguments, limit]).encode() + b"\n")
        process.stdin.flush()
        if not select.select([process.stdout], [], [], limit + _ANSWER_S)[0]:
            process.kill()
        answer = process.stdout.readline() or json.dumps([-signal.SIGKILL, "who watches it was stopped", limit])
    code, said, seconds = json.loads(answer)
    return code, said, seconds


def call_solver() -> None:
    """Call a function or a method of our own, as the only argument of the process says, and write the plan."""
    how, what, name, folder, limit, path, begin = json.loads(sys.argv[1])
    library = Library(Path(folder))
    info = library.info(name)
    goal, problem = goal_of(info), library.load(name)
    if how == "method":
        left = max(limit - (time.monotonic() - begin), _LEAST_S)  # however long all this took to begin
        plan = goal.attempt(problem, info.question, left, 1, what).plan
    else:
        found = found_at(what)
        plan = scheduled_by(problem, info.goal, found) if is_policy(found) else planned_by(found, problem, limit)
    if plan is not None:
        write_text(path, goal.text(plan))
