"""Pages to explore: what is in the file. In a browser they are tested by ``test_browser.py``."""

import subprocess
import sys

import pytest
import tiny
from charts import top_down
from documents import refused

from mig_opt.views import check_plot_path, plot

needs_bokeh = pytest.mark.usefixtures("bokeh")


@pytest.fixture
def bokeh():
    pytest.importorskip("bokeh", reason="draws the pages; the extra html has it")


@needs_bokeh
def test_titles_and_names_are_no_markup(tmp_path):
    batch, schedule = top_down("A30", ["</script><img src=x>", "<!--<script>", "$$x$$"])
    plot(batch, schedule, to=tmp_path / "plan.html", title="<b>&</b>")
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert page.count("&lt;b&gt;&amp;&lt;/b&gt;") == 2
    assert "<b>&" not in page
    assert r'"<\/script><img src=x>"' in page
    assert "</script><img" not in page
    assert "<!--<script" not in page
    plot(batch, to=tmp_path / "tasks.html")  # a text by itself is a formula
    assert '"attributes": {"text": "$$x$$"}' in (tmp_path / "tasks.html").read_text("utf-8")


def test_a_missing_bokeh_is_named_with_its_mend(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "bokeh", None)
    message = r'pages to explore \(\.html\) need bokeh, which is not installed: pip install "mig-opt\[html\]"'
    for attempt in (
        lambda: check_plot_path(tmp_path / "plan.html"),
        lambda: plot(tiny.BATCH, tiny.BEST, to=tmp_path / "plan.html"),
    ):
        refused(attempt, match=message)
    check_plot_path(tmp_path / "plan.svg")


@needs_bokeh
def test_pages_need_no_matplotlib(tmp_path):
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
