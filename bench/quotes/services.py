"""What the pages about services quote: deployments, ParvaGPU, promises, requests, days."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence

from bench.quotes.quoting import Entry, Given, Part, Quote, Source
from bench.quotes.result_tables import NoFigureError, Table, claimed, numbers_of, said, table
from bench.report import markdown
from mig_opt import Result, deploy
from mig_opt.instances.bundled import load_demand
from mig_opt.serving.deployment import Deployment

SCENARIOS = ("S1", "S2", "S3", "S4", "S5", "S6")


COPIED = "S5 x 10"


ARRIVALS = ("even", "poisson", "bursty")


TEXT = "GPUs, latency within half the SLO, 3 processes (the paper's text)"


PROGRAM = "GPUs, latency below 0.45 of the SLO in whole ms, 3 processes (the published program)"


FIVE = "GPUs, the same with 5 processes"


COPIES = "Copies of S5 (the published program's rule)"


LARGE = "A thousand services and more"


# Numbers of GPUs


def _gpus(heading: str, method: str) -> list[float]:
    row = table("serving", heading).where(method)
    return [row.number(scenario) for scenario in SCENARIOS]


def _all_proven(heading: str) -> bool:
    stars = said("serving", rf"## {heading.replace('(', '[(]').replace(')', '[)]')}.*?\| exact \|([^\n]*)")[0]
    return stars.count("*") == len(SCENARIOS)


def _slowest(method: str) -> float:
    """Return the seconds of a method on the slowest scenario with any rule."""
    return max(table("serving", heading).where(method).number("time") for heading in (TEXT, PROGRAM, FIVE)) / 1000


def _more_than_exact(method: str) -> tuple[float, float]:
    """Return by how many % of GPUs a method is above the optimum of 2 to 10 copies of S5, at least and at most."""
    rows = table("serving", COPIES).where({0: lambda copies: int(copies) > 1})
    pairs = zip(rows.numbers(method), rows.numbers("exact"), strict=True)
    more = [100 * (gpus / fewest - 1) for gpus, fewest in pairs]
    return min(more), max(more)


def _seconds_of_copies() -> tuple[float, float]:
    rows = table("serving", COPIES).where({0: lambda copies: int(copies) > 1})
    times = rows.numbers(rows.head.index("search") + 1)
    return min(times), max(times)


def _gap_of_many(rates: str, *methods: str) -> list[float]:
    return table("serving", LARGE).where({"rates": rates, "method": lambda name: name in methods}).numbers("gap")


@functools.cache
def _deployed(name: str) -> Result[Deployment]:
    """Return the deployment of a bundled demand by `search`, found now: this takes a moment and never varies."""
    return deploy(load_demand(name), method="search")


def _plan(name: str) -> Deployment:
    plan = _deployed(name).plan
    if plan is None:
        raise NoFigureError(f"`search` finds no deployment for {name}")
    return plan


def _number_of_moves(kinds: int, length: int) -> int:
    """Return how many vectors of whole numbers but zero have at most this sum of absolute values."""
    return sum(2**used * math.comb(kinds, used) * math.comb(length, used) for used in range(1, kinds + 1))


def _copies_agree(heading: str) -> bool:
    rows = table("serving", heading)
    return rows.numbers("exact") == rows.numbers("search")


# A promise


def _promise(demand: str = "", arrivals: str = "", method: str = "") -> Table:
    wanted = {"demand": demand, "arrivals": arrivals, "method": method}
    return table("serving_promise").where({column: text for column, text in wanted.items() if text})


def _cell(demand: str, arrivals: str, column: str) -> str:
    """Return the GPUs of `exact`, in brackets those of `parvagpu`; a dash for what was not measured."""
    shown = []
    for method in ("exact", "parvagpu"):
        try:
            shown.append(f"{_promise(demand, arrivals, method).number(column):.0f}")
        except NoFigureError:
            shown.append("-")
    return "-" if shown == ["-", "-"] else "{} ({})".format(*shown)


def promise_table() -> list[str]:
    """Return the table of GPUs by arrivals."""
    demands = list(dict.fromkeys(table("serving_promise").texts("demand")))
    rows = [["without a promise", *(_cell(demand, "even", "GPUs without promise") for demand in demands)]]
    for arrivals, name in (("even", "even"), ("poisson", "Poisson"), ("bursty", "bursty")):
        rows.append([f"{name} arrivals", *(_cell(demand, arrivals, "GPUs") for demand in demands)])
    return markdown(["", *demands], rows, range(len(demands) + 1))


def _worst(arrivals: str, demands: Sequence[str] = SCENARIOS) -> float:
    """Return the greatest late share of any service, in %, over the seeds together and all methods."""
    return max(max(_promise(demand, arrivals).numbers("late", 1)) for demand in demands)


def _promise_costs(arrivals: str) -> list[float]:
    """Return by how many times more GPUs `exact` needs for the promise, for each scenario."""
    found = [_promise(demand, arrivals, "exact") for demand in SCENARIOS]
    return [row.number("GPUs") / row.number("GPUs without promise") for row in found]


def _exact_has_fewest() -> bool:
    for demand, arrivals in itertools.product((*SCENARIOS, COPIED), ARRIVALS):
        fewest = _promise(demand, arrivals, "exact").number("GPUs")
        if min(_promise(demand, arrivals).numbers("GPUs")) < fewest:
            return False
    return True


def _stars() -> bool:
    text = said("serving_promise", r"(\| demand \|.*)")[0]
    rows = [line for line in text.splitlines() if "| exact |" in line]
    return len(rows) == (len(SCENARIOS) + 1) * len(ARRIVALS) and all("*" in line for line in rows)


def _hundred_million() -> Table:
    return table("request_speed").where({"requests": lambda text: numbers_of(text)[0] > 99e6})


# A day


def day_table() -> list[str]:
    """Return the table of a day."""
    found = table("serving_day")
    rows = []
    for cells in found.rows:
        row = Table(found.place, found.head, (cells,))
        method, _, way = row.text("method").partition(", ")
        bounds = [cells[at] for at, name in enumerate(found.head) if name == "bound"]
        rows.append(
            [
                row.text("there"),
                f"`{method}`, {'with lookahead' if way == 'lookahead' else way}",
                f"{row.text('GPU-hours')} ({bounds[0]})",
                *(row.text(column) for column in ("changes", "created", "interrupted")),
                f"{row.text('cost')} ({bounds[1]})",
                row.text("gap").replace("%", " %"),
                row.text("time"),
            ]
        )
    head = [
        "GPUs there",
        "method",
        "GPU-hours (bound)",
        "changes",
        "created",
        "interrupted",
        "cost (bound)",
        "gap",
        "time",
    ]
    return markdown(head, rows, (0, 1))


def _day(there: int, method: str) -> Table:
    return table("serving_day").where({"there": str(there), "method": method})


AHEAD, STEP = "exact, lookahead", "exact, step by step"


def _without_interruptions(there: int) -> float:
    """Return the gap of the cost of a day without the price of interruptions, 1 GPU-hour for each, in %."""
    row = _day(there, AHEAD)
    cost = row.number("cost") - row.number("interrupted")
    # Nothing is proven about the places; the bound of the cost is the second one of the row.
    return 100 * (cost - row.number("cost") * (1 - row.number("gap") / 100)) / cost


PAGES: Mapping[str, Sequence[Entry]] = {
    "docs/explanation/deployments.md": (
        Quote(
            "are proven: {:.0f}, {:.0f}, {:.0f}, {:.0f}, {:.0f}, {:.0f} with half of the SLO and 3 processes, "
            "{:.0f}, {:.0f}, "
            "{:.0f}, {:.0f}, {:.0f}, {:.0f} with the rule of the published program. `exact` takes {:.2f} s at "
            "most, `search` "
            "reaches all of them in {:.2f} s.",
            lambda: (*_gpus(TEXT, "exact"), *_gpus(PROGRAM, "exact"), _slowest("exact"), _slowest("search")),
            holds=lambda: (
                _all_proven(TEXT)
                and _all_proven(PROGRAM)
                and all(_gpus(heading, "exact") == _gpus(heading, "search") for heading in (TEXT, PROGRAM, FIVE))
            ),
        ),
        Quote(
            "Two to ten copies of S5: `search` reaches the proven optimum each time, in {:.0f} to {:.0f} ms. "
            "ParvaGPU needs "
            "{:.0f} to {:.0f} % more GPUs, `mig-serving` {:.0f} to {:.0f} %.",
            lambda: (*_seconds_of_copies(), *_more_than_exact("parvagpu"), *_more_than_exact("mig-serving")),
            holds=lambda: _copies_agree(COPIES),
        ),
        Quote(
            "1,100 and 3,300 services: within {:.1f} % of the bound with the rates of S5, {:.1f} to {:.1f} % with "
            "rates of 50 "
            "to 150 % of them; ParvaGPU {:.0f} %.",
            lambda: (
                max(_gap_of_many("as in S5", "exact", "search")),
                min(_gap_of_many("50 to 150 %", "exact", "search")),
                max(_gap_of_many("50 to 150 %", "exact", "search")),
                max(_gap_of_many("as in S5", "parvagpu")),
            ),
            holds=lambda: (
                len({round(gap) for rates in ("as in S5", "50 to 150 %") for gap in _gap_of_many(rates, "parvagpu")})
                == 1
                and set(table("serving", LARGE).texts("services")) == {"1100", "3300"}
            ),
        ),
        Quote(
            "S3 takes {:.0f} of the {:.0f} slices of its five GPUs.",
            lambda: (_plan("parvagpu-s3").compute_slices, 7 * (_deployed("parvagpu-s3").objective or math.nan)),
            holds=lambda: _deployed("parvagpu-s3").objective == 5,
        ),
        Quote("evaluates all {:,} moves of up to five instances", lambda: (_number_of_moves(5, 5),)),
        Given(
            Source.PRINTED,
            ("3,507 requests per second for two processes, 1,702 for one", "which promises 25 to 100 % too much"),
        ),
        Given(Source.ONCE, ("24,000 random sets of instances",)),
    ),
    "docs/explanation/parvagpu.md": (
        Quote(
            "for S1 to S6 on A100-80GB {:.0f}, {:.0f}, {:.0f}, {:.0f}, {:.0f} and {:.0f} GPUs",
            lambda: _gpus(FIVE, "parvagpu"),
            holds=lambda: (
                _gpus(FIVE, "parvagpu")
                == numbers_of(table("serving", FIVE).where("parvagpu").text("expected or theirs"))
            ),
        ),
        Quote(
            "in S5 and S6 with 3 processes it needs one GPU less than `parvagpu`",
            holds=lambda: all(
                theirs - ours == 1
                for theirs, ours in list(zip(_gpus(PROGRAM, "parvagpu"), _gpus(PROGRAM, "mig-serving"), strict=True))[
                    4:
                ]
            ),
        ),
        Quote(
            "the {:.1f} % that ParvaGPU's paper prints for 1 to 10 copies of S5 come out as {:.1f} %.",
            lambda: [numbers_of(text)[0] for text in claimed("parvagpu", "figure10", "fewer than MIG-serving, mean")],
        ),
        Given(Source.GEOMETRY, ("2 of 4 or fewer on an A30",)),
        Given(Source.PRINTED, ("answer 1,554 requests per second where 1,340 are asked for",)),
        Given(Source.SETTING, ("`SloRule(0.45, whole_ms=True)`: latency below 0.45 of the SLO", "on A100-80GB")),
    ),
    "docs/explanation/promises.md": (
        Part("gpus", promise_table),
        Quote(
            "Without the promise `exact` has {:.0f} % of the requests of S5 late under Poisson arrivals, ParvaGPU "
            "{:.0f} %; of even arrivals no method has more than {:.1f} % of any service late.",
            lambda: (
                *(_promise("S5", "poisson", method).number("late without") for method in ("exact", "parvagpu")),
                max(_promise(arrivals="even").numbers("late without", 1)),
            ),
        ),
        Quote(
            "With it the interval of every service reaches down to 1 % on each of three held-out seeds, for every "
            "method. Over the seeds together the worst service of all has {:.1f} % of its requests late under even, "
            "{:.1f} % under Poisson and {:.2f} % under bursty arrivals, in every deployment of S1 to S6.",
            lambda: [_worst(arrivals) for arrivals in ARRIVALS],
            holds=lambda: set(table("serving_promise").texts("kept")) == {"yes"},
        ),
        Quote(
            "The worst of them has {:.1f} % of its requests late under Poisson arrivals, and up to {:.2f} % under "
            "bursts: these runs are of {:.0f} s each",
            lambda: (
                _worst("poisson", [COPIED]),
                _worst("bursty", [COPIED]),
                max(_promise(COPIED, "bursty").numbers("runs")),
            ),
        ),
        Quote(
            "No method needs fewer GPUs than `exact`, which is given what the others found; for S1 to S6 one GPU less "
            "is proven too few under the capacities.",
            holds=lambda: _exact_has_fewest() and _stars(),
        ),
        Quote(
            "Under Poisson arrivals it finds {:.0f} GPUs, under bursts {:.0f}; no fewer are enough under the "
            "capacities.",
            lambda: [_promise(COPIED, arrivals, "exact").number("GPUs") for arrivals in ARRIVALS[1:]],
            holds=_stars,
        ),
        Given(Source.ONCE, ("one GPU more in S5, and one less in S4 and S6", "all ten methods are in the results")),
        Quote(
            "Poisson arrivals cost little: another segment here and there, one GPU more in S5. Bursts of twice the "
            "rate cost up to two thirds more.",
            holds=lambda: (
                [round(12 * more) for more in _promise_costs("poisson")] == [12, 12, 12, 12, 13, 12]
                and 0.6 < max(_promise_costs("bursty")) - 1 < 0.67
            ),
        ),
        Given(
            Source.SETTING,
            (
                "only 0.8 of the late requests",
                "at rates that are 1 % higher",
                "in steps of 2 %",
                "latency within half the SLO, 99 % of the requests",
            ),
        ),
    ),
    "docs/explanation/requests.md": (
        Given(Source.SETTING, ("at loads of 0.5, 0.8 and 0.95: mean and 99 % quantile within 1 %",)),
        Quote(
            "simulates a hundred million requests of S5 in {:.1f} s of one core, {:.1f} million a second; no "
            "pattern of "
            "arrivals and no router is slower than {:.0f} million.",
            lambda: (
                _hundred_million().number("processor"),
                _hundred_million().number("requests a second"),
                math.floor(min(table("request_speed").numbers("requests a second"))),
            ),
        ),
        Given(Source.ONCE, ("at a load of 95 %, 99 have an interval",)),
    ),
    "docs/explanation/changes.md": (Given(Source.ONCE, ("this takes 0.2 to 0.6 seconds", "## What is proven")),),
    "docs/how-to/plan-a-day.md": (
        Part("day", day_table),
        Quote(
            "With lookahead the GPU-hours are the fewest that are possible, so their gap is 0 %, with less than 60 % "
            "of the new segments of planning each half hour for itself.",
            holds=lambda: all(
                _day(there, AHEAD).number("GPU-hours") == _day(there, AHEAD).number("bound")
                and _day(there, AHEAD).number("created") < 0.6 * _day(there, STEP).number("created")
                for there in (8, 9)
            ),
        ),
        Quote(
            "no change interrupts a segment, and the gap of the cost is below 1 %",
            holds=lambda: _day(9, AHEAD).number("interrupted") == 0 and _day(9, AHEAD).number("gap") < 1,
        ),
        Quote(
            "{:.0f} segments are interrupted over the day, {:.0f} if each half hour is planned for itself. The gap of "
            "{:.2f} % is all but the price of these: without them the cost would be within 0.6 % of the bound.",
            lambda: (
                _day(8, AHEAD).number("interrupted"),
                _day(8, STEP).number("interrupted"),
                _day(8, AHEAD).number("gap"),
            ),
            holds=lambda: _without_interruptions(8) < 0.6,
        ),
        Given(
            Source.ONCE,
            (
                "on a busy machine 5 segments were interrupted",
                "would need 9 GPUs",
                "54 to 56 of the 56 slices",
                "18 thousand variables and 194 thousand constraints, found no plan in 100 seconds",
            ),
        ),
        Quote("3 GPUs at night and 8 at the peak", holds=lambda: _day(8, AHEAD).text("in use") == "3-8"),
        Given(Source.SETTING, ("0.01 (36 seconds of a GPU) and 1", "A created segment costs 0.01 GPU-hours")),
    ),
    "docs/how-to/deploy-services.md": (
        Given(Source.GEOMETRY, ("three compute slices and 40 GB",)),
        Given(Source.SETTING, ("stop after 60 s unless `--time-limit` says otherwise",)),
    ),
    "docs/how-to/keep-a-promise.md": (
        Given(Source.SETTING, ("finds the fewest GPUs with which 99 % of the requests", "above 0 and below 100 %")),
        Given(Source.SETTING, ("no instance keeps 99 % of the requests of 'chat' in time",)),
    ),
}
