"""Freezes behaviour: what commands print and write, for small inputs, in the texts below ``data/``.

``python tests/golden/freeze.py [PATTERN]`` writes them anew, all or those whose names hold the pattern; ``git diff``
shows what has changed. ``test_golden.py`` compares.
"""

import contextlib
import difflib
import functools
import hashlib
import importlib.metadata
import json
import math
import re
import shlex
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import adapter
from pictures import drawn_figures, figure_lines, page_lines
from wrong import changed_texts, wrong_documents, wrong_lines, wrong_tables

HERE = Path(__file__).parent
DATA = HERE / "data"
_TESTS = HERE.parent
_INPUTS = {
    "": HERE / "inputs",
    "release": _TESTS / "files" / "release_1_0",
    "forms": _TESTS / "operations" / "observe" / "forms",
    "benchmarks": _TESTS / "files" / "serving" / "benchmarks",
}
"""The folders whose files commands find in theirs."""

KINDS = ("batch", "schedule", "result", "certificate", "study", "services", "profiles", "deployment")
KINDS += ("deployment-result", "trace", "state", "costs", "commands", "gpu")

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]\w)")
_NORMAL: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    # Run times: the adapter's clocks are ten million times too slow.
    (r"(?<![\w.])\d(\.\d+)?e-(0[6-9]|1\d)(?!\w)", "0"),
    (r'"versions": \{[^}]*\}', '"versions": {}'),
    (r'"digest": "\w{64}"', '"digest": "..."'),  # of certificates, which have versions
    (r"\b(mig-opt|highspy|numpy|ortools|pulp|python) \d+\.\d[\w.+-]*", r"\1 VERSION"),
    (r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ", "TIME "),  # of logs
    # Twelve digits: sums of floats in another order differ beyond.
    (r"-?\d+\.\d{12,}(?:e[+-]?\d+)?", lambda found: f"{float(found[0]):.12g}"),
    (r"[ \t]+$", ""),
)
_OWN_NORMAL: Mapping[str, tuple[tuple[str, str], ...]] = {
    "bench-more": (  # runs in processes of their own, whose clocks are right; rules are as wide as the figures
        (r"^( +(?:far|lpt) .*) \d+\.\d{3}$", r"\1 #.###"),
        (r"^( +(?:first|best)-fit .*?) +\d+\.\d$", r"\1 #.#"),
        (r" +ms$", " ms"),
        (r"─+", "───"),
        (r'"(seconds|fingerprint|date|environment)": ("[^"]*"|\{[^}]*\}|[\d.e-]+)', r'"\1": ...'),
    ),
    "catalogues": (
        (r"^(mig-opt|python|ortools|pulp|highspy|networkx|numpy|pydantic|typer|rich|matplotlib|bokeh|dask) .*", r"\1"),
        (r'^(  "[a-z-]+": )("\d+\.\d[^"]*"|null)', r"\1..."),
    ),
    "execution": (  # real time, too
        (r"[-+]?\d+\.\d+", "#"),
        (r"\(#%\)", "#"),
        (r" +", " "),
        (r"─+", "───"),
        (r'"MIG-[^"]*"', '"MIG"'),
    ),
}


# What there is


def groups() -> dict[str, Callable[[], Iterator[str]]]:
    """Return by name what makes the texts."""
    found: dict[str, Callable[[], Iterator[str]]] = {"help": _helps, "cards": _cards}
    found |= {f"schema-{kind}": functools.partial(_schema, kind) for kind in KINDS}
    wrong = json.loads((HERE / "documents.json").read_text(encoding="utf-8"))
    found |= {f"wrong-{kind}": functools.partial(_wrong, **entry) for kind, entry in wrong.items()}
    for section in (HERE / "commands.txt").read_text(encoding="utf-8").split("\n[")[1:]:
        heading, *lines = section.splitlines()
        name, _, forms = heading.rstrip("]").partition(":")
        make = _execution if name == "execution" else functools.partial(_commands, forms=forms.split())
        found[name] = functools.partial(make, [line for line in lines if line])
    return found


def _helps() -> Iterator[str]:
    """Yield the help of everything that the help names."""
    pending = [""]
    while pending:
        command = pending.pop(0)
        line = f"mig-opt {command} --help".replace("  ", " ")
        yield from _run(line, 80)
        listed = list(_run(line))
        yield from listed
        for block in re.split(r"\n(?=\S)", "\n".join(listed[2:])):
            if block.startswith("Commands:") if command else not re.match("Usage|Options|Examples", block):
                names = re.findall(r"^  ([a-z]+(?: [a-z]+)?)(?=  )", block, re.MULTILINE)
                pending += [f"{command} {name}".strip() for name in names]


def _schema(kind: str) -> Iterator[str]:
    """Yield a schema; the order of keys, which says nothing, depends on pydantic's version."""
    code, out, err = adapter.run(["schema", kind])
    yield from [f"exit {code}", *json.dumps(json.loads(out), indent=1, sort_keys=True).splitlines(), *err.splitlines()]


def _wrong(valid: str, command: str, wrong: list[Any]) -> Iterator[str]:
    """Yield what a command says about wrong documents."""
    below, _, name = valid.rpartition("/")
    text, form = (_INPUTS[below] / name).read_text(encoding="utf-8"), Path(name).suffix
    make = {".csv": wrong_tables, ".jsonl": wrong_lines, ".journal": wrong_lines}.get(form, wrong_documents)
    make = changed_texts if form == ".txt" or below == "benchmarks" else make  # what other programs print
    name = f"wrong{form}"
    yield f"$ {command.replace('FILE', name)}"
    with _folder() as folder:
        for title, data in make(text, wrong):
            (folder / name).write_bytes(data)
            program, *arguments = shlex.split(command.replace("FILE", name))
            code, out, err = adapter.run(arguments) if program == "mig-opt" else adapter.read(*arguments)
            yield f"## {title}"
            yield f"exit {code}"
            yield from [*(out if code else "").splitlines(), *err.splitlines()]


def _commands(lines: list[str], forms: list[str]) -> Iterator[str]:
    for line in lines:
        usual = list(_run(line))
        yield from usual
        if "80" in forms:
            narrow = list(_run(line, 80))
            yield from narrow if narrow[1:] != usual[1:] else [narrow[0], "the same"]
        if "json" in forms:
            yield from _run(f"{line} --json")


def _run(line: str, columns: int = 120) -> Iterator[str]:
    """Yield what a command prints and writes, and its exit code."""
    words = shlex.split(line)
    given = b""
    if "<" in words:
        *words, _, name = words
    environment = dict(word.split("=", 1) for word in words[: words.index("mig-opt")])
    arguments = words[words.index("mig-opt") + 1 :]
    with _folder(line) as folder, drawn_figures() as figures:
        if "<" in line and Path(name).exists():
            given = Path(name).read_bytes()
        before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
        code, out, err = adapter.run(arguments, columns=columns, given=given, **environment)
        yield f"$ {'' if columns == 120 else f'COLUMNS={columns} '}{line}"
        yield f"exit {code}"
        yield from out.splitlines()
        yield from ["-- standard error", *err.splitlines()] if err else []
        for path in sorted(folder.rglob("*")):
            if path.is_file() and before.get(path) != path.stat().st_mtime_ns:
                yield f"-- {path.relative_to(folder)}"
                yield from _content(path, figures)


def _content(path: Path, figures: list[Any]) -> Iterator[str]:
    """Yield what is in a file that a command has written."""
    if path.suffix in (".svg", ".png", ".pdf"):
        for figure in figures:
            yield from figure_lines(figure)
    elif path.suffix == ".html":
        yield from page_lines(path)
    elif path.suffix in (".lp", ".mps"):
        lines = path.read_text(encoding="utf-8").splitlines()
        yield from lines[:8]
        digest = hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]
        yield f"... {len(lines)} lines, sorted of digest {digest}"
    else:
        yield from path.read_text(encoding="utf-8").splitlines()


def _cards() -> Iterator[str]:
    with _folder():
        for name, shown in adapter.shown():
            yield f"## {name}"
            if isinstance(shown, str):
                yield from re.sub(
                    r"<style>.*?</style>|(?=<tr|<rect|<table|<svg|<div)", "\n", shown, flags=re.DOTALL
                ).split("\n")
            else:
                yield from figure_lines(shown)


def _execution(lines: list[str]) -> Iterator[str]:
    with _folder() as folder, adapter.machine(folder):
        for line in lines:
            code, out, err = adapter.run(shlex.split(line)[1:], nvml=True)
            yield from [f"$ {line}", f"exit {code}", *out.splitlines(), *err.splitlines()]


@contextlib.contextmanager
def _folder(line: str = "release forms") -> Iterator[Path]:
    """Work in a new folder with the inputs, those in folders if the line of a command names the folder."""
    with tempfile.TemporaryDirectory(prefix="golden-") as name, contextlib.chdir(name):
        for below, source in _INPUTS.items():
            if below in line:
                shutil.copytree(source, Path(name, below), dirs_exist_ok=True)
        yield Path(name).resolve()


# What is kept, and how it is compared


def frozen(name: str) -> str:
    """Return the text of a group as it is today."""
    text = "\n".join(groups()[name]()) + "\n"
    text = re.sub(re.escape(str(Path(tempfile.gettempdir()).resolve())) + r"/golden-\w+", "FOLDER", text)
    for pattern, new in (*_NORMAL, *_OWN_NORMAL.get(name, ())):
        text = re.sub(pattern, new, text, flags=re.MULTILINE)
    return text


def stored(name: str) -> Path:
    """Return the file of a group."""
    return DATA / f"{name}.txt"


def versions() -> dict[str, str]:
    """Return the versions of the libraries that have a say in what is frozen."""
    found = {name: importlib.metadata.version(name) for name in ("matplotlib", "rich", "typer")}
    return {name: ".".join(version.split(".")[:2]) for name, version in found.items()}


def difference(name: str, old: str, new: str) -> str:
    """Return what differs between two texts of a group.

    Of other versions of libraries than those that were frozen with, what these choose does not count: typer's words,
    where rich puts the words of a table, and a little of the sizes that matplotlib's fonts give.
    """
    then = json.loads((DATA / "versions.json").read_text(encoding="utf-8"))
    other = {library for library, version in versions().items() if then[library] != version}
    if "typer" in other and name in ("help", "usage"):
        return ""
    if "rich" in other:
        old, new = map(_words, (old, new))
    figures = name.startswith(("pictures", "cards"))
    nearly = 1e-9 if not figures else 0.05 if "matplotlib" in other else 0.002
    before, now = old.splitlines(), new.splitlines()
    if len(before) == len(now):
        before = [two if _same(one, two, nearly) else one for one, two in zip(before, now, strict=True)]
    return "\n".join(difflib.unified_diff(before, now, f"{name} as frozen", f"{name} now", lineterm="", n=4))


def _words(text: str) -> str:
    """Return the words of each command's output, sorted."""
    commands = re.split(r"^(?=\$ )", re.sub("─+", "─", text), flags=re.MULTILINE)
    return "\n".join(" ".join(sorted(command.split())) for command in commands)


def _same(one: str, two: str, nearly: float) -> bool:
    if one == two or _NUMBER.sub("#", one) != _NUMBER.sub("#", two):
        return one == two
    numbers = zip(map(float, _NUMBER.findall(one)), map(float, _NUMBER.findall(two)), strict=True)
    return all(math.isclose(first, second, rel_tol=nearly, abs_tol=nearly / 100) for first, second in numbers)


def main(pattern: str = "") -> None:
    """Write the texts anew."""
    warnings.simplefilter("error")
    sys.path.append(str(HERE.parent / "helpers"))
    (DATA / "versions.json").write_text(f"{json.dumps(versions())}\n", encoding="utf-8")
    names = groups()
    for path in DATA.glob("*.txt"):
        if path.stem not in names:
            path.unlink()
    for name in names:
        if pattern in name:
            text = frozen(name)
            if not stored(name).exists() or difference(name, stored(name).read_text(encoding="utf-8"), text):
                stored(name).write_text(text, encoding="utf-8")
                print(f"{name}: written")  # noqa: T201 - a program


if __name__ == "__main__":
    main(*sys.argv[1:2])
