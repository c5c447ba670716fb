"""Acceptance ratios of every scheduler on fleets without a queue, beside what nobody can exceed.

Run: python -m bench.fleet.admission, which takes a few minutes; or with --cut, which takes seconds. Mixes of profiles
on a small fleet, where the optimum is proven for most traces, and on a large one; and six days of Alibaba's openb
trace.
"""

import json
import lzma
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.report import Page, parser_of, start, tell
from mig_opt import Job, OperationCosts, Trace, get_gpu, methods, simulate
from mig_opt.files.fleet.traces import TRACE
from mig_opt.models.fleet.admission import admission_bound, admission_optimum
from mig_opt.simulation.fleet.options import policy_label
from mig_opt.simulation.fleet.simulator import check_policy
from mig_opt.studies.summary import grouped

GPU = get_gpu("A100")
PROFILES = ("7g.40gb", "4g.20gb", "3g.20gb", "2g.10gb", "1g.10gb", "1g.5gb")
MIXES: Mapping[str, tuple[float, ...]] = {
    "even": (1, 1, 1, 1, 1, 1),
    "small": (0.05, 0.10, 0.10, 0.20, 0.25, 0.30),
    "large": (0.30, 0.25, 0.20, 0.10, 0.10, 0.05),
    "both ends": (0.30, 0.15, 0.05, 0.05, 0.15, 0.30),
}
"""Weights of the profiles in each mix."""
LOAD, MEAN_S = 1.1, 100.0
DAYS = (116, 120, 124, 131, 133, 141)
DAY_GPUS = 4
OPTIMUM_S = 3.0
MORE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("fragmentation-growth", {"metric": "unavailable"}),
    ("baskets", {"quota": 0.5}),
    ("baskets", {"quota": 0.5, "consolidate_s": None}),
    ("static", {"partition": "3+2+1+1"}),
)
"""Options of schedulers that are tried beside the usual ones."""
SIMPLE = ("first-fit", "best-fit", "load-balancing")
_STORED = "admission.json.xz"


@dataclass(frozen=True, slots=True)
class Ratios:
    """Figures of a scheduler, of the upper bound or of the optimum, on one trace."""

    group: str
    trace: str
    policy: str
    jobs: float  # acceptance ratios
    slices: float | None = None
    slice_seconds: float | None = None
    gpus: float | None = None  # GPUs with jobs, mean over time
    moves: float | None = None  # migrations for each accepted job


def mixed(mix: str, gpus: int, count: int, seed: int) -> Trace:
    """Return jobs that arrive as a Poisson process and ask for a mix of profiles; operations take no time.

    Seconds are exponential; the memory slices that arriving jobs ask for are ``LOAD`` times those that there are.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    shares = np.array(MIXES[mix]) / sum(MIXES[mix])
    profiles = [GPU.profile(name) for name in PROFILES]
    slices = sum(share * profile.memory_slices for share, profile in zip(shares, profiles, strict=True))
    gaps = rng.exponential(MEAN_S * slices / (LOAD * gpus * GPU.memory_slices), count)
    jobs = []
    drawn = np.cumsum(gaps), rng.choice(len(profiles), count, p=shares), rng.exponential(MEAN_S, count)
    for index, (at, kind, taken) in enumerate(zip(*drawn, strict=True)):
        seconds = max(round(float(taken), 3), 0.001)
        times = {profiles[kind].compute_slices: seconds}
        jobs.append(Job(f"{index}", round(float(at), 3), times, profiles[kind].name))
    return Trace(tuple(jobs), GPU, gpus, OperationCosts.zero(GPU), name=f"{mix}, {gpus} GPUs, seed {seed}")


def worlds(*, cut: bool) -> Iterator[tuple[str, Trace, bool]]:
    """Yield groups with their traces, and whether the optimum is looked for."""
    seeds, few, many = (1, 20, 60) if cut else (5, 100, 1500)
    for mix in MIXES:
        for seed in range(seeds):
            yield f"{mix}, 4 GPUs", mixed(mix, 4, few, seed), True
    for mix in MIXES:
        yield f"{mix}, 40 GPUs", mixed(mix, 40, many, 100), False
    folder = Path(__file__).with_name("online")
    for day in DAYS[: 1 if cut else None]:
        days = TRACE.read(folder / f"openb-{day}.csv", gpu=GPU.name, gpus=DAY_GPUS)
        trace = days.replace(name=f"openb {day}", operations=OperationCosts.zero(GPU))
        yield f"openb days, {DAY_GPUS} GPUs", trace, True


def measured(*, cut: bool) -> Iterator[Ratios]:
    """Yield the figures of every scheduler that can work without a queue, the bound and the optimum."""
    entries: list[tuple[str, dict[str, Any]]] = [(entry.name, {}) for entry in methods("simulate")]
    for group, trace, small in worlds(cut=cut):
        tell(trace.name)
        for name, options in [*entries, *MORE]:
            try:
                check_policy(trace, name, reject=True, **options)
            except ValueError:
                continue
            metrics = simulate(trace, name, reject=True, **options).metrics
            own = metrics.acceptance
            ratios = own.jobs, own.slices, own.slice_seconds, metrics.active_gpus
            moves = metrics.migrations / max(metrics.finished, 1)
            yield Ratios(group, trace.name, policy_label(name, options), *ratios, moves)
        count = len(trace.jobs)
        if small:
            moving = admission_optimum(trace, migration=True, time_limit=OPTIMUM_S, workers=1)
            best = admission_optimum(trace, time_limit=OPTIMUM_S, workers=1)
            yield Ratios(group, trace.name, "upper bound", moving.upper_bound / count)
            yield Ratios(group, trace.name, "upper bound without migration", best.upper_bound / count)
            if best.accepted is not None:
                yield Ratios(group, trace.name, "best admission", best.accepted / count)
        else:
            yield Ratios(group, trace.name, "upper bound", admission_bound(trace) / count)


TABLES: Mapping[str, tuple[str, float]] = {
    "Accepted jobs in %": ("jobs", 100),
    "Accepted compute slices x seconds in %": ("slice_seconds", 100),
    "GPUs with jobs, mean over time": ("gpus", 1),
    "Migrations in % of the accepted jobs": ("moves", 100),
}
"""By heading what is shown, and its scale."""


def table(page: Page, found: Sequence[Ratios], heading: str) -> None:
    """Add a table with the means of a figure, by scheduler and group; who has none, or only zeros, has no row."""
    kind, scale = TABLES[heading]
    groups = list(dict.fromkeys(each.group for each in found))
    rows = []
    for name, own in grouped(found, lambda each: each.policy).items():
        values = [[getattr(each, kind) for each in own if each.group == group] for group in groups]
        known = [[value for value in cell if value is not None] for cell in values]
        if any(map(any, known)):
            cells = (f"{scale * statistics.fmean(cell):.1f}" if cell else "" for cell in known)
            rows.append([name if " " in name else f"`{name}`", *cells])
    page.section(heading)
    page.table(["", *groups], rows)


def mean(found: Sequence[Ratios], policy: str, groups: str, kind: str = "jobs") -> float:
    """Return the mean of a figure of a scheduler on the mixes, or on the openb days."""
    own = (each for each in found if each.policy == policy)
    chosen = (each for each in own if each.group.startswith("openb") == (groups == "openb days"))
    return statistics.fmean(getattr(each, kind) for each in chosen)


def read(folder: Path) -> list[Ratios]:
    """Return the stored figures."""
    return [Ratios(**each) for each in json.loads(lzma.decompress((folder / _STORED).read_bytes()))]


def gain(found: Sequence[Ratios], policy: str, over: str, groups: str, kind: str = "jobs") -> float:
    """Return by which share the mean of a scheduler is above that of another one."""
    return mean(found, policy, groups, kind) / mean(found, over, groups, kind) - 1


def claims(found: Sequence[Ratios]) -> Iterator[list[str]]:
    """Yield what two abstracts print beside what is measured here, on other traces."""
    for other in SIMPLE:
        more = gain(found, "fragmentation-growth", other, "mixes")
        yield ["arXiv 2511.18906: accepted workloads", "+10 %", f"mixes, over `{other}`", f"{100 * more:+.1f} %"]
    for label in ("baskets", "baskets:quota=0.5"):
        where = f"openb days, `{label}` over"
        for other in SIMPLE[:2]:
            more = gain(found, label, other, "openb days")
            yield ["arXiv 2502.01909: accepted requests", "+22 %", f"{where} `{other}`", f"{100 * more:+.1f} %"]
        more = gain(found, label, "first-fit", "openb days", "gpus")
        yield ["arXiv 2502.01909: active hardware", "-17 %", f"{where} `first-fit`", f"{100 * more:+.1f} %"]
        moved = f"{100 * mean(found, label, 'openb days', 'moves'):.1f} %"
        yield ["arXiv 2502.01909: migrated VMs", "1 %", f"openb days, `{label}`, migrations per job", moved]


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the results."""
    parser = parser_of(__doc__, "the results", "few traces and jobs")
    parser.add_argument("--table", action="store_true", help="run nothing, only write the tables again")
    options = parser.parse_args(arguments)
    if not options.table:
        rows = list(measured(cut=options.cut))
        options.results.mkdir(parents=True, exist_ok=True)
        stored = [
            {name: round(v, 6) if isinstance(v, float) else v for name, v in asdict(each).items() if v is not None}
            for each in rows
        ]
        (options.results / _STORED).write_bytes(lzma.compress(json.dumps(stored).encode(), preset=9))
    found = read(options.results)
    title = "Acceptance on fleets without a queue"
    page = Page("admission", title, "mig-opt", "ortools", "highspy", folder=options.results)
    weights = (f"{name} {'/'.join(f'{weight:g}' for weight in own)}" for name, own in MIXES.items())
    page.add(f"""A100-40GB, operations take no time. Mixes: a Poisson process, exponential seconds with a mean of 100,
        memory slices asked for {LOAD} times those that there are; weights of {", ".join(PROFILES)}:
        {"; ".join(weights)}. 5 traces of 100 jobs on 4 GPUs, one of 1500 on 40. openb: six days, 150 to 199 jobs each,
        most of them for a whole GPU.""")
    page.add(f"""The upper bound holds for every scheduler; the one without migration and the best admission are of
        `admission_optimum` with {OPTIMUM_S:g} s, and meet where they are proven.""")
    for heading in TABLES:
        table(page, found, heading)
    page.section("Beside what is printed")
    page.add("""Both algorithms are known here from their abstracts only, and neither abstract names whom the gain is
        over. The first paper draws its traces from several distributions; the second uses a trace of an Alibaba
        cluster, whose mapping to profiles and whose fleet the abstract does not print.""")
    page.table(["what", "printed in the abstract", "measured", ""], claims(found), texts=(0, 2))
    page.save()
