"""The studies of fleets without a queue and of the choice of a scheduler, and their stored results."""

from pathlib import Path

import pytest
from places import BENCH

from bench.fleet import admission, which_scheduler
from bench.fleet.admission import Ratios
from bench.report import Page


def figures() -> list[Ratios]:
    """Two schedulers and the bound on two traces."""
    jobs = {"first-fit": (0.5, 0.7, 2.0), "baskets": (0.6, 0.9, 1.0), "upper bound": (0.8, 1.0, None)}
    return [
        Ratios("even, 4 GPUs", trace, policy, accepted, gpus=gpus)
        for policy, (*both, gpus) in jobs.items()
        for trace, accepted in zip(("one", "two"), both, strict=True)
    ]


def test_means_and_gains() -> None:
    assert admission.gain(figures(), "baskets", "first-fit", "mixes") == pytest.approx(0.25)
    assert admission.gain(figures(), "baskets", "first-fit", "mixes", "gpus") == pytest.approx(-0.5)
    shares = which_scheduler.acceptance(figures())["even, 4 GPUs"]
    assert shares == pytest.approx({"first-fit": 0.6 / 0.9, "baskets": 0.75 / 0.9})


def test_no_stored_ratio_is_above_its_bound() -> None:
    found = admission.read(BENCH / "results")
    bounds = {each.trace: each.jobs for each in found if each.policy == "upper bound"}
    staying = {each.trace: each.jobs for each in found if each.policy == "upper bound without migration"}
    assert len(bounds) == 30
    for each in found:
        assert each.jobs <= bounds[each.trace] + 1e-6, each
        if not each.moves and each.policy != "upper bound":
            assert each.jobs <= staying.get(each.trace, 1.0) + 1e-6, each


def test_the_tables_are_those_of_the_stored_results() -> None:
    stored = (BENCH / "results" / "admission.md").read_text(encoding="utf-8").splitlines()
    page, found = Page("admission", ""), admission.read(BENCH / "results")
    for heading in admission.TABLES:
        admission.table(page, found, heading)
    page.table(["what", "printed in the abstract", "measured", ""], admission.claims(found), texts=(0, 2))
    assert [line for line in page.lines if line[:1] == "|"] == [line for line in stored if line[:1] == "|"]


@pytest.mark.deep
def test_the_table_of_the_choice_is_that_of_the_stored_results(tmp_path: Path) -> None:
    which_scheduler.main(["--results", str(tmp_path)])
    stored, made = (Page("which_scheduler", "", folder=own) for own in (BENCH / "results", tmp_path))
    assert made.earlier_rows(1) == stored.earlier_rows(1), "run bench.fleet.which_scheduler"
