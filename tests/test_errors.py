"""Problems with paths, and the exceptions that carry them."""

import copy
import pickle

import pytest

from mig_opt import InputError, MigOptError, PolicyError, Problem, SolverError, UnknownGpuError, UnknownMethodError
from mig_opt.errors import nearest


@pytest.mark.parametrize(
    ("path", "prefix", "whole"),
    [
        ("times.2", "tasks[3]", "tasks[3].times.2"),
        ("[3].name", "tasks", "tasks[3].name"),
        ("", "tasks[3]", "tasks[3]"),
        ("gpu", "", "gpu"),
        ("", "", ""),
    ],
)
def test_a_problem_seen_from_outside(path: str, prefix: str, whole: str) -> None:
    assert Problem(path, "is wrong").below(prefix) == Problem(whole, "is wrong")


def test_how_problems_read() -> None:
    assert str(Problem("tasks[3].times.2", "must be > 0")) == "tasks[3].times.2: must be > 0"
    assert str(Problem("", "must be an object")) == "must be an object"
    problems = (Problem("gpu", "unknown"), Problem("gpus", "must be at least 1"))
    assert InputError(iter(problems)).problems == problems
    assert str(InputError(problems)) == "gpu: unknown\n  gpus: must be at least 1"
    assert str(InputError(problems, "batch.json")) == "batch.json:\n  gpu: unknown\n  gpus: must be at least 1"


@pytest.mark.parametrize("kind", [InputError, UnknownGpuError, UnknownMethodError])
def test_input_errors_are_value_errors_and_survive_pickle(kind: type[InputError]) -> None:
    error = kind([Problem("gpu", "unknown")], "batch.json")
    assert {InputError, ValueError, MigOptError} <= set(kind.__mro__)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is kind
        assert (twin.problems, twin.source, str(twin)) == (error.problems, "batch.json", str(error))


def test_a_solver_error_is_no_input_error() -> None:
    assert SolverError.__bases__ == PolicyError.__bases__ == (MigOptError,)
    assert not issubclass(MigOptError, ValueError)


def test_nearest_names() -> None:
    known = ("cp", "miso-opt", "brute-force", "FixPart")
    assert nearest("brute_force", known) == "did you mean brute-force?"
    assert nearest("fixpart", known) == "did you mean FixPart?"
    assert nearest("xyzzy", known) == "known: cp, miso-opt, brute-force, FixPart"
    assert nearest("abd", ("abc", "abe")) in {"did you mean abc or abe?", "did you mean abe or abc?"}
    assert nearest("cp", iter(known)) == "did you mean cp?"
    assert nearest("x", ()) == "known: none"
