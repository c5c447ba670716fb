"""The PCIe-aware scheduler beside what its paper printed, and how that moves with what the paper does not say.

Run: python -m bench.fleet.pcie. It takes about three minutes on one core; with --cut (few seeds, short traces) some
seconds. All traces are generated (pcie-4, pcie-60): the paper's are not public.
"""

import functools
import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.figures import COLOURS, MARKERS, panels, save_figure
from bench.report import Page, parser_of, start, timed
from mig_opt import GpuModel, Job, OperationCosts, Profile, Trace, generate_trace, get_gpu, simulate
from mig_opt.fleet.bounds import trace_bounds
from mig_opt.fleet.trace import PCIE_LIMIT
from mig_opt.instances.fleet.poisson import TABLE_2
from mig_opt.simulation import ProfiledRun, SensitivityFit, fit_sensitivity


def reductions(
    shares: Sequence[float],
    small: Sequence[Sequence[float]],
    large: Sequence[Sequence[float]],
    more: Mapping[tuple[float, int], tuple[Sequence[float], Sequence[float]]],
    thresholds: Mapping[tuple[float, float | None, float | None], float],
) -> Figure:
    """Return a figure of reductions in percent.

    They are, with 4 GPUs and with 60 (``small``, ``large``), by share of PCIe-bound jobs; by share and instances per
    GPU, where arrivals grow with these and where not (``more``); by share, wait threshold and delay threshold, means.
    """
    figure, (left, middle, right) = panels(("Shares", "Instances", "Thresholds"), (11.5, 3.9))
    for index, (name, values) in enumerate((("4 GPUs", small), ("60 GPUs", large))):
        places = [100 * share + 1.6 * (index - 0.5) for share in shares]
        _points(left, places, values, index, name)
    left.plot([60, 60], [18, 17], "k_", markersize=16, label="printed: 18 and 17")
    left.set_xlabel("PCIe-bound jobs in %")
    left.set_ylabel("mean flow time lower by %")
    counts = sorted({count for _, count in more})
    for index, share in enumerate(sorted({share for share, _ in more})):
        for which, dashes in enumerate(("-", ":")):
            means = [statistics.mean(more[share, count][which]) for count in counts]
            label = f"{share:.0%} PCIe-bound" if not which else None
            middle.plot(counts, means, dashes, label=label, **_look(index))
    middle.axhline(20, color="black", linewidth=0.8, linestyle="--", label="printed: up to 20")
    middle.plot([], [], ":", color="grey", label="arrivals as for 7")
    middle.set_xlabel("instances on each of 4 GPUs")
    delays = list(dict.fromkeys(delay for _, _, delay in thresholds))
    for index, wait in enumerate(dict.fromkeys(wait for _, wait, _ in thresholds)):
        label = "wait threshold: none" if wait is None else f"wait threshold: {wait:g} s"
        means = [thresholds[0.6, wait, delay] for delay in delays]
        right.plot(range(len(delays)), means, label=label, **_look(index))
    right.set_xticks(range(len(delays)), ["none" if delay is None else f"{delay:g}" for delay in delays])
    right.set_xlabel("delay threshold (60 % PCIe-bound, 4 GPUs)")
    for axis in (left, middle, right):
        axis.legend(fontsize=7.5)
    return figure


def _look(index: int) -> dict[str, Any]:
    return {"color": COLOURS[1 + index], "marker": MARKERS[index], "markersize": 4}


def _points(axis: Axes, places: Sequence[float], values: Sequence[Sequence[float]], index: int, label: str) -> None:
    means = [statistics.mean(one) for one in values]
    bars = zip(*((mean - min(one), max(one) - mean) for mean, one in zip(means, values, strict=True)), strict=True)
    look = {"linewidth": 1.2, "capsize": 2.5, **_look(index)}
    axis.errorbar(places, means, yerr=tuple(bars), label=f"{label}, mean and range", **look)


SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
INSTANCES = (7, 10, 14, 21, 28)
DELAYS = (1.0, 1.25, 1.5, 2.0, 2.6, None)
WAITS = (0.0, 30.0, 60.0, 120.0, None)
NOISE = (0.0, 0.02, 0.05, 0.1)
WRONG = (0.0, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0)
PRINTED_4 = {0.2: "slightly better", 0.6: "up to 18"}
PRINTED_60 = {0.6: "up to 17"}
UNAWARE, AWARE = "pcie-unaware", "pcie-aware"
RIVALS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "first fit": ("first-fit", {}),
    "load balancing": ("load-balancing", {}),
    "without delay threshold": (AWARE, {"delay_threshold": None}),
    "without wait threshold": (AWARE, {"wait_threshold": None}),
}
VARIED: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("as above: 93 jobs, load 0.9, 25 to 75 s, half of the PCIe-bound are Bloom7b1", {}),
    *((f"load {load:g}", {"load": load}) for load in (0.3, 0.6, 1.2)),
    ("all jobs at once (load 1000)", {"load": 1000.0}),
    *((f"{jobs} jobs", {"jobs": jobs}) for jobs in (30, 300, 1000)),
    ("no Bloom7b1", {"bloom7b1_share": 0.0}),
    ("a quarter Bloom7b1", {"bloom7b1_share": 0.25}),
    ("all Bloom7b1", {"bloom7b1_share": 1.0}),
    ("all jobs take 50 s", {"spread": 0.0}),
    ("0 to 100 s", {"spread": 1.0}),
    ("5 s in the mean", {"mean_s": 5.0}),
    ("500 s in the mean", {"mean_s": 500.0}),
    ("sizes 1g and 2g", {"sizes": "1,2"}),
    ("sizes 1g, 2g and 3g", {"sizes": "1,2,3"}),
    ("sizes 1g to 4g and 7g", {"sizes": "1,2,3,4,7"}),
)


class Plan(NamedTuple):
    """Extent of the study."""

    seeds: int = 20
    large_seeds: int = 10
    cut: int = 1


class DelayFigures(NamedTuple):
    """Figures of one simulation, in mean seconds."""

    completion: float
    wait: float
    execution: float
    short: float  # share of PCIe-bound jobs that ran up to 50 s
    larger: float  # share of all jobs that ran on a larger instance than they asked for


@functools.cache
def hypothetical(instances: int) -> GpuModel:
    """Return a GPU that can have a number of instances of 1g.5gb and no others, like the paper's for its Figure 9."""
    if instances == 7:
        return get_gpu("A100")
    costs = get_gpu("A100").operation_costs
    profile = Profile("1g.5gb", 19, 1, 1, 5.0, instances, tuple(range(instances)))
    operations = OperationCosts({1: costs.create[1]}, {1: costs.destroy[1]})
    return GpuModel(f"{instances} x 1g", "", 5.0 * instances, instances, instances, (profile,), operations)


def run(trace: Trace, policy: str, options: Mapping[str, Any]) -> DelayFigures:
    """Return what a policy makes of a trace."""
    done = simulate(trace, policy, **options)
    assert not done.unfinished
    metrics, log = done.metrics, done.log
    bound = [index for index, job in enumerate(trace.jobs) if job.pcie_gbps]
    short = sum(log.finished[index] - log.scheduled[index] <= 50 for index in bound)
    larger = sum(run.placement.profile.name != trace.jobs[run.job].profile for run in log.runs())
    shares = short / len(bound) if bound else math.nan, larger / len(trace.jobs)
    return DelayFigures(metrics.completion.mean, metrics.wait.mean, metrics.execution.mean, *shares)


class Sample:
    """Traces of a family, and what the unaware scheduler makes of them.

    They have 93 jobs, or 1400 (``pcie-60``), 60 % of which are PCIe-bound, if parameters of the family do not change
    that; ``few`` says that fewer seeds are enough.
    """

    def __init__(self, plan: Plan, family: str = "pcie-4", *, few: bool = False, **changes: Any) -> None:
        large = family == "pcie-60"
        settings = {"pcie_share": 0.6, "jobs": 1400 if large else 93, **changes}
        settings["jobs"] = max(2, settings["jobs"] // plan.cut)
        seeds = range(plan.large_seeds if few or large else plan.seeds)
        self.traces = [generate_trace(family, seed=seed, **settings) for seed in seeds]
        self.base = self.runs(UNAWARE)

    def runs(self, policy: str, **options: object) -> list[DelayFigures]:
        """Return what a policy makes of the traces."""
        return [run(trace, policy, options) for trace in self.traces]

    def lower(self, policy: str = AWARE, **options: object) -> list[float]:
        """Return by how many percent the mean flow time is lower than with the unaware one, for each trace."""
        return lower(self.runs(policy, **options), self.base)


def lower(found: Sequence[DelayFigures], base: Sequence[DelayFigures]) -> list[float]:
    """Return by how many percent the mean flow time is lower, for each trace."""
    return [100 * (1 - one.completion / two.completion) for one, two in zip(found, base, strict=True)]


def spread(values: Sequence[float]) -> str:
    """Return mean, standard deviation and range."""
    if len(values) < 2:
        return f"{values[0]:.1f}"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def mean(found: Sequence[DelayFigures], name: str) -> float:
    """Return the mean of a figure."""
    return float(statistics.mean(getattr(one, name) for one in found))


def by_share(page: Page, family: str, plan: Plan, printed: Mapping[float, str]) -> list[list[float]]:
    """Compare all policies for each share of PCIe-bound jobs; return the reductions of the aware one."""
    rows, seconds, saved_by_aware = [], [], []
    for share in SHARES:
        sample = Sample(plan, family, pcie_share=share)
        base, aware = sample.base, sample.runs(AWARE)
        bound = statistics.mean(trace_bounds(trace).mean_completion for trace in sample.traces)
        saved_by_aware.append(lower(aware, base))
        rivals = (f"{statistics.mean(sample.lower(policy, **options)):.1f}" for policy, options in RIVALS.values())
        rows.append([f"{share:.0%}", printed.get(share, ""), spread(saved_by_aware[-1]), *rivals])
        pairs = (f"{mean(base, name):.1f} / {mean(aware, name):.1f}" for name in ("completion", "wait", "execution"))
        short = f"{mean(base, 'short'):.0%} / {mean(aware, 'short'):.0%}" if share else ""
        seconds.append([f"{share:.0%}", *pairs, f"{bound:.1f}", short])
    page.table(["PCIe-bound", "printed %", "`pcie-aware`: % lower, mean ± sd (range)", *RIVALS], rows, range(9))
    page.add("Seconds, unaware / aware:")
    header = ["PCIe-bound", "flow time", "wait", "execution", "lower bound of flow time", "PCIe-bound jobs up to 50 s"]
    page.table(header, seconds, range(9))
    return saved_by_aware


def by_arrivals(plan: Plan, instances: int, share: float) -> tuple[Sample, Sample]:
    """Return traces for GPUs with numbers of instances: with proportional arrivals, and with those for seven."""
    settings: dict[str, Any] = {"few": True, "gpu": hypothetical(instances), "pcie_share": share}
    more = Sample(plan, jobs=93 * instances // 7, load=0.9, **settings)
    return more, Sample(plan, load=0.9 * 7 / instances, **settings)


def by_instances(page: Page, plan: Plan) -> dict[tuple[float, int], tuple[list[float], list[float]]]:
    """Compare for GPUs with more instances; return the reductions with proportional and with the same arrivals."""
    rows, drawn = [], {}
    for share, instances in itertools.product((0.2, 0.4, 0.6), INSTANCES):
        samples = by_arrivals(plan, instances, share)
        drawn[share, instances] = more, same = samples[0].lower(), samples[1].lower()
        balanced = (f"{statistics.mean(sample.lower('load-balancing')):.1f}" for sample in samples)
        cells = zip(map(spread, (more, same)), balanced, strict=True)
        rows.append([f"{share:.0%}", f"{instances}", *itertools.chain(*cells)])
    header = ["PCIe-bound", "instances", "more arrivals: % lower", "load balancing", "same arrivals: % lower"]
    page.table([*header, "load balancing"], rows, range(9))
    return drawn


def by_thresholds(page: Page, plan: Plan) -> dict[tuple[float, float | None, float | None], float]:
    """Compare thresholds; return the mean reductions."""
    found: dict[tuple[float, float | None, float | None], float] = {}
    for share in (0.4, 0.6, 0.8):
        sample = Sample(plan, pcie_share=share)
        for wait, delay in itertools.product(WAITS, DELAYS):
            found[share, wait, delay] = statistics.mean(sample.lower(delay_threshold=delay, wait_threshold=wait))
        shown = [[_named(wait, " s"), *(f"{found[share, wait, delay]:.1f}" for delay in DELAYS)] for wait in WAITS]
        page.add(f"{share:.0%} PCIe-bound; by wait threshold (rows) and delay threshold (columns):")
        page.table(["", *(_named(delay, "") for delay in DELAYS)], shown, range(9))
    return found


def by_assumption(page: Page, plan: Plan) -> None:
    """Change one thing at a time, with 60 % PCIe-bound jobs."""
    rows = []
    for name, changes in VARIED:
        sample = Sample(plan, few=changes.get("jobs", 0) >= 1000, **changes)
        patient = f"{statistics.mean(sample.lower(wait_threshold=None)):.1f}"
        rows.append([name, f"{mean(sample.base, 'completion'):.0f}", spread(sample.lower()), patient])
    page.table(["", "unaware, s", "% lower", "without wait threshold"], rows, range(9))


LARGER_SIZES = ("1,2", "1,2,3", "1,2,3,4,7")
LARGER: Mapping[str, Mapping[str, Any]] = {
    "no other size": {},
    "all larger sizes, as fast": {"larger": 1.0},
    "all larger sizes, twice as fast on twice the slices": {"larger": 1.0, "larger_gain": 1.0},
}


def by_larger(page: Page, plan: Plan) -> None:
    """Let starving jobs run on larger instances: the paper's principle 4."""
    rows = []
    for sizes, (name, changes) in itertools.product(LARGER_SIZES, LARGER.items()):
        sample = Sample(plan, sizes=sizes, **changes)
        aware = sample.runs(AWARE)
        cells = [f"{mean(own, 'completion'):.0f}" for own in (sample.base, aware)]
        rows.append([sizes, name, *cells, spread(lower(aware, sample.base)), f"{mean(aware, 'larger'):.0%}"])
    header = ["sizes asked for", "jobs can also run on", "unaware, s", "aware, s", "% lower"]
    page.table([*header, "ran on a larger instance"], rows, range(9))


def copies(sizes: Sequence[int], demand: float, sensitivity: float, seconds: float) -> list[float]:
    """Return the ends of jobs that run at once on instances of these sizes, which take no time to create."""
    gpu = get_gpu("A100")
    names = {profile.compute_slices: profile.name for profile in gpu.profiles_of("base")}
    jobs = tuple(
        Job(f"{number}", 0.0, {size: seconds}, names[size], pcie_gbps=demand, sensitivity=sensitivity)
        for number, size in enumerate(sizes)
    )
    return list(simulate(Trace(jobs, gpu, operations=OperationCosts.zero(gpu)), "first-fit").log.finished)


def profile(kind: str, noise: float, seed: int) -> SensitivityFit:
    """Profile a kind of job as the paper does: one to seven of them on one GPU, with a relative error of each run."""
    rng = np.random.default_rng(seed)
    demand, sensitivity = TABLE_2[kind]
    runs = []
    for count in range(1, 8):
        ends = copies((1,) * count, demand, sensitivity, 50.0)
        runs += [ProfiledRun(end * (1 + noise * float(rng.standard_normal())), count) for end in ends]
    return fit_sensitivity(runs, demand, pcie_limit=PCIE_LIMIT)


def by_estimate(page: Page, plan: Plan) -> None:
    """Fit sensitivities to noisy profiles, and let the scheduler believe in wrong ones."""
    rows = []
    for kind, noise in itertools.product(("bloom560m", "bloom7b1"), NOISE):
        fits = [profile(kind, noise, seed) for seed in range(plan.seeds)]
        alphas, worst = [fit.sensitivity for fit in fits], min(fit.r_squared for fit in fits)
        shown = f"{statistics.mean(alphas):.3f} ({min(alphas):.3f} to {max(alphas):.3f})"
        rows.append([kind, f"{TABLE_2[kind][1]}", f"{noise:.0%}", shown, f"{worst:.3f}"])
    page.table(["kind", "truth (Table 2)", "noise of a run", "fitted: mean (range)", "least R²"], rows, range(9))
    sample, rows = Sample(plan), []
    for factor in WRONG:
        believed = ({job.name: factor * job.sensitivity for job in trace.jobs} for trace in sample.traces)
        pairs = zip(sample.traces, believed, strict=True)
        found = [run(trace, AWARE, {"sensitivities": wrong}) for trace, wrong in pairs]
        rows.append([f"{factor:g}", spread(lower(found, sample.base))])
    page.table(["believed / true sensitivity", "% lower, 60 % PCIe-bound"], rows, range(9))


def by_fleet(page: Page, plan: Plan) -> None:
    """Measure the time for the decisions."""
    rows = []
    for gpus, load in ((10, 0.8), (1000, 0.8), (10_000, 0.8), (10_000, 1.5)):
        jobs = 100_000 // plan.cut**2
        trace = generate_trace("pcie-60", gpus=gpus, jobs=jobs, load=load, sizes="1,2,3,4,7", pcie_share=0.3, seed=1)
        for policy in (UNAWARE, AWARE):
            done, seconds = timed(functools.partial(simulate, trace, policy))
            assert not done.unfinished
            each = f"{1e6 * seconds / jobs:.0f}"
            wait = f"{done.metrics.wait.mean:.1f}"
            rows.append([f"{gpus:,}", f"{jobs:,}", f"{load:g}", policy, f"{seconds:.1f}", each, wait])
    header = ["GPUs", "jobs", "load", "policy", "seconds of the processor", "us per job", "mean wait, s"]
    page.table(header, rows, range(9))


def _named(value: float | None, unit: str) -> str:
    return "none" if value is None else f"{value:g}{unit}"


def study(page: Page, plan: Plan, results: Path) -> None:
    """Do everything."""
    page.add(f"""{plan.seeds} traces for each figure of 4 GPUs, {plan.large_seeds} for 60 GPUs, more instances and 1000
        jobs. *% lower* is by how much the mean flow time (arrival to completion) is lower than with `pcie-unaware` on
        the same trace. [PCIe-aware scheduling](../../docs/explanation/pcie-aware.md) says what is assumed.""")
    page.add("![Reduction by share of PCIe-bound jobs, by instances per GPU, and by delay threshold](online_pcie.svg)")
    page.section("4 GPUs (the paper's Figures 6 and 7)")
    small = by_share(page, "pcie-4", plan, PRINTED_4)
    page.section("60 GPUs, 1400 jobs (Figure 8; printed: up to 17 % at 60 %)")
    large = by_share(page, "pcie-60", plan, PRINTED_60)
    page.section("More instances on each of 4 GPUs (Figure 9; printed: up to 20 %)")
    page.add(
        "*More arrivals*: jobs and arrivals grow with the instances. *Same arrivals*: the jobs of 7 instances for all."
    )
    more = by_instances(page, plan)
    page.section("Thresholds, which are not printed: mean % lower")
    thresholds = by_thresholds(page, plan)
    page.section("Other assumptions, 60 % PCIe-bound jobs on 4 GPUs")
    by_assumption(page, plan)
    page.section("Larger instances for starving jobs (principle 4), 60 % PCIe-bound")
    page.add("""A job that has waited for 60 s without an instance of its profile takes the smallest larger one that is
        idle, if it can run there. Jobs that ask for one size alone, as above, never do.""")
    by_larger(page, plan)
    page.section("Sensitivity by regression (Figure 4)")
    by_estimate(page, plan)
    page.section("Time for decisions", "Jobs of 1g to 4g and 7g, 30 % PCIe-bound.")
    by_fleet(page, plan)
    save_figure(reductions(SHARES, small, large, more, thresholds), results / "online_pcie.svg")


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    options = parser_of(__doc__, "online_pcie.md", "two seeds, a tenth of the jobs").parse_args(arguments)
    page = Page("online_pcie", "PCIe-aware scheduling", "mig-opt", folder=options.results)
    plan = Plan(2, 1, 10) if options.cut else Plan()
    _, seconds = timed(functools.partial(study, page, plan, options.results))
    page.add(f"The study took {seconds:.0f} s of the processor.")
    page.save()
