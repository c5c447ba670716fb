"""Runs of studies: here, in processes that may die, on a Dask cluster; and their rows in a file."""

import contextlib
import os
import signal
import sys
from typing import Any

import pytest
from documents import refused
from study_jobs import Job, cluster_of_two, perform

from mig_opt.studies.environment import environment, fingerprint, peak_bytes, versions
from mig_opt.studies.execution import SourcesChangedError, run_missing
from mig_opt.studies.rows import Records, Row
from mig_opt.studies.workers import WorkerPool, alone, end_with_parent

DEEDS = ["end", "raise", "die", "end", "exit", "print", "end"]
pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


def done(to_do: list[Job], records: Records[Job] | None = None, **options: Any) -> list[Row[Job]]:
    """The rows of some runs, in the order of the runs."""
    rows: list[Row[Job]] = []
    run_missing(to_do, perform, records, **{"told": rows.append, **options})
    return sorted(rows, key=lambda row: row.run.number)


def numbered(*deeds: str) -> list[Job]:
    return [Job(number, deed) for number, deed in enumerate(deeds)]


def expect_every_deed(rows: list[Row[Job]]) -> None:
    assert [row.run for row in rows] == numbered(*DEEDS)
    by_deed = {row.run.deed: row.outcome for row in rows}
    assert by_deed["raise"].error == "ZeroDivisionError: no such thing"
    assert by_deed["die"].error == "the process was ended by signal 9"
    assert by_deed["exit"].error == "the process ended with exit code 3: last words"
    for row in rows:
        failed = row.run.deed in ("raise", "die", "exit")
        assert row.outcome.status == ("crashed" if failed else "feasible")
        assert row.outcome.makespan == (None if failed else row.run.number)
        assert row.environment["packages"]["numpy"]


def test_here_one_by_one():
    rows = done(numbered("end", "raise", "end"))
    assert [row.outcome.status for row in rows] == ["feasible", "crashed", "feasible"]
    assert rows[0].outcome.lower_bound == rows[2].outcome.lower_bound == os.getpid()


@pytest.mark.deep
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_kills_its_process_is_a_row(jobs):
    rows = done(numbered(*DEEDS), jobs=jobs)
    expect_every_deed(rows)
    workers = {row.outcome.lower_bound for row in rows if row.outcome.makespan is not None}
    assert os.getpid() not in workers
    if jobs == 1:
        assert len(workers) == 3, "after a death there is another process"


@pytest.fixture(scope="module")
def cluster():
    with cluster_of_two() as scheduler:
        yield scheduler


@pytest.mark.deep
def test_on_a_cluster_of_two_processes(cluster):
    rows = done(numbered(*DEEDS, *["nap"] * 6), scheduler=cluster)
    expect_every_deed(rows[:7])
    workers = {row.outcome.lower_bound for row in rows[7:]}
    assert len(workers) == 2
    assert os.getpid() not in workers


@pytest.mark.deep
def test_rows_of_a_cluster_are_written_one_by_one(cluster, tmp_path):
    path = tmp_path / "rows.jsonl"

    def stop(row: Row[Job]) -> None:
        if len(path.read_text().splitlines()) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        done(numbered(*["end"] * 50), Records(path, Job.read), scheduler=cluster, told=stop)
    assert len(path.read_text().splitlines()) == 3
    # The cluster is free again.
    assert len(done(numbered("end", "end"), scheduler=cluster, jobs=1)) == 2


def test_workers_with_other_sources_are_refused(cluster, monkeypatch):
    monkeypatch.setattr("mig_opt.studies.execution.fingerprint", os.getpid)
    refused(done, numbered("end"), match=r"scheduler: the worker tcp://.* has other sources", scheduler=cluster)


def test_a_scheduler_that_is_none(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("mig_opt.studies.execution._CONNECTING_S", 0.1)
    wanted = r"scheduler: must be an address with a port, like tcp://10.0.0.1:8786"
    none = r"no Dask scheduler answers at 'tcp://127.0.0.1:9'"
    for address, message in (("tcp://127.0.0.1:9", none), ("nonsense", wanted), ("tcp://127.0.0.1", wanted)):
        refused(done, numbered("end"), match=message, scheduler=address)


def test_dask_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused(done, numbered("end"), match=r"pip install 'mig-opt\[dask\]'", scheduler="tcp://127.0.0.1:9")


@pytest.mark.parametrize("jobs", [None, 1])
def test_ctrl_c_ends_a_study_and_is_no_row(jobs):
    rows: list[Row[Job]] = []
    with pytest.raises(KeyboardInterrupt):
        done(numbered("end", "interrupt", "end"), jobs=jobs, told=rows.append)
    assert [row.run.number for row in rows] == [0]


def test_sources_that_change_end_a_study():
    records: Records[Job] = Records(None, Job.read)
    with pytest.raises(SourcesChangedError, match="sources have changed"):
        done(numbered("end"), records, sources=iter("fg").__next__)
    assert records.find(Job(0, "end"), "f") is None


@pytest.mark.deep
def test_a_worker_that_crashed_while_idle_costs_no_run():
    with contextlib.closing(WorkerPool()) as pool:
        first = pool.answer(perform, Job(0, "end"))
        (worker,) = pool._idle
        os.kill(int(first[0].lower_bound or 0), signal.SIGKILL)
        worker._process.wait()
        second = pool.answer(perform, Job(1, "end"))
    assert second[0].status == "feasible"


@pytest.mark.deep
def test_alone_is_a_fresh_process_each_time():
    outcomes = [alone(perform, Job(number)) for number in (0, 1)]
    assert len({os.getpid(), *(outcome.lower_bound for outcome in outcomes)}) == 3
    assert alone(perform, Job(0, "die")).status == "crashed"
    with pytest.raises(KeyboardInterrupt):
        alone(perform, Job(0, "interrupt"))


def test_fingerprints_depend_on_versions_and_sources(monkeypatch, tmp_path):
    plain = fingerprint()
    assert plain == fingerprint() != fingerprint(("pydantic",))
    source = tmp_path / "a.py"
    source.write_text("one")
    first = fingerprint(more_sources=[source])
    source.write_text("two")
    assert len({plain, first, fingerprint(more_sources=[source])}) == 3
    monkeypatch.setattr("mig_opt.studies.environment.versions", lambda *packages: {"ortools": "0"})
    assert fingerprint() != plain


def test_the_environment_says_what_ran():
    here = environment()
    assert here["cores"] >= 1
    assert here["packages"] == versions(*here["packages"])
    assert all(isinstance(here[key], str) and here[key] for key in ("python", "system", "processor"))
    assert (peak_bytes() or 0) > 2**24


def test_a_worker_does_not_outlive_its_parent(monkeypatch):
    parents = iter([7, 7, 1])
    ended: list[int] = []
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    monkeypatch.setattr(os, "_exit", ended.append)
    end_with_parent(7, every=0.0)
    assert ended == [1]
    assert not list(parents)
