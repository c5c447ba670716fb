"""The studies of gaps and of the goals of `search`: which methods they run, tables, figures, and when a goal is met."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from places import BENCH

from bench.batch import gap_study as gaps
from bench.batch.gap_study import box_plots, profiles
from bench.batch.search_goals import Cell, verdict
from mig_opt.method.registry import METHODS, Method, methods
from mig_opt.studies import GeneratedBatches, StudyRows, study_rows
from mig_opt.studies.batch import BatchRun
from mig_opt.studies.rows import Outcome, Row
from mig_opt.studies.summary import Judged, judge


@pytest.mark.parametrize("part", gaps.PARTS)
def test_every_heuristic_takes_part(part, monkeypatch):
    study = gaps.planned(part)
    names = [settings.method for settings in study.methods]
    assert names == ["cp", *(one.name for one in methods() if one.kind == "heuristic" and not one.options)]
    new = Method("newest", "heuristic", "", "", "")
    monkeypatch.setattr(METHODS, "entries", (*methods(), new))
    added = gaps.planned(part).methods[-1]
    assert (added.method, added.time_limit) == ("newest", study.methods[-1].time_limit)
    (source,) = gaps.planned(part, cut=True).batches
    assert isinstance(source, GeneratedBatches)
    assert (len(source.n), source.seeds) == (1, (0,))


def test_a_few_rows_of_other_sources_are_told():
    stored = study_rows(gaps.planned("large"), BENCH / "results" / "gaps_large.jsonl", keep=True)
    assert stored.missing == ()
    assert gaps.mixed_sources(stored)[0].startswith("**110 of these runs")

    def remark(*sources: str) -> list[str]:
        rows = zip(stored.rows, sources, strict=False)
        return gaps.mixed_sources(StudyRows(tuple(replace(row, fingerprint=own) for row, own in rows), ()))

    assert remark() == remark("new", "new", "new") == []
    assert remark("new", "old", "new")[0].startswith("**1 of these runs")


PANELS = {
    "n = 6": {f"a-long-method-{index}": [0.0, 0.02 * index, 3.0 * index] for index in range(8)},
    "n = 1000": {f"a-long-method-{index}": [0.001, 0.02, 0.5 + 12 * index] for index in range(8)},
}


def texts_of(figure: Figure) -> Iterator[Text]:
    FigureCanvasAgg(figure).draw()
    yield figure._supxlabel
    for axis in figure.axes:
        yield from (axis.title, axis.xaxis.label, axis.yaxis.label)
        for at, labels, limits in (
            (0, axis.get_xticklabels(), sorted(axis.get_xlim())),
            (1, axis.get_yticklabels(), sorted(axis.get_ylim())),
        ):
            yield from (label for label in labels if limits[0] <= label.get_position()[at] <= limits[1])
    for legend in figure.legends:
        yield from legend.get_texts()


@pytest.mark.parametrize("draw", [box_plots, profiles])
def test_nothing_overlaps(draw):
    figure = draw(PANELS, "gap in %")
    boxes = [text.get_window_extent() for text in texts_of(figure) if text.get_text() and text.get_visible()]
    outer = figure.bbox
    for index, box in enumerate(boxes):
        assert outer.x0 <= box.x0 < box.x1 <= outer.x1
        assert outer.y0 <= box.y0 < box.y1 <= outer.y1
        assert not any(box.overlaps(other) for other in boxes[index + 1 :])


def row(batch: str, method: str, outcome: Outcome) -> Row[BatchRun]:
    return Row(BatchRun({"name": batch}, {}, "", method), outcome)


def judged(batch: str, ours: float, bound: float, far: float, best: float, seconds: float = 1.0) -> list[Judged]:
    outcomes = {
        "cp": Outcome("optimal" if best == bound else "feasible", 1.0, best, bound, 0.0005),
        "far": Outcome("feasible", 0.1, far, 1.0, 0.0005),
        "search": Outcome("feasible", seconds, ours, 1.0, 0.0005),
    }
    return judge([row(batch, method, outcome) for method, outcome in outcomes.items()])


def test_a_cell_sums_up_its_batches():
    cell = Cell.of([*judged("a", 10.0, 10.0, 12.0, 10.0, 1.1), *judged("b", 10.0, 9.8, 10.0, 9.9, 0.9)])
    assert (cell.proven, cell.worse) == (1, 0)
    assert cell.overrun(1.0) == pytest.approx(0.1)
    assert verdict([cell], 0.011) == "met"
    assert verdict([cell], 0.009) == "met, to the best known"
    assert verdict([cell], 0.005) == "**missed**: too far"
    assert verdict([cell, cell], 0.005) == "**missed**: 2 of 2 cells"


@pytest.mark.parametrize(("far", "worse"), [(9.9996, 0), (9.9994, 1)])
def test_worse_than_far_is_a_miss(far, worse):
    cell = Cell.of(judged("a", 10.0, 9.99, far, 9.99))
    assert cell.worse == worse
    assert verdict([cell], 0.01) == ("**missed**: worse than FAR on 1" if worse else "met")
