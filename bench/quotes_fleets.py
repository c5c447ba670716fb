"""What the pages about fleets and traces quote: admission, schedulers, the planner, PCIe, the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from quoting import Entry, Given, Part, Quote, Source
from report import markdown
from result_tables import Table, numbers_of, section, table

# Fleets without a queue

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


# Schedulers on traces


def _regime(heading: str, policy: str, goal: str = "flow time") -> float:
    return table("online_policies", heading).where(policy).number(f"{goal} / bound")


def _equal(heading: str, policies: Iterable[str], digits: int, goal: str = "flow time") -> float:
    """Return the ratio that these schedulers share, rounded; not a number if they do not."""
    found = {round(_regime(heading, policy, goal), digits) for policy in policies}
    return found.pop() if len(found) == 1 else float("nan")


def _seconds_of(which: Callable[[str], bool]) -> list[float]:
    """Return the mean seconds of a simulation in every regime, of the schedulers that are wanted."""
    return [seconds for name in REGIMES for seconds in table("online_policies", name).where({0: which}).numbers(-1)]


REGIMES = ("Language models", "PCIe-bound jobs", "Memory mixes", "Growing memory", "FAR streams", "Openb days")
IN_ORDER = ("fragmentation-aware", "first-fit", "best-fit", "load-balancing", "memory-aware-b")
PEAKS = ("fragmentation-aware", "first-fit", "best-fit", "load-balancing", "static")


def _least_everywhere(policy: str) -> bool:
    """Tell if no other scheduler has less flow time on any family."""
    rows = table("online_policies", "By family")
    at = rows.head.index(policy)
    return all(
        numbers_of(row[at])[0] <= min(number for cell in row[1:] for number in numbers_of(cell)) for row in rows.rows
    )


def _winner(goal: str) -> list[str]:
    return [cell.split(",")[0] for cell in table("online_policies", "Winners").texts(goal)]


def _left_waiting(policy: str) -> int:
    """Return in how many regimes a scheduler left jobs waiting for ever."""
    found = [table("online_policies", name).where(policy).text("all jobs done") for name in REGIMES]
    return sum(len(set(numbers_of(text))) > 1 for text in found)


# The choice of a scheduler


def _means(column: int) -> dict[str, float]:
    rows = table("which_scheduler").rows
    return {row[0]: numbers_of(row[column])[0] for row in rows if numbers_of(row[column])}


def _least(means: Mapping[str, float], without: Sequence[str] = (), count: int = 1) -> set[str]:
    return set(sorted((name for name in means if name not in without), key=lambda name: means[name])[:count])


# The planner


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


def _declared(kind: str, told: str) -> float:
    return table("online_declared", "Mean flow time").where(kind).number(told)


def _rivals(column: str, part: str, sizes: str = "") -> list[float]:
    heading = "Families" if part == "families" else "Traces of that shape"
    rows = table("online_rivals", heading)
    return (rows.where({0: lambda name: name.endswith(sizes)}) if sizes else rows).numbers(column)


def _family(name: str) -> Table:
    return table("online_rivals", "Families").where(name)


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
        _ratios(family, "planner")[goal] < _of_rivals(family, goal) for family in FREE for goal in (0, 1)
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


# Bounds of traces

_TIMES = ("over areas", "over bound", "over one size")


def distances_table() -> list[str]:
    """Return by how much the best scheduler is above the bounds, family by family."""
    goals = [table("trace_bounds", f"Families: {goal}") for goal in ("makespan", "mean flow time")]
    rows = [
        [f"`{name.split()[0]}`", *(own.where(name).text(column) for own in goals for column in _TIMES)]
        for name in goals[0].texts(0)
    ]
    heads = [f"{goal}: {what}" if not at else what for goal in ("makespan", "flow time") for at, what in _HEADS]
    return markdown(["family", *heads], rows)


_HEADS = tuple(enumerate(("areas", "bound", "one size")))


def optima_table() -> list[str]:
    """Return by how much the optimum is above the bounds, and the best scheduler above the optimum."""
    goals = [table("trace_bounds", f"Small traces: {goal}") for goal in ("makespan", "mean flow time")]
    rows = []
    for name in goals[0].texts(0):
        cells = []
        for own in goals:
            row = own.where(name)
            best = row.number("optimum")
            cells += [f"{best / row.number(column):.2f}" for _, column in _HEADS]
            cells.append(f"{row.number('best scheduler') / best:.2f}")
        family, *parameters = name.split()
        rows.append([f"`{family}` {' '.join(parameters)}", *cells])
    heads = [*_HEADS, (3, "scheduler / optimum")]
    return markdown(
        ["trace", *(f"{goal}: {what}" if not at else what for goal in ("makespan", "flow time") for at, what in heads)],
        rows,
    )


def _over_optimum(goal: str) -> list[float]:
    own = table("trace_bounds", f"Small traces: {goal}")
    return [seconds / best for seconds, best in zip(own.numbers("best scheduler"), own.numbers("optimum"), strict=True)]


def _flow(family: str, column: str) -> float:
    rows = table("trace_bounds", "Families: mean flow time")
    return rows.where({0: lambda name: name.split()[0] == family}).number(column)


# PCIe, speed


def _decisions(load: str) -> float:
    found = table("online_pcie", "Time for decisions").where({"GPUs": "10,000", "load": load, "policy": "pcie-aware"})
    return found.number("seconds of the processor")


def _million() -> Table:
    return table("online_speed", "A million jobs on 10,000 GPUs")


def _planned() -> Table:
    return table("online_speed", "The planner")


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
    "docs/explanation/schedulers-compared.md": (
        Part("winners", lambda: section("online_policies", "Winners")),
        Part("families", lambda: section("online_policies", "By family")),
        Quote(
            "has the least flow time in every regime, and the shortest makespan in all but one; only on the openb "
            "days do others tie with it. On none of the {:.0f} families does another scheduler have less flow time.",
            lambda: (len(table("online_policies", "By family").rows),),
            holds=lambda: (
                set(_winner("least flow time")) == {"planner"}
                and sorted(_winner("shortest makespan"))[:1] == ["fragmentation-aware"]
                and _winner("shortest makespan").count("planner") == len(REGIMES) - 1
                and all("," not in cell for cell in table("online_policies", "Winners").texts("least flow time")[:-1])
                and _least_everywhere("planner")
            ),
        ),
        Quote(
            "takes {:.1f} to {:.0f} s for a trace, on the mean of a regime, where others take less than {:.1f} s.",
            lambda: (
                min(_seconds_of(lambda name: name == "planner")),
                max(_seconds_of(lambda name: name == "planner")),
                0.2,
            ),
            holds=lambda: max(_seconds_of(lambda name: name != "planner")) < 0.2,
        ),
        Quote(
            "{:.2f} times the bound for `planner`, then {:.2f} for `fragmentation-aware` and `memory-aware-b`, "
            "{:.2f} for best fit, {:.2f} for first fit and both PCIe schedulers, {:.2f} for load balancing.",
            lambda: (
                _regime("Language models", "planner"),
                _equal("Language models", ("fragmentation-aware", "memory-aware-b"), 2),
                _regime("Language models", "best-fit"),
                _equal("Language models", ("first-fit", "pcie-aware", "pcie-unaware"), 2),
                _regime("Language models", "load-balancing"),
            ),
        ),
        Quote("`memory-aware-a` ({:.2f}) holds jobs", lambda: (_regime("Language models", "memory-aware-a"),)),
        Quote(
            "After `planner` ({:.2f}) come `pcie-aware` ({:.2f}) and the two that balance the load ({:.2f}); the "
            "others but `whole-gpu` are at {:.2f}. `fragmentation-aware`, which also migrates jobs when others "
            "depart, has the shortest makespan ({:.2f}; `planner` {:.2f}).",
            lambda: (
                _regime(REGIMES[1], "planner"),
                _regime(REGIMES[1], "pcie-aware"),
                _equal(REGIMES[1], SPREADERS, 2),
                _equal(
                    REGIMES[1],
                    ("first-fit", "best-fit", "static", "memory-aware-a", "memory-aware-b", "pcie-unaware"),
                    2,
                ),
                _regime(REGIMES[1], "fragmentation-aware", "makespan"),
                _regime(REGIMES[1], "planner", "makespan"),
            ),
        ),
        Quote(
            "`memory-aware-a` needs a quarter less flow time than `memory-aware-b` and all that place jobs in "
            "order of arrival ({:.2f} against {:.2f} to {:.2f}), since small jobs go first. The PCIe schedulers, "
            "which use backfilling, are at {:.2f}, `planner` at {:.2f}. `whole-gpu` is at {:.1f}.",
            lambda: (
                _regime(REGIMES[2], "memory-aware-a"),
                min(_regime(REGIMES[2], policy) for policy in IN_ORDER),
                max(_regime(REGIMES[2], policy) for policy in IN_ORDER),
                _equal(REGIMES[2], ("pcie-aware", "pcie-unaware"), 2),
                _regime(REGIMES[2], "planner"),
                _regime(REGIMES[2], "whole-gpu"),
            ),
            holds=lambda: all(
                0.7 < _regime(REGIMES[2], "memory-aware-a") / _regime(REGIMES[2], policy) < 0.8 for policy in IN_ORDER
            ),
        ),
        Quote(
            "begin on small instances and learn the need: {:.2f} and {:.2f}, against {:.2f}.",
            lambda: (
                _regime(REGIMES[3], "memory-aware-a"),
                _regime(REGIMES[3], "memory-aware-b"),
                _equal(REGIMES[3], PEAKS, 2),
            ),
        ),
        Quote(
            "schedulers that take the smallest instance for all tasks are at {:.1f} times the bound; `planner`, "
            "which chooses sizes, is at {:.2f}, and {:.0f} % above the bound in makespan (others {:.0f} to {:.0f} "
            "%).",
            lambda: (
                _equal(REGIMES[4], (*IN_ORDER, "static", "memory-aware-a", "pcie-aware", "pcie-unaware"), 1),
                _regime(REGIMES[4], "planner"),
                100 * (_regime(REGIMES[4], "planner", "makespan") - 1),
                *(
                    100
                    * (each(_regime(REGIMES[4], policy, "makespan") for policy in (*IN_ORDER, "memory-aware-a")) - 1)
                    for each in (min, max)
                ),
            ),
        ),
        Quote(
            "Schedulers that pack the others on few GPUs (`planner`, first fit, best fit: {:.2f} to {:.2f}) are "
            "ahead of those that spread ({:.2f} to {:.2f})",
            lambda: [
                each(_regime(REGIMES[5], policy) for policy in policies)
                for policies in (("planner", "first-fit", "best-fit"), SPREADERS)
                for each in (min, max)
            ],
        ),
        Quote(
            "its jobs wait for ever, on some traces of three regimes.",
            holds=lambda: _left_waiting("static") == 3 and not any(map(_left_waiting, ("planner", *IN_ORDER))),
        ),
        Given(Source.SETTING, ("explains (95 %)", "with a job every 50 s")),
    ),
    "docs/explanation/planner.md": (
        Part("migbench", migbench_table),
        Part("study", planner_table),
        Quote(
            "The simulation takes {:.0f} s and {:.0f} s of one processor.",
            lambda: table("online_rivals", "MIGBench", 1).numbers("processor s"),
        ),
        Part("declared", declared_table),
        Quote(
            "keep most of the gain with a sigma of one; nothing is left of it where classes are all that is known.",
            holds=lambda: (
                1 - _declared("far-stream", "sigma 1.0") > (1 - _declared("far-stream", "true times")) / 2
                and abs(_declared("far-stream", "classes") - 1) < 0.02
            ),
        ),
        Quote(
            "the simple schedulers are up to a tenth ahead.",
            holds=lambda: (
                0.05
                < max(
                    _declared(kind, told) - 1
                    for kind in ("saturated, smallest sizes", "migm-ml1", "long-25")
                    for told in ("sigma 2.0", "classes", "one for all")
                )
                < 0.105
            ),
        ),
        Quote(
            "On the families it is at most {:.1f} % behind in mean flow time and {:.1f} % in makespan.",
            lambda: [100 * (max(_rivals(measure, "families")) - 1) for measure in ("flow time", "makespan")],
        ),
        Quote(
            "its mean flow time is a fifth to a quarter (smallest sizes) or half (any) shorter than that of the best; "
            "the makespan is {:.0f} to {:.0f} % shorter with the smallest sizes, and {:.0f} % shorter with any.",
            lambda: [
                *(100 * (1 - each(_rivals("makespan", "shape", "smallest"))) for each in (max, min)),
                100 * (1 - max(_rivals("makespan", "shape", "any"))),
            ],
            holds=lambda: (
                all(0.19 < 1 - ratio < 0.27 for ratio in _rivals("flow time", "shape", "smallest"))
                and all(0.46 < 1 - ratio < 0.54 for ratio in _rivals("flow time", "shape", "any"))
            ),
        ),
        Quote(
            "it is first in both measures on every family, equal on `migm-hm1`.",
            holds=_first_where_sizes_are_free,
        ),
        Quote(
            "(`long-50`) `fragmentation-aware`, which migrates, is ahead by a thousandth.",
            holds=lambda: (
                0.0005 < _ratios("long-50", "planner")[1] - _ratios("long-50", "fragmentation-aware")[1] < 0.0015
            ),
        ),
        Quote(
            "the mean flow time is {:.0f} to {:.0f} % lower, but the last end {:.0f} to {:.0f} % later than with "
            "`fragmentation-aware`",
            lambda: (
                min(_gain(family, 1) for family in ("pcie-4", "pcie-60")),
                max(_gain(family, 1) for family in ("pcie-4", "pcie-60")),
                min(-_gain(family, 0) for family in ("pcie-4", "pcie-60")),
                max(-_gain(family, 0) for family in ("pcie-4", "pcie-60")),
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
            "on `migm-ml1` `cp` has {:.0f} % shorter makespans and {:.0f} % longer mean flow times; `list` hardly "
            "differs there; on `far-stream` and `migm-ht1` all three are within {:.0f} %.",
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
    "docs/explanation/pcie-aware.md": (
        Quote(
            "100,000 jobs on 10,000 GPUs take {:.0f} s of processor time, {:.0f} s at one and a half times the load",
            lambda: (_decisions("0.8"), _decisions("1.5")),
        ),
        Quote(
            "First fit that creates instances as needed (`first-fit`) is within 1 % of it on these traces.",
            holds=lambda: all(
                abs(lower) <= 1
                for heading in (
                    "4 GPUs (the paper's Figures 6 and 7)",
                    "60 GPUs, 1400 jobs (Figure 8; printed: up to 17 % at 60 %)",
                )
                for lower in table("online_pcie", heading).numbers("first fit")
            ),
        ),
        Given(Source.SETTING, ("The thresholds 1.5 and 60 s were chosen", "| `delay_threshold` | 1.5 |")),
        Given(Source.SHOWN, ("four runs of 50 s above",)),
    ),
    "docs/explanation/simulation.md": (
        Quote(
            "a million jobs on 10,000 GPUs take {:.0f} to {:.0f} s of a processor and at most {:.1f} GiB, whichever "
            "of the simple schedulers it is; `planner` takes {:.0f} s for 10,000 jobs on 100 GPUs. All but one took "
            "less than a minute on the clock, too; `baskets` took {:.0f} s while others used the machine.",
            lambda: (
                min(_million().numbers("processor")),
                max(_million().numbers("processor")),
                max(_million().numbers("memory")),
                _planned().number("processor"),
                _million().where({"policy": "baskets"}).number("simulation"),
            ),
            holds=lambda: sum(seconds >= 60 for seconds in _million().numbers("simulation")) == 1,
        ),
        Given(
            Source.SETTING,
            (
                "50 W for an idle GPU, rising in proportion to the busy compute slices to 250 W. Apart from the "
                "250 W, the "
                "board power of an A100 PCIe 40 GB",
                "costs these joules besides the 50 W",
            ),
        ),
    ),
    "docs/explanation/trace-bounds.md": (
        Part("distances", distances_table),
        Part("optima", optima_table),
        Quote(
            "is {:.2f} times the bound in place of {:.2f} on `pcie-4`, {:.2f} in place of {:.2f} on `migm-nw`",
            lambda: [_flow(name, column) for name in ("pcie-4", "migm-nw") for column in ("over bound", "over areas")],
        ),
        Quote(
            "{:.2f} and {:.2f} in place of {:.2f} and {:.2f} on the two language models of growing memory",
            lambda: [
                _flow(name, column)
                for column in ("over one size", "over areas")
                for name in ("migm-flan-t5", "migm-flan-t5-train")
            ],
        ),
        Quote(
            "the best scheduler is at most {:.0f} % above the optimum in makespan and {:.0f} % in flow time",
            lambda: [100 * (max(_over_optimum(goal)) - 1) for goal in ("makespan", "mean flow time")],
        ),
        Given(Source.GEOMETRY, ("stays below 1: two 3g on an A100 have six sevenths",)),
        Given(
            Source.ONCE,
            (
                "a trace of 100,000 jobs takes 3 to 7 s of one processor, one of a thousand 1 s.",
                "is proven in 0.5-1 s, of 8 jobs with times for every size of an A100 in 2-5 s, of 12 such jobs in "
                "15 s.",
                "take 1 s or more, and some are not proven within 20 s; with times for every size 8 jobs are not "
                "proven within "
                "20 s (gap 37 %)",
            ),
        ),
    ),
    "docs/explanation/memory-aware.md": (
        Given(
            Source.SETTING,
            (
                "5, 10, 20 or 40 GB on an A100",
                "with 2.0 those where it takes at most twice as long",
                "the first line's 99 % interval",
                "three successive changes of at most 5 % (`tolerance`)",
                "For a 5 GB instance on an empty A100",
            ),
        ),
    ),
    "docs/how-to/choose-a-scheduler.md": (
        Quote(
            "`planner` | the least flow time for every kind of jobs ([Schedulers "
            "compared](../explanation/schedulers-compared.md)), and the shortest makespan on the mean",
            holds=lambda: set(_winner("least flow time")) == {"planner"} and _least(_means(2)) == {"planner"},
        ),
        Quote(
            "`memory-aware-b` or `best-fit` | the least waits of those that do not look at run times",
            holds=lambda: _least(_means(1), ["planner"], 2) == {"memory-aware-b", "best-fit"},
        ),
        Quote(
            "they keep whole GPUs free for large requests; {:.0f} % of what any scheduler can accept",
            lambda: (100 * _means(3)["best-fit"],),
            holds=lambda: _means(3)["best-fit"] == _means(3)["fragmentation-growth"] == max(_means(3).values()),
        ),
        Given(Source.SETTING, ("at a load of 1.1",)),
    ),
}
