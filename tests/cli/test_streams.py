"""Standard streams that are closed, full or not read to the end: a message, an exit code, and files are written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import MODULE, Command

from mig_opt import generate_trace
from mig_opt.cli.commands import COMMANDS
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.fleet.traces import TRACE
from mig_opt.instances.batch import generate_batch

NEEDS_FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
SMALL = {
    "solve": "batch.json --method far",
    "validate": "batch.json plan.json",
    "bound": "batch.json",
    "explain": "batch.json",
    "compare": "batch.json --methods far,list",
    "prove": "batch.json plan.json",
    "check": "batch.json plan.json certificate.json",
    "plot": "batch.json plan.json plan.svg",
    "script": "batch.json plan.json plan.sh",
    "profile": "--help",
    "run": "--help",
    "deploy": "services.json --method first-fit",
    "serve": "fleet.json --services services.json --seconds 1",
    "services validate": "services.json fleet.json",
    "services bound": "services.json",
    "services plot": "services.json fleet.json fleet.svg",
    "services script": "services.json fleet.json fleet.sh",
    "services import": "--help",
    "services export": "--help",
    "simulate": "trace.json --policy first-fit",
    "defragment": "state.json --for 1g.5gb",
    "trace families": "",
    "trace generate": "normal-25 --set jobs=3",
    "trace import": "--help",
    "trace describe": "trace.json",
    "state import": "--help",
    "init": "batch -",
    "generate": "-n 3",
    "export": "batch.json model.lp",
    "schema": "batch",
    "bench": "--help",
    "instances": "",
    "instances verify": "--help",
    "instances submit": "--help",
    "instances export": "--help",
    "instances renew": "--help",
    "score": "--help",
    "gpus": "",
    "gpus import": "--help",
    "methods": "",
    "versions": "",
    "completion": "bash",
}
"""Arguments of each command that need little work."""

FROM_INPUT = {
    name: arguments.replace(file, "-", 1)
    for name, arguments in {**SMALL, "state import": "state.json"}.items()
    for file in ("batch.json", "services.json", "trace.json", "state.json")
    if arguments.startswith(file)
}


@pytest.fixture
def inputs(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for kind in ("batch", "services", "trace", "state"):
        run("init", kind, f"{kind}.json")


def test_every_command_is_here() -> None:
    assert SMALL.keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", SMALL)
def test_without_standard_output(name: str, run: Command, inputs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    if "plot" in name:
        pytest.importorskip("matplotlib")
    if "plan.json" in SMALL[name]:
        assert run("solve", "batch.json", "-o", "plan.json").code == 0
    if "certificate.json" in SMALL[name]:
        assert run("prove", "batch.json", "plan.json", "-o", "certificate.json").code == 0
    if "fleet.json" in SMALL[name]:
        assert run("deploy", "services.json", "--method", "first-fit", "-o", "fleet.json").code == 0
    command = (*name.split(), *SMALL[name].split())
    good = run(*command)
    assert (good.code, bool(good.out)) == (0, True), good
    monkeypatch.setattr(sys, "stdout", None)
    bad = run(*command)
    assert (bad.code, bad.err) == (2, "error: standard output cannot be written: it is closed\n")


@pytest.mark.parametrize("name", FROM_INPUT)
def test_without_standard_input(name: str, run: Command, inputs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    outcome = run(*name.split(), *FROM_INPUT[name].split())
    assert (outcome.code, outcome.out) == (2, "")
    assert "standard input: cannot be read: it is closed; name a file" in outcome.err


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("gpus", 0),
        ("solve nothing", 2),
        ("solve", 2),
        ("validate batch.json nothing", 2),
    ],
)
@pytest.mark.parametrize("closed", [True, pytest.param(False, marks=NEEDS_FULL)])
def test_without_standard_error(
    command: str, code: int, closed: bool, run: Command, inputs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path(os.devnull if closed else "/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stderr", None if closed else full)
        assert run(*command.split()).code == code


@pytest.mark.parametrize(
    ("streams", "code"),
    [
        ("<&-", 2),
        (">&-", 2),
        ("2>&-", 0),
        pytest.param(">/dev/full", 2, marks=NEEDS_FULL),
        pytest.param("2>/dev/full", 0, marks=NEEDS_FULL),
        ("<&- >&- 2>&-", 2),
    ],
)
def test_a_process_without_streams(streams: str, code: int, tmp_path: Path) -> None:
    """No file gets the number of a stream that is closed."""
    BATCH.write(generate_batch(3, seed=1), tmp_path / "batch.json")
    words = " ".join(MODULE)
    source = "-" if streams == "<&-" else "batch.json"
    shell = f"{words} solve {source} --method far --gpu A100 -o plan.json --log-level debug {streams}"
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    written = (tmp_path / "plan.json").exists() and (tmp_path / "plan.json").read_text()
    assert not written if source == "-" else written.endswith("}\n")


@pytest.mark.parametrize("command", ["solve", "deploy", "simulate"])
def test_files_are_written_before_the_screen(command: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    chart, other = tmp_path / "chart.svg", tmp_path / "other.json"
    if command == "solve":
        BATCH.write(generate_batch(40, seed=1), tmp_path / "batch.json")
        arguments = [str(tmp_path / "batch.json"), "--method", "far", "-o", str(other)]
    elif command == "deploy":
        arguments = ["parvagpu-s3", "--method", "first-fit", "-o", str(other)]
    else:
        TRACE.write(generate_trace("normal-25", seed=1), tmp_path / "trace.json")
        arguments = [str(tmp_path / "trace.json"), "--policy", "first-fit", "--save-log", str(other)]
    program = [sys.executable, "-m", "mig_opt.cli", command, *arguments, "--plot", str(chart)]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (141, "")
    assert chart.stat().st_size > 1000
    assert other.stat().st_size > 100
