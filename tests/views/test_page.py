"""Pages to explore: what is in the file. In a browser they are tested by ``test_browser.py``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import tiny
from charts import top_down

from mig_opt.batch.schedule import Run, Schedule
from mig_opt.errors import InputError
from mig_opt.views import check_plot_path, plot

needs_bokeh = pytest.mark.usefixtures("bokeh")


@pytest.fixture
def bokeh() -> None:
    pytest.importorskip("bokeh", reason="draws the pages; the extra html has it")


class Parts(HTMLParser):
    """The tags of a page with their attributes, and the description of its drawings."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.item: Any = None
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][1].get("id") == "item" and self.item is None:
            self.item = json.loads(data)

    def boxes(self) -> dict[str, dict[str, Any]]:
        """The boxes of all drawings by their heads; of several with one head the last."""
        found: dict[str, dict[str, Any]] = {}
        for columns in self.tables(self.item):
            if "head" in columns:
                rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
                found |= {row["head"]: row for row in rows}
        return found

    def tables(self, value: Any) -> list[dict[str, list[Any]]]:
        if isinstance(value, dict) and value.get("name") == "ColumnDataSource":
            return [dict(value["attributes"]["data"]["entries"])]
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [table for part in inner for table in self.tables(part)]


@needs_bokeh
def test_titles_and_names_are_no_markup(tmp_path: Path) -> None:
    batch, schedule = top_down("A30", ["</script><img src=x>"])
    plot(batch, schedule, to=tmp_path / "plan.html", title="<b>&</b>")
    page = Parts(tmp_path / "plan.html")
    assert not {"img", "b"} & {tag for tag, _ in page.tags}
    assert "</script><img src=x>" in page.boxes()


@needs_bokeh
def test_what_cannot_be_drawn_is_refused_and_nothing_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape("runs[0].profile")):
        plot(tiny.BATCH, Schedule((Run("big", 0, "9g", 0, 0.0, 1.0),)), to=tmp_path / "plan.html")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_bokeh_is_named_with_its_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bokeh", None)
    message = r'pages to explore \(\.html\) need bokeh, which is not installed: pip install "mig-opt\[html\]"'
    for attempt in (
        lambda: check_plot_path(tmp_path / "plan.html"),
        lambda: plot(tiny.BATCH, tiny.BEST, to=tmp_path / "plan.html"),
    ):
        with pytest.raises(InputError, match=message):
            attempt()
    check_plot_path(tmp_path / "plan.svg")


@needs_bokeh
def test_pages_need_no_matplotlib(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['matplotlib'] = None\n"
        "from mig_opt import load, solve\n"
        "from mig_opt.views import plot\n"
        "batch = load('rodinia-a30')\n"
        "plot(batch, solve(batch, 'far').schedule, to=sys.argv[1])\n"
    )
    target = tmp_path / "plan.html"
    assert subprocess.run([sys.executable, "-c", code, str(target)], check=False).returncode == 0
    assert target.exists()
