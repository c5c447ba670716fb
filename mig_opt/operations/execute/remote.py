"""GPUs of other machines: an agent there, reached by ssh, does what the driver and the tasks of this machine do here.

The agent is ``python3 -m mig_opt.cli.agent`` on the other machine. Each request is a line of JSON, and so is each
answer. Everything can be asked again when the connection is lost in the middle: an operation is looked for before it is
tried again, and a task that has begun is not begun twice. Operations and tasks go on there meanwhile.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mig_opt.errors import DriverError
from mig_opt.gpu.model import Placement
from mig_opt.operations.driver import Device, MigInstance, Patience
from mig_opt.operations.execute.attempts import Outcome

CONNECTION = "connection"
"""Cause of errors about a connection that is lost."""

_Answers = dict[int, queue.Queue[dict[str, Any] | None]]
"""Queues in which the answers to questions are waited for, by their numbers."""

_POLL = 0.2
"""Seconds between questions about a task."""

_TASKS = Patience(first=0.2, longest=30, limit=30 * 24 * 3600)
"""Patience with a connection while a task runs."""


class Remote:
    """The driver of another machine, and the tries at tasks there.

    The files of the execution ``run`` have a folder of their own there; commands run in ``working``, if that exists.
    """

    def __init__(self, host: str, run: str, working: str, patience: Patience) -> None:
        self.host = host
        python = os.environ.get("MIG_OPT_PYTHON", "python3")
        self._command = ["ssh", "-o", "BatchMode=yes", host, *python.split(), "-m", "mig_opt.cli.agent", run, working]
        self._patience = patience
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._answers: _Answers = {}  # of the present connection
        self._process: subprocess.Popen[str] | None = None
        self._threads: list[threading.Thread] = []

    def close(self) -> None:
        """End the connection; the agent ends by itself."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        for thread in self._threads:
            thread.join()

    # Questions and answers

    def _connected(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            pipe = subprocess.PIPE
            process = subprocess.Popen(  # noqa: S603 - the command is the user's
                self._command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
            self._process, self._answers = process, {}
            self._threads.append(threading.Thread(target=self._listen, args=(process, self._answers), daemon=True))
            self._threads[-1].start()
        return self._process

    def _listen(self, process: subprocess.Popen[str], answers: _Answers) -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        with process.stdout:
            for line in process.stdout:
                if line.startswith("{") and line.endswith("\n"):
                    answer = json.loads(line)
                    answers.pop(answer["id"]).put(answer)
        process.wait()
        with contextlib.suppress(OSError):
            process.stdin.close()
        with self._lock:  # who asks next finds that the process has ended
            waiting = list(answers.values())
        for each in waiting:
            each.put(None)

    def _ask(self, method: str, *arguments: object) -> Any:
        """Return the answer to a question."""
        lost = DriverError(
            CONNECTION, f"{self.host}: ssh gives no connection to an agent; try: {' '.join(self._command)}"
        )
        answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        with self._lock:
            try:
                process, number = self._connected(), next(self._numbers)
                self._answers[number] = answers
                assert process.stdin is not None
                process.stdin.write(json.dumps({"id": number, "method": method, "arguments": arguments}) + "\n")
                process.stdin.flush()
            except (OSError, ValueError):  # the listener may just have closed the pipe
                raise lost from None
        answer = answers.get()
        if answer is None:
            raise lost
        if "error" in answer:
            raise DriverError(answer["cause"], f"{self.host}: {answer['error']}")
        return answer["value"]

    def _again(self, act: Callable[[], Any], patience: Patience | None = None) -> Any:
        """Return the value of something that can be done twice, in spite of connections that are lost."""
        waits = (patience or self._patience).waits()
        while True:
            try:
                return act()
            except DriverError as error:
                wait = next(waits, None)
                if error.cause != CONNECTION or wait is None:
                    raise
            time.sleep(wait)

    # The driver

    def device(self, identifier: str) -> Device:
        """Return a GPU of the machine."""
        return Device(**self._ask("device", identifier))

    def version(self) -> str:
        """Return the version of the driver."""
        return str(self._ask("version"))

    def owner(self) -> str:
        """Return who owns the partitions of the machine, as :func:`mig_opt.operations.driver.owner_of_partitions`."""
        return str(self._ask("owner"))

    def check(self, gpu: str, placements: Sequence[Placement]) -> list[str]:
        """Return why instances could not be created at these placements."""
        return list(self._ask("check", gpu, [asdict(placement) for placement in placements]))

    def instances(self, gpu: str) -> tuple[MigInstance, ...]:
        """Return the instances of a GPU, after operations that have begun."""
        found = self._again(lambda: self._ask("instances", gpu))
        return tuple(MigInstance(**{**one, "processes": tuple(one["processes"])}) for one in found)

    def create(self, gpu: str, placement: Placement) -> MigInstance:
        """Create an instance; one that was made when the connection was lost is found at its place."""
        before = {one.number for one in self.instances(gpu)}

        def act() -> MigInstance:
            new = [one for one in self.instances(gpu) if one.at(placement) and one.number not in before]
            if new and new[0].uuid:
                return new[0]
            for one in new:
                self._ask("destroy", gpu, one.number)
            return MigInstance(**{**self._ask("create", gpu, asdict(placement)), "processes": ()})

        made: MigInstance = self._again(act)
        return made

    def destroy(self, gpu: str, number: int) -> None:
        """Destroy an instance, but not what has got its number after it was gone."""
        uuid = next((one.uuid for one in self.instances(gpu) if one.number == number), None)

        def act() -> None:
            there = next((one for one in self.instances(gpu) if one.number == number), None)
            if there is not None and (there.uuid == uuid or not there.computes):
                self._ask("destroy", gpu, number)

        self._again(act)

    # Tries at tasks

    def begin(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a program there, unless it has been started already."""
        self._again(lambda: self._ask("begin", name, list(command), dict(environment)), _TASKS)

    def outcome(self, name: str) -> Outcome | None:
        """Return the end of a try, by the clock of this machine; None while it still runs."""
        found = self._again(lambda: self._ask("outcome", name), _TASKS)
        return Outcome(time.time(), found["code"]) if found["ended"] else None

    def wait(self, name: str, process: Any = None) -> Outcome:
        """Wait for the end of a try; nothing of it is in this machine."""
        assert process is None
        while (outcome := self.outcome(name)) is None:
            time.sleep(_POLL)
        return outcome

    def stop(self, name: str) -> None:
        """End a try with all of its processes."""
        self._again(lambda: self._ask("stop", name))

    def clear(self) -> None:
        """Remove the files of tries, but not their outputs."""
        self._again(lambda: self._ask("clear"))
