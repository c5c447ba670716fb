"""Jobs as the rows of a CSV table, and back."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from mig_opt.errors import InputError, Problem
from mig_opt.files.parts import Findings, Raw
from mig_opt.files.rows import check_names, number, read_rows, row_problem, time_column, time_columns, times_in
from mig_opt.fleet.trace import Job
from mig_opt.gpu.model import GpuModel

_WORK = "work_s"
_FIGURES = ("memory_gb", "pcie_gbps", "sensitivity")
_COLUMNS = {"name": "job", "arrival": "arrival_s"}
"""The column of each key of a job that has another name in a table."""


@dataclass(frozen=True, slots=True)
class JobRows:
    """The jobs of a CSV table.

    Attributes
    ----------
    entries : list of dict
        The parts of a JSON document that would describe them.
    lines : list of int
        The line of each.
    by_work : set of int
        The indices of those whose times are from the column ``work_s``.
    """

    entries: list[Raw]
    lines: list[int]
    by_work: set[int]

    def translated(self, problem: Problem) -> Problem:
        """Return a problem of ``jobs[i]`` as one of the line and the column that the job was read from."""
        return row_problem(problem, "jobs", self.lines, self._column)

    def _column(self, index: int, key: str) -> str:
        if key.startswith("times.") and index in self.by_work:
            return _WORK
        return _COLUMNS.get(key, time_column(key))


def read_jobs(text: str, gpu: GpuModel | None, findings: Findings) -> JobRows:
    """Return the jobs of a CSV table.

    Parameters
    ----------
    text : str
        The table.
    gpu : GpuModel or None
        Whose sizes there may be columns for; None if it is not known.
    findings : Findings
        Takes the problems of header and rows.

    Raises
    ------
    InputError
        If this is no table of jobs at all, with everything found so far.
    """
    rows = read_rows(
        text,
        lambda header, where: _check_header(header, where, gpu, findings),
        findings,
        example="job,arrival_s,profile,work_s,...",
        what="job",
    )
    sizes = {profile.name: str(profile.compute_slices) for profile in gpu.profiles} if gpu else {}
    by_work: set[int] = set()
    entries = []
    for index, (line, cells) in enumerate(rows):
        entries.append(_job(cells, sizes, gpu, f"line {line}", findings))
        if cells.get(_WORK):
            by_work.add(index)
    return JobRows(entries, [line for line, _ in rows], by_work)


def _check_header(header: list[str], where: str, gpu: GpuModel | None, findings: Findings) -> bool:
    times, known = time_columns(header, where, gpu, findings)
    others = [column for column in header if column not in times]
    check_names(others, where, ["job", "arrival_s", "profile", _WORK, *known, *_FIGURES], findings)
    for column, what in (("job", "the names of the jobs"), ("arrival_s", "the seconds at which they arrive")):
        if column not in header:
            findings.add(where, f"has no column {column}; add one with {what}")
    if not times and _WORK not in header:
        message = "has no column with times; add work_s (on the profile that is asked for), or t1_s, t2_s, ..."
        findings.add(where, message)
    if _WORK in header and "profile" not in header:
        findings.add(where, "has work_s but no column profile; add one, since work_s is the seconds on that profile")
    return "job" in header and "arrival_s" in header and (bool(times) or {_WORK, "profile"} <= set(header))


def _job(cells: dict[str, str], sizes: dict[str, str], gpu: GpuModel | None, where: str, findings: Findings) -> Raw:
    times = times_in(cells, gpu)
    profile, work = cells.get("profile"), cells.get(_WORK)
    # Seconds without a size count for some size; that the size is missing is reported, or will be with the profile.
    some = str(gpu.sizes[0] if gpu else 1)
    if work and times:
        findings.add(f"{where}, {_WORK}", "the row has times by size as well; keep one of the two")
    elif work:
        if not profile:
            message = "is empty, but work_s is the seconds on a profile; fill it in, or use t<k>_s"
            findings.add(f"{where}, profile", message)
        times = {sizes.get(profile or "", some): number(work)}
    elif not times:
        findings.add(where, "has no time; fill in work_s or t<k>_s of a size on which the job can run")
        times = dict.fromkeys([some, *sizes.values()], 1.0)
    job: Raw = {"name": cells["job"], "arrival": number(cells["arrival_s"]), "times": times}
    if profile:
        job["profile"] = profile
    for key in _FIGURES:
        if cells.get(key):
            job[key] = number(cells[key])
    return job


def rows_of(jobs: Sequence[Job]) -> str:
    """Return jobs as a CSV table, with the columns that they need.

    Raises
    ------
    InputError
        If the memory of a job grows, which a row cannot say.
    """
    growing = [
        Problem(f"jobs[{index}].memory_growth", "a CSV file cannot hold how memory grows; write a JSON file")
        for index, job in enumerate(jobs)
        if job.memory_growth
    ]
    if growing:
        raise InputError(growing)
    figures = [key for key in _FIGURES if any(getattr(job, key) for job in jobs)]
    profiles = any(job.profile for job in jobs)
    # Whoever asks for a profile and has its time only is a row with work_s.
    by_work = all(job.profile is not None and len(job.times) == 1 for job in jobs)
    sizes = [] if by_work else sorted({size for job in jobs for size in job.times})
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    times = [_WORK] if by_work else [f"t{size}_s" for size in sizes]
    writer.writerow(["job", "arrival_s", *["profile"] * profiles, *times, *figures])
    for job in jobs:
        seconds: list[float | str] = [job.work] if by_work else [job.times.get(size, "") for size in sizes]
        writer.writerow(
            [
                job.name,
                job.arrival,
                *[job.profile or ""] * profiles,
                *seconds,
                *(getattr(job, key) or "" for key in figures),
            ]
        )
    return out.getvalue()
