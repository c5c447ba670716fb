"""Figures of the pages: each expression has a value in the results, and README shows what they are now."""

import re

import figures
import library
import pytest
from places import DOCS, PROJECT, README

PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "{{ " in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_expression_has_a_value(page):
    assert "{{ " not in figures.completed(page.read_text(encoding="utf-8"))


def test_readme_shows_what_its_expressions_come_to():
    text = README.read_text(encoding="utf-8")
    assert "<!-- figures\n" in text
    assert figures.renewed(text) == text, "run: python docs/extensions/figures.py"
    wrong = text.replace("-->\nFrom a shell on two cores", "-->\nSomewhere")
    assert wrong != text
    assert figures.renewed(wrong) == text


def test_the_table_of_instances_is_sorted_by_difficulty_and_scrolled_by_itself():
    table = library.table()
    order = dict(re.findall(r'<td data-order="(\d)">([^<]*)</td>', table))
    assert [order[key] for key in sorted(order)] == ["1 s", "10 s", "10 min", "open"]
    assert table.startswith('<div class="table-wrapper container">')
    assert ", </td>" not in table  # of a goal without a unit


TABLE = """# T

| a | b |
|---|---:|
| `x` | **1,234** (5.6) |
| y | 0.25 |

Says 7
and 8.

## H

| a |
|---|
| 9 |
"""


@pytest.fixture
def results(tmp_path, monkeypatch):
    (tmp_path / "t.md").write_text(TABLE, encoding="utf-8")
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    figures._text.cache_clear()


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ('{{ table("t").at("x", "b") :,.0f }}', "1,234"),
        ('{{ table("t").where("x").number("b", 1) }}', "5.6"),
        ('{{ table("t").at("y", 1) :.1f }} %', "0.3 %"),
        ('{{ span(table("t").numbers("b")) :.0f }}', "0 to 1234"),
        ("{{ more([1.5, 1.25]) :.0f }}, {{ less(0.75) :.0f }}", "25 to 50, 25"),
        ('{{ said("t", r"Says (\\d) and (\\d)", 2) :.0f }}', "8"),
        ('<!-- let\nown = table("t", "H")\n-->\n\n{{ own }}', "| a |\n| --- |\n| 9 |"),
        ('{{ stacked([table("t").where(a="x").columns("a"), table("t", "H")]) }}', "| a |\n| --- |\n| `x` |\n| 9 |"),
    ],
)
@pytest.mark.usefixtures("results")
def test_values(page, shown):
    assert figures.completed(page).replace("|---|", "| --- |") == shown


@pytest.mark.parametrize(
    "wrong", ['table("t", "H", 1)', 'table("nowhere")', 'table("t").at("z", "b")', 'table("t").numbers("c")', "1 /"]
)
@pytest.mark.usefixtures("results")
def test_what_is_not_there(wrong):
    with pytest.raises(figures.NoFigureError):
        figures.completed(f"{{{{ {wrong} }}}}")
    with pytest.raises(AssertionError):
        figures.completed("<!-- let\nassert 1 == 2\n-->\n\ntext")
