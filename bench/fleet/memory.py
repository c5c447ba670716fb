"""The memory-aware scheduler MIGM in the simulator, beside what its paper prints.

Run: python -m bench.fleet.memory. It takes some minutes; with --cut (one seed, few rows) seconds.
"""

import dataclasses
import statistics
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bench.fleet import memory_tables
from bench.fleet.memory_tables import Rows
from bench.report import Page, parser_of, start
from mig_opt import Trace, generate_trace, simulate
from mig_opt.simulation import Metrics, PowerModel

PRINTED: dict[str, Any] = tomllib.loads((Path(__file__).parent / "printed_memory.toml").read_text(encoding="utf-8"))
GENERAL = ("hm1", "hm2", "hm3", "hm4", "nw", "ht1", "ht2", "ht3", "ml1", "ml2", "ml3")
LANGUAGE = ("flan-t5-train", "flan-t5", "qwen2", "llama3")
SEEDS = 20
Options = tuple[tuple[str, Any], ...]
SCHEMES: dict[str, tuple[str, Options]] = {
    "A": ("memory-aware-a", ()),
    "A, one queue": ("memory-aware-a", (("division", "shared"),)),
    "B": ("memory-aware-b", ()),
}


class MemoryFigures(NamedTuple):
    """Figures of a scheduler on a trace: ratios to the whole GPU, more is better, and how often jobs began again."""

    throughput: float
    energy: float
    memory: float
    turnaround: float
    failures: float
    stops: float


@cache
def _run(family: str, seed: int, parameters: Options, policy: str, options: Options) -> Metrics:
    trace = generate_trace(f"migm-{family}", seed=seed, **dict(parameters))
    done = simulate(trace, policy, **dict(options))
    assert not done.unfinished
    return done.metrics


def outcome(family: str, seed: int, parameters: Options, policy: str, options: Options) -> MemoryFigures:
    """Run a scheduler and the whole GPU on the same trace."""
    base = _run(family, seed, parameters, "whole-gpu", ())
    own = _run(family, seed, parameters, policy, options)
    memory = own.memory_utilisation / base.memory_utilisation
    turnaround = base.completion.mean / own.completion.mean
    throughput, energy = base.makespan / own.makespan, base.energy / own.energy
    return MemoryFigures(throughput, energy, memory, turnaround, own.failures, own.stops)


def outcomes(family: str, seeds: int, scheme: str, **parameters: Any) -> list[MemoryFigures]:
    """Return what a scheme makes of a mix for each seed."""
    policy, options = SCHEMES[scheme]
    return [outcome(family, seed, tuple(parameters.items()), policy, options) for seed in range(seeds)]


def mean(values: Iterable[float]) -> str:
    """Return the mean of some ratios."""
    return f"{statistics.fmean(values):.2f}"


def throughput(mix: str, seeds: int, scheme: str, **parameters: Any) -> str:
    """Return the mean throughput of a scheme on a mix."""
    return mean(one.throughput for one in outcomes(mix, seeds, scheme, **parameters))


def spread(values: Sequence[float]) -> str:
    """Return the mean of some ratios, with the range if they differ."""
    low, high = min(values), max(values)
    return mean(values) if high - low < 0.005 else f"{mean(values)} ({low:.2f}-{high:.2f})"


def printed(table: str, mix: str) -> str:
    """Return what the paper prints for schemes A and B."""
    found = PRINTED[table].get(mix, {})
    return " / ".join(f"{found[scheme]:.2f}" if scheme in found else "-" for scheme in "ab")


def general_table(seeds: int) -> Rows:
    """Yield the throughput, energy, memory and turnaround of the mixes whose memory is known."""
    head = ["mix", "ceiling", "printed A / B", *SCHEMES, "A at least B", "energy A / B (printed)"]
    yield [*head, "memory A / B", "turnaround A / B"]
    for mix in GENERAL:
        found = {scheme: outcomes(mix, seeds, scheme) for scheme in SCHEMES}
        above = sum(a.throughput >= b.throughput - 1e-9 for a, b in zip(found["A"], found["B"], strict=True))
        ceiling = PRINTED["ceiling"].get(mix)
        pairs = [
            " / ".join(mean(getattr(one, name) for one in found[scheme]) for scheme in "AB")
            for name in ("energy", "memory", "turnaround")
        ]
        energy = f"{pairs[0]} ({printed('energy', mix)})" if mix in PRINTED["energy"] else pairs[0]
        known = [f"{ceiling:.0f}" if ceiling else "-", printed("throughput", mix)]
        own = (spread([one.throughput for one in found[scheme]]) for scheme in SCHEMES)
        yield [mix.capitalize(), *known, *own, f"{above} of {seeds}", energy, *pairs[1:]]


def second_kind(trace: Trace, ratio: float) -> Trace:
    """Return Ml2 with times of its 4.7 GB jobs in a ratio to those of 3.5 GB, and the same seconds in the mean."""
    factors = {3.5: 2 / (1 + ratio), 4.7: 2 * ratio / (1 + ratio)}
    jobs = []
    for job in trace.jobs:
        times = {size: factors[job.memory_gb or 0] * time for size, time in job.times.items()}
        jobs.append(dataclasses.replace(job, times=times))
    return trace.replace(jobs=tuple(jobs))


def similar_throughputs(seeds: int, sigma: float, ratio: float) -> dict[str, list[float]]:
    """Return the throughput of each scheme on Ml2, by the spread of its runtimes and the ratio of its two kinds."""
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        trace = second_kind(generate_trace("migm-ml2", seed=seed, sigma=sigma), ratio)
        base = simulate(trace, "whole-gpu").metrics.makespan
        for scheme, (policy, options) in SCHEMES.items():
            makespan = simulate(trace, policy, **dict(options)).metrics.makespan
            found.setdefault(scheme, []).append(base / makespan)
    return found


SIGMAS, RATIOS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3), (1.0, 1.1, 1.25, 1.5, 2.0)


def similar_table(seeds: int, rows: int) -> Rows:
    """Yield when scheme A beats B on Ml2: by the spread of the runtimes, and by those of the two kinds of jobs."""
    yield ["spread", *(f"{ratio:g} times" for ratio in RATIOS)]
    yield ["printed", *[printed("throughput", "ml2")] * len(RATIOS)]
    for sigma in SIGMAS[:rows]:
        cells = []
        for ratio in RATIOS:
            found = similar_throughputs(seeds, sigma, ratio)
            above = sum(a > b + 1e-9 for a, b in zip(found["A"], found["B"], strict=True))
            cells.append(f"{mean(found['A'])} / {mean(found['B'])} ({above})")
        yield [f"{sigma:g}", *cells]


def own_energy(mix: str, scheme: str, seeds: int, share: float) -> float:
    """Return the energy of a scheme, relative to the whole GPU, if a share of the whole GPU's power is a constant.

    The rest is what the jobs cost themselves, the same wherever they run.
    """
    power = PowerModel()
    policy, options = SCHEMES[scheme]
    ratios = []
    for seed in range(seeds):
        drawn = generate_trace(f"migm-{mix}", seed=seed)
        watts = power.idle * (1 - share) / share
        whole = drawn.one_kind.compute_slices
        jobs = (dataclasses.replace(job, energy_j=watts * job.times[whole]) for job in drawn.jobs)
        trace = drawn.replace(jobs=tuple(jobs))
        base = simulate(trace, "whole-gpu").metrics.energy
        ratios.append(base / simulate(trace, policy, **dict(options)).metrics.energy)
    return statistics.fmean(ratios)


VARIED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("as it is", {}),
    ("all jobs of a kind equally long", {"sigma": 0.0}),
    ("lengths spread twice as much (0.6)", {"sigma": 0.6}),
    ("10 times as long (operations weigh less)", {"slower": 10.0}),
    ("a tenth as long (operations weigh more)", {"slower": 0.1}),
    ("2/3 of the seconds on one slice (Ht: no loss there)", {"stretch": 0.667}),
    ("1.5 times the seconds on one slice (Ht: 2.25 times those of the whole GPU)", {"stretch": 1.5}),
    ("four times the jobs", {"jobs": 4}),
)


def variation_table(seeds: int, rows: int) -> Rows:
    """Yield how the throughput of A and B moves with what is assumed."""
    mixes = ("hm4", "ht1", "ht2", "ht3", "ml1", "ml2", "ml3")
    yield ["changed", *(mix.capitalize() for mix in mixes)]
    yield ["printed", *(printed("throughput", mix) for mix in mixes)]
    for label, change in VARIED[:rows]:
        cells = []
        for mix in mixes:
            parameters = dict(change)
            if "jobs" in parameters:
                parameters["jobs"] = 4 * len(generate_trace(f"migm-{mix}").jobs)
            cells.append(" / ".join(throughput(mix, seeds, scheme, **parameters) for scheme in "AB"))
        yield [label, *cells]


def language_table(seeds: int) -> Rows:
    """Yield what prediction does for the language models, with the printed number of jobs and with more."""
    variants: list[tuple[str, Options]] = [
        ("prediction", ()),
        ("failure only", (("prediction", False),)),
        ("prediction, from 10 GB", (("start_gb", 10.0),)),
        ("failure only, from 10 GB", (("start_gb", 10.0), ("prediction", False))),
    ]
    yield ["model", "jobs", "scheme A with", *MemoryFigures._fields[:5], "early restarts"]
    totals: dict[tuple[bool, str], list[MemoryFigures]] = {}
    for model in LANGUAGE:
        given = len(generate_trace(f"migm-{model}").jobs)
        for jobs in (given, 8):
            for label, options in variants:
                asked = (("jobs", jobs), ("noise_gb", 0.01))
                found = [outcome(model, seed, asked, "memory-aware-a", options) for seed in range(seeds)]
                totals.setdefault((jobs == given, label), []).extend(found)
                yield [model, f"{jobs}", label, *map(mean, zip(*found, strict=True))]
    for (as_given, label), found in totals.items():
        yield ["mean", "as printed" if as_given else "8", label, *map(mean, zip(*found, strict=True))]
    own = (f"{PRINTED['language'][name]:.2f}" for name in ("throughput", "energy", "memory"))
    yield ["printed mean", "", "prediction", *own, "", "", ""]


def _early_and_late(model: str, seeds: int, **parameters: Any) -> str:
    """Return the throughput of scheme A with prediction, and without."""
    given = (("jobs", 8), *parameters.items())
    return " / ".join(
        mean(outcome(model, seed, given, "memory-aware-a", options).throughput for seed in range(seeds))
        for options in ((), (("prediction", False),))
    )


def restart_table(seeds: int) -> Rows:
    """Yield how noise and what else is assumed of the language models decide what early restart is worth."""
    yield ["assumed", *LANGUAGE]
    for noise in memory_tables.NOISES:
        yield [f"noise {noise:g} GB", *(_early_and_late(model, seeds, noise_gb=noise) for model in LANGUAGE)]
    for label, stretch in (("no slower", 1.0), ("3 times as slow", 3.0)):
        cells = (_early_and_late(model, seeds, noise_gb=0.01, stretch=stretch) for model in LANGUAGE)
        yield [f"{label} on one slice", *cells]
    for label, factor in (("9/10 (memory is flat first, then steep)", 1.1), ("1/4", 4.0)):
        counts = {model: round(factor * PRINTED["forecast"][model]["fails"]) for model in LANGUAGE}
        cells = (_early_and_late(model, seeds, noise_gb=0.01, iterations=count) for model, count in counts.items())
        yield [f"10 GB run out at {label}", *cells]


def link_table(seeds: int) -> Rows:
    """Yield the throughput of Needleman-Wunsch by how much of its slowdown is due to the link."""
    yield ["pcie", "printed", "A", "B"]
    for share in (0.0, 0.5, 1.0):
        cells = (throughput("nw", seeds, scheme, pcie=share) for scheme in "AB")
        yield [f"{share:g}", f"{PRINTED['throughput']['nw']['a']:.2f}", *cells]


def own_energy_table(seeds: int) -> Rows:
    """Yield the energy of the printed pairs if jobs say what they cost."""
    yield ["mix", "scheme", "constant", "printed", "measured"]
    for mix, scheme, share, value in OWN_ENERGY:
        measured = own_energy(mix, scheme, seeds, share)
        yield [mix.capitalize(), scheme, f"{share:.0%}", f"{value:.2f}", f"{measured:.2f}"]


OWN_ENERGY = (
    ("hm3", "A", 0.99, PRINTED["best"]["energy"]),
    ("ml2", "A", 0.29, PRINTED["energy"]["ml2"]["a"]),
    ("ml2", "B", 0.29, PRINTED["energy"]["ml2"]["b"]),
)


def energy_table() -> Rows:
    """Yield which part of the power cannot depend on what is run, by the printed pairs of throughput and energy."""
    best, language = PRINTED["best"], PRINTED["language"]
    pairs = [("best homogeneous mix", best["throughput"], best["energy"])]
    for scheme in "ab":
        both = (PRINTED[figure]["ml2"][scheme] for figure in ("throughput", "energy"))
        pairs.append((f"Ml2, scheme {scheme.upper()}", *both))
    pairs.append(("language models, mean", language["throughput"], language["energy"]))
    pairs.append(("language models, best", language["best_throughput"], language["best_energy"]))
    yield ["printed for", "throughput", "energy", "share of the whole GPU's power at rest"]
    for label, faster, saved in pairs:
        yield [label, f"{faster:.2f}", f"{saved:.2f}", f"{(1 - 1 / saved) / (1 - 1 / faster):.0%}"]


def sections(cut: bool) -> list[tuple[str, str, Rows]]:
    """Return the tables with their headings and what there is to know about them."""
    seeds, rows, draws = (1, 2, 2) if cut else (SEEDS, 99, 100)
    return [
        ("Throughput and energy of the mixes", _MIXES, general_table(seeds)),
        ("How the throughput moves with what is assumed", _VARIATION, variation_table(seeds, rows)),
        ("Ml2: similar runtimes", _SIMILAR, similar_table(seeds, rows)),
        ("Needleman-Wunsch: how much is due to the link", _LINK, link_table(seeds)),
        ("Language models: prediction against failure", _LANGUAGE, language_table(seeds)),
        ("Early restart and what is assumed", _RESTART, restart_table(seeds)),
        ("When the predictor knows", _FORECAST, memory_tables.forecast_table(PRINTED, draws)),
        ("How large the peak is", _PEAK, memory_tables.peak_table(PRINTED, draws)),
        ("Energy", _ENERGY, energy_table()),
        ("Energy that jobs cost themselves", _OWN_ENERGY, own_energy_table(seeds)),
        ("The first experiment, on an A30 (section 1)", _FIRST, memory_tables.first_table(draws)),
        ("Reachability of each slice", _REACHABILITY, memory_tables.reachability_table(PRINTED)),
    ]


_MIXES = """Ratios to one job at a time on the whole GPU (`whole-gpu`), mean and range over the seeds; memory is the
share of the GPU's memory that jobs use. The best homogeneous mix is printed with 6.20 (throughput) and 5.93 (energy).
How much longer jobs take on small instances is set from the printed throughput of Hm1 to Hm4, Ml2 and Ml3, so these
show what scheduling loses, and nothing else."""
_VARIATION = "Throughput of A / B, mean over the seeds; `stretch` and `slower` are factors on the trace family's."
_SIMILAR = """Throughput of A / B, mean over the seeds, and in how many of them A is strictly better; by the spread of
the runtimes (sigma of a lognormal distribution; the paper calls them similar, the family's default is 0.05) and by how
many times as long as a job with 3.5 GB one with 4.7 GB takes (longer sequences; not printed, the family's default is
1). A sorts by memory, so it begins with the shorter ones and deals equal parts; B takes them in any order."""
_LINK = """Throughput of A; `pcie` is the part of the printed slowdown of 2.24 that is due to the link: with 0 a job on
1g.5gb takes the printed 1.17 s whatever runs beside it, with 1 so long only if seven run."""
_OWN_ENERGY = """Energy of the whole GPU over that of the scheme if jobs cost the same wherever they run (`energy_j`)
and the GPU draws a constant power besides. The constant's share of the whole GPU's power was searched for until one
printed pair fits (99 % the best homogeneous mix, 29 % Ml2 with A): one constant for networks, one for Rodinia."""
_FIRST = """14 jobs drawn from the eight Rodinia kernels with measured times on an A30 (`rodinia-a30`); the paper's
sample, from 23 benchmarks with parameters, is not published. Tight: the smallest instance on which a kernel runs;
next: one size larger. Mean and range over 100 draws of how much more throughput and how much less energy tight
instances have; energy by compute slices (33 to 165 W: the board power of an A30, and a fifth of it at idle)."""
_LANGUAGE = """Memory with noise of 0.01 GB around its line. One job alone cannot gain: it would have to be faster
on a part of the GPU than on the whole."""
_RESTART = """Throughput of scheme A, 8 jobs: with prediction / by failure only. In the last four rows the noise is 0.01
GB."""
_FORECAST = """Iteration at which a job on 10 GB is known to need more (the forecast has converged above 10 GB): median
over the seeds, and how many knew before it failed. Not before the sixth with the default of three steady
predictions."""
_PEAK = "Mean error of the peak that is predicted after a tenth of the iterations, whether converged or not."
_ENERGY = """If a job costs the same energy wherever it runs, and the GPU draws a constant power besides, printed
throughput and energy together say how large a part of the power that constant is: (1 - 1 / energy) / (1 - 1 /
throughput). No single model fits: 99 % for Rodinia, a sixth to a third for networks. `PowerModel` counts busy compute
slices instead, and a job on the whole GPU keeps all seven busy, so its energy follows the throughput."""
_REACHABILITY = """Configurations that can be reached when a 5 GB instance (1g.5gb) is on a slice of an empty A100, by
what counts as a configuration. The definition (valid full configurations) is the first row."""


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    options = parser_of(__doc__, "online_memory.md", "one seed and few rows: does it run?").parse_args(arguments)
    page = Page("online_memory", "The memory-aware scheduler (MIGM)", "mig-opt", "networkx", folder=options.results)
    seeds = "one seed" if options.cut else f"seeds 0 to {SEEDS - 1}"
    page.add(f"""By `python -m bench.fleet.memory`, one A100 40 GB, {seeds}. [The memory-aware scheduler
        (MIGM)](../../docs/explanation/memory-aware.md) says what it means.""")
    for title, text, rows in sections(options.cut):
        page.section(title, text)
        head = next(rows)
        page.table(head, rows, range(len(head)))
    page.save()
