"""The FAR paper's page: what is printed is what the paper prints, and figures are what they say."""

import csv
import dataclasses

import pytest
from places import PUBLISHED

from bench.batch import far_measures as of
from bench.papers import far as paper_far
from bench.papers import far_tables as paper_far_tables
from bench.papers.claims import STORED, Store, Verdict
from mig_opt import generate_batch, solve
from mig_opt.heuristics.batch.far import far, far_published, far_unrefined

RIVALS = {f"fixpart_{name}": f"fixpart {own}" for name, own in (("1x7", "1+1+1+1+1+1+1"), ("7", "7"))}
RIVALS |= {"miso_opt": "miso-opt", "fixpart_best": "fixpart-best"}
CELL = of.Cell("program", "MixedScaling", "WideTimes", 8, 3)


def printed(table: str) -> dict[tuple[str, str, str, int], float]:
    """The printed figures of a table by scaling, times, figure and n."""
    return {
        (scaling, times, figure, n): value
        for scaling, times, figure, *values in paper_far_tables.PRINTED[table]["rows"]
        for n, value in zip(paper_far_tables.PRINTED[table]["n"], values, strict=True)
    }


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="needs the published data: MIG_OPT_PUBLISHED")
@pytest.mark.parametrize(
    ("table", "file", "figures"),
    [
        ("table4", "far_table4_rho", {"rho": "rho"}),
        ("table5", "far_table5_ratio_to_far", RIVALS),
        ("table6", "far_table6_refinement", {"improvement_percent": "improvement", "moves": "moves", "swaps": "swaps"}),
        ("table7", "far_table7_concatenation_percent", {"reverse_percent": "reversed", "move_swap_percent": "moved"}),
        ("table9", "far_table9_multibatch_percent", {"percent_over_baseline": "above"}),
    ],
)
def test_printed_figures_are_those_of_the_paper(table, file, figures):
    with (PUBLISHED / "paper_tables" / f"{file}.csv").open(newline="") as lines:
        expected = {
            (row["configuration"], f"{row.get('times', 'Wide')}Times", name, int(row.get("n", 15))): float(row[column])
            for row in csv.DictReader(lines)
            for column, name in figures.items()
        }
    assert printed(table) == expected


def test_figures_are_what_they_say():
    one = dataclasses.replace(CELL, batches=1)
    (batch,) = one.drawn()
    assert batch == generate_batch(8, variant="published-program", shuffle=True, seed=0)
    assert of.area(batch) == pytest.approx(sum(min(s * t for s, t in task.times.items()) for task in batch.tasks) / 7)
    spans = {method: of.schedule(batch, method).makespan for method in (far, far_published, far_unrefined)}
    assert spans[far] == solve(batch, "far").makespan
    ratios = {"rho": spans[far_published] / of.area(batch), "far": spans[far] / of.area(batch)}
    assert of.far_to_area(one) == pytest.approx({**ratios, "error of rho": 0.0, "error of far": 0.0})
    rivals = of.rivals_to_far(one)
    free = solve(batch.cost_free(), "fixpart", partition="7").makespan
    assert rivals["fixpart 7"] == pytest.approx(free / spans[far_published])
    assert rivals["unrefined, fixpart 7"] == pytest.approx(free / spans[far_unrefined])
    assert rivals["fixpart-best"] <= min(rivals["fixpart 7"], rivals["fixpart 1+1+1+1+1+1+1"])
    gained = of.refinement(one)
    assert gained["improvement"] <= gained["possible"] + 1e-9


def test_joins_gain_and_pairs_count_twice():
    gained = of.joins(CELL)
    assert 0 <= gained["reversed"] <= gained["moved"]
    assert 0 <= gained["next, reversed"] <= gained["next, moved"]
    assert set(of.unrefined_joins(CELL)) == {"reversed", "moved"}
    found = of.stream(CELL)
    assert 0 < found["stream"] < found["above"]


def test_claims_of_tables_are_all_of_their_figures():
    found = Store("far", STORED).in_order(paper_far.PAPER.groups)
    for table in (f"table{number}" for number in range(4, 10)):
        assert len(found[table].group.claims) >= len(printed(table))
        assert not any(claim.verdict is Verdict.CANNOT for claim in found[table].group.claims)
    assert paper_far_tables.of_program("moved", "table7").outcome.startswith("n = 10: ")
    assert sum(claim.verdict is Verdict.AGREES for claim in found["table4"].group.claims) > 10
