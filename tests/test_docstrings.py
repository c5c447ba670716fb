"""The words of the package: docstrings that say what a thing is, units and sections, and the field's terms in names."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mig_opt

ROOT = Path(__file__).parents[1]
PACKAGE = Path(mig_opt.__file__).parent
MODULES = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}

RIDDLES = ("How", "What", "When", "Where", "Whether", "Which", "Who", "Why")
"""A first line that opens with one of these asks the reader to guess the noun."""
STUBS = ("At", "By", "If", "Of", "That", "To", "Told", "Up", "With")
"""A first line that opens with one of these is half of a phrase; tests may have such sentences."""

# From the glossary: what names are made of elsewhere.
FOREIGN = {
    "agenda": "event queue",
    "household": "worker pool",
    "kick": "perturbation",
    "lives": "lifetimes",
    "occupancy": "lifetimes",
    "servant": "worker",
    "shake": "perturbation",
    "spots": "places",
    "ticked": "integer",
    "tip": "leaf",
}


def documentation(path: Path) -> Iterator[str]:
    """Docstrings of a module, of its classes and functions, and those that stand below a value."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def openings(path: Path, *words: str) -> list[str]:
    """The docstrings of a module that open with one of the words."""
    return [text for text in documentation(path) if re.split(r"\W", text, maxsplit=1)[0] in words]


@pytest.mark.parametrize("module", MODULES)
def test_first_lines_say_what_a_thing_is_or_does(module: str) -> None:
    assert openings(MODULES[module], *RIDDLES, *STUBS) == []
    # "Up to so many" leaves a number to be guessed, too.
    assert not [text for text in documentation(MODULES[module]) if re.search(r"\bso\s+(many|much)\b", text)]


@pytest.mark.parametrize("folder", ["bench", "tests"])
def test_those_of_benchmarks_and_tests_do_so_too(folder: str) -> None:
    found = {str(path): openings(path, *RIDDLES) for path in sorted((ROOT / folder).rglob("*.py"))}
    assert not {path: texts for path, texts in found.items() if texts}


def words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def names(path: Path) -> Iterator[str]:
    """Every name that a module defines: functions, classes, arguments, variables, attributes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


@pytest.mark.parametrize("module", MODULES)
def test_names_are_made_of_the_field_s_words(module: str) -> None:
    parts = {*names(MODULES[module]), *Path(module).with_suffix("").parts}
    assert {name: FOREIGN[word] for name in parts for word in words(name) & FOREIGN.keys()} == {}


def public_functions() -> Iterator[tuple[str, object]]:
    """The functions of ``mig_opt.__all__``, and the public methods of its classes."""
    for name in mig_opt.__all__:
        thing = getattr(mig_opt, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing):
            for attribute, value in vars(thing).items():
                method = value.__func__ if isinstance(value, classmethod | staticmethod) else value
                if inspect.isfunction(method) and not attribute.startswith("_"):
                    yield f"{name}.{attribute}", method


PUBLIC = dict(public_functions())


@pytest.mark.parametrize("name", PUBLIC)
def test_public_functions_are_documented(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    assert text, "every public function has a docstring"
    signature = inspect.signature(PUBLIC[name])  # type: ignore[arg-type]
    parameters = [parameter for parameter in signature.parameters if parameter not in {"self", "cls"}]
    if len(parameters) < 2:
        return
    assert "Parameters\n----------" in text
    if signature.return_annotation not in (None, "None"):
        assert "Returns\n-------" in text
    described = text[text.index("Parameters\n----------") :]
    lines = re.findall(r"^\*{0,2}(\w[\w, ]*?)(?: :|$)", described, re.MULTILINE)
    listed = {entry for line in lines for entry in line.split(", ")}
    assert set(parameters) <= listed
