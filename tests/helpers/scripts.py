"""Runs scripts of ``nvidia-smi`` commands against the stand-in."""

import dataclasses
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import fake_nvidia_smi

from mig_opt import GpuModel, Placement, Segment, get_gpu


def ended(*words: object, code: int | None = 0, timeout: float = 240, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run a program without input until it ends, with a code if one is given."""
    command: Any = {"args": list(map(str, words)), "stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    done = subprocess.run(**command, timeout=timeout, check=False, **how)
    assert code in (None, done.returncode), f"{words} ended with {done.returncode}: {done.stderr}"
    return done


def program(folder: Path, name: str, body: str) -> Path:
    """Write a program for bash into a folder."""
    path = folder / name
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)
    return path


def segment(service: str, gpu: int, profile: str, start: int, *, batch: int = 8, processes: int = 1) -> Segment:
    return Segment(service, gpu, profile, start, batch, processes, throughput=100.0, latency=0.05)


def new_gpu(model: GpuModel, first: int) -> fake_nvidia_smi.Gpu:
    profiles = [dataclasses.asdict(profile) for profile in model.profiles]
    state = {"mode": "Enabled", "instances": [], "busy": 0, "made": first}
    return {"kind": model.name, "profiles": profiles} | state


class Machine:
    """A folder with GPUs in a file, and programs in the place of nvidia-smi and ssh."""

    def __init__(self, folder: Path, *gpus: str) -> None:
        self.folder = folder
        self.path = folder / "gpus.json"
        self.state = [new_gpu(get_gpu(name), 100 * index) for index, name in enumerate(gpus)]
        (folder / "bin").mkdir()
        (folder / "users").mkdir()
        program = f"{shlex.quote(sys.executable)} -I -S {shlex.quote(fake_nvidia_smi.__file__)}"
        self._answer = f'exec {program} "$@"'
        self.first("")
        # A control daemon of the Multi-Process Service runs while there is a file in its folder.
        self.program(
            "nvidia-cuda-mps-control",
            """where=$CUDA_MPS_PIPE_DIRECTORY
if [[ ${1:-} == -d ]]; then order=start; else read -r order; fi
if [[ $order == get_server_list ]]; then [[ -e $where/runs ]]; exit; fi
echo "$order $CUDA_VISIBLE_DEVICES $where" >>"$FOLDER/mps.log"
if [[ $order == start ]]; then touch "$where/runs"; else rm "$where/runs"; fi""",
        )

    def program(self, name: str, body: str) -> None:
        program(self.folder / "bin", name, body)

    def first(self, text: str) -> None:
        """Let nvidia-smi begin with lines of shell."""
        self.program("nvidia-smi", f"{text}\n{self._answer}")

    @property
    def state(self) -> fake_nvidia_smi.State:
        state: fake_nvidia_smi.State = json.loads(self.path.read_text())
        return state

    @state.setter
    def state(self, state: fake_nvidia_smi.State) -> None:
        self.path.write_text(json.dumps(state))

    def change(self, gpu: int, **values: object) -> None:
        """Let something of a GPU be otherwise."""
        state = self.state
        state[gpu] |= values
        self.state = state

    @property
    def environment(self) -> dict[str, str]:
        paths = [str(self.folder / "bin"), os.environ["PATH"]]
        return os.environ | {
            "PATH": os.pathsep.join(paths),
            "FAKE_GPUS": str(self.path),
            "FOLDER": str(self.folder),
            "MPS_FOLDER": str(self.folder / "mps"),
        }

    def command(self, script: str, hooks: str | None = None) -> list[str]:
        path = self.folder / "plan.sh"
        path.write_text(script, encoding="utf-8")
        command = ["bash", str(path)]
        if hooks is not None:
            (self.folder / "hooks.sh").write_text(hooks, encoding="utf-8")
            command.append(str(self.folder / "hooks.sh"))
        return command

    def run(self, script: str, hooks: str | None = None, *, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a script, which ends with a code."""
        return ended(*self.command(script, hooks), code=code, env=self.environment, cwd=self.folder)

    def add(self, gpu: int, profile: str, start: int) -> None:
        """Let an instance exist."""
        there: list[dict[str, Any]] = self.state[gpu]["instances"]
        number = 2 + len(there)
        new = {"profile": profile, "start": start, "id": number, "compute": True, "uuid": f"MIG-old-{gpu}-{number}"}
        self.change(gpu, instances=[*there, new])

    def uuid(self, gpu: int, profile: str, start: int) -> str:
        for entry in self.state[gpu]["instances"]:
            if (entry["profile"], entry["start"]) == (profile, start):
                found: str = entry["uuid"]
                return found
        raise AssertionError(f"GPU {gpu} has no {profile} at {start}")

    def placements(self, gpu: int) -> set[Placement]:
        entry = self.state[gpu]
        model = get_gpu(entry["kind"])
        return {model.placement(instance["profile"], instance["start"]) for instance in entry["instances"]}

    @property
    def log(self) -> list[str]:
        """Every command that the stand-in was given."""
        path = self.path.with_suffix(".log")
        return path.read_text().splitlines() if path.exists() else []

    @property
    def mps(self) -> list[str]:
        """Orders to control daemons: ``start UUID`` or ``quit UUID``."""
        path = self.folder / "mps.log"
        lines = path.read_text().splitlines() if path.exists() else []
        assert all(where.endswith(f"/mps/{uuid}") for _, uuid, where in map(str.split, lines))
        return [line.rpartition(" ")[0] for line in lines]

    @property
    def changes(self) -> list[str]:
        """Those that change something."""
        return [line for line in self.log if any(f" -{word}" in line for word in ("cgi", "cci", "dci", "dgi"))]
