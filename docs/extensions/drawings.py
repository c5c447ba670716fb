"""The catalogue of GPUs with a drawing of the placements of each."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from mig_opt import GpuModel, Profile, catalogue, get_gpu

SLICE, ROW, LEFT, TOP = 62, 30, 96, 26
COLOURS = {1: "#4e79a7", 2: "#59a14f", 3: "#f28e2b", 4: "#e15759", 7: "#b07aa1"}


def catalogue_of_gpus() -> str:
    """Return a section for each GPU: its names, its placements as a drawing, its profiles and costs as a table."""
    return "\n\n".join(_section(gpu) for gpu in catalogue())


def placements(name: str) -> str:
    """Return the drawing of one GPU."""
    return drawing(get_gpu(name))


def _section(gpu: GpuModel) -> str:
    names = ", ".join(f"`{alias}`" for alias in gpu.aliases) or "none"
    partitions = len(gpu.maximal_partitions())
    costs = gpu.operation_costs
    text = (
        f"{gpu.label}: {gpu.memory_gb:g} GB, {gpu.compute_slices} compute slices, {gpu.memory_slices} memory slices, "
        f"{partitions} maximal partitions. Other names: {names}."
    )
    head = "| profile | id | compute | memory | GB | at most | starts | create s | destroy s |"
    rows = [head, "|---|---:|---:|---:|---:|---:|---|---:|---:|"]
    for profile in gpu.profiles:
        size = profile.compute_slices
        rows.append(
            f"| `{profile.name}` | {profile.id} | {size} | {profile.memory_slices} | {profile.memory_gb:g} | "
            f"{profile.max_count} | {' '.join(map(str, profile.starts))} | {costs.create[size]:g} | "
            f"{costs.destroy[size]:g} |"
        )
    source = f"Seconds of operations: {costs.source}." if costs.source else ""
    notes = [gpu.notes] if gpu.notes else []
    return "\n\n".join([f"## {gpu.name}", text, drawing(gpu), "\n".join(rows), source, *notes])


def plain_profiles(gpu: GpuModel) -> list[Profile]:
    """Return the profiles without extras such as media engines, largest first."""
    plain = [profile for profile in gpu.profiles if not profile.attributes]
    return sorted(plain, key=lambda profile: (-profile.compute_slices, -profile.memory_slices))


def drawing(gpu: GpuModel) -> str:
    """Return an SVG with the memory slices from left to right, and a row of placements for each profile.

    Placements of one profile that share slices are drawn in rows of their own.
    """
    rows: list[tuple[Profile, list[int]]] = []
    for profile in plain_profiles(gpu):
        rows += [(profile, lane) for lane in _lanes(profile)]
    width, height = LEFT + SLICE * gpu.memory_slices + 2, TOP + ROW * len(rows) + 4
    title = f"Placements of {gpu.name}: a row for each profile, a column for each memory slice"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}" font-family="sans-serif" font-size="13" fill="currentColor">',
        *(
            f'<text x="{LEFT + SLICE * (index + 0.5):g}" y="16" text-anchor="middle" opacity="0.7">{index}</text>'
            for index in range(gpu.memory_slices)
        ),
        *(
            f'<line x1="{LEFT + SLICE * index}" y1="{TOP - 4}" x2="{LEFT + SLICE * index}" y2="{height}" '
            'stroke="currentColor" stroke-opacity="0.2"/>'
            for index in range(gpu.memory_slices + 1)
        ),
    ]
    for row, (profile, starts) in enumerate(rows):
        parts += _row(profile, starts, TOP + ROW * row)
    return '<div class="gpu">' + "".join([*parts, "</svg>"]) + "</div>"


def _lanes(profile: Profile) -> Iterable[list[int]]:
    lanes: list[list[int]] = []
    for start in profile.starts:
        for lane in lanes:
            if lane[-1] + profile.memory_slices <= start:
                lane.append(start)
                break
        else:
            lanes.append([start])
    return lanes


def _row(profile: Profile, starts: list[int], top: int) -> list[str]:
    colour = COLOURS[profile.compute_slices]
    parts = [f'<text x="{LEFT - 8}" y="{top + 18}" text-anchor="end">{escape(profile.name)}</text>']
    for start in starts:
        left, width = LEFT + SLICE * start + 2, SLICE * profile.memory_slices - 4
        parts.append(
            f'<rect x="{left}" y="{top}" width="{width}" height="{ROW - 4}" rx="4" fill="{colour}"/>'
            f'<text x="{left + width / 2:g}" y="{top + 18}" text-anchor="middle" fill="white">{start}</text>'
        )
    return parts
