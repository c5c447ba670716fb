"""The package as a whole: its names, its imports, its examples, its layers."""

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import mig_opt

PACKAGE = Path(mig_opt.__file__).parent
MODULES = ["mig_opt", *sorted(info.name for info in pkgutil.walk_packages(mig_opt.__path__, "mig_opt."))]
HEAVY = "ortools pulp highspy matplotlib pydantic networkx numpy pandas typer rich distributed dask"


def test_all_names_exist_and_are_sorted() -> None:
    assert mig_opt.__all__ == sorted(mig_opt.__all__)
    assert len(set(mig_opt.__all__)) == len(mig_opt.__all__)
    for name in set(mig_opt.__all__) - {"__version__"}:
        assert (getattr(mig_opt, name).__doc__ or "").strip(), name
    assert set(mig_opt.__all__) <= set(dir(mig_opt))


def test_type_checkers_and_users_see_the_same_names() -> None:
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    listed = [alias for node in ast.walk(stub) if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert all(alias.asname == alias.name for alias in listed)
    assert sorted(alias.name for alias in listed) == mig_opt.__all__


def test_a_star_import_brings_exactly_these() -> None:
    namespace: dict[str, object] = {}
    exec("from mig_opt import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(mig_opt.__all__)


def test_there_is_no_other_name() -> None:
    with pytest.raises(AttributeError, match="No mig_opt attribute sovle"):
        mig_opt.sovle  # noqa: B018  # to look it up is the test


@pytest.mark.parametrize("module", MODULES)
def test_names_in_all_exist(module: str) -> None:
    loaded = importlib.import_module(module)
    for name in getattr(loaded, "__all__", ()):
        assert hasattr(loaded, name)
    assert (loaded.__doc__ or "").strip(), "a module says what it is for"


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after ``code``."""
    code += "\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = loaded_by("import mig_opt; mig_opt.get_gpu('A100').maximal_partitions(); mig_opt.methods()")
    assert "mig_opt" in loaded
    assert loaded.isdisjoint(HEAVY.split())


def test_the_test_of_what_is_loaded_can_fail() -> None:
    assert "networkx" in loaded_by("import mig_opt; mig_opt.get_gpu('A100').repartition_tree()")


def test_files_of_a_batch_load_nothing_of_services_fleets_and_studies() -> None:
    loaded = loaded_by("import mig_opt.files.batch.batches, mig_opt.files.batch.schedules, mig_opt.cli.inputs")
    others = tuple(f"mig_opt.{part}" for part in ("serving", "fleet", "method.study", "files.serving", "files.fleet"))
    assert "pydantic" in loaded
    assert [name for name in loaded if name.startswith(others)] == []


@pytest.mark.deep
@pytest.mark.parametrize("module", [module for module in MODULES if module.count(".") == 1])
def test_each_part_can_be_imported_first(module: str) -> None:
    """No cycle hides behind the order in which the others import."""
    assert "mig_opt" in loaded_by(f"import {module}")


def examples_of(module: str) -> list[doctest.DocTest]:
    loaded = importlib.import_module(module)
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(loaded, module) if test.examples]


@pytest.mark.parametrize("module", [module for module in MODULES if not module.endswith("__main__")])
def test_examples_in_docstrings(module: str) -> None:
    for test in examples_of(module):
        results = doctest.DocTestRunner(verbose=False).run(test)
        assert results.failed == 0, f"{test.name} (see the captured output)"


def test_there_are_examples() -> None:
    modules = "mig_opt", "mig_opt.gpu.model", "mig_opt.batch.batch", "mig_opt.api.solve", "mig_opt.batch.integer_batch"
    assert all(map(examples_of, modules))
