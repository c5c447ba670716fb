"""Functions and objects of other people, which methods and schedulers may be: their names, places and calls."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import operator
import runpy
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mig_opt.errors import InputError, Problem

_MAIN = 'if __name__ == "__main__"'


def imported(entry: str) -> Any:
    """Return what an entry, ``module:name``, stands for; its module is imported when it is first asked for."""
    module, name = entry.split(":")
    return operator.attrgetter(name)(importlib.import_module(module))


def name_of(function: object) -> str:
    """Return what tables call a function or another object; a name is one already.

    Examples
    --------
    >>> name_of(name_of), name_of(Problem("", ""))
    ('name_of', 'Problem')
    """
    return function if isinstance(function, str) else str(getattr(function, "__name__", type(function).__name__))


def place_of(function: object, what: str) -> str:
    """Return where another process finds a function or an object, as ``module:name`` or ``file.py:name``.

    Raises
    ------
    InputError
        If it does not stand at the top of a file, so that only this process has it; ``what`` is the argument's name.

    Examples
    --------
    >>> place_of(name_of, "solver")
    'mig_opt.method.functions:name_of'
    """
    main = sys.modules.get("__main__")
    given = getattr(function, "__qualname__", None)
    own = sys.modules.get(str(getattr(function, "__module__", "")))
    # An object says its class's module at most: it may have a name anywhere.
    for module in [own, main] if given else [main, *sys.modules.values()]:
        there: dict[str, Any] = getattr(module, "__dict__", {})
        names = [given] if given and given in there else [name for name, it in list(there.items()) if it is function]
        file = str(there.get("__file__") or "")
        place = file if module is main and file.endswith(".py") else there.get("__name__", "__main__")
        if names and place != "__main__":
            if place == "__mp_main__":  # what found_at runs comes to the call that has made it run
                message = f"is used at the top of a file that other processes run, too; use it below {_MAIN}"
            elif place == file and names[0] in _names_of_program(file):
                message = f"is {names[0]}, which other processes do not find; define it above {_MAIN}"
            else:
                return f"{place}:{names[0]}"
            raise InputError([Problem(what, message)])
    message = "must be a function, or an object with a name, at the top of a file, so that other processes find it"
    raise InputError([Problem(what, message)])


def _names_of_program(file: str) -> set[str]:
    """Return the names that a file has as the main program only: defined under ``if __name__ == "__main__"`` alone."""
    tree = ast.parse(Path(file).read_bytes())
    guards = [node for node in tree.body if isinstance(node, ast.If) and "'__name__'" in ast.dump(node.test)]
    others = [inner for node in tree.body for inner in (node.orelse if node in guards else [node])]

    def bound(parts: Iterable[ast.stmt]) -> set[str]:
        nodes = [node for part in parts for node in ast.walk(part)]
        names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        return names | {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}

    return bound(inner for node in guards for inner in node.body) - bound(others)


@functools.cache
def found_at(place: str) -> Any:
    """Return the function or object at such a place; a file is run for it, but not as the main program.

    What is no place is returned as it is.
    """
    if ":" not in place:
        return place
    file, name = place.rsplit(":", 1)
    return runpy.run_path(file, run_name="__mp_main__")[name] if file.endswith(".py") else imported(place)


def planned_by(function: Any, problem: object, seconds: float) -> Any:
    """Return the plan of a function of a problem, or of a problem and a limit in seconds; options keep their defaults.

    The limit is for a second parameter without a default, or for one of the name ``seconds``.
    """
    try:
        given = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of compiled ones nothing is known
        return function(problem)
    if any(each.name == "seconds" and each.kind is not each.POSITIONAL_ONLY for each in given[1:]):
        return function(problem, seconds=seconds)
    in_order = [each for each in given if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    wanted = [each for each in in_order if each.default is each.empty or each.name == "seconds"]
    return function(problem, seconds) if len(wanted) > 1 else function(problem)


def reporting(function: Callable[..., Any], wanted: Any) -> Callable[..., None]:
    """Return a method that reports the plan of a function."""

    def method(problem: object, control: Any) -> None:
        plan = planned_by(function, problem, control.left)
        if plan is None:
            return
        if not isinstance(plan, wanted):
            returned = f"a function that returns a {wanted.__name__}, but it returned one of type"
            raise InputError([Problem("method", f"must be {returned} {type(plan).__name__}")])
        control.report_plan(plan)

    return method
