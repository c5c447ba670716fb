"""The command init: an example of each kind of file, which its reader takes, comments and all."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mig_opt.files.batch.batches import BATCH
from mig_opt.files.batch.journals import COMMANDS
from mig_opt.files.documents import without_comments
from mig_opt.files.fleet.states import STATE
from mig_opt.files.fleet.traces import TRACE
from mig_opt.files.serving.arrivals import read_rates, read_recorded
from mig_opt.files.serving.demands import DEMAND
from mig_opt.files.serving.deployments import DEPLOYMENT
from mig_opt.files.serving.profiles import PROFILES
from mig_opt.files.templates import TEMPLATES, template
from mig_opt.studies import read_study

READERS: dict[str, Callable[[Path], Any]] = {
    "batch": lambda path: BATCH.read(path, gpu="A100" if path.suffix == ".csv" else None),
    "services": lambda path: DEMAND.read(
        path,
        gpu="A100-80GB" if path.suffix == ".csv" else None,
        tables=PROFILES.read(path.with_name("profiles.json")) if path.suffix == ".csv" else (),
    ),
    "profiles": PROFILES.read,
    "deployment": DEPLOYMENT.read,
    "rates": read_rates,
    "requests": read_recorded,
    "commands": COMMANDS.read,
    "trace": lambda path: TRACE.read(path, gpu="A100" if path.suffix == ".csv" else None),
    "state": STATE.read,
    "study": read_study,
}
FILES = [(kind, form) for kind, forms in TEMPLATES.items() for form in forms]


@pytest.mark.parametrize(("kind", "form"), FILES)
def test_the_reader_takes_each_example(run, tmp_path, monkeypatch, kind, form):
    monkeypatch.chdir(tmp_path)
    Path("profiles.json").write_text(template("profiles"))
    path = Path(f"mine.{form}")
    outcome = run("init", kind, path)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{kind.capitalize()} written to {path}.\n", "")
    assert READERS[kind](path)
    text = path.read_text()
    marks = "//" if form == "json" else "#"
    assert text.startswith(f"{marks} "), "it says first what it is"
    assert "mig-opt " in text.split("\n{")[0], "and which command takes it"
    assert max(map(len, text.splitlines())) <= 120
    if form == "json":
        assert len(json.loads(without_comments(text))) > 1
        assert without_comments(text).count("\n") == text.count("\n")


def test_comments_name_the_file_as_it_is_called(narrow):
    assert narrow("init", "batch", "mine").code == 0
    assert re.search("^// A batch: tasks.*\n.* mig-opt solve mine --plot", Path("mine").read_text())
