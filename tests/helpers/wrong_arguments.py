"""Arguments for the loops in C, made from what they declare: such as fit, and such as have to be refused."""

import collections
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mig_opt.native import Array, Loop, Node, Number, Structure, declared_loops, loop

_NAME = re.compile(r"[a-z]\w*")
_DTYPES = {np.dtype(name) for name in ("bool", "int32", "int64", "uint64", "float32", "float64", "object")}


class _Subclass(np.ndarray):
    """No array of numpy's own."""


@functools.cache
def named(kind: str, fields: tuple[str, ...]) -> Any:
    return collections.namedtuple(kind, fields)


def fitting(
    declared: Loop, sizes: Mapping[str, int], instead: Mapping[Node, Any] = {}
) -> tuple[list[Any], dict[Node, Any]]:
    """Return arguments with these sizes, or numbers, and some parts in place of others; and all their parts."""
    parts: dict[Node, Any] = {}

    def made(node: Node) -> Any:
        value: Any
        if node in instead:
            value = instead[node]
        elif isinstance(node, Array):
            value = np.zeros([eval(size.split("|")[-1], {}, dict(sizes)) for size in node.sizes], node.dtype)
            value.flags.writeable = node.written
        elif isinstance(node, Number):
            value = sizes.get(node.path.rpartition(" ")[2], 0)
        else:
            value = tuple(made(member) for member in node.members)
            if node.fields:
                value = named(node.kind, node.fields)._make(value)
        parts[node] = value
        return value

    return [made(parameter) for parameter in declared.parameters], parts


def sizes_of(declared: Loop) -> dict[str, int]:
    """Return a size for each name, no two alike."""
    names = _NAME.findall(" ".join(size for node in arrays(declared.parameters) for size in node.sizes))
    return {name: 2 + at for at, name in enumerate(dict.fromkeys(names))}


def arrays(nodes: list[Node]) -> Iterator[Array]:
    for node in nodes:
        if isinstance(node, Array):
            yield node
        elif isinstance(node, Structure):
            yield from arrays(list(node.members))


def wrong_array(node: Array, value: np.ndarray, tied: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield what is wrong, and an array with that."""
    for dtype in {*_DTYPES, value.dtype.newbyteorder()} - {value.dtype}:
        yield str(dtype), value.astype(dtype)
    yield from (("rank above", value[np.newaxis]), ("rank below", value[0]))
    yield from (("list", value.tolist()), ("none", None), ("subclass", value.view(_Subclass)))
    yield "strided", np.zeros((*value.shape[:-1], 2 * value.shape[-1]), value.dtype)[..., ::2]
    yield "backwards", value[::-1]
    if value.ndim > 1:
        yield "by columns", np.asfortranarray(value)
    if value.itemsize > 1:
        yield "not aligned", np.frombuffer(bytearray(value.nbytes + 1), value.dtype, offset=1).reshape(value.shape)
    if node.written:
        yield "read only", np.frombuffer(bytes(value.nbytes), value.dtype).reshape(value.shape)
    for axis, size in enumerate(node.sizes):
        if not _NAME.fullmatch(size) or tied.count(size) > 1:
            yield (
                f"size {axis}",
                np.zeros([length + (at == axis) for at, length in enumerate(value.shape)], value.dtype),
            )


def wrong_part(node: Node, value: Any, tied: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield what is wrong, and a part of the arguments with that."""
    if isinstance(node, Array):
        yield from wrong_array(node, value, tied)
    elif isinstance(node, Number):
        for number in ("1", None, 1j, np.zeros(2), *(() if node.real else (1.0, np.nan, 2**63, -(2**63) - 1))):
            yield repr(number), number
    else:
        yield from (("list", list(value)), ("longer", (*value, 0)), ("shorter", value[:-1]), ("none", None))
        if node.fields:
            yield "no names", tuple(value)
            yield "order", named(node.kind, node.fields[::-1])._make(value)


def wrong(declared: Loop) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield the path of what is wrong, in what way, and the arguments with that."""
    sizes = sizes_of(declared)
    right, parts = fitting(declared, sizes)
    tied = _NAME.findall(" ".join(size for node in arrays(declared.parameters) for size in node.sizes))
    made: dict[Node, Any] = {node: value for node, value in parts.items() if isinstance(node, Array)}
    for node, value in parts.items():
        for what, other in wrong_part(node, value, tied):
            yield node.path, what, fitting(declared, sizes, {**made, node: other})[0]
    yield from ((declared.name, "one too few", right[:-1]), (declared.name, "one too many", [*right, 0]))
    for path, words, at in declared.held:
        for name in _NAME.findall(words) if at is None else ():
            for number in (-1, 99) if name not in sizes else (99,):
                others = {**dict.fromkeys(_NAME.findall(words), 0), **sizes, name: number}
                if not eval(words, {}, others):
                    yield path, f"{name} = {number}", fitting(declared, others)[0]


def not_refused() -> list[str]:
    """Return what is wrong and was not refused by a TypeError that names it."""
    found = []
    for name, made in declared_loops().items():
        declared = made()
        declared.packed(fitting(declared, sizes_of(declared))[0])
        for path, what, arguments in wrong(declared):
            try:
                loop(name)(*arguments)
                found.append(f"{path}: {what}")
            except TypeError as error:
                if not str(error).startswith(f"{name}: ") or path.removeprefix(f"{name}: ") not in str(error):
                    found.append(f"{path}: {what}: {error}")
    return found
