"""What the page about the planner quotes: MIGBench, declared run times, families, small traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.quotes.quoting import Entry, Given, Part, Quote, Source
from bench.quotes.result_tables import numbers_of, said, table
from bench.report import markdown


def migbench_table() -> list[str]:
    """Return the table of the planner on MIGBench."""
    found = table("online_rivals", "MIGBench")
    published = found.where({0: lambda name: name.startswith("published")})
    cells = [published.numbers(column) for column in ("makespan s", "mean wait s")]
    rows = [["published: HAMi, NVIDIA DRA", "", *(f"{min(each):,.0f} to {max(each):,.0f}" for each in cells)]]
    for row in found.rows:
        if row[0] in ("first-fit", "fragmentation-aware") and row[1] == "smallest":
            rows.append([f"`{row[0]}`, backfilling", *row[1:4]])
        elif row[0] == "planner":
            rows.append([f"`{row[0]}`", *row[1:4]])
    return markdown(["scheduler", "sizes", "makespan s", "mean wait s"], rows, (0, 1))


def declared_table() -> list[str]:
    """Return the mean flow times of the planner for each knowledge of run times."""
    found = table("online_declared", "Mean flow time")
    return markdown(found.head, found.rows)


def _declared(kind: str, told: str, measure: str = "Mean flow time") -> float:
    return table("online_declared", measure).where(kind).number(told)


def _all_declared(measure: str, kind: str | None = None) -> list[float]:
    found = table("online_declared", measure)
    rows = found if kind is None else found.where(kind)
    return [value for told in found.head[1:] for value in rows.numbers(told)]


def _rivals(column: str, part: str, sizes: str = "") -> list[float]:
    heading = "Families" if part == "families" else "Traces of that shape"
    rows = table("online_rivals", heading)
    return (rows.where({0: lambda name: name.endswith(sizes)}) if sizes else rows).numbers(column)


RIVALS = ("fragmentation-aware", "first-fit", "best-fit", "load-balancing")


STUDIED = "Families, beside the lower bounds"


def _ratios(family: str, policy: str) -> list[float]:
    """Return makespan and flow time of a scheduler as multiples of the lower bounds."""
    return numbers_of(table("online_planner", STUDIED).where(family).text(policy))


def _of_rivals(family: str, goal: int) -> float:
    return min(_ratios(family, policy)[goal] for policy in RIVALS)


def _span(figures: Sequence[float]) -> str:
    few, many = f"{min(figures):.3f}", f"{max(figures):.3f}"
    return few if few == many else f"{few} to {many}"


PLANNED: Mapping[str, tuple[str, ...]] = {
    "free choice of sizes, batch after batch (`far-stream`)": ("far-stream",),
    "free choice of sizes, all at once (`migm-ht1`)": ("migm-ht1",),
    "the same (`migm-ml1`)": ("migm-ml1",),
    "given profiles, load of nine tenths (`long-25`)": ("long-25",),
    "the same, load of half or less (`normal-25`, `long-50`)": ("normal-25", "long-50"),
    "PCIe-bound jobs (`pcie-4`)": ("pcie-4",),
}


def planner_table() -> list[str]:
    """Return the table of the planner beside the best of the others."""
    rows = []
    for name, families in PLANNED.items():
        ours = [_span([_ratios(family, "planner")[goal] for family in families]) for goal in (0, 1)]
        others = [_span([_of_rivals(family, goal) for family in families]) for goal in (0, 1)]
        rows.append([name, " / ".join(ours), " / ".join(others)])
    return markdown(["workload", "planner", "best of the others, for each measure"], rows, (0, 1, 2))


FREE = ("far-stream", *(f"migm-{mix}" for mix in ("hm4", "ht1", "ht2", "ht3", "ml1", "ml2", "ml3")))


SMALL = "Small traces, beside somebody who knows all arrivals"


def _first_where_sizes_are_free() -> bool:
    return all(
        _ratios(family, "planner")[goal] < _of_rivals(family, goal)
        for family in FREE
        for goal in (0, 1)
        if (family, goal) != ("migm-ml2", 0)
    ) and all(_ratios("migm-hm1", "planner")[goal] == _of_rivals("migm-hm1", goal) for goal in (0, 1))


def _small_traces() -> tuple[list[float], list[float]]:
    """Return the makespans by the optimum of the planner, and of the best of the others, for each kind of trace."""
    rows = table("online_planner", SMALL)
    policies, ratios = rows.texts("policy"), rows.numbers("makespan / optimum")
    begins = [at for at, policy in enumerate(policies) if policy == "planner"]
    spans = zip(begins, [*begins[1:], len(policies)], strict=True)
    return [ratios[at] for at in begins], [min(ratios[at + 1 : end]) for at, end in spans]


def _option(name: str, family: str) -> list[float]:
    return numbers_of(table("online_planner", "Options of the planner").where(name).text(family))


def _gain(family: str, goal: int) -> float:
    """Return by how many % the planner is ahead of `fragmentation-aware` (negative: behind)."""
    return 100 * (1 - _ratios(family, "planner")[goal] / _ratios(family, "fragmentation-aware")[goal])


def _by_method(method: str, family: str, goal: int) -> float:
    """Return the change, in %, by the start from a method of `solve`."""
    return 100 * (_option(method, family)[goal] / _option("as it is", family)[goal] - 1)


PAGES: Mapping[str, Sequence[Entry]] = {
    "docs/explanation/planner.md": (
        Part("migbench", migbench_table),
        Part("study", planner_table),
        Quote(
            "The simulation takes {:.0f} s and {:.0f} s of one processor.",
            lambda: table("online_rivals", "MIGBench", 1).numbers("processor s"),
        ),
        Part("declared", declared_table),
        Quote(
            "keep more than half of the gain even with a sigma of two:",
            holds=lambda: all(
                1 - _declared(kind, "sigma 2.0") > (1 - _declared(kind, "true times")) / 2
                for kind in ("far-stream", "saturated, any size")
            ),
        ),
        Quote(
            "Nothing is left of it where one time for all is all that is known, on `far-stream` with classes too,",
            holds=lambda: all(
                abs(_declared(kind, told) - 1) < 0.03
                for kind, told in (
                    ("far-stream", "one for all"),
                    ("saturated, any size", "one for all"),
                    ("far-stream", "classes"),
                )
            ),
        ),
        Quote(
            "2 % of it at most are left from a sigma of 0.5 on.",
            holds=lambda: all(
                _declared(kind, told) > 0.975
                for kind in ("saturated, smallest sizes", "long-25")
                for told in ("sigma 0.5", "sigma 1.0", "sigma 2.0", "classes", "one for all")
            ),
        ),
        Quote(
            "the planner is at most {:.0f} % behind in mean flow time. In makespan it is more than 3 % behind in two "
            "kinds: {:.0f} % with the smallest sizes and a sigma of two, and up to {:.0f} % on `pcie-4`.",
            lambda: [
                100 * (max(_all_declared("Mean flow time")) - 1),
                100 * (_declared("saturated, smallest sizes", "sigma 2.0", "Makespan") - 1),
                100 * (max(_all_declared("Makespan", "pcie-4")) - 1),
            ],
        ),
        Quote(
            "{:.0f} % is the worst makespan, {:.0f} % the worst mean flow time.",
            lambda: [
                100 * (float(said("online_declared", rf"## {measure} [^#]*single traces: ([0-9.]+)")[0]) - 1)
                for measure in ("Makespan", "Mean flow time")
            ],
        ),
        Given(Source.SETTING, ("the standard deviation of the logarithms is above 0.3,",)),
        Quote(
            "On the families it is at most {:.1f} % behind in mean flow time and {:.1f} % in makespan.",
            lambda: [100 * (max(_rivals(measure, "families")) - 1) for measure in ("flow time", "makespan")],
        ),
        Quote(
            "On each of twenty traces of the shape of MIGBench's its mean flow time is {:.0f} to {:.0f} % (smallest "
            "sizes) or {:.0f} to {:.0f} % (any) shorter than that of the best; the makespan is {:.0f} to {:.0f} % "
            "shorter with the smallest sizes, and {:.0f} to {:.0f} % with any.",
            lambda: [
                100 * (1 - each(_rivals(measure, "shape", sizes)))
                for measure in ("flow time", "makespan")
                for sizes in ("smallest", "any")
                for each in (max, min)
            ],
            holds=lambda: len(_rivals("makespan", "shape")) == 20,
        ),
        Quote(
            "it is first in both measures on every family, equal on `migm-hm1`; only on `migm-ml2` the makespan is "
            "{:.1f} % longer than the best.",
            lambda: (100 * (_ratios("migm-ml2", "planner")[0] / _of_rivals("migm-ml2", 0) - 1),),
            holds=_first_where_sizes_are_free,
        ),
        Quote(
            "(`long-50`) `fragmentation-aware`, which migrates, is ahead by three thousandths.",
            holds=lambda: (
                0.0025 < _ratios("long-50", "planner")[1] - _ratios("long-50", "fragmentation-aware")[1] < 0.0035
            ),
        ),
        Quote(
            "the mean flow time is {:.0f} to {:.0f} % lower than with `fragmentation-aware`, and the last end from "
            "{:.1f} % earlier (`pcie-4`) to {:.1f} % later (`pcie-60`).",
            lambda: (
                min(_gain(family, 1) for family in ("pcie-4", "pcie-60")),
                max(_gain(family, 1) for family in ("pcie-4", "pcie-60")),
                _gain("pcie-4", 0),
                -_gain("pcie-60", 0),
            ),
        ),
        Quote(
            "makespan {:.2f} and {:.2f} times the optimum; the best of the others {:.2f} and {:.2f}.",
            lambda: (*_small_traces()[0], *_small_traces()[1]),
        ),
        Quote(
            "(`migm-ht1` {:.3f} in place of {:.3f}, but then short jobs wait for long ones). A `window` only loses.",
            lambda: (_option("balance 1", "migm-ht1")[0], _option("as it is", "migm-ht1")[0]),
            holds=lambda: all(
                loses > before
                for family in ("far-stream", "migm-ml1", "migm-ht1")
                for loses, before in zip(_option("window 10 s", family), _option("as it is", family), strict=True)
            ),
        ),
        Quote(
            "on `migm-ml1` `cp` has {:.0f} % shorter makespans and {:.0f} % longer mean flow times; `list` does not "
            "differ there; on `far-stream` and `migm-ht1` both are within {:.0f} %.",
            lambda: (-_by_method("method cp", "migm-ml1", 0), _by_method("method cp", "migm-ml1", 1), 2),
            holds=lambda: (
                all(
                    abs(_by_method(method, family, goal)) < 2
                    for method in ("method list", "method cp")
                    for family in ("far-stream", "migm-ht1")
                    for goal in (0, 1)
                )
                and all(abs(_by_method("method list", "migm-ml1", goal)) < 1 for goal in (0, 1))
            ),
        ),
        Given(
            Source.SETTING,
            (
                "a run that is 2 % shorter or longer than expected",
                "when it is overdue by 2 %",
                "150 jobs of the shape of MIGBench's",
                "(0.5), divided by",
            ),
        ),
    ),
}
