"""The loops in C: how Python calls them, and how they are compiled."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from places import PROJECT

from mig_opt import native
from mig_opt.batch.loads.subsets import subset_sums
from mig_opt.native import NUMBER, loop

BUILD = PROJECT / "hatch_build.py"


@pytest.fixture
def build() -> ModuleType:
    if not BUILD.is_file():
        pytest.skip("the tests run without the checkout")
    spec = importlib.util.spec_from_file_location("hatch_build", BUILD)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Mixed(NamedTuple):
    share: float
    table: np.ndarray
    count: int


def test_structures_have_eight_bytes_for_each_field() -> None:
    table = np.arange(6, dtype=np.int32).reshape(2, 3)
    cells = native._argument((Mixed(1, table, True), 7))
    address = table.__array_interface__["data"][0]
    assert np.frombuffer(cells, np.float64)[0] == 1.0  # an integer where a floating-point number is declared
    assert np.frombuffer(cells, np.int64)[1:].tolist() == [address, 2, 3, 1, 7]


def test_arrays_have_to_be_contiguous() -> None:
    with pytest.raises(AssertionError, match="contiguous"):
        subset_sums(np.arange(8, dtype=np.int32)[::2])


def test_the_library_that_is_missing_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    native._library.cache_clear()
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "loops.shared")
    with pytest.raises(ImportError, match=r"install the package anew, or in a checkout run: python hatch_build\.py"):
        loop("not_loaded_yet", NUMBER)()
    native._library.cache_clear()


def test_loops_that_are_older_than_the_package_say_what_to_do() -> None:
    with pytest.raises(ImportError, match=r"have no not_compiled_yet: they are older than the package"):
        loop("not_compiled_yet", NUMBER)()


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
