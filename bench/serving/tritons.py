"""Real Tritons without a GPU, whose models sleep as long as a profile says, and a client that sends requests to them.

The server is that of the wheel nvidia-pytriton, unpacked in the folder that MIG_OPT_TRITON names (``pip install
--no-deps --target FOLDER nvidia-pytriton==0.7.0``; it needs glibc 2.35).
"""

import contextlib
import json
import os
import shutil
import socket
import sys
import sysconfig
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from mig_opt import Arrivals, Demand, Deployment
from mig_opt.operations.rollout.servers import server_name

WANTED = "MIG_OPT_TRITON"  # variable with the folder of the wheel
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


def triton_program(folder: Path) -> str | None:
    """Return a program that starts Triton with its Python backend, made in a folder; None if there is no wheel."""
    given = os.environ.get(WANTED)
    if given is None:
        return None
    wheel = Path(given)
    assert (wheel / "pytriton").is_dir(), f"{WANTED} is set, but {wheel} has no nvidia-pytriton"
    server = wheel / "pytriton" / "tritonserver"
    backend = folder / "backends" / "python"
    backend.mkdir(parents=True)
    stub = server / "python_backend_stubs" / f"3.{sys.version_info.minor}" / "triton_python_backend_stub"
    # An installation with pip compiles what is Python there, into a folder beside.
    for path in (*filter(Path.is_file, (server / "backends" / "python").iterdir()), stub):
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


def write_models(folder: Path, demand: Demand, *deployments: Deployment) -> None:
    """Write a model repository whose models sleep as long as batches of the segments of deployments take."""
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
    rng = np.random.default_rng([os.getpid(), time.time_ns() % 1_000_000])
    for _ in range(1000):
        first = int(rng.integers(10_000, 30_000))
        if all(_is_free(first + at) for at in (*range(10), *range(1000, 1000 + count))):
            return first
    raise AssertionError("no ports are free")


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


def in_real_time(*groups: int) -> bool:
    """Let the processes of some groups, or else this thread, run in real time; return False if that is not allowed.

    Where others use the machine, too, threads would not come in the order in which they are woken.
    """
    tasks = [] if groups else [0]
    for path in Path("/proc").glob("[0-9]*") if groups else ():
        with contextlib.suppress(OSError):  # it has ended
            if os.getpgid(int(path.name)) in groups:
                tasks += [int(task.name) for task in (path / "task").iterdir()]
    try:
        for task in tasks:
            os.sched_setscheduler(task, os.SCHED_FIFO, os.sched_param(1))
    except (AttributeError, PermissionError):
        return False
    return True


@dataclass(frozen=True)
class Answers:
    """Answers to the requests of a service: when each was sent, and how long it took; infinite if it failed."""

    sent: Any
    seconds: Any
    errors: tuple[str, ...]

    def between(self, first: float, last: float) -> Self:
        """Return those that were sent within some seconds."""
        which = (first <= self.sent) & (self.sent < last)
        return type(self)(self.sent[which], self.seconds[which], self.errors)


class Client:
    """Sends requests to services, each at its moment, and notes when they are answered.

    ``targets`` has an address and a model for each service. Each service has a connection and a thread of its own.
    """

    def __init__(self, targets: Mapping[str, tuple[str, str]], moments: Mapping[str, Any]) -> None:
        self._targets, self._moments = targets, {name: np.asarray(of) for name, of in moments.items()}
        self._sent = {name: np.zeros(len(of)) for name, of in self._moments.items()}
        self._seconds = {name: np.full(len(of), np.inf) for name, of in self._moments.items()}
        self._errors: dict[str, list[str]] = {name: [] for name in self._moments}
        self._open = threading.Semaphore(0)
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(name,)) for name in self._moments]

    @property
    def elapsed(self) -> float:
        """Seconds since the moment 0."""
        return time.perf_counter() - self._begin

    def start(self) -> None:
        """Begin to send; the moments are seconds from a little later on."""
        self._begin = time.perf_counter() + 0.5
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Send no more."""
        self._stopped.set()

    def wait(self, seconds: float = 60.0) -> dict[str, Answers]:
        """Wait until all are sent, and answered for at most some seconds more; return the answers."""
        for thread in self._threads:
            thread.join()
        sent = {name: np.flatnonzero(of) for name, of in self._sent.items()}
        end = time.monotonic() + seconds
        for _ in range(sum(map(len, sent.values()))):
            self._open.acquire(timeout=max(end - time.monotonic(), 0.0))
        return {
            name: Answers(self._sent[name][which], self._seconds[name][which], tuple(self._errors[name]))
            for name, which in sent.items()
        }

    def _send(self, name: str) -> None:
        from tritonclient import grpc

        in_real_time()  # the threads of the client, too, which are made here
        address, model = self._targets[name]
        client = grpc.InferenceServerClient(address)
        value = grpc.InferInput("x", [1, 1], "FP32")
        value.set_data_from_numpy(np.zeros((1, 1), np.float32))
        for index, moment in enumerate(self._moments[name]):
            if self._stopped.wait(max(self._begin + moment - time.perf_counter(), 0.0)):
                return
            self._sent[name][index] = time.perf_counter() - self._begin
            client.async_infer(model, [value], self._callback(name, index))

    def _callback(self, name: str, index: int) -> Any:
        def answered(result: object, error: object) -> None:
            if error is None and result is not None:
                self._seconds[name][index] = time.perf_counter() - self._begin - self._sent[name][index]
            else:
                self._errors[name].append(str(error))
            self._open.release()

        return answered


def recorded(answers: Mapping[str, Answers]) -> Arrivals:
    """Return the requests that were sent as arrivals of a simulation."""
    return Arrivals(recorded={name: tuple(float(at) for at in of.sent) for name, of in answers.items()})
