"""Claims of the papers: all are measured and shown, and nothing is judged without its reasons."""

import re

import pytest
from places import DOCS, PUBLISHED

from bench.papers import measure as papers
from bench.papers.claims import STORED, Claim, Group, Measured, Reading, Store, Verdict, compare

PAGES = DOCS / "explanation" / "papers"
ONE = Claim("rho", "1.23", "1.24", Verdict.AGREES)
WRONG = Claim("gain", "13", "2", Verdict.DOES_NOT)


@pytest.mark.parametrize("name", papers.PAPERS)
def test_every_group_is_measured_and_names_what_it_must(name):
    paper = papers.load(name)
    assert paper.name == name
    found = Store(name).in_order(paper.groups)
    assert list(found) == list(paper.groups), f"run python -m bench.papers.measure {name}"
    for key, entry in found.items():
        assert paper.groups[key].__doc__ == f"{entry.group.where}: {entry.group.title}."
    claims = (claim for entry in found.values() for claim in entry.group.claims)
    assert all(claim.measured or claim.verdict is Verdict.CANNOT for claim in claims)


NOT_IN_THE_TEXT = {("parvagpu", "program"), ("migm", "tables")}
"""Groups whose printed figures are those of published files, or sums of printed ones."""


@pytest.mark.skipif(not (PUBLISHED.parent / "papers").is_dir(), reason="needs the published data: MIG_OPT_PUBLISHED")
@pytest.mark.parametrize("name", papers.PAPERS)
def test_what_is_called_printed_stands_in_the_paper(name):
    text = (PUBLISHED.parent / "papers" / f"{name}.txt").read_text(encoding="utf-8")
    # Some figures stand there twice in a row, as a number and as a formula.
    text = re.sub(r"(\d+\.\d\d)(?=\1)", r"\1 ", text)
    found = Store(name).in_order(papers.load(name).groups)
    for key, entry in found.items():
        for claim in entry.group.claims if (name, key) not in NOT_IN_THE_TEXT else ():
            for number in re.findall(r"\d+(?:\.\d+)?", claim.printed):
                ways = [rf"(?<![\d.])({re.escape(f'{float(number):g}')}0*|{re.escape(number)})(?!\d|\.\d)"]
                if name == "migm":  # A ratio of 1.64 stands there as 64 %.
                    shares = (f"{100 * float(number) - 100 + part / 100:.2f}" for part in range(-50, 50))
                    ways += [rf"(?<![\d.]){float(share):g}\s*%" for share in shares]
                assert any(re.search(way, text) for way in ways), f"{key}, {claim.what}: {number}"


@pytest.mark.parametrize("name", papers.PAPERS)
def test_every_group_is_on_the_page_of_its_paper(name):
    shown = re.findall(
        rf'^\{{\{{ claims\("{name}", "([\w-]+)"\) \}}\}}$', (PAGES / f"{name}.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(shown) == sorted(papers.load(name).groups)
    assert {path.stem for path in PAGES.glob("*.md")} == {*papers.PAPERS, "README"}
    assert {path.stem for path in STORED.glob("*.json")} == set(papers.PAPERS)


def test_a_verdict_needs_its_reasons():
    unknown = Claim("power", "90 W", "", Verdict.CANNOT)
    for claims, needed in (((ONE, WRONG), "the readings"), ((unknown,), "a reason"), ((), "a claim")):
        with pytest.raises(ValueError, match=f"needs {needed}"):
            Group(claims)


def test_what_is_stored_is_read_again(tmp_path):
    made = Measured(Group((WRONG,), readings=(Reading("r", "o", searched=True),)), "today")
    Store("p", tmp_path).put("t1", made, ["t1"])
    assert Store("p", tmp_path).in_order(["t1"]) == {"t1": made}


@pytest.mark.parametrize(
    ("wrong", "what"),
    [("nobody", "no paper nobody"), ("far --only=x", "there is no x"), ("far far --only=x", "needs one paper")],
)
def test_wrong_arguments(wrong, what, capsys, tmp_path):
    with pytest.raises(SystemExit) as ending:
        papers.main([*wrong.split(), "--results", str(tmp_path)])
    assert ending.value.code == 2
    assert what in capsys.readouterr().err


def test_comparing():
    assert compare(1.23, 1.24, within=0.01) == ("1.23", "1.24", Verdict.AGREES)
    assert compare(1.23, 1.4, within=0.01, direction=True) == ("1.23", "1.40", Verdict.DIRECTION)
    assert compare(1.23, 1.4, within=0.01)[2] is compare(1.23, 1.4, within=0.01, direction=False)[2] is Verdict.DOES_NOT
