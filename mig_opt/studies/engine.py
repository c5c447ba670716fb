"""Does the runs that are missing: here one by one, in several processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import contextlib
import logging
import re
import secrets
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING

from mig_opt.errors import InputError, MigOptError, Problem
from mig_opt.studies.environment import fingerprint
from mig_opt.studies.outcome import Outcome
from mig_opt.studies.records import R, Records, Row
from mig_opt.studies.servant import Answered, Household, answer, answer_by_household, dismiss_household

if TYPE_CHECKING:
    import distributed

_CONNECTING_S = 15
"""Seconds until a scheduler that does not answer is given up."""


class SourcesChangedError(MigOptError):
    """The sources of mig_opt, or the versions of what it runs on, are others than at the start of the study."""


def run_missing(
    runs: Sequence[R],
    perform: Callable[[R], Outcome],
    records: Records[R],
    fingerprints: Callable[[R], str],
    *,
    now: Callable[[R], str],
    jobs: int | None = None,
    scheduler: str | None = None,
    told: Callable[[Row[R]], None],
) -> None:
    """Do runs and write their rows, each as soon as it is known.

    Parameters
    ----------
    runs : sequence
        What is to be done.
    perform : callable
        Does one; an exception becomes a row. With ``jobs`` or ``scheduler`` a function that other processes can import.
    records : Records
        Takes the rows.
    fingerprints : callable
        Returns the fingerprint of what a run depends on, at the start of the study.
    now : callable
        Returns the same as it is now; it must not have changed.
    jobs : int, optional
        Runs at the same time, each in a process that is not this one, so that it may die. None: in this process
        (with ``scheduler``: as many as the cluster has threads).
    scheduler : str, optional
        Address of a Dask scheduler whose workers do the runs, e.g. ``tcp://10.0.0.1:8786``.
    told : callable
        Called with each new row.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C; the rows until then are written, the runs that it cut short are not.
    SourcesChangedError
        If a fingerprint is not what it was at the start.
    InputError
        If the scheduler cannot be reached, or its workers have other sources or versions.
    """
    with contextlib.closing(_answers(runs, perform, jobs, scheduler)) as answers:
        for index, answered in answers:
            run = runs[index]
            if answered is None:
                raise KeyboardInterrupt
            if now(run) != fingerprints(run):
                raise SourcesChangedError("the sources have changed since the start: a run is of neither; start again")
            outcome, environment = answered
            told(records.add(run, outcome, fingerprints(run), environment))


def _answers(
    runs: Sequence[R], perform: Callable[[R], Outcome], jobs: int | None, scheduler: str | None
) -> Generator[Answered]:
    if scheduler is not None:
        yield from _on_cluster(runs, perform, jobs, scheduler)
    elif jobs is not None:
        yield from _in_processes(runs, perform, jobs)
    else:
        for index, run in enumerate(runs):
            yield index, answer(perform, run)


def _in_processes(runs: Sequence[R], perform: Callable[[R], Outcome], jobs: int) -> Generator[Answered]:
    from joblib import Parallel, delayed

    household = Household()

    def task(index: int) -> Answered:
        return index, household.servant().answer(perform, runs[index])

    # The threads only wait for their servants.
    parallel = Parallel(jobs, "threading", return_as="generator_unordered", pre_dispatch=jobs, batch_size=1)
    yield from _until(parallel(delayed(task)(index) for index in range(len(runs))), household.dismiss)


def _on_cluster(
    runs: Sequence[R], perform: Callable[[R], Outcome], jobs: int | None, scheduler: str
) -> Generator[Answered]:
    from joblib import Parallel, delayed, parallel_config

    with _client(scheduler) as client, parallel_config("dask", client=client):
        here = fingerprint()
        for worker, there in client.run(fingerprint).items():
            if there != here:
                message = f"the worker {worker} has other sources of mig_opt, or other versions of what it runs on"
                raise InputError([Problem("scheduler", message)])
        study = secrets.token_hex(8)

        def dismiss() -> None:
            with contextlib.suppress(Exception):  # a cluster that has gone needs no cleaning
                client.run(dismiss_household, study)

        at_once = jobs or sum(client.nthreads().values())  # type: ignore[no-untyped-call]  # Dask has no types
        parallel = Parallel(-1, return_as="generator_unordered", pre_dispatch=at_once, batch_size=1)
        tasks = (delayed(answer_by_household)(study, index, perform, run) for index, run in enumerate(runs))
        try:
            yield from _until(parallel(tasks), dismiss)
        except Exception as error:
            # What a run does wrong is in its answer: this comes from the cluster.
            message = f"the cluster was lost ({type(error).__name__}); what was done is kept, start again for the rest"
            raise InputError([Problem("scheduler", message)]) from error


def _until(answers: Generator[Answered], dismiss: Callable[[], None]) -> Generator[Answered]:
    """Yield answers; at the end, however it comes, first dismiss those who work: nobody waits for them any more."""
    try:
        for entry in answers:  # noqa: UP028  # `yield from` would close the answers before the dismissal
            yield entry
    finally:
        dismiss()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # joblib: that runs in flight are given up
            answers.close()


@contextlib.contextmanager
def _client(scheduler: str) -> Iterator[distributed.Client]:
    try:
        import distributed
    except ImportError:
        raise InputError([Problem("scheduler", "needs Dask; install it with: pip install 'mig-opt[dask]'")]) from None
    if not re.search(r":[0-9]+/?$", scheduler) and not scheduler.startswith("inproc://"):
        # Dask would say so only after half a minute, with a traceback.
        message = f"must be an address with a port, like tcp://10.0.0.1:8786, is {scheduler!r:.60}"
        raise InputError([Problem("scheduler", message)])
    try:
        client = distributed.Client(  # type: ignore[no-untyped-call]  # Dask has no types
            scheduler, timeout=_CONNECTING_S, set_as_default=False
        )
    except (OSError, ValueError) as error:
        message = f"no Dask scheduler answers at {scheduler!r}: {error}"
        raise InputError([Problem("scheduler", message)]) from None
    try:
        yield client
    finally:
        with _silent("distributed", "tornado", "asyncio"):
            client.close()  # type: ignore[no-untyped-call]  # Dask has no types


@contextlib.contextmanager
def _silent(*loggers: str) -> Iterator[None]:
    """Keep what is logged about runs that are given up from the terminal."""
    levels = {name: logging.getLogger(name).level for name in loggers}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
