"""The study of exactness: proofs, gaps, memory, time limits, PyJobShop. Run: python -m bench.batch.exact --help."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from datetime import timedelta

from bench.batch.exact_plan import SECTIONS, Group, Options, plan
from bench.batch.exact_tables import table
from bench.batch.runs import PACKAGES, PYJOBSHOP, Records, Row, Run, contradictions, fingerprint, perform
from bench.report import Page, foreign_rows, resumable, some_of, start
from mig_opt.instances.batch import SCALINGS
from mig_opt.studies.execution import run_missing
from mig_opt.studies.rows import Outcome, pack


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is missing of the wanted sections, and write the tables; return 1 if results contradict each other."""
    options = _parser().parse_args(arguments)
    cut = Options(options.seeds, options.scalings, options.sizes, options.limit_scale, options.until)
    wanted = plan(cut, options.only)
    path = options.results / "exact.jsonl"
    records = Records(path, keep=options.keep)
    current = {method: fingerprint(method) for method in ("auto", PYJOBSHOP)}

    def find(run: Run) -> Row | None:
        return records.find(run, _of_method(current, run))

    if not wanted.get(PYJOBSHOP, True):
        print("PyJobShop is not installed (pip install -e '.[bench]'), or the cut leaves nothing to compare with it.")
    if not options.table:
        runs = [run for groups in wanted.values() for group in groups for run in group.runs]
        missing = [run for run in runs if find(run) is None]
        most = timedelta(seconds=round(sum(run.time_limit or 0 for run in missing)))
        print(f"{len(missing)} of {len(runs)} runs to do, {most} at most", flush=True)
        numbers = itertools.count(1)

        def told(row: Row) -> None:
            print(f"{next(numbers)}/{len(missing)} {_progress(row.run, row.outcome)}", flush=True)

        run_missing(
            missing,
            perform,
            records,
            fingerprints=lambda run: _of_method(current, run),
            now=lambda run: fingerprint(run.method),
            told=told,
        )
    # The tables show all that is known of this cut, not just what was asked for now.
    sections = {name: groups for name, groups in plan(cut, ()).items() if any(_rows(group, find) for group in groups)}
    rows = [row for groups in sections.values() for group in groups for row in _rows(group, find)]
    wrong = contradictions(rows)
    page = Page("exact", "Exactness", *PACKAGES, folder=options.results)
    if rows:
        first, last = (choose(row.date for row in rows)[:10] for choose in (min, max))
        page.add(f"{len(rows)} runs, measured from {first} to {last}, 2 threads each.")
    page.lines += foreign_rows(sum(row.fingerprint != _of_method(current, row.run) for row in rows))
    page.wrong(wrong)
    for name, groups in sections.items():
        page.section(SECTIONS[name][0])
        page.lines += [*table(name, groups, find), ""]
    page.save()
    pack(path)
    return 1 if wrong else 0


def _of_method(fingerprints: dict[str, str], run: Run) -> str:
    return fingerprints[PYJOBSHOP if run.method == PYJOBSHOP else "auto"]


def _rows(group: Group, find: Callable[[Run], Row | None]) -> list[Row]:
    return [row for run in group.runs if (row := find(run))]


def _progress(run: Run, outcome: Outcome) -> str:
    makespan = "no schedule" if outcome.makespan is None else f"{outcome.makespan:.3f} s, gap {outcome.gap:.3%}"
    where = run.instance.bundled or " ".join(
        str(part) for part in (run.instance.gpu, f"n={run.instance.n}", run.instance.scaling, run.instance.seed)
    )
    limit = "" if run.time_limit is None else f", {run.time_limit:g} s"
    return (
        f"{run.method} {where} ({run.instance.variant}{limit}): {outcome.status}, {makespan}, {outcome.seconds:.2f} s"
    )


def _parser() -> argparse.ArgumentParser:
    parser = resumable(__doc__, "exact.jsonl.xz and exact.md")
    parser.add_argument(
        "--only", type=some_of(SECTIONS), default=(), metavar="SECTIONS", help=f"some of {','.join(SECTIONS)}"
    )
    parser.add_argument("--seeds", type=int, default=10, help="batches of each scaling (default: 10)")
    parser.add_argument(
        "--scalings",
        type=some_of(SCALINGS),
        default=SCALINGS,
        help=f"some of {','.join(SCALINGS)}",
    )
    parser.add_argument("--sizes", type=_integers, default=(), help="only batches with so many tasks, e.g. 6,8")
    parser.add_argument("--limit-scale", type=_positive, default=1.0, help="factor for every time limit")
    parser.add_argument(
        "--until",
        type=_gap,
        default="goal",
        metavar="GAP",
        help="end runs of 50 tasks or more at this gap, or at that of their `goal` (default); 0: they use their time",
    )
    return parser


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _positive(text: str) -> float:
    if not 0 < float(text) < float("inf"):
        raise argparse.ArgumentTypeError("must be a finite number > 0")
    return float(text)


def _gap(text: str) -> str:
    if text != "goal" and not 0 <= float(text) <= 1:
        raise argparse.ArgumentTypeError("must be `goal` or a share from 0 to 1")
    return text


if __name__ == "__main__":
    start(main)
