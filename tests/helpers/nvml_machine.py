"""GPUs for tests behind the genuine ``nvidia-ml-py``: the library ``nvml.c``, compiled by the machine's C compiler.

A :class:`Machine` is a folder with the library and the state of its GPUs. Programs find it through the library path
(:attr:`Machine.environment`); the process of the tests itself loads it by :meth:`Machine.loaded`.
"""

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from mig_opt import Profile, get_gpu

SOURCE = Path(__file__).with_name("nvml.c")
ALONE = Path(__file__).with_name("alone")
"""The folder of a module that each Python loads when it starts, if it is in the path."""
_KINDS = {"": {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}, "me": {1: 7, 2: 8}, "gfx": {1: 10, 2: 11, 4: 12}}
_KINDS |= {"-me": {1: 13, 2: 14}, "me.all": {1: 15, 2: 16}}


class GpuInstance(NamedTuple):
    """A GPU instance of the stand-in, with the UUID of its compute instance (empty if it has none)."""

    profile: str
    start: int
    uuid: str
    number: int


@functools.cache
def library() -> Path:
    """The folder of the compiled library; tests are skipped where there is no C compiler or no ``nvidia-ml-py``."""
    if importlib.util.find_spec("pynvml") is None:
        pytest.skip('needs nvidia-ml-py: pip install "mig-opt[nvml]"')
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("needs a C compiler (cc, gcc or clang) for the tests' GPU")
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"mig-opt-nvml-{os.getuid()}-{digest}"
    target = folder / "libnvidia-ml.so.1"
    if not target.exists():
        folder.mkdir(exist_ok=True)
        made = folder / f"{os.getpid()}.so"
        options = ["-O1", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1"]
        subprocess.run([compiler, *options, "-o", made, SOURCE], check=True, capture_output=True)
        made.replace(target)  # several processes may compile at once
    return folder


def _kind(profile: Profile, *, larger: bool) -> int:
    """The place of a profile in the list of NVML, which is not its number."""
    attribute = profile.attributes[0] if profile.attributes else ""
    return 9 if larger and not attribute else _KINDS[attribute][profile.compute_slices]


class Machine:
    """Some GPUs, numbered from 0; ``scale`` multiplies the times of their operations (0: they take no time)."""

    def __init__(self, folder: Path, *gpus: str, scale: float = 0.0, driver: str = "570.124.06") -> None:
        self.library = library()
        self.path = folder / "nvml.state"
        lines = [f"driver {driver}", "clock -1", f"scale {scale}", "made 0", "same_uuids 0"]
        for index, name in enumerate(gpus):
            gpu = get_gpu(name)
            label = gpu.aliases[-1] if gpu.aliases else gpu.name
            mib = int(gpu.memory_gb * 1024)
            lines.append(f"gpu {self.uuid(index)} 00000000:{index + 7:02X}:00.0 1 1 {mib} NVIDIA {label}")
            plain = gpu.profiles_of("base")
            for profile in gpu.profiles:
                kind = _kind(profile, larger=profile not in plain)
                costs = gpu.operation_costs
                starts = ",".join(map(str, profile.starts))
                mib = profile.usable_mib or int(profile.memory_gb * 1000)
                figures = [kind, profile.id, profile.compute_slices, profile.memory_slices, profile.max_count]
                figures += [profile.sm_count or 14, mib, costs.of("create", profile), costs.of("destroy", profile)]
                lines.append(f"profile {' '.join(map(str, figures))} {starts} {profile.name}")
        self._write(lines)

    @staticmethod
    def uuid(gpu: int) -> str:
        """The UUID of a GPU by its first number."""
        return f"GPU-{gpu:08x}-0000-4000-8000-00000000beef"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a program that is to see these GPUs, and no program of others."""
        paths = [str(self.library), os.environ.get("LD_LIBRARY_PATH", "")]
        own = {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths)), "FAKE_NVML": str(self.path)}
        modules = os.pathsep.join(filter(None, [str(ALONE), os.environ.get("PYTHONPATH", "")]))
        return {**os.environ, **own, "PYTHONPATH": modules}

    @contextlib.contextmanager
    def loaded(self) -> Iterator["Machine"]:
        """Let this process see the GPUs; afterwards the library stays, and says that no driver is loaded."""
        # The loader takes a library that is there already for the one of the same name that it is asked for.
        ctypes.CDLL(str(self.library / "libnvidia-ml.so.1"))
        before = os.environ.get("FAKE_NVML")
        os.environ["FAKE_NVML"] = str(self.path)
        try:
            yield self
        finally:
            os.environ.pop("FAKE_NVML")
            if before is not None:
                os.environ["FAKE_NVML"] = before

    @contextlib.contextmanager
    def _locked(self) -> Iterator[list[str]]:
        """Give the lines of the state for a change."""
        with Path(f"{self.path}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lines = self.path.read_text().splitlines()
            yield lines
            self._write(lines)

    def _write(self, lines: list[str]) -> None:
        # In one step: readers take no lock.
        new = self.path.with_suffix(".changed")
        new.write_text("\n".join(lines) + "\n")
        new.replace(self.path)

    def _block(self, lines: list[str], gpu: int) -> tuple[int, int]:
        """The lines of a GPU, by its first number, wherever it is now."""
        begin = next(at for at, line in enumerate(lines) if line.startswith(f"gpu {self.uuid(gpu)} "))
        return begin, next((at for at in range(begin + 1, len(lines)) if lines[at].startswith("gpu ")), len(lines))

    def set(self, key: str, value: object) -> None:
        """Change a fact about the machine: ``driver``, ``clock``, ``scale`` or ``same_uuids``."""
        with self._locked() as lines:
            at = next(at for at, line in enumerate(lines) if line.startswith(f"{key} "))
            lines[at] = f"{key} {value}"

    def mode(self, gpu: int, current: int, pending: int | None = None) -> None:
        """Set the MIG mode of a GPU."""
        with self._locked() as lines:
            at, _ = self._block(lines, gpu)
            words = lines[at].split(" ", 5)
            words[3:5] = [str(current), str(current if pending is None else pending)]
            lines[at] = " ".join(words)

    def fault(self, name: str, times: int = 1, seconds: float = 0.0, gpu: int = 0) -> None:
        """Let a fault happen ``times`` times (-1: always); ``nvml.c`` lists them. With 0 there is none left."""
        with self._locked() as lines:
            begin, end = self._block(lines, gpu)
            lines[begin:end] = [line for line in lines[begin:end] if not line.startswith(f"fault {name} ")]
            if times:
                lines.insert(begin + 1, f"fault {name} {times} {seconds}")

    def renumber(self, *order: int) -> None:
        """Give the GPUs (by their first numbers) other numbers: the first one named becomes number 0."""
        with self._locked() as lines:
            head = lines[: next(at for at, line in enumerate(lines) if line.startswith("gpu "))]
            lines[:] = head + [line for gpu in order for line in lines[slice(*self._block(lines, gpu))]]

    def reboot(self) -> None:
        """Take all instances away: layouts do not survive a reset."""
        with self._locked() as lines:
            lines[:] = [line for line in lines if line.split(" ")[0] not in {"gi", "ci", "process"}]

    def add(self, gpu: int, profile: str, start: int, *, compute: bool = True, pid: int = 0, mib: int = 1) -> str:
        """Let somebody else have an instance, with a process of so many MiB (0: of graphics) on it; return its UUID."""
        with self._locked() as lines:
            begin, end = self._block(lines, gpu)
            numbers = {int(line.split()[1]) for line in lines[begin:end] if line.startswith("gi ")}
            number = next(number for number in range(40, 80) if number not in numbers)
            profiles = [line.split() for line in lines[begin:end] if line.startswith("profile ")]
            ids = {words[11]: words[2:4] for words in profiles}
            profile_id, slices = ids[profile]
            uuid = f"MIG-{gpu:08x}-{number:04x}-5000-8000-00000000feed"
            there = [f"gi {number} {profile_id} {start} 0"]
            if compute:
                kind = [1, 2, 3, 4, 7].index(int(slices))
                there.append(f"ci {number} 0 {kind} {uuid}")
            if pid:
                there.append(f"process {number} 0 {pid} {mib << 20}")
            lines[end:end] = there
        return uuid if compute else ""

    def instances(self, gpu: int) -> list[GpuInstance]:
        """The GPU instances of a GPU, by its first number; those that still linger included."""
        lines = self.path.read_text().splitlines()
        clock = next(float(line.split()[1]) for line in lines if line.startswith("clock "))
        now = time.time() if clock < 0 else clock
        block = [line.split() for line in lines[slice(*self._block(lines, gpu))]]
        names = {words[2]: words[11] for words in block if words[0] == "profile"}
        uuids = {words[1]: words[4] for words in block if words[0] == "ci"}
        return sorted(
            GpuInstance(names[words[2]], int(words[3]), uuids.get(words[1], ""), int(words[1]))
            for words in block
            if words[0] == "gi" and not 0 < float(words[4]) <= now
        )

    @property
    def log(self) -> list[list[str]]:
        """Every change that the library has made: verb, UUID of the GPU, number of the instance, and a word more."""
        path = Path(f"{self.path}.log")
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []
