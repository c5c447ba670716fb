"""Inner loops in C, compiled when the package is built: over subsets of tasks, and of the searches.

Each loop is described where it is used, by the Python function of the same name, which :func:`loop` gives its work.
``loops.h`` declares what it takes, for the compiler and for :mod:`mig_opt.native.declarations`: a wrong argument is a
TypeError, never a crash or a wrong number. Other threads work while a loop runs. ``hatch_build.py`` compiles the
library.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mig_opt.native.declarations import Loop, loops

FOLDER = Path(__file__).parent
LIBRARY = FOLDER / "loops.shared"
"""The compiled loops."""

_ANEW = "install the package anew, or in a checkout run: python hatch_build.py"


def loop(name: str) -> Callable[..., Any]:
    """Return a function of the library.

    Parameters
    ----------
    name : str
        Its name.

    Returns
    -------
    callable
        Takes arrays, named tuples of arrays and numbers, and numbers, as ``loops.h`` declares them, and raises
        TypeError for all else.
    """

    def call(*arguments: Any) -> Any:
        function, packed = _function(name)
        return function(*packed(arguments))

    return call


@functools.cache
def _function(name: str) -> tuple[Any, Callable[..., list[Any]]]:
    """Return a function of the library, and what turns the arguments of a call into those of the function."""
    library, known = _library(), declared_loops()
    if name not in known:
        raise ImportError(f"the compiled loops of mig_opt have no {name}; {_ANEW}")
    function, made = getattr(library, name), known[name]()
    function.restype, function.argtypes = made.result, made.argtypes
    return function, made.packed


@functools.cache
def declared_loops() -> dict[str, Callable[[], Loop]]:
    """Return what makes each loop that the library declares, by name."""
    return loops(_text(_library(), "loop_declarations"))


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError as error:
        raise ImportError(f"the compiled loops of mig_opt cannot be loaded ({error}); {_ANEW}") from error
    sources = sorted(FOLDER.glob("*.[ch]"))  # as in hatch_build.py; a checkout has them
    made_of = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    if sources and made_of != _text(library, "loop_sources"):
        raise ImportError(f"the compiled loops of mig_opt are not those of their sources; {_ANEW}")
    return library


def _text(library: ctypes.CDLL, name: str) -> str:
    """Return a text that the library contains; an empty one if it is older than these."""
    try:
        return ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, name))).decode("ascii")
    except ValueError:
        return ""
