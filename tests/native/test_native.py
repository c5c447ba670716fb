"""The loops in C: how Python calls them, and how they are compiled."""

import ctypes
import importlib.util
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from places import PROJECT
from scripts import ended
from wrong_arguments import fitting, sizes_of

from mig_opt import native
from mig_opt.native import Array, Node, Structure, declared_loops, loop, loops

BUILD = PROJECT / "hatch_build.py"


@pytest.fixture
def build() -> ModuleType:
    if not BUILD.is_file():
        pytest.skip("the tests run without the checkout")
    spec = importlib.util.spec_from_file_location("hatch_build", BUILD)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("optimised", [False, True])
def test_every_loop_refuses_all_that_it_does_not_declare(*, optimised: bool) -> None:
    """Each argument with another type or rank, strided, by columns, not aligned, read only, too long, and so on."""
    code = "import wrong_arguments; print(*wrong_arguments.not_refused(), sep='\\n', end='')"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = ended(sys.executable, *["-O"] * optimised, "-c", code, env=environment)
    assert (done.stdout, done.stderr) == ("", "")


SMALL = """
typedef struct { int32_t *at; int64_t rows, columns; } TableRows;
typedef struct { double share; OF(rows, 3) TableRows table; int64_t count; } Mixed;
EXPORT double small(const Mixed *mixed, OF(0 <= at < rows) int64_t at, const int64_t limits[2], double last);
"""


class Mixed(NamedTuple):
    share: float
    table: np.ndarray
    count: int


def test_structures_have_eight_bytes_for_each_field() -> None:
    table = np.arange(6, dtype=np.int32).reshape(2, 3)
    mixed, at, limits, last = loops(SMALL)["small"]().packed([Mixed(1, table, True), np.int64(1), (-7, 8), 9])
    assert struct.unpack("dqqqq", mixed) == (1.0, table.__array_interface__["data"][0], 2, 3, 1)
    assert (at, struct.unpack("qq", limits), last, type(last)) == (1, (-7, 8), 9.0, float)


@pytest.mark.parametrize(
    "line",
    [
        "EXPORT int one(int64_t number);",
        "EXPORT void one(float number);",
        "EXPORT void one(OF(tasks) const TableRows *table);",
        "typedef struct { int64_t number; Mixed *mixed; } Wrong;",
        "void one(int64_t number);",
    ],
)
def test_what_is_declared_in_another_way_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"loops\.h: "):
        loops(SMALL + line)["one"]()


def cells_of(node: Node) -> int:
    if isinstance(node, Structure):
        return sum(map(cells_of, node.members))
    return 1 + len(node.sizes) if isinstance(node, Array) else 1


def test_structures_are_those_of_the_compiler(build: ModuleType, tmp_path: Path) -> None:
    lines = ["#include <stddef.h>", '#include "loops.h"']
    for declared in (made() for made in declared_loops().values()):
        for node in fitting(declared, sizes_of(declared))[1]:
            if isinstance(node, Structure) and node.fields:
                at = 0
                for field, member in zip(node.fields, node.members, strict=True):
                    lines.append(f'_Static_assert(offsetof({node.kind}, {field}) == {8 * at}, "");')
                    at += cells_of(member)
                lines.append(f'_Static_assert(sizeof({node.kind}) == {8 * at}, "");')
    (tmp_path / "layout.c").write_text("\n".join(lines))
    subprocess.run(
        [*build.compiler(), "-std=c11", "-fsyntax-only", f"-I{build.FOLDER}", tmp_path / "layout.c"], check=True
    )


def test_the_library_that_is_missing_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    native._library.cache_clear()
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "loops.shared")
    with pytest.raises(ImportError, match=r"install the package anew, or in a checkout run: python hatch_build\.py"):
        loop("not_loaded_yet")()
    native._library.cache_clear()


def test_loops_of_other_sources_say_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "changed.c").touch()
    native._library.cache_clear()
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    with pytest.raises(ImportError, match=r"are not those of their sources; .* python hatch_build\.py"):
        loop("not_loaded_yet")()
    native._library.cache_clear()


def test_a_loop_that_there_is_not_says_what_to_do() -> None:
    with pytest.raises(ImportError, match="have no not_compiled_yet; install the package anew"):
        loop("not_compiled_yet")()


def test_the_machines_compiler_is_taken_and_zig_where_there_is_none(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "ccache gcc-99")
    assert build.compiler() == ["ccache", "gcc-99"]
    monkeypatch.delenv("CC")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name == "clang" else None)
    assert build.compiler() == ["clang"]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert build.compiler() == []


@pytest.mark.deep
def test_compilers_have_no_complaints(build: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not build.compiler():
        pytest.skip("there is no C compiler")
    monkeypatch.setattr(build, "FLAGS", [*build.FLAGS, "-Werror"])
    monkeypatch.setattr(build, "LIBRARY", tmp_path / "loops.shared")
    assert ctypes.CDLL(str(build.compile_library())).improve
