"""Pages and docstrings name only what exists: files, headings, modules, and what stands in these."""

import importlib
import re
from pathlib import Path

import pytest
from places import BENCH, DOCS, PROJECT, README

import mig_opt

pytestmark = pytest.mark.skipif(not README.is_file(), reason="the tests run without the checkout")

PAGES = sorted(
    [README, *(page for page in DOCS.rglob("*.md") if page.parent.name != "benchmarks"), *BENCH.rglob("*.md")]
)
"""Those that are written: the site has more, made of others."""
PACKAGE = Path(mig_opt.__file__).parent
SOURCES = sorted([*PACKAGE.rglob("*.py"), PACKAGE / "__init__.pyi", *BENCH.glob("*.py")])


def named(path: Path) -> str:
    return str(path.relative_to(PROJECT)) if path.is_relative_to(PROJECT) else str(path)


def without_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The names by which headings can be linked to, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", without_blocks(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", without_blocks(page)):
        name, _, heading = link.partition("#")
        target = page.parent / name if name else page
        if "://" not in link and (not target.exists() or (heading and heading not in anchors(target))):
            wrong.append(link)
    assert wrong == []


def exists(name: str) -> bool:
    """Tell if a dotted name is a module, or something in one: an attribute, or a field of a class."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            if part in getattr(thing, "__annotations__", {}) and not hasattr(thing, part):
                return True
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


@pytest.mark.parametrize("source", [*PAGES, *SOURCES], ids=named)
def test_modules_and_files_exist(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    names = re.findall(r"\bmig_opt(?:\.\w+)+(?::\w+)?", text)
    assert sorted({name for name in names if not exists(name.replace(":", "."))}) == []
    files = re.findall(r"(?<![\w./-])(?:mig_opt|docs|bench|tests)/(?!(?:Batch|Fleet)-v0)[\w./-]*\w", text)
    there = (PROJECT / name for name in files)
    assert sorted({str(path) for path in there if not path.exists() and not Path(f"{path}.xz").exists()}) == []


def test_what_does_not_exist_is_noticed() -> None:
    assert all(map(exists, ("mig_opt.api.solve.solve", "mig_opt.method.result.Result.lower_bound", "mig_opt.gpu")))
    wrong = "mig_opt.api.solve.sovle", "mig_opt.method.result.Result.upper_bound", "mig_opt.nowhere"
    assert not any(map(exists, wrong))


def test_every_method_of_deploy_has_its_row() -> None:
    page = (DOCS / "explanation" / "deployments.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)`", page, re.MULTILINE)
    assert {method.name for method in mig_opt.methods("deploy")} <= set(rows)
