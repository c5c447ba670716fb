"""The study of the FAR paper's tables: what is printed, what is measured, and what is done again."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from places import BENCH, SHARED

if not BENCH.is_dir():
    pytest.skip("the tests run without the checkout", allow_module_level=True)

import tables
from table_figures import Cell, area, joins, milliseconds, refinement, rivals_to_far, stream

from mig_opt import generate_batch, solve

PRINTED = tomllib.loads(tables.PRINTED.read_text(encoding="utf-8"))
CELL = Cell("p_sup 0.5", "MixedScaling", "WideTimes", 8, 3)


def printed(table: str) -> dict[tuple[str, str, str, int], float]:
    """The printed figures of a table by scaling, times, figure and n."""
    return {
        (scaling, times, figure, n): value
        for scaling, times, figure, *values in PRINTED[table]["rows"]
        for n, value in zip(PRINTED[table]["n"], values, strict=True)
        if not math.isnan(value)
    }


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared")
@pytest.mark.parametrize(
    ("table", "file", "figures"),
    [
        ("table4", "far_table4_rho", {"rho": "rho"}),
        (
            "table5",
            "far_table5_ratio_to_far",
            {
                "miso_opt": "miso-opt",
                "fixpart_1x7": "fixpart 1+1+1+1+1+1+1",
                "fixpart_best": "fixpart-best",
                "fixpart_7": "fixpart 7",
            },
        ),
        (
            "table6",
            "far_table6_refinement",
            {"improvement_percent": "improvement", "moves": "moves", "swaps": "swaps"},
        ),
        (
            "table7",
            "far_table7_concatenation_percent",
            {"reverse_percent": "reversed", "move_swap_percent": "moved"},
        ),
        ("table9", "far_table9_multibatch_percent", {"percent_over_baseline": "above"}),
        (
            "times",
            "far_scheduling_time_ms",
            {
                "far_ms": "far",
                "miso_opt_ms": "miso-opt",
                "fixpart_1x7_ms": "fixpart 1+1+1+1+1+1+1",
                "fixpart_best_ms": "fixpart-best",
                "fixpart_7_ms": "fixpart 7",
            },
        ),
    ],
)
def test_printed_figures_are_those_of_the_paper(table: str, file: str, figures: dict[str, str]) -> None:
    with (SHARED / "paper_tables" / f"{file}.csv").open(newline="") as lines:
        expected = {
            (
                row.get("configuration", "MixedScaling"),
                f"{row.get('times', 'Wide')}Times",
                name,
                int(row.get("n", 15)),
            ): float(row[column])
            for row in csv.DictReader(lines)
            for column, name in figures.items()
            if row[column]
        }
    assert printed(table) == expected


@pytest.mark.parametrize("table", tables.TABLES)
def test_every_printed_figure_is_measured(table: str) -> None:
    found = tables.TABLES[table]
    figures = found.measure(dataclasses.replace(CELL, batches=2, n=6))
    assert {figure for _, _, figure, _ in printed(table)} <= set(figures)
    assert set(figures) == set(found.titles)
    shown = {name for names in found.beside.values() for name in names}
    assert shown == set(figures) - {figure for _, _, figure, _ in printed(table)}
    assert all(math.isfinite(value) for value in figures.values())


def test_figures_are_what_they_say() -> None:
    batch = generate_batch(8, seed=0)
    assert area(batch) == pytest.approx(sum(min(s * t for s, t in task.times.items()) for task in batch.tasks) / 7)
    one = dataclasses.replace(CELL, batches=1)
    far = solve(batch, "far").makespan
    assert tables.far_to_area(one)["rho"] == pytest.approx(far / area(batch))
    rivals = rivals_to_far(one)
    assert rivals["created, fixpart 7"] == pytest.approx(solve(batch, "fixpart", partition="7").makespan / far)
    assert rivals["fixpart-best"] <= min(rivals["fixpart 7"], rivals["created, fixpart-best"])
    gained = refinement(one)
    unrefined = solve(batch, "far-unrefined").makespan
    assert gained["improvement"] == pytest.approx((unrefined / far - 1) * 100)
    assert gained["possible"] == pytest.approx((unrefined / area(batch) - 1) * 100)


def test_joins_gain_and_streams_end_earlier() -> None:
    gained = joins(CELL)
    assert 0 <= gained["reversed"] <= gained["moved"] <= gained["possible"]
    assert 0 <= gained["pair, reversed"] <= gained["pair, moved"]
    two = joins(dataclasses.replace(CELL, batches=2))
    assert two["pair, moved"] == pytest.approx(two["moved"])
    found = stream(CELL)
    assert 0 < found["above"] <= found["trivial"]
    assert found["share"] == pytest.approx(100 / (1 + found["above"] / 100))
    assert all(value > 0 for value in milliseconds(CELL).values())


def test_a_cut_that_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = ["--only", "table4", "--cut", "--results", str(tmp_path)]
    measured: list[Cell] = []
    table = tables.TABLES["table4"]

    def measure(cell: Cell) -> dict[str, float]:
        measured.append(cell)
        if len(measured) == 30:
            raise KeyboardInterrupt
        return {"rho": 1.5}

    monkeypatch.setattr(tables, "TABLES", {"table4": dataclasses.replace(table, measure=measure)})
    with pytest.raises(KeyboardInterrupt):
        tables.main(cut)
    tables.main(cut)
    assert len(measured) == 36 + 1, "what was struck is done again, and nothing else"
    text = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert text.strip() == capsys.readouterr().out.strip()
    assert "| PoorScaling | WideTimes | 10 | 1.23 | 1.50 | +0.27 | 1.50 | +0.27 |" in text
    assert "other sources" not in text

    # Of other sources: done again; until then the tables say so.
    path = tmp_path / "tables.jsonl"
    rows: list[Any] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows[0]["fingerprint"] = "other"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    tables.main([*cut, "--table"])
    assert "**1 of 36 cells were made with other sources or versions.**" in capsys.readouterr().out
    tables.main(cut)
    assert len(measured) == 38
    assert "other sources" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "what"), [("--only=table8", "there is no table8"), ("--cut=1", "at least 2 batches")]
)
def test_wrong_arguments(wrong: str, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        tables.main([wrong])
    assert ending.value.code == 2
    assert what in capsys.readouterr().err
