"""The simulation of requests beside real Tritons: batches of 1 to 32, 1 to 4 processes, delays of 0 to 50 ms.

Run: MIG_OPT_TRITON=FOLDER python -m bench.serving.triton. It takes ten minutes; with --cut half a minute; with --again,
for what was outside once, six. The folder has the wheel nvidia-pytriton (see tritons.py). Where it may (as root),
servers and client run in real time.
"""

import contextlib
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
from typing import Any, Self

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from bench.figures import COLOURS, MARKERS, panels, save_figure
from bench.report import Page, parser_of, start
from bench.serving.tritons import WANTED, Client, free_ports, in_real_time, triton_program, write_models
from mig_opt import Arrivals, Demand, Deployment, GpuPool, Point, ProfileTable, Service, get_gpu, simulate_requests
from mig_opt.operations.execute.profiles import ProfilePlan
from mig_opt.operations.execute.triton_profiles import profile_triton
from mig_opt.operations.rollout.triton import triton_files
from mig_opt.serving.deployment import Segment
from mig_opt.simulation.serving.outcome import ServiceLatencies
from mig_opt.simulation.serving.requests import SERVERS, Batching

BATCHES, PROCESSES, DELAYS = (1, 8, 32), (1, 2, 4), (0.0, 0.01, 0.05)
LOADS = (0.2, 0.5, 0.8, 0.95)
THROUGHPUT = {1: 20.0, 4: 40.0, 8: 40.0, 32: 80.0}  # requests a second of each server, by its batch size
SECONDS, PROFILED, RUNS, AT_A_TIME = 20.0, 2.0, 5, 3
"""Seconds of each load, and of each run of the profile before, whose median counts; servers at a time."""
CLOSE = 0.03
AGAIN = (((1, 2, 0.01), 0.2), ((1, 4, 0.0), 0.2), ((8, 1, 0.0), 0.8))
"""Servers and loads whose quantile was outside CLOSE in SECONDS."""
MINUTES, PAUSE = 4, 30.0
"""Minutes for which these are measured again, and seconds between them, in which others have the machine."""
OFF, WAYS = 0.003, 200  # share by which batches take longer or shorter than profiled, and simulations in which they do
HEAD = ["batch", "processes", "delay", "load", "requests", "batches", "simulated", "mean", "simulated"]
HEAD += ["p99", "simulated", "mean apart", "p99 apart"]
Row = tuple[tuple[int, int, float], float, list[float]]  # setting, load, and what was measured


def settings(*, cut: bool) -> list[tuple[int, int, float]]:
    """Return batch size, processes and delay of each server: two of the delays for each of the others."""
    if cut:
        return [(4, 2, 0.02)]
    pairs = list(itertools.product(BATCHES, PROCESSES))
    return [(*pair, DELAYS[(at + more) % 3]) for at, pair in enumerate(pairs) for more in (0, 1)]


@dataclasses.dataclass(frozen=True)
class Load:
    """Requests at a server of some batch size, processes and delay, whose model takes as long as a point says."""

    setting: tuple[int, int, float]
    load: float
    point: Point

    @classmethod
    def planned(cls, setting: tuple[int, int, float], load: float) -> Self:
        """Return the load of a server as it is planned."""
        batch, processes, _ = setting
        rate = THROUGHPUT[batch]
        return cls(setting, load, Point(7, batch, processes, rate, batch * processes / rate))

    def plan(self) -> tuple[Demand, Deployment, Batching]:
        """Return the only service, its only segment, and how that forms batches."""
        (batch, processes, delay), point = self.setting, self.point
        gpu, rate = get_gpu("A100-80GB"), THROUGHPUT[batch]
        demand = Demand((Service("net", 100.0, rate),), (ProfileTable("net", gpu.name, (point,)),), (GpuPool(gpu),))
        segment = Segment("net", 0, "7g.80gb", 0, batch, processes, point.throughput, point.latency)
        batching = dataclasses.replace(SERVERS["triton"][1], delay=delay)
        return demand, Deployment((gpu.name,), (segment,)), batching

    def moments(self, seconds: float, *seed: int) -> Any:
        """Return when requests arrive within some seconds."""
        rate = self.load * THROUGHPUT[self.setting[0]]
        return np.cumsum(np.random.default_rng([*self.setting[:2], *seed]).exponential(1 / rate, int(rate * seconds)))

    def minutes(self) -> Any:
        """Return when requests arrive within some minutes, with pauses between them."""
        parts = [(60 + PAUSE) * minute + self.moments(60.0, 100, minute) for minute in range(MINUTES)]
        return np.concatenate(parts)

    def simulated(self, moments: Any) -> ServiceLatencies:
        """Return what the simulation tells of requests at some moments."""
        demand, deployment, batching = self.plan()
        arrivals = Arrivals(recorded={"net": tuple(float(one) for one in moments)})
        found = simulate_requests(demand, deployment, arrivals=arrivals, batching=batching, warm_up=0.0)
        return found.services[0]


@contextlib.contextmanager
def served(folder: Path, program: str, setting: tuple[int, int, float]) -> Iterator[tuple[str, Point]]:
    """Start a server; give its address, and the point that its profile is."""
    batch, processes, _ = setting
    demand, deployment, batching = Load.planned(setting, 1.0).plan()
    write_models(folder / "models", demand, deployment)
    port = free_ports(3)
    files = triton_files(deployment, demand, models=folder / "models", batching=batching, port=port)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    script, address = next((folder / "servers").iterdir()), f"127.0.0.1:{port + 1001}"
    environment = os.environ | {"TRITON": program, "CUDA_VISIBLE_DEVICES": "MIG-0"}
    subprocess.run(["bash", str(script), "start"], env=environment, check=True)
    (number,) = (int(path.read_text()) for path in (folder / "run").glob("*.pid"))
    try:
        in_real_time()
        in_real_time(number)
        plan = ProfilePlan(get_gpu("A100-80GB"), (7,), RUNS, 1, batches=(batch,), processes=(processes,))
        (point,) = profile_triton(address, plan, seconds=PROFILED).tables[0].points
        yield address, point
    finally:
        os.killpg(number, signal.SIGKILL)


def answered(address: str, load: Load, moments: Any) -> list[float]:
    """Send requests to a server; return their number, batches, mean and 99 % quantile beside those simulated."""
    before = batches_of(address)
    client = Client({"net": (address, "net")}, {"net": moments})
    client.start()
    answers = client.wait()["net"]
    assert not answers.errors
    found, took = load.simulated(answers.sent), answers.seconds
    quantile = np.quantile(took, 0.99, method="inverted_cdf")  # a request, as in the simulation
    batches = batches_of(address) - before
    shown = [len(took), batches, found.batches, took.mean(), found.mean_s, quantile, found.p99_s]
    return [float(one or 0.0) for one in shown]


def measured(
    folder: Path, program: str, setting: tuple[int, int, float], loads: Sequence[float], *, again: bool
) -> list[list[float]]:
    """Return what is told of each load of a server, for some seconds, or again for some minutes."""
    with served(folder, program, setting) as (address, point):
        each = [Load(setting, load, point) for load in loads]
        moments = (load.minutes() if again else load.moments(SECONDS, at) for at, load in enumerate(each))
        return [answered(address, load, own) for load, own in zip(each, moments, strict=True)]


def chance(load: Load, moments: Any) -> str:
    """Return shares by which the 99 % quantile is below and above the usual one at most, in some simulations.

    In each of them all batches take longer or shorter by a random share.
    """
    quantiles = []
    for way in range(WAYS):
        factor = 1 + np.random.default_rng(way).uniform(-OFF, OFF)
        point = dataclasses.replace(load.point, throughput=load.point.throughput / factor)
        point = dataclasses.replace(point, latency=load.point.latency * factor)
        quantiles.append(Load(load.setting, load.load, point).simulated(moments).p99_s or 0.0)
    usual = load.simulated(moments).p99_s or 0.0
    return f"{min(quantiles) / usual - 1:+.1%} to {max(quantiles) / usual - 1:+.1%}"


def batches_of(address: str) -> int:
    """Return how many batches a server has run."""
    from tritonclient import grpc

    with grpc.InferenceServerClient(address) as client:
        return int(client.get_inference_statistics("net").model_stats[0].execution_count)


def all_measured(program: str, *, cut: bool, again: bool) -> Iterator[Row]:
    """Yield setting, load and what was measured, some servers at a time; again only of those that were outside."""
    chosen = [(setting, LOADS[1:2] if cut else LOADS) for setting in settings(cut=cut)]
    chosen = [(setting, (load,)) for setting, load in AGAIN] if again else chosen
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_A_TIME) as pool:
        folders = [Path(folder) / str(at) for at in range(len(chosen))]
        for one in folders:
            one.mkdir()
        given = zip(folders, chosen, strict=True)
        work = pool.map(lambda each: measured(each[0], program, *each[1], again=again), given)
        for (setting, loads), rows in zip(chosen, work, strict=True):
            yield from ((setting, load, row) for load, row in zip(loads, rows, strict=True))


def picture(found: Sequence[Row]) -> Figure:
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


def apart(row: Sequence[float], real: int, overhead: float) -> float:
    """Return by which share of it a figure is away from the simulated one, which is beside it."""
    return (row[real] - row[real + 1] - overhead) / row[real + 1]


def cells(found: Row, overhead: float) -> list[str]:
    """Return the cells of a row of the tables."""
    (batch, processes, delay), load, row = found
    told = [str(batch), str(processes), f"{1000 * delay:g} ms", f"{load:g}", *(f"{one:.0f}" for one in row[:3])]
    told += [f"{1000 * one:.1f} ms" for one in row[3:]]
    return [*told, *(f"{abs(apart(row, real, overhead)):.1%}" for real in (3, 5))]


def page_again(page: Page, found: Sequence[Row], overhead: float) -> None:
    """Tell what longer loads show, and what chance does."""
    page.add(
        f"""[In {SECONDS:g} s](serving_triton.md) the 99 % quantiles of these were more than {CLOSE:.0%} away from those
        simulated. Here the same servers have {MINUTES} minutes of load, each of other moments and {PAUSE:g} s after the
        last, and all threads of the client are in real time, also those that profile and wait. Client and server add
        {1000 * overhead:.1f} ms (the median), which is taken off. By chance: where the 99 % quantiles of {WAYS}
        simulations are, in each of which batches take up to {OFF:.1%} longer or shorter."""
    )
    rows = []
    for setting, load, row in found:
        given = Load.planned(setting, load)
        loads = given.minutes(), given.moments(SECONDS, LOADS.index(load))
        rows.append([*cells((setting, load, row), overhead), *(chance(given, moments) for moments in loads)])
    page.table([*HEAD, "by chance", f"by chance in {SECONDS:g} s"], rows, ())


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    parser = parser_of(__doc__, "serving_triton.md and .svg, or serving_triton_again.md", "one server")
    parser.add_argument("--again", action="store_true", help="what was outside, for longer")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        program = triton_program(Path(folder))
        if program is None:
            sys.exit(f"set {WANTED} to the folder with the wheel nvidia-pytriton")
        found = list(all_measured(program, cut=options.cut, again=options.again))
    overhead = median(row[3] - row[4] for *_, row in found)
    name, title = "serving_triton", "The simulation of requests beside Triton"
    if options.again:
        page = Page(f"{name}_again", f"{title}, for longer", "mig-opt", "numpy", folder=options.results)
        page_again(page, found, overhead)
        page.save()
        return
    how = ", in real time" if os.geteuid() == 0 else ""
    page = Page(name, title, "mig-opt", "numpy", folder=options.results)

    def close(real: int) -> str:
        chosen = [abs(apart(row, real, overhead)) for *_, row in found]
        return f"{sum(one <= CLOSE for one in chosen)} of {len(chosen)} (median {median(chosen):.1%})"

    page.add(
        f"""Triton 2.51 (nvidia-pytriton 0.7.0) without a GPU, with a model that sleeps as long as a batch takes: 20
        requests per second with full batches of 1, 40 with 8, 80 with 32. Each server is profiled as
        `mig-opt profile --triton` does it (the median of {RUNS} runs of {PROFILED:g} s); then Poisson arrivals for
        {SECONDS:g} s, {AT_A_TIME} servers at a time on a machine that others use{how}; the same moments in the
        simulation, with what was profiled. Client and server add {1000 * overhead:.1f} ms (the median), which is taken
        off. Within {CLOSE:.0%} are {close(3)} means and {close(5)} 99 % quantiles.
        [Longer loads](serving_triton_again.md) tell why some are outside."""
    )
    page.table(HEAD, [cells(one, overhead) for one in found], ())
    if not options.cut:
        save_figure(picture(found), options.results / "serving_triton.svg")
        page.lines += ["![measured over simulated](serving_triton.svg)", ""]
    page.save()
