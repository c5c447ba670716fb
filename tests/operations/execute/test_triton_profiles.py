"""Profiles of a running Triton: a real server whose model sleeps, with models loaded on request and without."""

import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable

import pytest
from command_line import called, refuses
from documents import complaints
from triton_servers import WANTED, free_ports, triton_program

from mig_opt import Demand, Deployment, GpuPool, Point, ProfileTable, Segment, Service, get_gpu, write
from mig_opt.files.serving.profiles import PROFILES
from mig_opt.operations.execute.profiles import ProfilePlan
from mig_opt.operations.execute.triton_profiles import profile_triton

FIXED, EACH = 0.020, 0.004
"""Seconds of a batch, and of each request in it."""
MODEL = f"""
import time
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        values = [pb.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        total = sum(len(value) for value in values)
        if total > 6:
            raise pb.TritonModelException("CUDA out of memory. Tried to allocate 2.00 GiB")
        time.sleep({FIXED} + {EACH} * total)
        return [pb.InferenceResponse([pb.Tensor("y", value)]) for value in values]
"""
CONFIG = """
backend: "python"
max_batch_size: 8
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ {dims} ] }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: [ {dims} ] }} ]
instance_group [ {{ count: 2 kind: KIND_CPU }} ]
{more}
"""
PLAN = ProfilePlan(get_gpu("A30"), (2,), repetitions=2, warm_up=0, batches=(1, 4, 8), processes=(1, 3))
Start = Callable[..., str]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    found = triton_program(tmp_path_factory.mktemp("triton"))
    return found or pytest.skip(f"needs {WANTED}, a folder with the wheel nvidia-pytriton")


@pytest.fixture
def start(program, tmp_path):
    """Start a server with a model, and give the address of its gRPC; its metrics are a port above."""
    running: list[subprocess.Popen[bytes]] = []

    def started(*options: str, dims: str = "4", more: str = "dynamic_batching { }") -> str:
        folder = tmp_path / "models" / "sleeper"
        for version in ("1", "2"):
            (folder / version).mkdir(parents=True)
            (folder / version / "model.py").write_text(MODEL)
        (folder / "config.pbtxt").write_text(CONFIG.format(dims=dims, more=more))
        port = free_ports(4)
        words = [program, f"--model-repository={folder.parent}", "--allow-http=true", f"--http-port={port}"]
        words += [f"--grpc-port={port + 1}", f"--metrics-port={port + 2}", *options]
        words += [f"--{kind}-address=127.0.0.1" for kind in ("http", "grpc", "metrics")]
        with (tmp_path / "log").open("wb") as log:
            server = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        running.append(server)
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/models/sleeper/ready", timeout=1)
            except OSError:
                assert server.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.1)
            else:
                return f"127.0.0.1:{port + 1}"
        raise AssertionError((tmp_path / "log").read_text())

    yield started
    for server in running:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def holds(point: Point) -> bool:
    """Return whether a point can come from the sleeps; a busy machine makes it slower by any amount."""
    seconds = FIXED + EACH * point.batch
    full = point.processes * point.batch / seconds
    return seconds <= point.latency and 0 < point.throughput <= full * 1.02


def test_each_batch_size_and_number_of_processes_is_loaded(start):
    address = start("--model-control-mode=explicit", "--load-model=sleeper")
    ways: list[str] = []
    found = profile_triton(address, PLAN, seconds=0.6, observe=ways.append)
    (table,) = found.tables
    assert (table.model, table.gpu) == ("sleeper", "A30-24GB")
    assert [(point.size, point.batch, point.processes) for point in table.points] == [
        (2, 1, 1),
        (2, 1, 3),
        (2, 4, 1),
        (2, 4, 3),
    ]
    assert all(map(holds, table.points)), table.points
    assert found.left_out == dict.fromkeys(
        ["sleeper, batch 8, 1 process", "sleeper, batch 8, 3 processes"], "out of memory"
    )
    assert (found.failed, found.notes, len(ways)) == ({}, [], 6)
    # The model is as it was.
    url = f"http://127.0.0.1:{int(address[10:]) - 1}/v2/models/sleeper/config"
    config = json.loads(urllib.request.urlopen(url, timeout=60).read())
    assert (config["max_batch_size"], config["instance_group"][0]["count"]) == (8, 2)
    assert "dynamic_batching" in config


def test_a_server_that_loads_nothing_is_measured_as_it_is(start, tmp_path, capsys):
    address = start(more="version_policy { all { } }")
    output = tmp_path / "profiles.json"
    kept, other = Point(1, 1, 1, 30.0, 0.03), Point(2, 1, 2, 1.0, 1.0)
    write((ProfileTable("sleeper", "A30", (kept, other), memory_gb=2.0),), output)
    words = ["profile", "--triton", address, "--gpu", "A30", "--sizes", "2", "--batches", "1,4", "--seconds", "0.6"]
    outcome = called(capsys, *words, "--repetitions", "1", "--warm-up", "0", "-o", output)
    assert outcome.code == 0, outcome.err
    assert "sleeper: measured with the 2 processes that the server has" in outcome.out
    (table,) = PROFILES.read(output)
    assert table.memory_gb == 2.0
    assert table.points[0] == kept  # of another size, as it was
    assert [(point.size, point.batch, point.processes) for point in table.points[1:]] == [(2, 1, 2), (2, 4, 2)]
    assert all(map(holds, table.points[1:]))

    # What the server has counted, beside a plan with what was just measured.
    point = table.points[-1]
    services = (Service("sleeper", 0.5, 40.0),)
    demand = Demand(services, (table,), (GpuPool(get_gpu("A30")),))
    segment = Segment("sleeper", 0, "2g.12gb", 0, 4, 2, point.throughput, point.latency)
    write(demand, tmp_path / "services.json")
    write(Deployment(("A30",), (segment,)), tmp_path / "fleet.json")
    url = f"http://127.0.0.1:{int(address[10:]) + 1}/metrics"
    words = ["serve", tmp_path / "fleet.json", "--services", tmp_path / "services.json", "--compare", url]
    outcome = called(capsys, *words, "--seconds", "0.5", "--json")
    (service,) = json.loads(outcome.out)["services"]
    assert (outcome.code, service["drift"], service["observed"]["requests"]) == (1, ["100 % fewer requests"], 0)
    metrics = urllib.request.urlopen(url, timeout=60).read().decode()
    (tmp_path / "metrics.txt").write_text(metrics)
    outcome = called(capsys, *words[:-1], tmp_path / "metrics.txt", "--seconds", "2", "--json")
    (service,) = json.loads(outcome.out)["services"]
    requests, seconds = (service["observed"][key] for key in ("requests", "batch_seconds"))
    assert requests >= 8  # four in flight, of two batch sizes
    # A busy machine sleeps for longer, which the server has measured itself.
    parts = re.findall(r"^nv_inference_compute_(?:input|infer|output)_duration_us{.*} (\S+)$", metrics, re.MULTILINE)
    assert seconds >= FIXED + EACH
    assert seconds == pytest.approx(1e-6 * sum(map(float, parts)) / requests, rel=0.01)


def test_dynamic_batching_is_measured_with_full_batches_only(start):
    address = start(more="dynamic_batching { max_queue_delay_microseconds: 50000 }")
    found = profile_triton(address, PLAN, seconds=0.3)
    assert found.tables == ()
    assert found.left_out == {"sleeper, batch 8, 2 processes": "out of memory"}
    assert "and full batches of 8" in found.notes[0]


def test_open_dimensions_and_other_models(start):
    address = start(dims="-1")
    assert complaints(profile_triton, address, PLAN) == [
        "sleeper, input x: leaves dimensions open; give them, for example --shape x:3,224,224"
    ]
    assert complaints(profile_triton, address, PLAN, models=["slepper"]) == [
        "slepper: no such model is ready; did you mean sleeper?"
    ]
    assert complaints(profile_triton, address, PLAN, shapes={"x": [16], "X": [16]}) == [
        "shapes: no model has an input 'X'; did you mean x?"
    ]
    plan = ProfilePlan(get_gpu("A30"), (2,), repetitions=1, warm_up=0, batches=(8,), processes=(1,))
    assert profile_triton(address, plan, seconds=0.2, shapes={"x": [16]}).left_out  # and not a problem of the shape


def test_what_does_not_answer_is_told(capsys, tmp_path):
    port = free_ports(1)
    (told,) = complaints(profile_triton, f"127.0.0.1:{port}", PLAN)
    assert told.startswith(f"127.0.0.1:{port}: does not answer as a Triton: ")
    words = ["profile", "--triton", f"127.0.0.1:{port}", "--gpu", "A30", "-o", tmp_path / "p.json"]
    refuses(called(capsys, *words), "--sizes: must be the one size")
    refuses(called(capsys, *words, "--commands", "c.json"), "--triton: ")
    for address in ("", "localhost", "http://localhost:8001", "localhost:65536"):  # gRPC would take another port
        said = f"--triton: must be HOST:PORT, such as localhost:8001, is {address!r}"
        refuses(called(capsys, *words, "--sizes", 2, "--triton", address), said)
    refuses(called(capsys, "profile", "--gpu", "A30", "-o", tmp_path / "p.json"), "--commands: is missing")
    assert not (tmp_path / "p.json").exists()
    write([ProfileTable("net", "A30", (Point(2, 1, 1, 9.0, 0.1),), quantile=0.99)], tmp_path / "p.json")
    refuses(called(capsys, *words, "--sizes", 2), f"--output: {tmp_path}/p.json has quantiles of 'net'")
