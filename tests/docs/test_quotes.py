"""Figures of README and the pages are those of the results that they quote, and each of them has a known source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from places import BENCH, DOCS, PROJECT, README

if not BENCH.is_dir() or not DOCS.is_dir():
    pytest.skip("the tests run without the checkout", allow_module_level=True)

from bench.quotes import pages as quotes
from bench.quotes import quoting, result_tables
from bench.quotes.quoting import Given, Part, Quote, Source, read, unknown

ENTRIES = quotes.entries()
PAGES = sorted(
    str(page.relative_to(PROJECT))
    for page in (README, BENCH / "README.md", *DOCS.rglob("*.md"))
    if page.parent.name != "benchmarks"  # those are the results themselves
)


@pytest.mark.parametrize("page", ENTRIES)
def test_figures_are_those_of_the_results(page: str) -> None:
    found = quotes.reading(page)
    assert [str(change) for change in found.changes] == [], "run: python -m bench.quotes.pages"
    assert found.problems == []


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_has_a_source(page: str) -> None:
    text = (PROJECT / page).read_text(encoding="utf-8")
    assert unknown(text, read(text, ENTRIES.get(page, ())).covered) == []


ONCE = [
    page for page in ENTRIES if any(isinstance(entry, Given) and entry.source is Source.ONCE for entry in ENTRIES[page])
]


@pytest.mark.parametrize("page", ONCE)
def test_what_was_measured_once_has_its_date(page: str) -> None:
    assert re.search(r"(?i)measured once,[^.]*\b20\d\d\b", (PROJECT / page).read_text(encoding="utf-8"))


# The mechanism


PAGE = """# Title

FAR is 5 to
9 % from the optimum. A limit of 10 s.

<!-- begin rows -->
| n |
| --- |
| 1 |
<!-- end rows -->
"""
KNOWN = (
    Quote("FAR is {:.0f} to {:.0f} % from the optimum.", lambda: (5, 9)),
    Part("rows", lambda: ["| n |", "| --- |", "| 1 |"]),
    Given(Source.SETTING, ("A limit of 10 s",)),
)


def test_a_page_that_says_what_the_results_say() -> None:
    found = read(PAGE, KNOWN)
    assert (found.text, found.changes, found.problems) == (PAGE, [], [])
    assert unknown(PAGE, found.covered) == []


@pytest.mark.parametrize(("before", "after"), [("9 %", "7 %"), ("| 1 |", "| 2 |"), ("is 5", "is 6"), ("| 1 |\n", "")])
def test_a_figure_changed_by_hand_is_noticed_and_mended(before: str, after: str) -> None:
    found = read(PAGE.replace(before, after), KNOWN)
    assert len(found.changes) == 1
    assert found.text == PAGE


def test_only_figures_are_replaced() -> None:
    longer = (Quote("FAR is {:.1f} to {:,.0f} % from the optimum.", lambda: (0.25, 1234)), *KNOWN[1:])
    assert read(PAGE, longer).text == PAGE.replace("is 5 to\n9 %", "is 0.3 to\n1,234 %")


@pytest.mark.parametrize(
    ("text", "entry", "problem"),
    [
        ("FAR is good.", Quote("FAR is {:.0f} % away", lambda: (5,)), "0 times"),
        ("one 5 % two 5 %", Quote("{:.0f} %", lambda: (5,)), "2 times"),
        ("FAR is first.", Quote("FAR is first.", holds=lambda: False), "does not hold"),
        ("FAR is first.", Given(Source.SETTING, ("FAR is second",)), "no such words"),
        ("text", Part("rows", lambda: ["row"]), "no marks"),
        (
            "FAR: 5 %",
            Quote("FAR: {:.0f} %", lambda: (result_tables.table("nowhere").number("far"),)),
            "there is no nowhere",
        ),
    ],
)
def test_what_has_to_be_mended_by_hand(text: str, entry: quoting.Entry, problem: str) -> None:
    found = read(text, [entry])
    assert len(found.problems) == 1
    assert problem in found.problems[0]


@pytest.mark.parametrize(
    "text",
    ["takes 5 s.", "7.0 % more", "29 of 30", "a gap of 0.75", "12,345 jobs", "24 to 63 ms", "| 5 ms |", "1.1 GiB"],
)
def test_figures_without_a_source_are_noticed(text: str) -> None:
    assert len(unknown(text, [])) == 1
    assert unknown(text, [(0, len(text))]) == []


@pytest.mark.parametrize(
    "text",
    [
        "batches of 20 tasks on an A100",
        "`takes 5 s`",
        "```text\ntakes 5 s\n```\n",
        "<!-- takes 5 s -->",
        "$7/4 \\cdot 0.5$",
        "Section 6.4 and section 2.3.1",
        "[x](https://doi.org/10.1016/j.5)",
        "1g.5gb, 2024-05-01, 12:30",
    ],
)
def test_other_numbers_need_none(text: str) -> None:
    assert unknown(text, []) == []


def test_a_heading_stands_for_its_section() -> None:
    text = "## One\n\n5 s\n\n### More\n\n6 s\n\n## Two\n\n7 s\n"
    found = read(text, [Given(Source.ONCE, ("## One",))])
    assert [figure.split("'")[1] for figure in unknown(text, found.covered)] == ["7 s"]


def test_tables_of_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "# T\n\n| a | b |\n|---|---|\n| `x` | **1,234** (5.6) |\n\nSays 7\nand 8.\n\n## H\n\n| a |\n|---|\n| 9 |\n"
    (tmp_path / "t.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr(result_tables, "RESULTS", tmp_path)
    row = result_tables.table("t").where("x")
    assert (row.number("b"), row.number("b", 1), row.text("a")) == (1234.0, 5.6, "x")
    assert result_tables.table("t", "H").numbers(0) == [9.0]
    assert result_tables.said("t", r"Says (\d) and (\d)") == ("7", "8")
    for wrong in (
        lambda: result_tables.table("t", "H", 1),
        lambda: row.number("c"),
        lambda: result_tables.table("t").where("y"),
        lambda: result_tables.said("t", "Says (9)"),
    ):
        with pytest.raises(result_tables.NoFigureError):
            wrong()


def test_the_command_writes_pages_and_checks_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = README.read_text(encoding="utf-8")
    wrong = re.sub(r"(?<=proof: )[\d.]+ s", "1.234 s", text)
    assert wrong != text
    (tmp_path / "README.md").write_text(wrong, encoding="utf-8")
    assert quotes.main(["README.md", "--check", "--root", str(tmp_path)]) == 1
    assert "'1.234' is '28.434'" in capsys.readouterr().out
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == wrong
    assert quotes.main(["README.md", "--root", str(tmp_path)]) == 0
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == text
    with pytest.raises(SystemExit):
        quotes.main(["nowhere.md"])
