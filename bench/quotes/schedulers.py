"""What the pages about schedulers and traces quote: the comparison, the choice, PCIe, bounds, speed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from bench.quotes.admission import SPREADERS
from bench.quotes.quoting import Entry, Given, Part, Quote, Source
from bench.quotes.result_tables import Table, numbers_of, section, table
from bench.report import markdown

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


IN_ORDER = (
    *("fragmentation-aware", "first-fit", "best-fit", "load-balancing", "memory-aware-b"),
    *("fragmentation-growth", "baskets"),
)


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
            "takes {:.2f} to {:.0f} s for a trace, on the mean of a regime, where others take less than {:.1f} s.",
            lambda: (
                min(_seconds_of(lambda name: name == "planner")),
                max(_seconds_of(lambda name: name == "planner")),
                0.2,
            ),
            holds=lambda: max(_seconds_of(lambda name: name != "planner")) < 0.2,
        ),
        Quote(
            "{:.2f} times the bound for `planner`, then {:.2f} for `fragmentation-growth` and `baskets`, {:.2f} for "
            "`fragmentation-aware` and `memory-aware-b`, {:.2f} for best fit, {:.2f} for first fit and both PCIe "
            "schedulers, {:.2f} for load balancing.",
            lambda: (
                _regime("Language models", "planner"),
                _equal("Language models", ("fragmentation-growth", "baskets"), 2),
                _equal("Language models", ("fragmentation-aware", "memory-aware-b"), 2),
                _regime("Language models", "best-fit"),
                _equal("Language models", ("first-fit", "pcie-aware", "pcie-unaware"), 2),
                _regime("Language models", "load-balancing"),
            ),
        ),
        Quote("`memory-aware-a` ({:.2f}) holds jobs", lambda: (_regime("Language models", "memory-aware-a"),)),
        Quote(
            "After `planner` ({:.2f}) come `pcie-aware` ({:.2f}) and the two that balance the load ({:.2f}), then "
            "`fragmentation-growth` ({:.2f}); the others but `whole-gpu` are at {:.2f}. `fragmentation-aware`, which "
            "also migrates jobs when others depart, has the shortest makespan ({:.2f}; `planner` {:.2f}, a tie).",
            lambda: (
                _regime(REGIMES[1], "planner"),
                _regime(REGIMES[1], "pcie-aware"),
                _equal(REGIMES[1], SPREADERS, 2),
                _regime(REGIMES[1], "fragmentation-growth"),
                _equal(
                    REGIMES[1],
                    ("first-fit", "best-fit", "static", "memory-aware-a", "memory-aware-b", "pcie-unaware", "baskets"),
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
            "schedulers that take the smallest instance for all tasks are at {:.1f} to {:.1f} times the bound; "
            "`planner`, which chooses sizes, is at {:.2f}, and {:.0f} % above the bound in makespan (others {:.0f} to "
            "{:.0f} %).",
            lambda: (
                *(
                    each(
                        _regime(REGIMES[4], policy)
                        for policy in (*IN_ORDER, "static", "memory-aware-a", "pcie-aware", "pcie-unaware")
                    )
                    for each in (min, max)
                ),
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
            "ahead of those that spread ({:.2f} to {:.2f}), but six days differ too much to decide: all tie but "
            "`baskets` ({:.1f}),",
            lambda: [
                *(
                    each(_regime(REGIMES[5], policy) for policy in policies)
                    for policies in (("planner", "first-fit", "best-fit"), SPREADERS)
                    for each in (min, max)
                ),
                _regime(REGIMES[5], "baskets"),
            ],
            holds=lambda: all(
                cell.count(",") == 10 and "baskets" not in cell
                for cell in table("online_policies", "Winners").rows[-1][2:]
            ),
        ),
        Quote(
            "its jobs wait for ever, on some traces of three regimes.",
            holds=lambda: _left_waiting("static") == 3 and not any(map(_left_waiting, ("planner", *IN_ORDER))),
        ),
        Given(Source.SETTING, ("explains (95 %)", "with a job every 50 s")),
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
            "of the simple schedulers it is; `planner` takes {:.0f} s for 10,000 jobs on 100 GPUs. All simple "
            "ones took less than a minute on the clock, too.",
            lambda: (
                min(_million().numbers("processor")),
                max(_million().numbers("processor")),
                max(_million().numbers("memory")),
                _planned().number("processor"),
            ),
            holds=lambda: max(_million().numbers("simulation")) < 60,
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
            "`memory-aware-b` or `fragmentation-growth` | the least waits of those that do not look at run times",
            holds=lambda: _least(_means(1), ["planner"], 2) == {"memory-aware-b", "fragmentation-growth"},
        ),
        Quote(
            "they keep whole GPUs free for large requests; {:.0f} % of what any scheduler can accept",
            lambda: (100 * _means(3)["best-fit"],),
            holds=lambda: _means(3)["best-fit"] == _means(3)["fragmentation-growth"] == max(_means(3).values()),
        ),
        Given(Source.SETTING, ("at a load of 1.1",)),
    ),
}
