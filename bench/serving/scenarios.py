"""Fleets for inference services: every method on the scenarios of ParvaGPU, beside the published and the exact counts.

Run: python -m bench.serving.scenarios. It takes a few minutes; with --cut seconds.
"""

import dataclasses
import itertools
import random
import statistics
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bench.figures import COLOURS, DASHES, MARKERS, panels, save_figure
from bench.report import Page, parser_of, start, timed
from mig_opt import Demand, DeploymentResult, SloRule, Status, deploy, load, methods, plan_change
from mig_opt.validation import validate_change, validate_deployment

SCENARIOS = tuple(f"parvagpu-s{number}" for number in range(1, 7))
PRINTED = Path(__file__).with_name("printed_serving.toml")
RULES = {
    "half": ("latency within half the SLO, 3 processes (the paper's text)", SloRule(0.5), 3),
    "program3": ("latency below 0.45 of the SLO in whole ms, 3 processes (the published program)", None, 3),
    "program5": ("the same with 5 processes", None, 5),
}
_PUBLISHED = SloRule(0.45, whole_ms=True)


def scenario(name: str, rule: str) -> Demand:
    """Return a bundled scenario under one of :data:`RULES`."""
    _, slo_rule, processes = RULES[rule]
    demand = load(name)
    assert isinstance(demand, Demand)
    return demand.replace(rule=slo_rule or _PUBLISHED, max_processes=processes)


def copies(demand: Demand, number: int, *, spread: float = 0.0, seed: int = 0) -> Demand:
    """Return a demand with every service ``number`` times, rates changed by up to ``spread`` of them."""
    rng = random.Random(seed)
    services = []
    for copy, service in itertools.product(range(number), demand.services):
        rate = service.rate * rng.uniform(1 - spread, 1 + spread)
        services.append(dataclasses.replace(service, name=f"{service.name}-{copy}", rate=rate))
    return demand.replace(services=tuple(services))


def measured(
    demand: Demand, method: str, repeats: int = 5, time_limit: float | None = None
) -> tuple[DeploymentResult, float]:
    """Return a result that the validator has seen again, and the least seconds of some runs."""
    runs = [timed(partial(deploy, demand, method, time_limit=time_limit), time.perf_counter) for _ in range(repeats)]
    result = runs[-1][0]
    if result.deployment is not None:
        assert validate_deployment(demand, result.deployment).valid
    return result, min(taken for _, taken in runs)


def milliseconds(seconds: float) -> str:
    """Return a duration for a table."""
    return f"{seconds * 1e3:.0f} ms" if seconds < 10 else f"{seconds:.1f} s"


def counts(page: Page, rule: str, names: Sequence[str], printed: dict[str, Any]) -> dict[str, list[int]]:
    """Add a table of the GPUs of every method on the scenarios, with what is expected; return the counts."""
    goals = {"exact": {"half": (2, 3, 5, 7, 12, 15), "program3": (2, 3, 5, 7, 12, 16)}.get(rule, ())}
    goals |= {entry["method"]: tuple(entry["gpus"]) for entry in printed["rows"] if entry["rule"] == rule}
    rows: list[list[str]] = []
    found: dict[str, list[int]] = {}
    for method in methods("deploy"):
        results = [(scenario(name, rule), *measured(scenario(name, rule), method.name)) for name in names]
        pairs = [(demand, result.deployment) for demand, result, _ in results if result.deployment is not None]
        assert len(pairs) == len(names)
        found[method.name] = [deployment.used_gpus for _, deployment in pairs]
        proofs = ("*" if result.status is Status.OPTIMAL else "" for _, result, _ in results)
        cells = (f"{gpus}{proof}" for gpus, proof in zip(found[method.name], proofs, strict=True))
        slices = sum(deployment.compute_slices for _, deployment in pairs)
        fragments = statistics.mean(deployment.external_fragmentation for _, deployment in pairs)
        idle = statistics.mean(deployment.internal_slack(demand) for demand, deployment in pairs)
        slack = min(min(deployment.slack(demand).values()) for demand, deployment in pairs)
        expected = ", ".join(map(str, goals.get(method.name, ())[: len(names)]))
        seconds = milliseconds(max(taken for *_, taken in results))
        shares = f"{fragments:.1%}", f"{idle:.1%}", f"{slack:.2%}"
        rows.append([method.name, *cells, expected, f"{slices}", *shares, seconds])
    head = ["method", *(name[-2:].upper() for name in names), "expected or theirs", "slices", "fragmentation"]
    page.table([*head, "internal slack", "least slack", "time"], rows, range(len(names) + 7))
    return found


def scaling(page: Page, multiples: Sequence[int]) -> dict[str, list[int]]:
    """Compare ``search`` and ParvaGPU with the exact count on multiples of S5 (the published program's rule)."""
    rows: list[list[str]] = []
    found: dict[str, list[int]] = {}
    for number in multiples:
        demand = copies(scenario("parvagpu-s5", "program3"), number)
        cells = []
        for method in ("exact", "search", "parvagpu", "mig-serving"):
            result, seconds = measured(demand, method, 1 if method == "exact" else 3, 30.0)
            assert result.gpus is not None
            proof = "" if method != "exact" or result.status is Status.OPTIMAL else f" (bound {result.lower_bound})"
            cells += [f"{result.gpus}{proof}", milliseconds(seconds)]
            found.setdefault(method, []).append(result.gpus)
        rows.append([f"{number}", *cells])
    head = ["copies of S5", "exact", "proven in", "search", "time", "parvagpu", "time", "mig-serving", "time"]
    page.table(head, rows, range(9))
    return found


def thousands(sizes: Sequence[int], limit: float) -> Iterator[list[object]]:
    """Measure what is known of a thousand services and more, with rates that all differ."""
    goals = {"exact": "gap <= 0.5 % in 60 s", "search": "", "parvagpu": "S5 x 100 in < 1 s"}
    for number, (label, spread) in itertools.product(sizes, (("as in S5", 0.0), ("50 to 150 %", 0.5))):
        demand = copies(scenario("parvagpu-s5", "program3"), number, spread=spread, seed=number)
        for method, goal in goals.items():
            result, seconds = measured(demand, method, 1, limit)
            assert result.gpus is not None
            cells = [f"{1 - result.lower_bound / result.gpus:.2%}", goal, milliseconds(seconds)]
            yield [len(demand.services), label, method, result.gpus, result.lower_bound, *cells]


def changes(names: Sequence[str]) -> Iterator[list[str]]:
    """Go from one scenario's fleet to the next one's, and check every step."""
    running = None
    for before, name in zip(["nothing", *names], names, strict=False):
        demand = scenario(name, "half")
        result = deploy(demand, running=running, time_limit=60)
        assert result.deployment is not None
        if running is not None:
            change = partial(plan_change, running, result.deployment, demand=demand)
            found, taken = timed(change, time.perf_counter)
            plan = found.plan
            assert validate_change(running, result.deployment, plan, demand=demand).valid
            changed = running.changes_to(result.deployment)
            calm = "fewest" if "interruptions" in found.proven else "not proven"
            yield [
                *(before[-2:].upper(), name[-2:].upper(), f"{running.used_gpus} -> {result.gpus}"),
                *(f"{len(plan.kept)} of {len(running.segments)}", f"{changed}"),
                *("proven" if "changes" in result.proven else "not proven", f"{len(plan.interrupted)} ({calm})"),
                *(f"{len(plan.steps)}", f"{plan.duration:.2f} s", milliseconds(taken)),
            ]
        running = result.deployment


def fleets(
    scenarios: Iterable[str],
    counts: Mapping[str, Sequence[int]],
    multiples: Sequence[int],
    scaled: Mapping[str, Sequence[int]],
) -> Figure:
    """Return a figure with bars for the scenarios, and GPUs beyond the exact count for copies of one of them.

    ``counts`` has by method the GPUs of each scenario, ``scaled`` those of each number of copies, of ``exact`` too.
    """
    names = list(scenarios)
    titles = ("Scenarios", "More services")
    figure, (left, right) = panels(titles, (10.5, 3.8), sharey=False, width_ratios=(1.55, 1))
    width = 0.85 / len(counts)
    colours = dict(zip(counts, COLOURS, strict=False))
    for index, (method, gpus) in enumerate(counts.items()):
        places = [at - 0.425 + (index + 0.5) * width for at in range(len(names))]
        left.bar(places, gpus, width, color=colours[method], edgecolor="white", linewidth=0.4, label=method)
    left.set_xticks(range(len(names)), names)
    left.set_ylabel("GPUs")
    left.legend(fontsize=8, loc="upper left")
    for index, (method, gpus) in enumerate(scaled.items()):
        if method == "exact":
            continue
        more = [100 * (found / best - 1) for found, best in zip(gpus, scaled["exact"], strict=True)]
        look = {"color": colours[method], "marker": MARKERS[index % 8], "linestyle": DASHES[index % 4]}
        right.plot(multiples, more, label=method, **look)
    right.set_xlabel("copies of S5")
    right.set_ylabel("GPUs above the proven optimum in %")
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    # Room for the legend above every line.
    right.set_ylim(-0.3, 1.25 * right.get_ylim()[1])
    right.legend(fontsize=8, loc="upper center", ncols=3)
    return figure


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    parser = parser_of(__doc__, "serving.md and its figure", "two scenarios and small fleets, in seconds")
    options = parser.parse_args(arguments)
    printed = tomllib.loads(PRINTED.read_text(encoding="utf-8"))
    names = SCENARIOS[:2] if options.cut else SCENARIOS
    multiples = range(1, 3 if options.cut else 11)
    title = "Fleets for inference services"
    page = Page("serving", title, "mig-opt", "highspy", "pulp", "numpy", folder=options.results)
    by_rule = {}
    for rule, (title, _, _) in RULES.items():
        page.section(f"GPUs, {title}")
        page.add("""A star: the lower bound, which every method is given, proves the count. Slices: of all scenarios.
            Fragmentation and internal slack: mean. Time: that of the slowest scenario, the least of five runs, with the
            validator.""")
        by_rule[rule] = counts(page, rule, names, printed)
    page.section("Copies of S5 (the published program's rule)")
    scaled = scaling(page, multiples)
    page.section("A thousand services and more")
    head = ["services", "rates", "method", "GPUs", "lower bound", "gap", "goal", "time"]
    page.table(head, thousands((3,), 5.0) if options.cut else thousands((100, 300), 60.0), range(8))
    page.section("From one scenario to the next")
    head = ["from", "to", "GPUs", "segments that stay", "changed", "fewest changes", "interrupted", "steps"]
    page.table([*head, "operations take", "planned in"], changes(names), range(10))
    page.save()
    shown = [name[-2:].upper() for name in names]
    save_figure(fleets(shown, by_rule["program3"], multiples, scaled), options.results / "serving.svg")
