"""Real Tritons without a GPU, and a real HAProxy: the server of the wheel nvidia-pytriton, and models that sleep.

Set MIG_OPT_TRITON to the folder in which that wheel was unpacked (``pip install --no-deps --target FOLDER
nvidia-pytriton==0.7.0``); tests are skipped where there is none, and fail if it is set and something is lacking.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scripts import Machine

from mig_opt import Demand, Deployment
from mig_opt.operations.rollout.servers import server_name

WANTED = "MIG_OPT_TRITON"

MODEL = '''\
import json, pathlib, time
import triton_python_backend_utils as pb


class TritonPythonModel:
    """Sleeps as long as the profile says that a batch takes."""

    def initialize(self, args):
        server = pathlib.Path(args["model_repository"]).parent.name
        self.seconds = json.loads(pathlib.Path(__file__).with_name("seconds.json").read_text())[server]

    def execute(self, requests):
        time.sleep(self.seconds)
        values = [pb.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("y", value)]) for value in values]
'''
CONFIG = """\
backend: "python"
max_batch_size: 128
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""


def write_models(folder: Path, demand: Demand, *deployments: Deployment) -> None:
    """Write a model repository whose models sleep as long as batches of segments take."""
    models = {service.name: service.model for service in demand.services}
    seconds: dict[str, dict[str, float]] = {model: {} for model in models.values()}
    for one in (segment for deployment in deployments for segment in deployment.segments):
        seconds[models[one.service]][server_name(one)] = max(one.batch * one.processes / one.throughput, one.latency)
    for model, of_servers in seconds.items():
        version = folder / model / "1"
        version.mkdir(parents=True)
        (folder / model / "config.pbtxt").write_text(CONFIG)
        (version / "model.py").write_text(MODEL)
        (version / "seconds.json").write_text(json.dumps(of_servers))


def free_ports(count: int) -> int:
    """Return the first of some ports of which none is taken; servers have theirs 1000 above."""
    rng = np.random.default_rng(os.getpid() + time.time_ns() % 1_000_000)
    for _ in range(1000):
        first = int(rng.integers(10_000, 30_000))
        if all(_is_free(first + at) for at in (*range(10), *range(1000, 1000 + count))):
            return first
    raise AssertionError("no ports are free")


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


def _wheel() -> Path | None:
    given = os.environ.get(WANTED)
    if given is None:
        return None
    folder = Path(given)
    assert (folder / "pytriton").is_dir(), f"{WANTED} is set, but {folder} has no nvidia-pytriton"
    return folder


def triton_program(folder: Path) -> str:
    """Return a program that starts Triton with its Python backend, made in a folder; skip the test if there is none."""
    wheel = _wheel()
    if wheel is None:
        pytest.skip(f"needs {WANTED}, a folder with the wheel nvidia-pytriton")
    server = wheel / "pytriton" / "tritonserver"
    backend = folder / "backends" / "python"
    backend.mkdir(parents=True)
    stub = server / "python_backend_stubs" / f"3.{sys.version_info.minor}" / "triton_python_backend_stub"
    for path in (*(server / "backends" / "python").iterdir(), stub):
        shutil.copy(path, backend)
    (backend / stub.name).chmod(0o755)
    packages = Path(np.__file__).parent.parent
    for name in ("numpy", "numpy.libs"):  # the backend does not look for packages where this Python has them
        (backend / name).symlink_to(packages / name)
    libraries = os.pathsep.join([str(wheel / "nvidia_pytriton.libs"), sysconfig.get_config_var("LIBDIR")])
    binary = folder / "tritonserver-binary"
    shutil.copy(server / "bin" / "tritonserver", binary)
    binary.chmod(0o755)
    program = folder / "tritonserver"
    program.write_text(
        f"#!/bin/bash\nexport LD_LIBRARY_PATH={libraries}\n"
        f'exec {binary} --backend-directory={folder}/backends --allow-gpu-metrics=false "$@"\n'
    )
    program.chmod(0o755)
    return str(program)


class Servers:
    """A machine with stand-ins for GPUs, real Tritons and a real HAProxy; exported files are in its folder ``out``."""

    def __init__(self, folder: Path, program: str, *gpus: str) -> None:
        self.machine = Machine(folder, *gpus)
        self.out = folder / "out"
        self.models = folder / "models"
        self.program = program
        self.port = free_ports(24 * len(gpus))
        self._proxy: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        more = {"TRITON": self.program, "HAPROXY_ADDRESS": "127.0.0.1", "START_SECONDS": "120"}
        return self.machine.environment | more

    def run(self, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
        """Run bash on exported files."""
        return subprocess.run(
            ["bash", *map(str, words)],
            env=self.environment | more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def start_proxy(self) -> None:
        """Start HAProxy with the exported configuration."""
        program = shutil.which("haproxy", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin"]))
        assert program, "there is no haproxy: apt-get install haproxy socat"
        with (self.out / "haproxy.log").open("wb") as log:
            command = [program, "-db", "-f", "haproxy.cfg"]
            self._proxy = subprocess.Popen(command, cwd=self.out, env=self.environment, stdout=log, stderr=log)
        end = time.monotonic() + 20
        while not (self.out / "haproxy.sock").exists():
            assert time.monotonic() < end, (self.out / "haproxy.log").read_text()
            time.sleep(0.05)

    def numbers(self) -> dict[str, int]:
        """Return the number of the process of each server that runs."""
        found = {path.stem: int(path.read_text()) for path in (self.out / "run").glob("*.pid")}
        return {name: number for name, number in found.items() if Path(f"/proc/{number}/exe").exists()}

    def stop(self) -> None:
        """End everything that was started."""
        if self._proxy is not None:
            self._proxy.kill()
            self._proxy.wait()
        for number in self.numbers().values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(number, signal.SIGKILL)


@contextlib.contextmanager
def servers(folder: Path, program: str, *gpus: str) -> Iterator[Servers]:
    """Give a machine for servers, all of which are ended afterwards."""
    made = Servers(folder, program, *gpus)
    try:
        yield made
    finally:
        made.stop()
