"""Slurm as an engine: one exclusive job for each node, which goes on with its part whenever it is started again.

The files of a part are in a folder that the nodes share: there this program writes the part, and reads the journal
that the job leaves. Jobs are known by their names, so that another process finds them.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import time
from collections import defaultdict, deque
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from shlex import quote
from subprocess import DEVNULL, TimeoutExpired, run

from mig_opt.batch.journal import Journal
from mig_opt.errors import InputError, Problem
from mig_opt.files.documents import write_text
from mig_opt.operations.execute.engines import Progress, folder_of, lost, program_of, progress_in
from mig_opt.operations.execute.machines import in_background

_PATIENCE_S = 5.0  # seconds after which a program of Slurm is given up, and called again later
_BETWEEN_S = 1.0  # seconds between questions about the jobs, which all go to one controller
_BEAT_S = 1.5  # seconds after which the heart of a running job, which beats every second, is missed
_UNREACHED = re.compile(
    r"no answer|contact|connect|timed out|transmitted|unavailable|unable to accept|again later|munge|authenticat|^$",
    re.I,
)
"""Words with which Slurm's programs refuse for a while; other refusals are for good."""

_LATE = "has come to the end of its time in Slurm; give it more (SBATCH_TIMELIMIT)"
_WANTED = {"CANCELLED": "has been cancelled in Slurm", "TIMEOUT": _LATE, "DEADLINE": _LATE}
"""States of jobs that somebody has ended, with what is told of them."""
_FORMAT = "--Format=Name:|,JobID:|,State:|,Reason:|,RestartCnt:|"
_ASK = ["squeue", "--noheader", "--all", "--me"]  # also of partitions that are hidden
_WAITING, _LIVE = ("PENDING", "CONFIGURING"), ("RUNNING", "SUSPENDED", "STOPPED")

_SCRIPT = """#!/bin/sh
# Carries out the part of {host}. Slurm starts it again after its node was lost, and then it goes on.
cd {folder} && rm -f {name}.code || exit
export MIG_OPT_HOST={host}
(while kill -0 $$ && touch {name}.alive; do sleep 1; done) 2>{name}.heart &
heart=$! child= stop=
trap 'stop=1; kill -TERM $child' TERM
found=$({python} -c "from importlib import metadata; print(metadata.version('mig-opt'))")
code=143 starts=0  # if it is told to stop before it begins
if [ -z "$stop" ] && [ "$found" != {version} ]; then
  echo "error: has mig_opt ${{found:-not at all}}, and here is {version}: pip install mig-opt=={version}"
  code=2
else
  # What its tasks do outlives the program, as long as the job lives.
  while [ -z "$stop" ]; do
    (cd {working} || cd; exec {words}) &
    child=$!
    wait $child; code=$?
    while kill -0 $child; do wait $child; code=$?; done 2>{name}.heart
    starts=$((starts + 1))
    [ "$code" = 137 ] && [ "$starts" -lt 3 ] || break
  done
fi
ln -sfn "$code" {name}.code  # a link, for which a full disk has room
kill $heart 2>{name}.heart
exit "$code"
"""


class SlurmEngine:
    """The engine ``slurm``: ``sbatch``, with its options in the environment (``SBATCH_PARTITION`` and so on)."""

    def __init__(self) -> None:
        lacking = [name for name in ("sbatch", "squeue", "scancel", "scontrol") if shutil.which(name) is None]
        if lacking:
            message = f"there is no {', '.join(lacking)} here: run it where jobs are submitted"
            raise InputError([Problem("engine", message)])
        self._orders: defaultdict[str, deque[list[list[str]]]] = defaultdict(deque)  # that have not been taken yet
        self._names: dict[str, str] = {}  # of the job that each host has last
        self._hearts: dict[str, tuple[float, float]] = {}  # time of the file, and when that was seen first
        self._stopped = set[str]()  # hosts whose jobs have been told to stop
        self.close()

    def close(self) -> None:
        """Forget what Slurm has told, and what it is asked just now; jobs go on."""
        self._answer: Future[tuple[bool, str]] | None = None
        self._known: dict[str, tuple[str, ...]] | None = None
        self._asked = 0.0

    def check(self, parts: Mapping[str, Journal], *, begun: bool) -> list[Problem]:
        """Return the nodes that Slurm does not have or that begin no job; versions are compared when a job begins."""
        problems: list[Problem] = []
        for host, part in parts.items():
            problems += lost(part, self._folder(host, part)) if part.events else ()
            done, text = _call(["scontrol", "-ao", "show", "node", host])
            # A node that is powered down begins jobs all the same.
            found = re.search(r"\bState=(\S*(?:(?<!_)DOWN|DRAIN|FAIL|INVAL|NOT_RESPONDING)\S*)", text)
            if not done:
                problems.append(Problem(host, f"Slurm does not tell of this node: {text.strip() or 'no answer'}"))
            elif found and not begun:
                message = f"is {found[1]} in Slurm, and begins no job; see: scontrol show node {host}"
                problems.append(Problem(host, message))
        return problems

    def _folder(self, host: str, part: Journal) -> Path:
        return folder_of(part.run, host, Path(part.folder) / ".mig-opt")

    def submit(self, host: str, part: Journal, *, undo: bool = False) -> None:
        """Submit the job of a node, unless it is there."""
        folder, kind = self._folder(host, part), "undo" if undo else "run"
        name = self._names[host] = _name(host, part, kind)
        self._stopped.discard(host)
        program = " ".join(map(quote, program_of(part, folder, undo=undo)))
        places = {"folder": quote(str(folder)), "working": quote(part.folder or "."), "words": program}
        version = metadata.version("mig-opt")
        script = _SCRIPT.format(host=host, name=kind, python=quote(sys.executable), version=version, **places)
        write_text(folder / f"{kind}.sh", script)
        options = ["--nodes=1", "--ntasks=1", "--exclusive", "--mem=0", "--requeue", "--open-mode=append"]
        output = f"{folder}/{kind}.out".replace("%", "%%")  # which is a pattern
        options += [f"--nodelist={host}", f"--job-name={name}", f"--output={output}", f"--chdir={folder}"]
        self._orders[host].append([["sbatch", "--parsable", *options, str(folder / f"{kind}.sh")]])
        self._obey(host, part)

    def cancel(self, host: str, part: Journal) -> None:
        """Cancel the job of a node if it waits, and send SIGTERM to its script: the program ends its tasks itself."""
        self._stopped.add(host)
        for kind in ("run", "undo"):
            words = ["scancel", "--quiet", f"--user={os.getuid()}", f"--name={_name(host, part, kind)}"]
            self._orders[host].append([[*words, "--state=PENDING"], [*words, "--batch", "--signal=TERM"]])
        self._obey(host, part)

    def _obey(self, host: str, part: Journal) -> str | None:
        """Do what has been ordered for a node; return what Slurm says against it, None if it has taken it all."""
        while self._orders[host]:
            order, there = self._orders[host][0], set[str]()
            if order[0][0] == "sbatch":
                # Asked anew each time: an order that was lost on the way back has been taken, and one job is enough.
                done, text = _call([*_ASK, f"--name={self._names[host]}", "--format=%T"])
                if not done:
                    return text
                code = self._folder(host, part) / f"{Path(order[0][-1]).stem}.code"
                there = set() if code.is_symlink() else {*text.split()} & {*_WAITING, *_LIVE}
                if not there:
                    code.unlink(missing_ok=True)
            for words in () if there else order:
                done, text = _call(words)
                if not done:
                    return text
            self._orders[host].popleft()
            self._hearts.pop(host, None)
            self.close()
        return None

    def progress(self, host: str, part: Journal, seen: int, *, undo: bool = False) -> Progress | None:
        """Return what the job of a node has left, and what Slurm tells of it."""
        refusal = self._obey(host, part)
        if refusal is not None:
            return None if _UNREACHED.search(refusal) else Progress(ended=True, code=2, text=refusal)
        folder, kind = self._folder(host, part), "undo" if undo else "run"
        name, jobs, code = _name(host, part, kind), self._jobs(), None
        with contextlib.suppress(FileNotFoundError, ValueError):
            code = int(str((folder / f"{kind}.code").readlink()))
        gone = jobs is not None and name not in jobs
        # Whoever else ends a job wants that, and so does a limit of its time: it is not begun again, whatever killed
        # its program. Slurm says so when it has done with it.
        unclear = (code is None or code > 128) and host not in self._stopped
        last = [*_ASK, "--states=all", f"--name={name}", "--sort=-i", "--format=%T"]
        told, state = _call(last) if gone and unclear else (True, "")
        if not told:
            return None
        found = progress_in(folder, kind, seen, ended=gone or (code is not None and not unclear), code=code)
        if said := next((text for start, text in _WANTED.items() if state.startswith(start)), ""):
            return replace(found, code=2, text=f"its job {said}; --{'undo' if undo else 'resume'} goes on")
        heard = found.ended or bool(found.journal)
        if jobs is not None and not found.ended:
            number, state, reason, restarts = jobs[name]
            if state not in _LIVE and reason == "BeginTime" and restarts != "0":
                # A job that was requeued waits for minutes: orders to kill what it was are still under way. Begun at
                # once it would be killed by them, or leave its node allocated to nobody. Another job is not hit.
                self._orders[host].append([["scancel", "--quiet", "--state=PENDING", number]])
                self.submit(host, part, undo=undo)
            elif state in _WAITING:
                mend = f"; see: scontrol show node {host}; then: scontrol release {number}"
                waits = f"job {number} waits in Slurm: {reason}{mend if 'held' in reason.lower() else ''}"
                found = replace(found, waits=waits)
            alive = state not in _LIVE or self._beats(host, folder / f"{kind}.alive")
            heard = heard or alive
        return found if heard else None

    def _jobs(self) -> dict[str, tuple[str, ...]] | None:
        """Return number, state, reason and restarts of each job by its name; None if that is not known now.

        Asking does not keep anybody waiting.
        """
        now = time.monotonic()
        if self._answer is None and now - self._asked > _BETWEEN_S:
            words = [*_ASK, f"--name={','.join(self._names.values())}", _FORMAT]
            self._answer, self._asked = in_background(lambda: _call(words)), now
        elif self._answer is not None and self._answer.done():
            (done, text), self._answer = self._answer.result(), None
            lines = [line.split("|") for line in text.splitlines()] if done else ()
            self._known = {name: tuple(job) for name, *job, _ in reversed(lines)} if done else None
        return self._known

    def _beats(self, host: str, path: Path) -> bool:
        """Return True unless the heart of a running job has not beaten for a while, by the clock of this process."""
        time_of_file, now = path.stat().st_mtime if path.exists() else 0.0, time.monotonic()
        if self._hearts.get(host, (-1.0, 0.0))[0] != time_of_file:
            self._hearts[host] = (time_of_file, now)
        return now - self._hearts[host][1] < _BEAT_S


def _name(host: str, part: Journal, kind: str) -> str:
    return f"mig-opt-{part.run}-{host}-{kind}"


def _call(words: list[str]) -> tuple[bool, str]:
    """Call a program of Slurm, without what its user likes to see or skip; return whether it did it, and its words."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SQUEUE_", "SCANCEL_"))}
    try:
        ended = run(  # noqa: S603
            words, capture_output=True, errors="replace", stdin=DEVNULL, timeout=_PATIENCE_S, check=False, env=own
        )
    except TimeoutExpired:
        return False, "no answer"
    return ended.returncode == 0, ended.stdout if ended.returncode == 0 else ended.stderr
