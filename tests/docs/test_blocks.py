"""Every block of the pages is run as a reader would, or is marked as a file, an output, or as something not to run."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer
from blocks import Block, blocks_of, commands_of, first_difference, is_run, run_page
from documents import flaws
from places import BENCH, DOCS, PROJECT, README

from mig_opt import Point, ProfileTable, schema
from mig_opt.cli.app import command_line
from mig_opt.files.fleet.traces import TRACE
from mig_opt.files.recognition import document_kind
from mig_opt.files.serving.arrivals import read_rates, read_recorded
from mig_opt.files.serving.demands import DEMAND

PAGES = sorted(
    [README, BENCH / "README.md", *(page for page in DOCS.rglob("*.md") if page.parent.name != "benchmarks")]
)
BLOCKS = [(page, block) for page in PAGES for block in blocks_of(page)]
DATA = {"json", "toml", "csv"}
PROFILES = [ProfileTable(model, "A100-80GB", (Point(1, 8, 1, 100.0, 0.05),)) for model in ("bert", "resnet50")]
"""Those that a table of services goes with."""


def named(page: Path) -> str:
    return str(page.relative_to(PROJECT))


def runnable(page: Path) -> bool:
    return any(is_run(block) for block in blocks_of(page))


def documents(block: Block) -> list[object]:
    """The documents that a block is: one, or one in each line."""
    if block.language == "toml":
        return [tomllib.loads(block.text)]
    try:
        return [json.loads(block.text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in block.text.splitlines()]


def fences(page: Path) -> int:
    """The number of fences, found in another way than the blocks are: also indented ones, and those of tildes."""
    count, fence = 0, ""
    for line in page.read_text(encoding="utf-8").splitlines():
        sign = re.match(r"[\s>]*(`{3,}|~{3,})", line)
        if sign and not fence:
            count, fence = count + 1, sign[1]
        elif sign and sign[1].startswith(fence) and line.strip() == sign[1]:
            fence = ""
    assert not fence, f"{page} ends in a fence"
    return count


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_fence_is_missed(page):
    assert fences(page) == len([block for block in blocks_of(page) if block.language != "run"])


@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=[f"{named(page)}:{block.line}" for page, block in BLOCKS])
def test_every_block_is_run_or_marked(page, block, tmp_path):
    if is_run(block) or block.mark:
        return
    assert block.language in DATA, "run it, or mark it: <!-- file: NAME -->, <!-- output -->, <!-- not run: REASON -->"
    if block.language == "csv":
        read_table(block.text, tmp_path / "table.csv")
        return
    for document in documents(block):
        assert isinstance(document, dict)
        kind = document_kind(json.dumps(document))
        assert kind is not None, "a document of no kind is an output: <!-- output -->"
        assert flaws(schema(kind), document) == []


def read_table(text: str, path: Path) -> None:
    """Read a table as what its columns say that it is; it has to hold something."""
    path.write_text(text, encoding="utf-8")
    columns = set(text.partition("\n")[0].split(","))
    if {"job", "arrival_s"} <= columns:
        assert TRACE.read(path, gpu="A100").jobs
    elif "slo_ms" in columns:
        assert DEMAND.read(path, gpu="A100-80GB", tables=PROFILES).services
    elif columns == {"time", "service"}:
        assert read_recorded(path)
    else:
        assert "time" in columns, "a table that nothing reads is an output: <!-- output -->"
        assert len(read_rates(path).times) > 1


NOT_RUN = [
    (program, command)
    for page, block in BLOCKS
    if block.mark.startswith("not run")
    for program, command in re.findall(
        r"^(?:\$ )?(?:sudo )?(mig-opt|python -m bench\.[\w.]+) *(.*)$", block.text.replace("\\\n", ""), re.MULTILINE
    )
]
"""Commands of the package, and studies."""


@pytest.mark.parametrize(("program", "command"), NOT_RUN, ids=map(" ".join, NOT_RUN))
def test_commands_that_are_not_run_have_their_options(program, command):
    words = shlex.split(command, comments=True)
    options = {word.partition("=")[0] for word in words if word.startswith("-")}
    if program == "mig-opt":
        assert options <= options_of(words)
    else:
        texts = [path.read_text(encoding="utf-8") for path in BENCH.rglob("*.py")]
        assert (PROJECT / f"{program.removeprefix('python -m ').replace('.', '/')}.py").is_file()
        assert [option for option in options if not any(f'"{option}"' in text for text in texts)] == []


def options_of(words: list[str]) -> set[str]:
    """The options of the command that these words begin with; of the whole program if they are options alone."""
    found = typer.main.get_command(command_line())
    for word in words:
        if word not in getattr(found, "commands", {}):
            break
        found = found.commands[word]
    assert not hasattr(found, "commands") or words[0].startswith("-"), f"no command: {words}"
    return {name for param in found.params for name in (*param.opts, *param.secondary_opts)}


@pytest.mark.deep
@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)], ids=named)
def test_a_reader_comes_to_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    run_page(page, folder, capsys)


@pytest.mark.deep
def test_a_type_checker_takes_the_readme_and_wants_no_method_of_a_policy():
    code = "".join(block.text for block in blocks_of(README) if block.language == "python")
    code += "from mig_opt.simulation import Policy\nclass Idle(Policy): ...\nIdle()\n"
    told, _, _ = pytest.importorskip("mypy.api").run(
        ["--strict", "--config-file=", "--follow-imports=silent", "-c", code]
    )
    assert "Success" in told, told


def test_commands_and_their_outputs():
    text = "$ a b\none\ntwo\n$ c \\\n   d\n"
    assert commands_of(text) == [("a b", ["one", "two"]), ("c    d", [])]


def test_differences_that_count():
    equal = [("a\nb", "a\nb\n"), ("a\n...", "a\nb\nc\n"), ("...\nc", "a\nb\nc\n"), ("mig-opt 0.1.0", "mig-opt 1.2.3\n")]
    equal += [("runtime 0.1 s", "runtime 0.25 s\n"), ("name  time s\n────\na 1.0", "name time s\n──\na 2.0\n")]
    differ = [("a\nb", "a\n"), ("a", "a\nb\n"), ("...\nc", "a\nb\n"), ("makespan 0.1 s", "makespan 0.25 s\n")]
    for shown, printed in (*equal, *differ):
        assert (first_difference(shown.splitlines(), printed) is None) == ((shown, printed) in equal), shown
