"""The agent of an execution on another machine: ``python3 -m mig_opt.cli.agent RUN FOLDER``.

It reads requests, lines of JSON, from standard input, and answers them on standard output, each when it is done. When
the input ends, it finishes what it has begun.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mig_opt.errors import DriverError, InputError
from mig_opt.gpu.model import Placement, Profile
from mig_opt.operations.driver import Nvml, owner_of_partitions
from mig_opt.operations.execute.attempts import Attempts


class Agent:
    """The answers to requests.

    Parameters
    ----------
    driver : Nvml
        The driver of this machine.
    attempts : Attempts
        The tries at tasks.
    """

    def __init__(self, driver: Nvml, attempts: Attempts) -> None:
        self._driver, self._attempts = driver, attempts

    def answer(self, method: str, arguments: list[Any]) -> Any:
        """Return the value of a method."""
        methods: dict[str, Callable[..., Any]] = {
            "device": lambda identifier: asdict(self._driver.device(identifier)),
            "owner": owner_of_partitions,
            "version": self._driver.version,
            "check": lambda gpu, places: self._driver.check(gpu, [_placement(place) for place in places]),
            "instances": self._instances,
            "create": self._create,
            "destroy": self._destroy,
            "begin": self._begin,
            "outcome": self._outcome,
            "stop": self._attempts.stop,
            "clear": self._attempts.clear,
        }
        return methods[method](*arguments)

    def _instances(self, gpu: str) -> list[dict[str, Any]]:
        with _alone(gpu):
            return [asdict(one) for one in self._driver.instances(gpu)]

    def _create(self, gpu: str, place: dict[str, Any]) -> dict[str, Any]:
        with _alone(gpu):
            return asdict(self._driver.create(gpu, _placement(place)))

    def _destroy(self, gpu: str, number: int) -> None:
        with _alone(gpu):
            self._driver.destroy(gpu, number)

    def _begin(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        if not self._attempts.begun(name):
            self._attempts.begin(name, command, environment)

    def _outcome(self, name: str) -> dict[str, Any]:
        outcome = self._attempts.outcome(name)
        return {"ended": outcome is not None, "code": outcome.code if outcome else None}


@contextlib.contextmanager
def _alone(gpu: str) -> Iterator[None]:
    """Wait for operations on a GPU that earlier agents have not finished."""
    with (Path(tempfile.gettempdir()) / f"mig-opt-{gpu}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _placement(place: dict[str, Any]) -> Placement:
    profile = place["profile"]
    lists = {key: tuple(profile[key]) for key in ("starts", "attributes")}
    return Placement(Profile(**{**profile, **lists}), place["start"])


def main(run: str, working: str) -> None:
    """Answer requests until there are no more."""
    folder = Path.home() / ".mig-opt" / Path(run).name
    folder.mkdir(parents=True, exist_ok=True)
    there = Path(working) if Path(working).is_dir() else Path.home()
    output = threading.Lock()
    threads: list[threading.Thread] = []

    def say(answer: dict[str, Any]) -> None:
        with output, contextlib.suppress(OSError, ValueError):  # nobody listens any more
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()

    def work(agent: Agent, request: dict[str, Any]) -> None:
        try:
            say({"id": request["id"], "value": agent.answer(request["method"], request["arguments"])})
        except DriverError as error:
            say({"id": request["id"], "cause": error.cause, "error": str(error)})
        except (InputError, OSError) as error:
            say({"id": request["id"], "cause": "agent", "error": str(error)})

    with Nvml() as driver:
        agent = Agent(driver, Attempts(folder, there))
        for line in sys.stdin:
            # A day of tasks asks a million times.
            threads = [thread for thread in threads if thread.is_alive()]
            threads.append(threading.Thread(target=work, args=(agent, json.loads(line))))
            threads[-1].start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
