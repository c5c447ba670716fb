"""The study of schedulers: who takes part, its tables, its figure, and the days of the openb trace."""

import dataclasses

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from bench.fleet import policies as online_policies
from bench.fleet.policies import PolicyResult, ratio, regime_rows, side_by_side, winning
from mig_opt.instances.fleet.registry import trace_families
from mig_opt.method.registry import Method, methods
from mig_opt.studies import GeneratedTraces


def test_every_scheduler_and_every_family_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_figures_of_a_regime() -> None:
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


def test_the_figure_shows_all_of_them() -> None:
    far = [result("far", draw, 100.0, 900.0) for draw in range(3)]
    figure = side_by_side([*RESULTS, *far, result("quick", 0, 12.0, 110.0, "other")])
    FigureCanvasAgg(figure).draw()
    assert len(figure.axes) == 2 * 2
    first = figure.axes[0]
    assert [label.get_text() for label in first.get_yticklabels()] == ["quick", "slow", "lost", "far"]
    assert [text.get_text() for text in first.texts] == ["jobs left waiting", "10.00"]
    points = [line for line in first.lines if line.get_marker() == "o"]
    assert [float(line.get_xdata()[0]) for line in points] == pytest.approx([1.2, 1.44])  # type: ignore[arg-type, index]
    assert [line.get_markerfacecolor() != "white" for line in points] == [True, False]
    assert all(first.get_xlim()[0] < 1 < line.get_xdata()[0] < first.get_xlim()[1] for line in points)  # type: ignore[index, operator]
