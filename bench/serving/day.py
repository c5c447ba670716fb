"""A day of 48 half hours: GPU-hours and changes of a plan with lookahead, and of each half hour planned for itself.

Run: python -m bench.serving.day. It takes about three minutes; with --cut, a day of six steps, half a minute.
"""

import argparse
from collections.abc import Sequence

import numpy as np

from bench.figures import save_figure
from bench.report import Page, parser_of, start
from mig_opt import Demand, GpuPool, RateTable, deploy_day, load, plot

SERVICES = ("bert", "densenet121", "inceptionv3", "mobilenetv2", "resnet101", "resnet50", "vgg19")
GPUS = 8  # needed at the peak
LIMIT = 45.0  # seconds for the plan with lookahead
RUNS = (
    (GPUS + 1, "exact, lookahead", "exact", LIMIT),
    *((GPUS + 1, f"{method}, step by step", method, None) for method in ("exact", "search", "parvagpu")),
    (GPUS, "exact, lookahead", "exact", LIMIT),
    (GPUS, "exact, step by step", "exact", None),
)
"""GPUs that there are, a label, the method, and its time limit if it looks ahead."""


def day(
    steps: int, services: Sequence[str] = SERVICES, seed: int = 1, count: int | None = None
) -> tuple[Demand, RateTable]:
    """Return services of the scenario S4, and rates between a fifth and about three times of those there.

    Each has its own busy hour between 9:00 and 22:00, and rates that differ by up to 5 % from a smooth curve.
    """
    base = load("parvagpu-s4")
    chosen = tuple(service for service in base.services if service.name in services)
    random = np.random.default_rng(seed)
    hours = np.arange(steps) * 24 / steps
    rows = {}
    for service in chosen:
        wave = 0.5 + 0.5 * np.cos((hours - random.uniform(9, 22)) / 24 * 2 * np.pi)
        rates = 2.75 * service.rate * (0.25 + 0.75 * wave**1.5) * random.uniform(0.95, 1.05, steps)
        rows[service.name] = tuple(float(rate) for rate in rates.round(1))
    times = tuple(float(second) for second in np.arange(steps + 1) * 86_400 / steps)
    return base.replace(services=chosen, pools=(GpuPool(base.pools[0].gpu, count),)), RateTable(times, rows)


def row(count: int, label: str, method: str, limit: float | None, options: argparse.Namespace) -> list[str]:
    """Plan the day with a method, which looks ahead if it has a limit; its first plan is drawn."""
    steps, services = (6, SERVICES[:4]) if options.cut else (48, SERVICES)
    demand, rates = day(steps, services, count=count)
    result = deploy_day(demand, rates, method, lookahead=limit is not None, time_limit=limit)
    plan, cost, gap, runtime = result.plan, result.objective, result.gap, f"{result.runtime_s:.0f} s"
    if plan is None or cost is None or gap is None:
        return [str(count), label, "none", *["-"] * 8, runtime]
    if (count, limit) == (GPUS + 1, LIMIT):
        assert plan.gpu_hours <= 1.01 * result.hours_bound or options.cut, "GPU-hours too far from the bound"
        save_figure(plot(result), options.results / "serving_day.svg")
    cells = [f"{plan.gpu_hours:g}", f"{result.gpu_hours_bound:g}", f"{min(plan.gpus)}-{max(plan.gpus)}"]
    cells += [str(len(plan.changed)), str(plan.created), str(plan.interrupted)]
    return [str(count), label, *cells, f"{cost:.2f}", f"{result.lower_bound:.2f}", f"{gap:.2%}", runtime]


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    parser = parser_of(__doc__, "serving_day.md and .svg", "a day of six steps with four services, in half a minute")
    options = parser.parse_args(arguments)
    title = "A day of 6 steps with 4 services" if options.cut else f"A day of 48 steps with {len(SERVICES)} services"
    page = Page("serving_day", title, "mig-opt", "highspy", "ortools", "numpy", folder=options.results)
    page.add(f"""A created segment costs 0.01 GPU-hours, an interrupted one 1. The method with lookahead plans the whole
        day in {LIMIT:g} s at most; the others plan each step for itself, from what runs before.""")
    page.add("""The first bound is that of GPU-hours: the fewest GPUs of each step, proven, times its hours; the second
        is that of the cost, changes included. Every plan has passed the validator.""")
    rows = (row(*run, options) for run in RUNS)
    head = ["there", "method", "GPU-hours", "bound", "in use", "changes", "created", "interrupted", "cost", "bound"]
    page.table([*head, "gap", "time"], rows, range(12))
    page.save()
