"""What the page about fleets without a queue quotes: accepted jobs, bounds, migrations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bench.quotes.quoting import Entry, Given, Quote, Source
from bench.quotes.result_tables import numbers_of, table

MIXES = ("even", "small", "large", "both ends")


FORTY = tuple(f"{mix}, 40 GPUs" for mix in MIXES)


FOUR = tuple(f"{mix}, 4 GPUs" for mix in MIXES)


DAYS = "openb days, 4 GPUs"


ACCEPTED = "Accepted jobs in %"


WORK = "Accepted compute slices x seconds in %"


PACKERS = ("best-fit", "fragmentation-growth", "memory-aware-b", "first-fit")


SPREADERS = ("load-balancing", "fragmentation-aware")


BOUNDS = ("upper bound", "upper bound without migration", "best admission")


def _accepted(policy: str, group: str, heading: str = ACCEPTED) -> float:
    return table("admission", heading).where(policy).number(group)


def _range(policies: Iterable[str], groups: Iterable[str]) -> tuple[float, float]:
    found = [_accepted(policy, group) for group in groups for policy in policies]
    return min(found), max(found)


def _best(group: str) -> float:
    """Return the most jobs that any scheduler accepts, in %."""
    return max(table("admission", ACCEPTED).where({0: lambda name: name not in BOUNDS}).numbers(group))


def _less_work() -> float:
    """Return by how many points of slices x seconds those that spread are behind those that pack, at most."""
    return max(
        max(_accepted(policy, group, WORK) for policy in PACKERS)
        - min(_accepted(policy, group, WORK) for policy in SPREADERS)
        for group in FORTY
    )


def _hindsight(group: str) -> float:
    """Return by how many points the best found in hindsight is above the best scheduler."""
    return _accepted("best admission", group) - _best(group)


def _below_bound(group: str) -> float:
    return _accepted("upper bound", group) - _accepted("best admission", group)


def _for_migration(group: str) -> float:
    return _accepted("upper bound", group) - _accepted("upper bound without migration", group)


def _abstract(measured: str, of: str = "accepted") -> float:
    """Return what is measured beside a figure of an abstract, without its sign."""
    rows = table("admission", "Beside what is printed").where({"measured": measured})
    return abs(rows.where({0: lambda what: of in what}).number(3))


def _migrated(policy: str) -> tuple[float, float]:
    found = table("admission", "Migrations in % of the accepted jobs").where(policy).rows[0][1:]
    numbers = [number for cell in found for number in numbers_of(cell)]
    return min(numbers), max(numbers)


PAGES: Mapping[str, Sequence[Entry]] = {
    "docs/explanation/admission.md": (
        Quote(
            "On 40 GPUs best fit, `fragmentation-growth`, `memory-aware-b` and first fit accept {:.0f} to {:.0f} % "
            "of the jobs; `load-balancing` and `fragmentation-aware`, which spread jobs over lazy GPUs, {:.0f} to "
            "{:.0f} %: hardly a GPU is left for a job that needs all of it. By slices x seconds they accept up to "
            "{:.0f} points less.",
            lambda: (*_range(PACKERS, FORTY), *_range(SPREADERS, FORTY), _less_work()),
        ),
        Quote(
            "the best scheduler accepts {:.1f} to {:.1f} % on 40 GPUs, where at most {:.1f} to {:.1f} % can be "
            "accepted. On 4 GPUs the best found in hindsight in 3 s is at most {:.0f} points below the bound, and "
            "{:.1f} to {:.1f} points above the best scheduler; on the openb days it is {:.0f} points above.",
            lambda: (
                min(map(_best, FORTY)),
                max(map(_best, FORTY)),
                *_range(["upper bound"], FORTY),
                max(map(_below_bound, FOUR)),
                min(map(_hindsight, FOUR)),
                max(map(_hindsight, FOUR)),
                _hindsight(DAYS),
            ),
        ),
        Quote(
            "in the bounds: at most {:.1f} points between schedulers that may migrate and those that may not.",
            lambda: (max(map(_for_migration, (*FOUR, DAYS))),),
        ),
        Quote(
            "where few jobs are large (small mix: {:+.1f} and {:+.1f} points), and far behind where most are "
            "(openb days: {:.0f} % against {:.0f} %): it keeps room for jobs that do not come. Its migrations are "
            "few, {:.1f} to {:.0f} % of the accepted jobs.",
            lambda: (
                *(
                    _accepted("baskets", group) - _accepted("first-fit", group)
                    for group in ("small, 4 GPUs", "small, 40 GPUs")
                ),
                _accepted("baskets", DAYS),
                _accepted("first-fit", DAYS),
                *_migrated("baskets"),
            ),
        ),
        Quote(
            "`fragmentation-growth` accepts {:.1f} % more jobs than first fit, {:.1f} % more than best fit, {:.1f} "
            "% more than `load-balancing`",
            lambda: [_abstract(f"mixes, over {policy}") for policy in ("first-fit", "best-fit", "load-balancing")],
        ),
        Quote(
            "`baskets` accepts {:.0f} % *fewer* jobs than first fit, on {:.0f} % fewer GPUs, with {:.1f} "
            "migrations in 100 jobs",
            lambda: (
                _abstract("openb days, baskets over first-fit"),
                _abstract("openb days, baskets over first-fit", "active hardware"),
                _abstract("openb days, baskets, migrations per job", "migrated"),
            ),
        ),
        Given(
            Source.SETTING,
            ("limits of 30 % (`quota`) and 100 % (`small_quota`)", "`baskets` with 30 % for whole-GPU jobs"),
        ),
        Given(
            Source.PRINTED,
            (
                "+10 % accepted workloads",
                "+22 % accepted requests, -17 % active hardware, 1 % migrated VMs",
            ),
        ),
    ),
}
