"""The studies of schedulers: who takes part, tables, figures, what is stored, and parts that are measured again."""

import dataclasses

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from places import BENCH

from bench.fleet import admission, planner, which_scheduler
from bench.fleet import policies as online_policies
from bench.fleet.admission import Ratios
from bench.fleet.policies import PolicyResult, ratio, regime_rows, side_by_side, winning
from bench.report import Page
from mig_opt.instances.fleet.registry import trace_families
from mig_opt.method.registry import Method, methods
from mig_opt.studies import GeneratedTraces


def test_every_scheduler_and_every_family_take_part(monkeypatch):
    study = online_policies.planned()
    assert [settings.policy for settings in study.policies] == [entry.name for entry in methods("simulate")]
    families = {family for source in study.traces if isinstance(source, GeneratedTraces) for family in source.family}
    assert families == {family.name for family in trace_families()}
    more = [dataclasses.replace(trace_families()[0], name=name) for name in ("migm-new", "strange")]
    monkeypatch.setattr("bench.fleet.policies.trace_families", lambda: (*trace_families(), *more))
    joined = [source for source in online_policies.planned().traces if isinstance(source, GeneratedTraces)][-2:]
    groups = {source.family: source.group for source in joined}
    assert groups == {("migm-new",): "memory mixes", ("strange",): "other families"}
    new = Method("newest", "policy", "", "", "mig_opt.heuristics.fleet.queues:FirstFit")
    monkeypatch.setattr("bench.fleet.policies.methods", lambda _: (*methods("simulate"), new))
    assert online_policies.planned().policies[-1].policy == "newest"


def result(policy: str, draw: int, completion: float, makespan: float, regime: str = "r") -> PolicyResult:
    """A simulation of a trace whose bounds are 10 s and 100 s."""
    values, bounds = {"mean_completion": completion, "makespan": makespan}, {"mean_completion": 10, "makespan": 100}
    ratios = {goal: value / bounds[goal] for goal, value in values.items()}
    return PolicyResult(regime, "f", f"f{draw}", str(draw), policy, values, ratios, 2.0, 0.5)


RESULTS = [
    *(result("quick", draw, 11.0 + draw, 150.0) for draw in range(3)),
    *(result("slow", draw, 13.2 + 1.2 * draw, 120.0 + draw) for draw in range(3)),
    *(result("lost", draw, 10.0, 100.0) for draw in range(2)),
    dataclasses.replace(result("lost", 2, 10.0, 100.0), values={}, ratios={}),
]


def test_figures_of_a_regime():
    # quick: 1.1, 1.2 and 1.3 times the bound, slow 1.32, 1.44 and 1.56 times: 1.2 times quick on each trace.
    assert ratio(RESULTS[:3], "mean_completion") == (pytest.approx(1.2), pytest.approx(0.1))
    assert ratio(RESULTS[6:], "mean_completion") is None
    assert winning(RESULTS, "mean_completion") == ("quick",)
    assert winning(RESULTS, "makespan") == ("slow",)
    assert list(regime_rows(RESULTS)) == [
        ["`quick`", "3 of 3", "**1.200 ± 0.100**", "2.0", "1.500 ± 0.000", "0.500"],
        ["`slow`", "3 of 3", "1.440 ± 0.120", "2.0", "**1.210 ± 0.010**", "0.500"],
        ["`lost`", "2 of 3", "", "", "", "0.500"],
    ]


def test_the_figure_shows_all_of_them():
    far = [result("far", draw, 100.0, 900.0) for draw in range(3)]
    figure = side_by_side([*RESULTS, *far, result("quick", 0, 12.0, 110.0, "other")])
    FigureCanvasAgg(figure).draw()
    assert len(figure.axes) == 2 * 2
    first = figure.axes[0]
    assert [label.get_text() for label in first.get_yticklabels()] == ["quick", "slow", "lost", "far"]
    assert [text.get_text() for text in first.texts] == ["jobs left waiting", "10.00"]
    points = [line for line in first.lines if line.get_marker() == "o"]
    assert [float(line.get_xdata()[0]) for line in points] == pytest.approx([1.2, 1.44])
    assert [line.get_markerfacecolor() != "white" for line in points] == [True, False]
    assert all(first.get_xlim()[0] < 1 < line.get_xdata()[0] < first.get_xlim()[1] for line in points)


def two_schedulers() -> list[Ratios]:
    """Two schedulers and the bound on two traces."""
    jobs = {"first-fit": (0.5, 0.7, 2.0), "baskets": (0.6, 0.9, 1.0), "upper bound": (0.8, 1.0, None)}
    return [
        Ratios("even, 4 GPUs", trace, policy, accepted, gpus=gpus)
        for policy, (*both, gpus) in jobs.items()
        for trace, accepted in zip(("one", "two"), both, strict=True)
    ]


def test_means_and_gains():
    assert admission.gain(two_schedulers(), "baskets", "first-fit", "mixes") == pytest.approx(0.25)
    assert admission.gain(two_schedulers(), "baskets", "first-fit", "mixes", "gpus") == pytest.approx(-0.5)
    shares = which_scheduler.acceptance(two_schedulers())["even, 4 GPUs"]
    assert shares == pytest.approx({"first-fit": 0.6 / 0.9, "baskets": 0.75 / 0.9})


def test_no_stored_ratio_is_above_its_bound():
    found = admission.read(BENCH / "results")
    bounds = {each.trace: each.jobs for each in found if each.policy == "upper bound"}
    staying = {each.trace: each.jobs for each in found if each.policy == "upper bound without migration"}
    assert len(bounds) == 30
    for each in found:
        assert each.jobs <= bounds[each.trace] + 1e-6, each
        if not each.moves and each.policy != "upper bound":
            assert each.jobs <= staying.get(each.trace, 1.0) + 1e-6, each


def test_the_tables_are_those_of_the_stored_results():
    stored = (BENCH / "results" / "admission.md").read_text(encoding="utf-8").splitlines()
    page, found = Page("admission", ""), admission.read(BENCH / "results")
    for heading in admission.TABLES:
        admission.table(page, found, heading)
    page.table(["what", "printed in the abstract", "measured", ""], admission.claims(found), texts=(0, 2))
    assert [line for line in page.lines if line[:1] == "|"] == [line for line in stored if line[:1] == "|"]


@pytest.mark.deep
def test_the_table_of_the_choice_is_that_of_the_stored_results(tmp_path):
    which_scheduler.main(["--results", str(tmp_path)])
    stored, made = (Page("which_scheduler", "", folder=own) for own in (BENCH / "results", tmp_path))
    assert made.earlier_rows(1) == stored.earlier_rows(1), "run bench.fleet.which_scheduler"


def test_parts_that_are_not_measured_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(planner, "small", lambda *_: iter([["a", "b", "c", "again"]]))
    stored = (BENCH / "results" / "online_planner.md").read_text(encoding="utf-8")
    (tmp_path / "online_planner.md").write_text(stored, encoding="utf-8")
    before, after = (Page("online_planner", "", folder=folder) for folder in (BENCH / "results", tmp_path))
    planner.main(["--only", "small", "--results", str(tmp_path)])
    assert "| a | b | c | again |" in after.earlier(planner.SECTIONS["small"][0])
    for heading, *_ in list(planner.SECTIONS.values())[1:]:
        assert before.earlier(heading) == after.earlier(heading) != []
