"""Inner loops in C, compiled when the package is built: over subsets of tasks, and of the searches.

Each loop is described where it is used, by the Python function of the same name, which :func:`loop` gives its work.
``loops.h`` declares what it takes, for the compiler and for the checks here, which read its text from the library.
Other threads work while a loop runs. ``hatch_build.py`` compiles the library.

A loop refuses arrays of another type or rank; arrays that are not contiguous and aligned and, where it writes,
writeable; arrays whose sizes do not agree; and structures with other fields: that is a TypeError. So none takes numbers
for others, or reads or writes outside of what it is given, as long as the entries of its arrays make sense: these are
not looked at.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import itertools
import operator
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FOLDER = Path(__file__).parent
LIBRARY = FOLDER / "loops.shared"
"""The compiled loops."""

_ANEW = "install the package anew, or in a checkout run: python hatch_build.py"

_DTYPES = {"int64_t": np.int64, "int32_t": np.int32, "double": np.float64, "bool": np.bool_}
_LETTERS = {"int64_t": "q", "double": "d"}  # of cells, as the module struct has them
_RESULTS = {"void": None, "int64_t": ctypes.c_int64, "double": ctypes.c_double}

_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
"""Flags of numpy's arrays."""

_NO_BYTES: Any = (ctypes.c_char * 0).from_buffer
"""The fastest way to the address of an array that may be written."""

_COMMENT = re.compile(r"/\*.*?\*/|^#.*?$", re.DOTALL | re.MULTILINE)
_STATEMENT = re.compile(
    r"\s*(?:typedef struct \{(.*?)\} (\w+);|EXPORT (void|int64_t|double) (\w+)\((.*?)\);|$)", re.DOTALL
)
_DECLARED = re.compile(r"(?:OF\(([^()]*)\) )?(const )?(\w+) (.*)")
_COMMA = re.compile(r",\s*(?![^()]*\))")
_RENAMED = re.compile(r"(\w+) = (\w+)")
_NAME = re.compile(r"[a-z]\w*")

Cells = list[int | float]
"""Numbers, and addresses and shapes of arrays, one after the other: structures consist of them."""


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


# Declarations


class Number:
    """A number."""

    def __init__(self, path: str, kind: str) -> None:
        self.path, self.real = path, kind == "double"

    def put(self, cells: Cells, value: Any) -> None:
        """Append the value to the cells."""
        try:
            if self.real and isinstance(value, float | np.floating):
                cells.append(float(value))
                return
            number = operator.index(value.item() if isinstance(value, np.bool_) else value)
            if -(2**63) <= number < 2**63:
                cells.append(float(number) if self.real else number)
                return
        except TypeError:
            pass
        raise TypeError(
            f"{self.path}: needs a {'number' if self.real else 'whole number of 64 bits'}, is {value!r:.60}"
        )


class Array:
    """An array, of which a loop gets the address and the shape."""

    def __init__(self, path: str, kind: str, sizes: Sequence[str], *, written: bool) -> None:
        self.path, self.dtype, self.sizes, self.written = path, np.dtype(_DTYPES[kind]), sizes, written
        self._rank, self._flags = len(sizes), _CONTIGUOUS | _ALIGNED | (_WRITEABLE if written else 0)

    def put(self, cells: Cells, value: Any) -> None:
        """Append address and shape to the cells."""
        if type(value) is np.ndarray and value.dtype == self.dtype and value.ndim == self._rank:
            flags = value.flags.num
            if flags & self._flags == self._flags:
                at = ctypes.addressof(_NO_BYTES(value)) if flags & _WRITEABLE else value.__array_interface__["data"][0]
                cells.append(at)
                cells += value.shape
                return
        found = type(value).__name__
        if isinstance(value, np.ndarray):
            kinds = ("contiguous", "aligned", "writeable")
            has = (value.flags.c_contiguous, value.flags.aligned, value.flags.writeable)
            found = ", ".join([f"{found} of {value.dtype}, rank {value.ndim}", *itertools.compress(kinds, has)])
        wanted = f"array of {self.dtype}, rank {self._rank}, contiguous, aligned{', writeable' * self.written}"
        raise TypeError(f"{self.path}: needs an {wanted}, is {found}")


class Structure:
    """Some of these together: a named tuple with the fields of a structure in C, or a plain one of numbers."""

    def __init__(self, path: str, kind: str, fields: tuple[str, ...] | None, members: Sequence[Node]) -> None:
        self.path, self.kind, self.fields, self.members = path, kind, fields, members
        self._puts = [member.put for member in members]

    def put(self, cells: Cells, value: Any) -> None:
        """Append the cells of all members."""
        named = getattr(value, "_fields", None)
        if not isinstance(value, tuple) or named != self.fields or len(value) != len(self._puts):
            wanted = f"{len(self._puts)} numbers" if self.fields is None else f"({', '.join(self.fields)})"
            raise TypeError(f"{self.path}: needs a tuple of {wanted}, is {type(value).__name__} {named or ''}".rstrip())
        for put, member in zip(self._puts, value, strict=True):
            put(cells, member)


Node = Number | Array | Structure


class Declared(NamedTuple):
    """Parameter of a loop, or field of a structure."""

    name: str
    kind: str
    of: str  # the sizes of an array, or what has to hold
    constant: bool
    address: bool  # True if it is passed by its address
    numbers: int  # how many are declared together; 0 if it is none of these


Types = dict[str, list[Declared]]
"""Fields of structures by the names of these."""


class Loop:
    """A loop, with what it takes and returns.

    Attributes
    ----------
    name : str
        Its name.
    result, argtypes
        What it returns, and what it takes, for ctypes.
    parameters : list of Number, Array and Structure
        What it takes.
    """

    def __init__(self, name: str, result: str, parameters: Sequence[Declared], types: Types) -> None:
        self.name, self.result, self.parameters = name, _RESULTS[result], list[Node]()
        self._types, self._layout = types, ""  # the latter has a letter for each cell
        self._known: dict[str, tuple[int, str]] = {}  # cells and paths of sizes and numbers by their names
        self.held: list[tuple[str, str, int | None]] = []  # paths, what has to hold there, the cell if it is a size
        self._parts: list[tuple[struct.Struct | None, int, int]] = []
        for parameter in parameters:
            begin = len(self._layout)
            self.parameters.append(self._node(parameter, f"{name}: ", {}, written=not parameter.constant))
            layout = struct.Struct(self._layout[begin:]) if parameter.address or parameter.numbers else None
            self._parts.append((layout, begin, len(self._layout)))
            if layout is None:
                self._known[parameter.name] = begin, parameter.name
        self.argtypes = [
            ctypes.c_char_p if layout else {"d": ctypes.c_double, "q": ctypes.c_int64}[self._layout[begin]]
            for layout, begin, _ in self._parts
        ]
        self._puts = [parameter.put for parameter in self.parameters]
        self._fits = self._compiled(self.held)

    def packed(self, arguments: Sequence[Any]) -> list[Any]:
        """Return arguments as ctypes passes them.

        Raises
        ------
        TypeError
            If one of them is not as declared: the message names the loop and the argument.
        """
        if len(arguments) != len(self._puts):
            raise TypeError(f"{self.name}: needs {len(self._puts)} arguments, has {len(arguments)}")
        cells: Cells = []
        for put, argument in zip(self._puts, arguments, strict=True):
            put(cells, argument)
        if not self._fits(cells):
            path, words, at = next(held for held in self.held if not self._compiled([held])(cells))
            known = [(name, *self._known[name]) for name in _NAME.findall(words)]
            where = ", ".join(
                f"{name} = {cells[cell]} ({of.removeprefix(f'{self.name}: ')})" for name, cell, of in known
            )
            has = "" if at is None else f"has a size of {cells[at]}, "
            raise TypeError(f"{path}: {has}needs {words}{where and f', where {where}'}")
        return [layout.pack(*cells[begin:end]) if layout else cells[begin] for layout, begin, end in self._parts]

    def _node(self, declared: Declared, path: str, names: Mapping[str, str], *, written: bool) -> Node:
        """Return a parameter or field; note the letters of its cells, sizes, and what has to hold."""
        path += declared.name
        members = self._types.get(declared.kind)
        if members and members[0].address:
            sizes = [_NAME.sub(lambda name: names.get(name[0], name[0]), size) for size in declared.of.split(", ")]
            if len(sizes) != len(members) - 1:
                raise ValueError(f"loops.h: {path} needs as many sizes as it has dimensions")
            for at, size in enumerate(sizes, len(self._layout) + 1):
                if not _NAME.fullmatch(size) or self._known.setdefault(size, (at, path))[0] != at:
                    self.held.append((path, size, at))
            self._layout += "q" * len(members)
            return Array(path, members[0].kind, sizes, written=written)
        if not members and declared.kind not in _LETTERS:
            raise ValueError(f"loops.h: {path} has the unknown type {declared.kind}")
        renamed = _RENAMED.fullmatch(declared.of)
        if declared.of and not renamed:
            self.held.append((path, declared.of, None))
        if members:
            inner = {**names, renamed[1]: renamed[2]} if renamed else names
            nodes = [self._node(member, f"{path}.", inner, written=written) for member in members]
            return Structure(path, declared.kind, tuple(member.name for member in members), nodes)
        self._layout += _LETTERS[declared.kind] * (declared.numbers or 1)
        number = Number(path, declared.kind)
        return Structure(path, declared.kind, None, [number] * declared.numbers) if declared.numbers else number

    def _compiled(self, held: Sequence[tuple[str, str, int | None]]) -> Callable[[Cells], bool]:
        """Return what tells whether all of this holds for the cells of a call."""
        codes = ["True"]
        for _, words, at in held:
            code = _NAME.sub(lambda name: f"cells[{self._known[name[0]][0]}]", words)
            sizes = [f"cells[{at}] == {size}" for size in code.split("|")]
            codes.append(code if at is None else f"({' or '.join(sizes)})")
        return eval(f"lambda cells: {' and '.join(codes)}")  # type: ignore[no-any-return]  # noqa: S307


def loops(text: str) -> dict[str, Callable[[], Loop]]:
    """Return what makes the loops that the text of ``loops.h`` declares, by name: few processes use all of them.

    Raises
    ------
    ValueError
        If something in it is written in another way.
    """
    types: Types = {}
    found: dict[str, Callable[[], Loop]] = {}
    bare, at = _COMMENT.sub("", text), 0
    while at < len(bare):
        statement = _STATEMENT.match(bare, at)
        if statement is None:
            raise ValueError(f"loops.h: cannot read {bare[at : at + 80].strip()!r}")
        at = statement.end()
        fields, structure, result, name, parameters = statement.groups()
        if structure:
            types[structure] = [field for line in fields.split(";")[:-1] for field in _declared(line)]
            if any(field.address for field in types[structure][1:]):
                raise ValueError(f"loops.h: {structure} has an address that is not that of an array")
        elif name:
            declared = [one for each in _COMMA.split(parameters) for one in _declared(each)]
            found[name] = functools.partial(Loop, name, result, declared, types)
    return found


def _declared(text: str) -> Iterator[Declared]:
    """Yield what is declared together."""
    declared = _DECLARED.fullmatch(" ".join(text.split()))
    if declared is None:
        raise ValueError(f"loops.h: cannot read {text.strip()!r}")
    of, constant, kind, names = declared.groups()
    for name in names.split(", "):
        bare, _, count = name.strip("*]").partition("[")
        yield Declared(bare, kind, of or "", constant is not None, name.startswith("*"), int(count or 0))
