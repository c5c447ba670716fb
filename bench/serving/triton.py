"""The simulation of requests beside real Tritons: batches of 1 to 32, 1 to 4 processes, delays of 0 to 50 ms.

Run: MIG_OPT_TRITON=FOLDER python -m bench.serving.triton. It takes ten minutes; with --cut half a minute. The folder
has the wheel nvidia-pytriton (see tritons.py). Where it may (as root), servers and client run in real time.
"""

from __future__ import annotations

import dataclasses
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
from matplotlib.ticker import FixedLocator

from bench.figures import COLOURS, MARKERS, panels, save_figure
from bench.report import Page, parser_of, start
from bench.serving.tritons import WANTED, Client, free_ports, in_real_time, recorded, triton_program, write_models
from mig_opt import Demand, Deployment, GpuPool, Point, ProfileTable, Service, get_gpu, simulate_requests
from mig_opt.operations.execute.profiles import ProfilePlan
from mig_opt.operations.execute.triton_profiles import profile_triton
from mig_opt.operations.rollout.triton import triton_files
from mig_opt.serving.deployment import Segment
from mig_opt.simulation.serving.capacity import SERVERS

BATCHES, PROCESSES, DELAYS = (1, 8, 32), (1, 2, 4), (0.0, 0.01, 0.05)
LOADS = (0.2, 0.5, 0.8, 0.95)
THROUGHPUT = {1: 20.0, 4: 40.0, 8: 40.0, 32: 80.0}
"""Requests a second of each server, by its batch size."""
SECONDS, PROFILED, RUNS, AT_A_TIME = 20.0, 2.0, 5, 3
"""Seconds of each load, and of each run of the profile before, whose median counts; servers at a time."""
CLOSE = 0.03
HEAD = ["batch", "processes", "delay", "load", "requests", "batches", "simulated", "mean", "simulated"]
HEAD += ["p99", "simulated", "mean apart", "p99 apart"]


def settings(*, cut: bool) -> list[tuple[int, int, float]]:
    """Return batch size, processes and delay of each server: two of the delays for each of the others."""
    if cut:
        return [(4, 2, 0.02)]
    pairs = list(itertools.product(BATCHES, PROCESSES))
    return [(*pair, DELAYS[(at + more) % 3]) for at, pair in enumerate(pairs) for more in (0, 1)]


def measured(folder: Path, program: str, setting: tuple[int, int, float], loads: Sequence[float]) -> list[list[float]]:
    """Profile a server; return requests, batches, mean and 99 % quantile of each load, and the same three simulated."""
    batch, processes, delay = setting
    gpu, rate = get_gpu("A100-80GB"), THROUGHPUT[batch]
    point = Point(7, batch, processes, rate, batch * processes / rate)
    demand = Demand((Service("net", 100.0, rate),), (ProfileTable("net", gpu.name, (point,)),), (GpuPool(gpu),))
    segment = Segment("net", 0, "7g.80gb", 0, batch, processes, rate, point.latency)
    deployment = Deployment((gpu.name,), (segment,))
    write_models(folder / "models", demand, deployment)
    batching, port = dataclasses.replace(SERVERS["triton"][1], delay=delay), free_ports(3)
    files = triton_files(deployment, demand, models=folder / "models", batching=batching, port=port)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    script, address = next((folder / "servers").iterdir()), f"127.0.0.1:{port + 1001}"
    environment = os.environ | {"TRITON": program, "CUDA_VISIBLE_DEVICES": "MIG-0"}
    rows = []
    subprocess.run(["bash", str(script), "start"], env=environment, check=True)
    (number,) = (int(path.read_text()) for path in (folder / "run").glob("*.pid"))
    try:
        in_real_time(number)
        plan = ProfilePlan(gpu, (7,), RUNS, 1, batches=(batch,), processes=(processes,))
        (point,) = profile_triton(address, plan, seconds=PROFILED).tables[0].points
        real = dataclasses.replace(segment, throughput=point.throughput, latency=point.latency)
        profiled, counts = deployment.replace(segments=(real,)), [batches_of(address)]
        for at, load in enumerate(loads):
            rng = np.random.default_rng([batch, processes, at])
            moments = np.cumsum(rng.exponential(1 / (load * rate), int(load * rate * SECONDS)))
            client = Client({"net": (address, "net")}, {"net": moments})
            client.start()
            answers = client.wait()
            assert not answers["net"].errors
            counts.append(batches_of(address))
            arrivals = recorded(answers)
            found = simulate_requests(demand, profiled, arrivals=arrivals, batching=batching, warm_up=0.0).services[0]
            took, batches = answers["net"].seconds, (counts[-1] - counts[-2], found.batches)
            quantile = np.quantile(took, 0.99, method="inverted_cdf")  # a request, as in the simulation
            shown = [len(took), *batches, took.mean(), found.mean_s, quantile, found.p99_s]
            rows.append([float(one or 0.0) for one in shown])
    finally:
        os.killpg(number, signal.SIGKILL)
    return rows


def batches_of(address: str) -> int:
    """Return how many batches a server has run."""
    from tritonclient import grpc

    with grpc.InferenceServerClient(address) as client:
        return int(client.get_inference_statistics("net").model_stats[0].execution_count)


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
    for axis, real, expected in ((axes[0], 3, 4), (axes[1], 5, 6)):
        for number, load in enumerate(LOADS):
            rows = [row for _, one, row in found if one == load]
            points = [row[expected] for row in rows], [row[real] for row in rows]
            axis.plot(*points, MARKERS[number], color=COLOURS[number], markersize=4, label=f"load {load:g}")
        ends = [min(row[expected] for *_, row in found), max(row[real] for *_, row in found)]
        axis.plot(ends, ends, color=COLOURS[7], linewidth=1)
        axis.set(xscale="log", yscale="log", xlabel="simulated, s", ylabel="Triton, s")
        for scale in (axis.xaxis, axis.yaxis):
            scale.set_major_locator(FixedLocator([0.1, 0.3, 1, 3]))
            scale.set_major_formatter("{x:g}")
            scale.set_minor_formatter("")
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
    overhead = median(row[3] - row[4] for *_, row in found)
    how = ", in real time" if os.geteuid() == 0 else ""
    page = Page(
        "serving_triton", "The simulation of requests beside Triton", "mig-opt", "numpy", folder=options.results
    )

    def apart(row: Sequence[float], real: int) -> float:
        return abs(row[real] - row[real + 1] - overhead) / row[real + 1]

    def close(real: int) -> str:
        chosen = [apart(row, real) for *_, row in found]
        return f"{sum(one <= CLOSE for one in chosen)} of {len(chosen)} (median {median(chosen):.1%})"

    page.add(
        f"""Triton 2.51 (nvidia-pytriton 0.7.0) without a GPU, with a model that sleeps as long as a batch takes: 20
        requests per second with full batches of 1, 40 with 8, 80 with 32. Each server is profiled as
        `mig-opt profile --triton` does it (the median of {RUNS} runs of {PROFILED:g} s); then Poisson arrivals for
        {SECONDS:g} s, {AT_A_TIME} servers at a time on a machine that others use{how}; the same moments in the
        simulation, with what was profiled. Client and server add {1000 * overhead:.1f} ms (the median), which is taken
        off. Within {CLOSE:.0%} are {close(3)} means and {close(5)} 99 % quantiles."""
    )
    rows = []
    for (batch, processes, delay), load, row in found:
        cells = [str(batch), str(processes), f"{1000 * delay:g} ms", f"{load:g}", *(f"{one:.0f}" for one in row[:3])]
        cells += [f"{1000 * one:.1f} ms" for one in row[3:]]
        rows.append([*cells, *(f"{apart(row, real):.1%}" for real in (3, 5))])
    page.table(HEAD, rows, ())
    if not options.cut:
        save_figure(picture(found), options.results / "serving_triton.svg")
        page.lines += ["![measured over simulated](serving_triton.svg)", ""]
    page.save()


if __name__ == "__main__":
    start(main)
