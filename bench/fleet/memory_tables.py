"""Tables of the study of MIGM beside its mixes: the predictor, the first experiment, the reachability of slices."""

import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mig_opt import Job, Placement, Trace, generate_trace, get_gpu, load, simulate
from mig_opt.gpu.reachability import partition_state_machine, reachable_configurations
from mig_opt.heuristics.fleet.memory_aware import MemoryForecast
from mig_opt.simulation import PowerModel

Rows = Iterator[list[str]]  # the head of a table, then its rows
NOISES = (0.0, 0.01, 0.05, 0.2, 0.5, 1.0)
TOLERANCES = (0.02, 0.05, 0.1)
_LIMIT_GB = 10.0


def _series(model: str, seed: int, noise: float, **parameters: Any) -> list[float]:
    job = generate_trace(f"migm-{model}", seed=seed, jobs=1, noise_gb=noise, **parameters).jobs[0]
    return [gb for _, gb in job.memory_growth]


def known_at(series: Sequence[float], tolerance: float, limit_gb: float = _LIMIT_GB) -> int | None:
    """Return the iteration at which the forecast has converged above the limit, or None if it fails before."""
    forecast = MemoryForecast(last=len(series), tolerance=tolerance)
    for iteration, gb in enumerate(series, 1):
        if gb > limit_gb:
            return None
        forecast.observe(iteration, gb)
        if forecast.converged and forecast.peak > limit_gb:
            return iteration
    return None


def known_median(model: str, seeds: int, noise: float, tolerance: float = 0.05) -> tuple[float | None, float]:
    """Return the median iteration at which the lack is known, and the share of the seeds in which it is at all."""
    found = [known_at(_series(model, seed, noise), tolerance) for seed in range(seeds)]
    known = [at for at in found if at is not None]
    return statistics.median(known) if known else None, len(known) / seeds


def forecast_table(printed: Mapping[str, Any], seeds: int) -> Rows:
    """Yield when the lack of memory is predicted, by noise and by what counts as convergence."""
    models = printed["forecast"]
    yield ["noise", "tolerance", *models]
    yield ["printed", "", *(f"{own['predicted']} of {own['fails']}" for own in models.values())]
    for noise in NOISES:
        for tolerance in TOLERANCES if noise else TOLERANCES[1:2]:
            cells = []
            for model in models:
                middle, share = known_median(model, seeds, noise, tolerance)
                cells.append(f"{'-' if middle is None else f'{middle:.0f}'} ({share:.0%})")
            yield [f"{noise:g} GB", f"{tolerance:.0%}", *cells]


def peak_errors(model: str, seeds: int, noise: float) -> list[float]:
    """Return by which share of it the peak is missed after a tenth of the iterations, seed by seed."""
    errors = []
    for series in (_series(model, seed, noise) for seed in range(seeds)):
        forecast = MemoryForecast(last=len(series))
        for iteration, gb in enumerate(series[: max(3, len(series) // 10)], 1):
            forecast.observe(iteration, gb)
        errors.append(forecast.peak / max(series) - 1)
    return errors


def peak_table(printed: Mapping[str, Any], seeds: int) -> Rows:
    """Yield how far the predicted peak is from the true one."""
    models = printed["forecast"]
    yield ["noise", *models, "mean of the errors' sizes"]
    shown = [f"{own['predicted_gb'] / own['peak_gb'] - 1:+.1%}" if "peak_gb" in own else "-" for own in models.values()]
    yield ["printed", *shown, f"{printed['forecast_error']['mean']:.1%}"]
    for noise in NOISES:
        errors = [peak_errors(model, seeds, noise) for model in models]
        sizes = [abs(error) for own in errors for error in own]
        yield [f"{noise:g} GB", *(f"{statistics.fmean(own):+.1%}" for own in errors), f"{statistics.fmean(sizes):.1%}"]


State = tuple[Placement, ...]


def readings() -> Iterator[tuple[str, Callable[[Placement], int]]]:
    """Yield what may be counted as reachable from a placement on an empty A100, each with its name."""
    gpu = get_gpu("A100")

    def finals(key: Callable[[State], object], profiles: Any = "base") -> Callable[[Placement], int]:
        return lambda placed: len({key(state) for state in reachable_configurations(gpu, [placed], profiles)})

    machine = partition_state_machine(gpu)
    yield "placed full configurations", finals(lambda state: state)
    yield "the same, each multiset of profiles once", finals(_names)
    by_memory = finals(lambda state: tuple((placement.start, placement.profile.memory_gb) for placement in state))
    yield "placed, 3g.20gb and 4g.20gb being one (20 GB)", by_memory
    sizes = finals(lambda state: tuple(sorted(placement.profile.memory_gb for placement in state)))
    yield "multisets of memory sizes", sizes
    yield "placed, with 1g.10gb", finals(lambda state: state, "double-memory")
    yield "multisets of profiles, with 1g.10gb", finals(_names, "double-memory")
    yield "all states, full or not", lambda placed: sum(placed in state for state in machine)

    def kinds(placed: Placement) -> int:
        found = {frozenset(_names(state, placed)) for state in machine if placed in state}
        return len(found - {frozenset()})

    yield "sets of kinds of profiles that can still be added", kinds
    yield "states one creation away", lambda placed: machine.out_degree((placed,))


def _names(state: State, besides: Placement | None = None) -> tuple[str, ...]:
    # The profiles, whatever their places.
    return tuple(sorted(placement.profile.name for placement in state if placement != besides))


NEXT_SIZE = {1: 2, 2: 4, 4: 4}  # the next larger size of instances of an A30
A30_POWER = PowerModel(33.0, 165.0)
FIRST_SCHEDULERS: dict[str, tuple[str, dict[str, Any]]] = {
    "scheme A": ("memory-aware-a", {}),
    "scheme A, one queue": ("memory-aware-a", {"division": "shared"}),
    "scheme B": ("memory-aware-b", {}),
}


def first_trace(seed: int, *, tight: bool) -> Trace:
    """Return 14 Rodinia jobs on an A30 that ask for the smallest instance on which they run, or for the next size."""
    batch = load("rodinia-a30")
    profiles = {profile.compute_slices: profile.name for profile in batch.kind(0).profiles_of("base")}
    draw = random.Random(seed)
    jobs = []
    for number in range(14):
        task = draw.choice(batch.tasks)
        smallest = min(task.times)
        size = smallest if tight else NEXT_SIZE[smallest]
        jobs.append(Job(f"{number}-{task.name}", 0.0, {size: task.times[size]}, profiles[size]))
    return Trace(tuple(jobs), batch.kind(0))


def first_experiment(policy: str, options: Mapping[str, Any], seeds: int) -> tuple[list[float], list[float]]:
    """Return how many percent more jobs per second and less energy tight instances have than the next size."""
    faster, saved = [], []
    for seed in range(seeds):
        tight, larger = (simulate(first_trace(seed, tight=own), policy, **options) for own in (True, False))
        faster.append(100 * (larger.metrics.makespan / tight.metrics.makespan - 1))
        energies = (done.metrics_with(A30_POWER).energy for done in (tight, larger))
        saved.append(100 * (1 - next(energies) / next(energies)))
    return faster, saved


def first_table(seeds: int) -> Rows:
    """Yield the table of the paper's first experiment."""
    yield ["scheduler", "throughput, % more", "energy, % less"]
    yield ["printed", "20.6", "6.3"]
    for label, given in FIRST_SCHEDULERS.items():
        both = first_experiment(*given, seeds)
        yield [label, *(f"{statistics.fmean(own):.1f} ({min(own):.0f} to {max(own):.0f})" for own in both)]


def reachability_table(printed: Mapping[str, Any]) -> Rows:
    """Yield what can be reached from a 1g.5gb on each slice, by what is counted."""
    gpu = get_gpu("A100")
    yield ["counted", *(f"slice {start}" for start in range(7))]
    own = printed["reachability"]
    yield ["printed", f"{own['first']}", f"{own['first']}", *"----", f"{own['last']}"]
    for label, count in readings():
        yield [label, *(str(count(gpu.placement("1g.5gb", start))) for start in range(7))]
