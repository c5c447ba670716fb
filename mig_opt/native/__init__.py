"""Inner loops in C, compiled when the package is built: over subsets of tasks, and of the searches.

Each loop is described where it is used, by the Python function of the same name, which :func:`loop` gives its work.
Arrays, and named tuples of arrays and numbers, are passed as the structures of ``arrays.h``. Other threads work while a
loop runs. ``hatch_build.py`` compiles the library.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

LIBRARY = Path(__file__).with_name("loops.shared")
"""The compiled loops."""

INTEGER, NUMBER = ctypes.c_int64, ctypes.c_double
"""Types of what a loop returns."""

_VIEWS = tuple(struct.Struct("q" * fields).pack for fields in (2, 3))
"""Structures of arrays of one and two dimensions."""

Result = type[ctypes.c_int64] | type[ctypes.c_double] | None


def loop(name: str, result: Result = None) -> Callable[..., Any]:
    """Return a function of the library.

    Parameters
    ----------
    name : str
        Its name.
    result : INTEGER or NUMBER, optional
        Type of what it returns, if it returns anything.

    Returns
    -------
    callable
        Takes arrays, named tuples of arrays and numbers, integers and floating-point numbers, in the order of the
        parameters in C. Arrays have to be contiguous, and of the types that the C function expects.
    """

    def call(*arguments: Any) -> Any:
        return _function(name, result)(*[_argument(argument) for argument in arguments])

    return call


@functools.cache
def _function(name: str, result: Result) -> Any:
    try:
        function = getattr(_library(), name)
    except AttributeError:
        raise ImportError(
            f"the compiled loops of mig_opt have no {name}: they are older than the package; install it anew, or in a "
            "checkout run: python hatch_build.py"
        ) from None
    function.restype = result
    return function


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(LIBRARY))
    except OSError as error:
        raise ImportError(
            f"the compiled loops of mig_opt cannot be loaded ({error}); install the package anew, "
            "or in a checkout run: python hatch_build.py"
        ) from error


def _argument(argument: Any) -> Any:
    """Return an argument as ctypes passes it: numbers as they are, all else by address."""
    if type(argument) is np.ndarray and argument.ndim <= len(_VIEWS):
        # The same as below, but for loops that are called often.
        assert argument.flags.c_contiguous, "loops take contiguous arrays"
        return _VIEWS[argument.ndim - 1](argument.__array_interface__["data"][0], *argument.shape)
    if isinstance(argument, np.ndarray | tuple):
        cells: list[int | float] = []
        _append_cells(cells, argument)
        layout = "".join("d" if isinstance(cell, float) else "q" for cell in cells)
        return struct.pack(layout, *cells)
    return ctypes.c_double(argument) if isinstance(argument, float) else ctypes.c_int64(argument)


def _append_cells(cells: list[int | float], value: Any) -> None:
    """Append the fields of the structure that stands for a value, each of eight bytes."""
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous, "loops take contiguous arrays"
        cells += (value.__array_interface__["data"][0], *value.shape)
    elif isinstance(value, tuple):
        real = _floating_fields(type(value))
        for at, field in enumerate(value):
            _append_cells(cells, float(field) if at in real else field)
    else:
        cells.append(value if isinstance(value, float) else int(value))


@functools.cache
def _floating_fields(kind: type[tuple[Any, ...]]) -> frozenset[int]:
    """Return the positions of the floating-point numbers in a named tuple, which may hold integers there."""
    return frozenset(at for at, field in enumerate(get_type_hints(kind).values()) if field is float)
