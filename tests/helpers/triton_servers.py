"""A machine with stand-ins for GPUs, real Tritons (:mod:`bench.serving.tritons`) and a real HAProxy."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts import Machine, ended

from bench.serving.tritons import WANTED, free_ports, in_real_time, triton_program

_PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/usr/local/sbin"])


def triton_or_skip(folder: Path) -> str:
    """Return a program that starts Triton; the test is skipped where there is none, unless it has to be there."""
    program = triton_program(folder)
    if program is None:
        pytest.skip(f"needs {WANTED}, a folder with the wheel nvidia-pytriton")
    lacking = [name for name in ("haproxy", "socat") if shutil.which(name, path=_PATH) is None]
    assert not lacking, f"{WANTED} is set, but there is no {', '.join(lacking)}"
    return program


class Servers:
    """A machine with GPUs; exported files are in its folder ``out``."""

    def __init__(self, folder: Path, program: str, *gpus: str) -> None:
        self.machine = Machine(folder, *gpus)
        self.out = folder / "out"
        self.models = folder / "models"
        self.program = program
        self.port = free_ports(24 * len(gpus))
        self._proxy: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        # A narrow terminal cuts what programs such as ps print.
        more = {"TRITON": self.program, "HAPROXY_ADDRESS": "127.0.0.1", "START_SECONDS": "120", "COLUMNS": "80"}
        return self.machine.environment | more

    def run(self, *words: object, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        """Run bash on exported files; it ends with a code."""
        return ended("bash", *words, code=code, env=self.environment | more)

    def start_proxy(self) -> None:
        """Start HAProxy with the exported configuration."""
        program = shutil.which("haproxy", path=_PATH)
        assert program
        with (self.out / "haproxy.log").open("wb") as log:
            command = [program, "-db", "-f", "haproxy.cfg"]
            self._proxy = subprocess.Popen(
                command, cwd=self.out, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        end = time.monotonic() + 20
        while not (self.out / "haproxy.sock").exists():
            assert time.monotonic() < end, (self.out / "haproxy.log").read_text()
            time.sleep(0.05)

    def numbers(self) -> dict[str, int]:
        """Return the number of the process of each server that runs."""
        found = {path.stem: int(path.read_text()) for path in (self.out / "run").glob("*.pid")}
        return {name: number for name, number in found.items() if Path(f"/proc/{number}/exe").exists()}

    def run_in_real_time(self) -> bool:
        """Let servers and proxy run in real time; return False if that is not allowed."""
        assert self._proxy is not None
        return in_real_time(self._proxy.pid, *self.numbers().values())

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
