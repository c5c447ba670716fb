"""Every benchmark, on a cut so small that its figures mean nothing: it runs, and its page is whole."""

import importlib
import re

import pytest
from places import BENCH

CUTS = {
    "batch.anytime": "--cut",
    "batch.load_bound": "--cut",
    "batch.far_speed": "--cut",
    "batch.deviations": "--cut",
    "batch.execution": "--cut",
    "batch.gap_study": "--cut --only small",
    "batch.pools": "--cut",
    "batch.pythons": "--cut",
    "batch.search_goals": "--cut",
    "fleet.admission": "--cut",
    "fleet.defragment": "--cut",
    "fleet.environments": "--cut",
    "fleet.fragmentation": "--cut",
    "fleet.memory": "--cut",
    "fleet.migbench": "--cut",
    "fleet.pcie": "--cut",
    "fleet.planner": "--cut",
    "fleet.policies": "--cut",
    "fleet.regret": "--cut",
    "fleet.speed": "--cut 2000",
    "fleet.trace_bounds": "--cut",
    "fleet.which_scheduler": "",
    "serving.day": "--cut",
    "serving.promise": "--cut",
    "serving.request_speed": "--cut",
    "serving.scenarios": "--cut",
}
ALONE = {"batch.commits", "batch.exact", "batch.far_authors", "batch.first_run", "papers.measure", "serving.triton"}
"""Those that tests of their own run, or that need what is not here."""


def test_every_benchmark_has_a_cut():
    commands = set(
        re.findall(r"^\| `python -m bench\.([\w.]+)", (BENCH / "README.md").read_text("utf-8"), re.MULTILINE)
    )
    modules = {
        f"{path.parent.name}.{path.stem}"
        for path in BENCH.glob("*/*.py")
        if re.search(r"^@start$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert commands == modules == {*CUTS, *ALONE}


@pytest.mark.deep
@pytest.mark.parametrize("name", CUTS)
def test_a_cut_makes_a_page(name, tmp_path, capsys, monkeypatch):
    # Other tests start slurmd on this machine meanwhile.
    monkeypatch.setattr("mig_opt.operations.driver.surroundings._processes", lambda _: iter(()))
    assert not importlib.import_module(f"bench.{name}").main([*CUTS[name].split(), "--results", str(tmp_path)])
    (page,) = tmp_path.glob("*.md")
    text = page.read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip().endswith(text.strip())
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert tables
    for table in tables:
        head, rule, *rows = (line.count("|") for line in table.splitlines())
        assert rows
        assert {rule, *rows} == {head}
    for drawn in tmp_path.glob("*.svg"):
        assert drawn.read_text(encoding="utf-8").startswith("<?xml")
        assert (BENCH / "results" / drawn.name).exists()
