"""Tables of the study of MIGM that need no simulation: the predictor, and the reachability of slices."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mig_opt import generate_trace, get_gpu
from mig_opt.gpu.model import Placement
from mig_opt.gpu.reachability import partition_state_machine, reachable_configurations
from mig_opt.heuristics.fleet.memory_forecast import MemoryForecast

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


def forecast_table(printed: Mapping[str, Any], seeds: int) -> list[str]:
    """Return when the lack of memory is predicted, by noise and by what counts as convergence."""
    models = printed["forecast"]
    lines = [
        f"| noise | tolerance | {' | '.join(models)} |",
        f"|---|---|{'---|' * len(models)}",
        "| printed | | " + " | ".join(f"{own['predicted']} of {own['fails']}" for own in models.values()) + " |",
    ]
    for noise in NOISES:
        for tolerance in TOLERANCES if noise else TOLERANCES[1:2]:
            cells = []
            for model in models:
                found = [known_at(_series(model, seed, noise), tolerance) for seed in range(seeds)]
                known = [at for at in found if at is not None]
                middle = f"{statistics.median(known):.0f}" if known else "-"
                cells.append(f"{middle} ({len(known) / seeds:.0%})")
            lines.append(f"| {noise:g} GB | {tolerance:.0%} | {' | '.join(cells)} |")
    return lines


def peak_error(series: Sequence[float]) -> float:
    """Return by which share of it the peak is missed after a tenth of the iterations."""
    forecast = MemoryForecast(last=len(series))
    for iteration, gb in enumerate(series[: max(3, len(series) // 10)], 1):
        forecast.observe(iteration, gb)
    return forecast.peak / max(series) - 1


def peak_table(printed: Mapping[str, Any], seeds: int) -> list[str]:
    """Return how far the predicted peak is from the true one."""
    models = printed["forecast"]
    lines = [f"| noise | {' | '.join(models)} | mean of the errors' sizes |", f"|---|{'---|' * (len(models) + 1)}"]
    shown = [f"{own['predicted_gb'] / own['peak_gb'] - 1:+.1%}" if "peak_gb" in own else "-" for own in models.values()]
    lines.append(f"| printed | {' | '.join(shown)} | {printed['forecast_error']['mean']:.1%} |")
    for noise in NOISES:
        errors = [[peak_error(_series(model, seed, noise)) for seed in range(seeds)] for model in models]
        sizes = [abs(error) for own in errors for error in own]
        cells = [f"{statistics.fmean(own):+.1%}" for own in errors]
        lines.append(f"| {noise:g} GB | {' | '.join(cells)} | {statistics.fmean(sizes):.1%} |")
    return lines


State = tuple[Placement, ...]


def _readings() -> Iterator[tuple[str, Callable[[Placement], int]]]:
    gpu = get_gpu("A100")

    def finals(key: Callable[[State], object], profiles: Any = "base") -> Callable[[Placement], int]:
        return lambda placed: len({key(state) for state in reachable_configurations(gpu, [placed], profiles)})

    machine = partition_state_machine(gpu)
    yield "placed full configurations", finals(lambda state: state)
    yield "the same, each multiset of profiles once", finals(_names)
    yield (
        "placed, 3g.20gb and 4g.20gb being one (20 GB)",
        finals(lambda state: tuple((placement.start, placement.profile.memory_gb) for placement in state)),
    )
    yield (
        "multisets of memory sizes",
        finals(lambda state: tuple(sorted(placement.profile.memory_gb for placement in state))),
    )
    yield "placed, with 1g.10gb", finals(lambda state: state, "double-memory")
    yield "multisets of profiles, with 1g.10gb", finals(_names, "double-memory")
    yield "all states, full or not", lambda placed: sum(placed in state for state in machine)
    yield "states one creation away", lambda placed: machine.out_degree((placed,))


def _names(state: State) -> tuple[str, ...]:
    # The profiles, whatever their places.
    return tuple(sorted(placement.profile.name for placement in state))


def reachability_table(printed: Mapping[str, Any]) -> list[str]:
    """Return what can be reached from a 1g.5gb on each slice, by what is counted."""
    gpu = get_gpu("A100")
    lines = ["| counted | " + " | ".join(f"slice {start}" for start in range(7)) + " |", f"|{'---|' * 8}"]
    own = printed["reachability"]
    lines.append(f"| printed | {own['first']} | {own['first']} | - | - | - | - | {own['last']} |")
    for label, count in _readings():
        cells = " | ".join(str(count(gpu.placement("1g.5gb", start))) for start in range(7))
        lines.append(f"| {label} | {cells} |")
    return lines
