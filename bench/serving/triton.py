"""The simulation of requests beside real Tritons: batches of 1 to 32, 1 to 4 processes, delays of 0 to 50 ms.

Run: MIG_OPT_TRITON=FOLDER python -m bench.serving.triton. It takes six minutes; with --cut half a minute. The folder
has the wheel nvidia-pytriton (see tritons.py).
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
from matplotlib.figure import Figure

from bench.figures import COLOURS, MARKERS, panels, save_figure
from bench.report import Page, parser_of, start
from bench.serving.tritons import WANTED, Client, free_ports, recorded, triton_program, write_models
from mig_opt import Demand, Deployment, GpuPool, Point, ProfileTable, Service, get_gpu, simulate_requests
from mig_opt.operations.rollout.triton import triton_files
from mig_opt.serving.deployment import Segment
from mig_opt.simulation.serving.requests import Batching

BATCHES, PROCESSES, DELAYS = (1, 8, 32), (1, 2, 4), (0.0, 0.01, 0.05)
LOADS = (0.2, 0.5, 0.8, 0.95)
THROUGHPUT, SECONDS, AT_A_TIME = 20.0, 20.0, 6
"""Requests a second of each server, whatever its batch size; seconds of each load; servers at a time."""
CLOSE = 0.03
LOOK = 0.5
HEAD = ["batch", "processes", "delay", "load", "requests", "mean", "simulated", "p99", "simulated"]
HEAD += ["mean apart", "p99 apart"]


def settings(*, cut: bool) -> list[tuple[int, int, float]]:
    """Return batch size, processes and delay of each server: two of the delays for each of the others."""
    if cut:
        return [(4, 2, 0.02)]
    pairs = list(itertools.product(BATCHES, PROCESSES))
    return [(*pair, DELAYS[(at + more) % 3]) for at, pair in enumerate(pairs) for more in (0, 1)]


def measured(folder: Path, program: str, setting: tuple[int, int, float], loads: Sequence[float]) -> list[list[float]]:
    """Start a server, and return for each load: requests, mean and 99 % quantile in seconds, and the same simulated."""
    batch, processes, delay = setting
    gpu = get_gpu("A100-80GB")
    seconds = batch * processes / THROUGHPUT
    point = Point(7, batch, processes, THROUGHPUT, seconds)
    service = Service("net", 100.0, THROUGHPUT)
    demand = Demand((service,), (ProfileTable("net", gpu.name, (point,)),), (GpuPool(gpu),))
    deployment = Deployment((gpu.name,), (Segment("net", 0, "7g.80gb", 0, batch, processes, THROUGHPUT, seconds),))
    write_models(folder / "models", demand, deployment)
    batching, port = Batching(delay=delay, look=LOOK), free_ports(3)
    files = triton_files(deployment, demand, models=folder / "models", batching=batching, port=port)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    script = next((folder / "servers").iterdir())
    environment = os.environ | {"TRITON": program, "CUDA_VISIBLE_DEVICES": "MIG-0"}
    rows = []
    subprocess.run(["bash", str(script), "start"], env=environment, check=True)
    try:
        for at, load in enumerate(loads):
            rng = np.random.default_rng([batch, processes, at])
            moments = np.cumsum(rng.exponential(1 / (load * THROUGHPUT), int(load * THROUGHPUT * SECONDS)))
            client = Client({"net": (f"127.0.0.1:{port + 1001}", "net")}, {"net": moments})
            client.start()
            answers = client.wait()
            assert not answers["net"].errors
            arrivals = recorded(answers)
            found = simulate_requests(demand, deployment, arrivals=arrivals, batching=batching, warm_up=0.0).services[0]
            took = answers["net"].seconds
            shown = [len(took), took.mean(), np.quantile(took, 0.99), found.mean_s or 0.0, found.p99_s or 0.0]
            rows.append(list(map(float, shown)))
    finally:
        (number,) = (int(path.read_text()) for path in (folder / "run").glob("*.pid"))
        os.killpg(number, signal.SIGKILL)
    return rows


def all_measured(program: str, *, cut: bool) -> Iterator[tuple[tuple[int, int, float], float, list[float]]]:
    """Yield setting, load and what was measured, some servers at a time."""
    loads = LOADS[1:2] if cut else LOADS
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_A_TIME) as pool:
        chosen = settings(cut=cut)
        folders = [Path(folder) / str(at) for at in range(len(chosen))]
        for one in folders:
            one.mkdir()
        work = pool.map(lambda each: measured(each[0], program, each[1], loads), zip(folders, chosen, strict=True))
        for setting, rows in zip(chosen, work, strict=True):
            yield from ((setting, load, row) for load, row in zip(loads, rows, strict=True))


def picture(found: Sequence[tuple[tuple[int, int, float], float, list[float]]]) -> Figure:
    """Draw what was measured over what was simulated."""
    figure, axes = panels(["mean", "99 % quantile"], (8.0, 3.8), grid="both", sharey=False)
    for axis, real, expected in ((axes[0], 1, 3), (axes[1], 2, 4)):
        for number, load in enumerate(LOADS):
            rows = [row for _, one, row in found if one == load]
            points = [row[expected] for row in rows], [row[real] for row in rows]
            axis.plot(*points, MARKERS[number], color=COLOURS[number], markersize=4, label=f"load {load:g}")
        ends = [min(row[expected] for *_, row in found), max(row[real] for *_, row in found)]
        axis.plot(ends, ends, color=COLOURS[7], linewidth=1)
        axis.set(xscale="log", yscale="log", xlabel="simulated, s", ylabel="Triton, s")
    axes[0].legend(fontsize=8)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    options = parser_of(__doc__, "serving_triton.md and .svg", "one server").parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        program = triton_program(Path(folder))
        if program is None:
            sys.exit(f"set {WANTED} to the folder with the wheel nvidia-pytriton")
        found = list(all_measured(program, cut=options.cut))
    overhead = median(row[1] - row[3] for (_, _, delay), _, row in found if not delay or options.cut)
    page = Page(
        "serving_triton", "The simulation of requests beside Triton", "mig-opt", "numpy", folder=options.results
    )

    def apart(row: Sequence[float], real: int) -> float:
        return abs(row[real] - row[real + 2] - overhead) / row[real + 2]

    def close(without: bool, real: int) -> str:
        chosen = [apart(row, real) for (_, _, delay), _, row in found if (delay == 0) == without]
        return f"{sum(one <= CLOSE for one in chosen)} of {len(chosen)} (median {median(chosen or [0.0]):.1%})"

    page.add(
        f"""Triton 2.51 (nvidia-pytriton 0.7.0) without a GPU, with a model that sleeps as long as a batch takes; each
        server answers {THROUGHPUT:g} requests per second with full batches. Poisson arrivals for {SECONDS:g} s,
        {AT_A_TIME} servers at a time on a machine that others used as well; the same moments in the simulation. Client
        and server add {1000 * overhead:.1f} ms (the median without a delay), which is taken off. Without a delay, as an
        export has it, {close(True, 1)} means and {close(True, 2)} 99 % quantiles are within {CLOSE:.0%}; with a delay
        {close(False, 1)} and {close(False, 2)}: Triton forms batches ahead then, which the simulation follows
        at loads of up to a half, and is too optimistic about beyond."""
    )
    rows = []
    for (batch, processes, delay), load, row in found:
        cells = [str(batch), str(processes), f"{1000 * delay:g} ms", f"{load:g}", f"{row[0]:.0f}"]
        cells += [f"{1000 * row[at]:.1f} ms" for at in (1, 3, 2, 4)]
        rows.append([*cells, *(f"{apart(row, real):.1%}" for real in (1, 2))])
    page.table(HEAD, rows, ())
    if not options.cut:
        save_figure(picture(found), options.results / "serving_triton.svg")
        page.lines += ["![measured over simulated](serving_triton.svg)", ""]
    page.save()


if __name__ == "__main__":
    start(main)
