"""Execution of runs: one by one in this process, in several processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
import secrets
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent import futures
from typing import Any

from mig_opt.errors import InputError, MigOptError, Problem
from mig_opt.studies.environment import fingerprint
from mig_opt.studies.rows import Outcome, R, Records, Row
from mig_opt.studies.workers import Answer, WorkerPool, answer

_LOG = logging.getLogger(__name__)

MOST_JOBS = 1000
"""Runs at the same time, at most."""

_CONNECTING_S = 15  # seconds until a scheduler that does not answer is given up

Answered = tuple[int, Answer | None]
"""Number of a run, and the answer to it; None if it was cut short by Ctrl-C."""


class SourcesChangedError(MigOptError):
    """The sources of mig_opt, or the versions of what it runs on, are others than at the start of the study."""


def run_missing(
    runs: Sequence[R],
    perform: Callable[[R], Outcome],
    records: Records[R] | None = None,
    *,
    sources: Callable[[], str] = lambda: "",
    jobs: int | None = None,
    scheduler: str | None = None,
    told: Callable[[Row[R]], None],
) -> None:
    """Do runs and write their rows, each as soon as it is known; ``told`` is called with each.

    ``perform`` does one, and an exception becomes a row; with ``jobs`` or ``scheduler``, which are those of
    :func:`mig_opt.studies.run_study`, it is a function that other processes can import. Without ``records`` rows are
    only told. ``sources`` returns the fingerprint of what the runs depend on, which must stay what it is at the start.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C; the rows until then are written, the runs that it cut short are not.
    SourcesChangedError
        If the fingerprint is not what it was at the start.
    InputError
        If the scheduler cannot be reached, or its workers have other sources or versions.
    """
    at_start = sources()
    with contextlib.closing(_answers(runs, perform, jobs, scheduler)) as answers:
        for index, answered in answers:
            run = runs[index]
            if answered is None:
                raise KeyboardInterrupt
            if sources() != at_start:
                raise SourcesChangedError("the sources have changed since the start: a run is of neither; start again")
            _LOG.info("%s: %s, %.3f s %s", run.label, answered[0].status, answered[0].seconds, answered[0].error)
            told(records.add(run, *answered, at_start) if records else Row(run, *answered, at_start))


def _answers(
    runs: Sequence[R], perform: Callable[[R], Outcome], jobs: int | None, scheduler: str | None
) -> Generator[Answered]:
    if scheduler is not None:
        yield from _on_cluster(runs, perform, jobs, scheduler)
    elif jobs is not None:
        yield from _in_workers(runs, perform, jobs)
    else:
        for index, run in enumerate(runs):
            yield index, answer(perform, run)


def _in_workers(runs: Sequence[R], perform: Callable[[R], Outcome], jobs: int) -> Generator[Answered]:
    pool = WorkerPool()
    with futures.ThreadPoolExecutor(jobs) as threads:  # each only waits for a worker
        numbers = {threads.submit(pool.answer, perform, run): index for index, run in enumerate(runs)}
        try:
            for future in futures.as_completed(numbers):
                yield numbers[future], future.result()
        finally:  # after Ctrl-C nobody waits for the workers any more
            threads.shutdown(wait=False, cancel_futures=True)
            pool.close()


_POOLS: dict[str, WorkerPool] = {}
"""Worker pools of the studies for which this process, part of a Dask cluster, has done runs."""


def answer_on_cluster(study: str, index: int, perform: Callable[[R], Outcome], run: R) -> Answered:
    """Return ``index`` and the answer to a run of a study, by a worker of this process."""
    return index, _POOLS.setdefault(study, WorkerPool()).answer(perform, run)


def close_pool(study: str) -> None:
    """End the workers of a study in this process, and begin no other ones."""
    _POOLS.setdefault(study, WorkerPool()).close()


def _on_cluster(
    runs: Sequence[R], perform: Callable[[R], Outcome], jobs: int | None, scheduler: str
) -> Generator[Answered]:
    with _client(scheduler) as client:
        import distributed

        if not client.nthreads():
            raise InputError([Problem("scheduler", f"has no workers; begin some: dask worker {scheduler}")])
        here = fingerprint()
        for worker, there in client.run(fingerprint).items():
            if there != here:
                message = f"the worker {worker} has other sources of mig_opt, or other versions of what it runs on"
                raise InputError([Problem("scheduler", message)])
        study = secrets.token_hex(8)
        submitted = (
            client.submit(answer_on_cluster, study, index, perform, run, pure=False) for index, run in enumerate(runs)
        )
        at_once = jobs or sum(client.nthreads().values())
        as_completed: Callable[..., Any] = distributed.as_completed
        answers = as_completed(itertools.islice(submitted, at_once), loop=client.loop)
        try:
            for future in answers:
                answers.update(itertools.islice(submitted, 1))
                yield future.result()
        except Exception as error:
            # What a run does wrong is in its answer: this comes from the cluster.
            message = f"the cluster was lost ({type(error).__name__}); what was done is kept, start again for the rest"
            raise InputError([Problem("scheduler", message)]) from error
        finally:
            with contextlib.suppress(Exception):  # a cluster that has gone needs no cleaning
                client.cancel(list(answers.futures))
                client.run(close_pool, study)


@contextlib.contextmanager
def _client(scheduler: str) -> Iterator[Any]:  # Dask has no types
    try:
        import distributed
    except ImportError:
        raise InputError([Problem("scheduler", "needs Dask; install it with: pip install 'mig-opt[dask]'")]) from None
    if not re.search(r":[0-9]+/?$", scheduler) and not scheduler.startswith("inproc://"):
        # Dask would say so only after half a minute, with a traceback.
        message = f"must be an address with a port, like tcp://10.0.0.1:8786, is {scheduler!r:.60}"
        raise InputError([Problem("scheduler", message)])
    connect: Callable[..., Any] = distributed.Client
    try:
        client = connect(scheduler, timeout=_CONNECTING_S, set_as_default=False)
    except (OSError, ValueError) as error:
        message = f"no Dask scheduler answers at {scheduler!r}: {error}"
        raise InputError([Problem("scheduler", message)]) from None
    try:
        yield client
    finally:
        before = logging.root.manager.disable
        logging.disable()  # nobody wants to know of runs that are given up
        client.close()
        logging.disable(before)
