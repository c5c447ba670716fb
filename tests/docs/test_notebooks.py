"""The notebooks: they run clean, come to what they show, and say nothing of the machine on which they ran."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import DOCS, PROJECT

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
VARIES = (
    r"<td>runtime</td><td>[^<]*</td>",  # how long a method took
    r"(?s)<svg.*?</svg>",  # one of several plans that are as good as each other
    r"(?s)<style.*?</style>",
)


def cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def shown(cell: dict[str, Any]) -> list[object]:
    """Output of a cell, without what varies from run to run; of images that they are there."""
    found: list[object] = []
    for output in cell["outputs"]:
        data = output.get("data", {})
        text = data.get("text/html") or output.get("text")
        if text is None:
            found.append(sorted(data))
            continue
        text = "".join(text)
        for pattern in VARIES:
            text = re.sub(pattern, "", text)
        found.append(text)
    return found


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["exact-and-heuristics", "fleet-for-services", "online-schedulers"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stored_and_small_and_without_a_machine(path):
    text = path.read_text(encoding="utf-8")
    assert len(text) < 400_000
    numbers = [cell["execution_count"] for cell in cells(path)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert all(
        output["output_type"] in {"execute_result", "stream"} for cell in cells(path) for output in cell["outputs"]
    )
    without_images = re.sub(r'"image/png": "[^"]*"', "", text)
    assert not re.search(r"/(home|root|tmp|usr|Users|work|var)/|site-packages|\bcore[s ]|AMD|Intel", without_images)
    assert "iopub" not in text, "times of execution are no part of a notebook"


@pytest.mark.deep
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_reader_comes_to_what_the_notebook_shows(path, tmp_path):
    for package in ("nbclient", "ipykernel", "pandas"):
        pytest.importorskip(package, reason="runs notebooks; the extra notebooks has it")
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    # A process of its own: a kernel leaves threads and sockets behind.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, DOCS / "extensions" / "notebooks.py", copy]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    fresh, stored = ([shown(cell) for cell in cells(notebook)] for notebook in (copy, path))
    assert fresh == stored
