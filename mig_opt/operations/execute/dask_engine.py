"""Dask as an engine: a worker on each node does what it is asked, and the part of the node is a process of its own.

Nothing that Dask does twice, loses or restarts does harm: what is asked takes a moment, and may be asked again. A
worker is found by its resource ``mig-HOST``; work that is pinned by the name of a worker hangs once that was restarted.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import secrets
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import wait
from importlib import metadata
from typing import Any

from mig_opt.batch.journal import Journal
from mig_opt.errors import InputError, Problem
from mig_opt.operations.execute import engines
from mig_opt.operations.execute.engines import SILENT_S, Progress
from mig_opt.operations.execute.machines import in_background

_CONNECTING_S = 8  # seconds until a scheduler that does not answer is given up at the beginning
_ASKING_S = 0.5  # seconds for which an answer that has come is fetched before other nodes are looked after
_AGAIN_S = 2.0  # seconds between attempts to reach a scheduler that was lost
_SILENT = "no Dask scheduler answers at {}: {}"
_INSECURE = (
    "whoever reaches a Dask scheduler without TLS runs programs on all of its nodes; give scheduler, workers and this "
    "program certificates (distributed.comm.tls in ~/.config/dask/distributed.yaml: ca-file, cert and key of each), or "
    "use a scheduler of this machine (dask://127.0.0.1:PORT)"
)


class DaskEngine:
    """The engine ``dask://HOST:PORT``; refused if the way to it is neither encrypted nor within this machine."""

    def __init__(self, host: str, port: str) -> None:
        try:
            import distributed
        except ImportError:
            raise InputError([Problem("engine", "needs Dask; install it with: pip install 'mig-opt[dask]'")]) from None
        self._dask: Any = distributed  # it has no types
        known = self._dask.security.Security()
        self._encrypted = bool(known.tls_ca_file and known.tls_client_cert and known.tls_client_key)
        if not self._encrypted and not _is_loopback(host):
            raise InputError([Problem("engine", _INSECURE)])
        self._address = f"{'tls' if self._encrypted else 'tcp'}://{host}:{port}"
        self._client: Any = None
        self._again = 0.0  # when a scheduler that was lost is tried next
        self._orders: defaultdict[str, deque[Any]] = defaultdict(deque)  # to each node, not known to be done
        self._questions: dict[str, Any] = {}
        names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]
        self._levels = {name: logging.getLogger(name).level for name in names}
        for name in names:  # what is lost is told by who asks
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            self._connect(_CONNECTING_S)
        except (OSError, ValueError) as error:
            self.close()
            raise InputError([Problem("engine", _SILENT.format(self._address, error))]) from None

    # The cluster

    def _of_scheduler(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns in the scheduler; refuse one that does not answer."""
        try:
            return _timely(lambda: self._client.run_on_scheduler(function, *arguments), SILENT_S)
        except OSError as error:
            raise InputError([Problem("engine", _SILENT.format(self._address, error))]) from None

    def _connect(self, timeout: float) -> None:
        security = self._dask.security.Security(require_encryption=True) if self._encrypted else None
        options = {"timeout": timeout, "set_as_default": False, "security": security}
        self._client = _timely(lambda: self._dask.Client(self._address, **options), timeout)

    def _connected(self) -> bool:
        """Return True if there is a scheduler; a connection that was lost is made again."""
        if self._client is not None and self._client.status == "running":
            return True
        if time.monotonic() < self._again:
            return False
        self._drop()
        try:
            self._connect(2 * _ASKING_S)
        except (OSError, ValueError):
            self._again = time.monotonic() + _AGAIN_S
            return False
        return True

    def _drop(self) -> None:
        """Forget the connection, and what has been asked by it."""
        client, self._client = self._client, None
        self._orders.clear()
        self._questions.clear()
        if client is not None:
            client.close(timeout=2 * _ASKING_S)

    def close(self) -> None:
        """Close the connection; what has been begun goes on."""
        self._drop()
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(level)

    def _ask(self, host: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Ask the worker of a node for something; return the future of its answer."""
        key, pinned = f"mig-opt-{secrets.token_hex(16)}", {f"mig-{host}": 1}
        return self._client.submit(function, *arguments, key=key, resources=pinned, pure=False, retries=0)

    # Before

    def check(self, parts: Mapping[str, Journal], *, begun: bool) -> list[Problem]:
        """Return what keeps parts from being carried out: versions, workers, and what each node finds."""
        here = metadata.version("mig-opt")
        mend = f"and here is {here}: pip install mig-opt=={here}"
        there = "not at all"
        with contextlib.suppress(metadata.PackageNotFoundError):
            there = str(self._of_scheduler(metadata.version, "mig-opt"))
        if there != here:
            return [Problem("engine", f"the scheduler has mig_opt {there}, {mend}")]
        limit = time.monotonic() + (_CONNECTING_S if begun else 0)  # a worker may just be on its way back
        while (problems := list(self._wrong_workers(parts))) and time.monotonic() < limit:
            time.sleep(_ASKING_S)
        if problems:
            return problems
        for host, version in self._answers(dict.fromkeys(parts, (metadata.version, "mig-opt"))):
            if version != here:
                known = f"has mig_opt {version}, {mend}"
                problems.append(Problem(host, str(version) if isinstance(version, TimeoutError) else known))
        if not problems and not begun:
            for host, found in self._answers({host: (engines.trouble_on, part) for host, part in parts.items()}):
                problems += [Problem(host, text) for text in ([str(found)] if isinstance(found, Exception) else found)]
        return problems

    def _wrong_workers(self, hosts: Iterable[str]) -> Iterator[Problem]:
        workers = self._of_scheduler(_workers)
        for host in hosts:
            own = [address for address, resources in workers.items() if f"mig-{host}" in resources]
            if not own:
                start = f"dask worker {self._address} --resources mig-{host}=1"
                yield Problem(host, f"has no worker; start there: {start}")
            for address in own:
                scheme, _, place = address.partition("://")
                if scheme != "tls" and not _is_loopback(place.rpartition(":")[0]):
                    yield Problem(host, f"its worker {address} has no TLS; {_INSECURE}")

    def _answers(self, calls: Mapping[str, tuple[Any, ...]]) -> Iterator[tuple[str, Any]]:
        """Yield the answer of each node, an exception where it is one, or does not come."""
        futures = {host: self._ask(host, *call) for host, call in calls.items()}
        limit = time.monotonic() + SILENT_S
        for host, future in futures.items():
            try:
                yield host, future.result(timeout=max(limit - time.monotonic(), 0.01))
            except TimeoutError:
                yield host, TimeoutError(f"its worker has not answered for {SILENT_S:g} s; look after the node")
            except Exception as error:  # whatever the worker has raised
                yield host, error

    # Jobs

    def submit(self, host: str, part: Journal, *, undo: bool = False) -> None:
        """Have the worker of a node begin its part, or take it back."""
        if self._connected():
            self._orders[host].append(self._ask(host, engines.begin, host, part, undo))

    def cancel(self, host: str, part: Journal) -> None:
        """Have the worker of a node interrupt its part."""
        if self._connected():
            self._orders[host].append(self._ask(host, engines.interrupt, host, part.run))

    def progress(self, host: str, part: Journal, seen: int, *, undo: bool = False) -> Progress | None:
        """Return what the worker of a node sees; None if it has not answered yet."""
        if not self._connected():
            return None
        while self._orders[host]:
            ended, answer = self._answer(self._orders[host][0])
            if not ended or answer is not None:
                return answer
            self._orders[host].popleft()
        if host not in self._questions:
            self._questions[host] = self._ask(host, engines.look, host, part.run, seen, undo)
        ended, answer = self._answer(self._questions[host])
        if ended:
            self._questions.pop(host, None)
        return answer

    def _answer(self, future: Any) -> tuple[bool, Progress | None]:
        """Return True if a future has come to its end, and what it is; a node that refuses has ended."""
        if not future.done():
            return False, None
        try:
            return True, future.result(timeout=_ASKING_S)
        except TimeoutError:
            return False, None
        except Exception as error:  # whatever the worker has raised, or Dask
            if future.status == "error" and not isinstance(error, self._dask.scheduler.KilledWorker):
                return True, Progress(ended=True, code=2, text=str(error))
            self._drop()  # the scheduler was lost, or has forgotten
            return False, None


def _timely(call: Callable[[], Any], seconds: float) -> Any:
    """Return the value of a call that Dask may let wait for ever; raise a TimeoutError after some seconds."""
    answer = in_background(call)
    if wait([answer], seconds).not_done:
        raise TimeoutError(f"nothing heard for {seconds:g} s")
    return answer.result()


def _workers(dask_scheduler: Any) -> dict[str, dict[str, float]]:
    """Return the resources of each worker by its address; runs in the scheduler."""
    return {address: dict(worker.resources) for address, worker in dask_scheduler.workers.items()}


def _is_loopback(host: str) -> bool:
    """Return True if only programs of this machine reach a host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
