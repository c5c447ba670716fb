"""The house: every module stands on its floor, imports point down, and no modules import each other in a circle."""

import ast
import importlib
import re
import sys
from pathlib import Path
from types import FrameType

import networkx as nx
import pytest
from places import DOCS

import mig_opt

PACKAGE = Path(mig_opt.__file__).parent

# From the top floor to the bottom; docs/explanation/architecture.md shows the same list.
FLOORS = """__main__ cli mig_opt verbs operations views environments studies instances files api heuristics models
    simulation validation fleet serving batch gpu method native rules texts errors _version"""
HEIGHT = {room: height for height, room in enumerate(reversed(FLOORS.split()))}
PROBLEMS = ("batch", "serving", "fleet")
"""Each may use those before it: the jobs of a trace become the tasks of a batch."""


MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def imported(module: str) -> set[str]:
    """The modules of the package that one imports, those for annotations and those within functions included."""
    found: set[str] = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & MODULES.keys()) | ({node.module} if inner - MODULES.keys() else set())
    return found - {module}


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def problem(module: str) -> str | None:
    return next((part for part in module.split(".")[1:] if part in PROBLEMS), None)


IMPORTS = {module: imported(module) for module in MODULES}


ARROWS = [(module, target) for module, targets in IMPORTS.items() for target in sorted(targets)]
GRAPH = nx.DiGraph(ARROWS)


@pytest.mark.parametrize("module", MODULES)
def test_every_module_imports_only_from_its_own_floor_or_below(module: str) -> None:
    assert [target for target in IMPORTS[module] if HEIGHT[room(target)] > HEIGHT[room(module)]] == []


def test_problems_use_those_before_them_only() -> None:
    for module, target in ARROWS:
        one, two = problem(module), problem(target)
        assert not (one and two) or PROBLEMS.index(two) <= PROBLEMS.index(one), f"{module} imports {target}"


def test_models_and_heuristics_know_nothing_of_each_other() -> None:
    reached = {module: {room(name) for name in nx.descendants(GRAPH, module)} for module in GRAPH}
    foreign = {"models": "heuristics", "heuristics": "models"}
    assert [module for module in GRAPH if foreign.get(room(module)) in reached[module]] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    circles = nx.strongly_connected_components(GRAPH)
    assert [sorted(circle) for circle in circles if len(circle) > 1] == []


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_few_at_the_root_and_no_longer_than_about_400_lines(module: str) -> None:
    assert len(MODULES[module].read_text(encoding="utf-8").splitlines()) <= 450
    assert len(list(PACKAGE.glob("*.py"))) <= 6


HOMES = {
    "pydantic": ("files",),
    "matplotlib": ("views",),
    "bokeh": ("views",),
    "pandas": ("views",),
    "ortools": ("models",),
    "pulp": ("models",),
    "highspy": ("models",),
    "typer": ("cli",),
    "rich": ("cli",),
    "distributed": ("operations", "studies"),
    "pynvml": ("operations",),
    "gymnasium": ("environments",),
}


@pytest.mark.parametrize("module", MODULES)
def test_heavy_libraries_stay_where_they_belong(module: str) -> None:
    for node in ast.walk(tree_of(module)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} has a relative import"
            names = [node.module or ""]
        for name in names:
            assert room(module) in HOMES.get(name.split(".")[0], (room(module),)), f"{module} imports {name}"


@pytest.mark.parametrize("module", [module for module in MODULES if room(module) != "cli"])
def test_nothing_outside_the_command_line_prints(module: str) -> None:
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{module}:{node.lineno}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sys":
            assert node.attr not in {"stdout", "stderr"}, f"{module}:{node.lineno}"


PAGE = DOCS / "explanation" / "architecture.md"
needs_page = pytest.mark.skipif(not PAGE.is_file(), reason="the tests run without the checkout")


@needs_page
def test_the_page_shows_the_floors() -> None:
    picture = PAGE.read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    rows = [line.partition("   ")[0].split() for line in picture.splitlines()[1:] if line[1] != " "]
    floors = [word for row in rows for word in row if word in HEIGHT]
    assert set(floors) == set(HEIGHT) - {"mig_opt"}
    heights = [HEIGHT[word] for word in floors]
    assert heights == sorted(heights, reverse=True)


@needs_page
def test_the_answers_of_the_page_exist() -> None:
    answers = re.findall(r"^\| [^|]+\? \| `([^`]+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(answers) == 20
    for answer in answers[:-1]:
        assert (PACKAGE.parent / answer).exists(), answer


@needs_page
def test_the_files_of_a_proof_run_for_a_proof() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## A proof, file by file")[2].partition("## Three walks")[0]
    places = re.findall(r"^\d+\. `(mig_opt\.[\w.]+)`", text, re.MULTILINE)
    ran: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            ran.add(frame.f_globals["__name__"])

    batch = mig_opt.generate_batch(10, seed=1)
    sys.setprofile(note)
    try:
        result = mig_opt.solve(batch)
    finally:
        sys.setprofile(None)
    assert result.status == "optimal"
    assert len(places) <= 15
    for place in places:
        module, name = place.rsplit(".", 1)
        assert hasattr(importlib.import_module(module), name), place
        assert module in ran, place


@needs_page
def test_the_walks_of_the_page_go_down() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## Three walks")[2].partition("## Twenty questions")[0]
    walks = [re.findall(r"`(mig_opt\.[\w.]+)`", walk) for walk in text.split("\n\n**")[1:]]
    assert [len(walk) for walk in walks] == [5, 6, 5]
    for walk in walks:
        heights = []
        for place in walk:
            module, name = place.rsplit(".", 1)
            assert hasattr(importlib.import_module(module), name), place
            heights.append(HEIGHT[room(module)])
        assert heights == sorted(heights, reverse=True)
        assert len(set(heights)) == len(heights), "a walk crosses a layer twice"
