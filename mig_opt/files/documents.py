"""Text to JSON documents and back, and files that are written whole or not at all."""

from __future__ import annotations

import codecs
import contextlib
import json
import math
import operator
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from mig_opt.errors import InputError, Problem
from mig_opt.rules import wrong_type

Document = str | bytes | Mapping[str, Any]
"""JSON text, or the object that it stands for."""

_LONGEST_INTEGER = 300
"""Digits up to which an integer is kept exactly; what is longer becomes a float (and mostly infinite)."""

_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')

_TABLE = re.compile(r"\.(?:tsv|tab|txt|xlsx?|ods)$|^standard input$", re.IGNORECASE)
"""Sources that are more likely tables than broken JSON, by the endings of their names."""

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,40}")


def file_path(path: object, argument: str = "path") -> Path:
    """Return the path that an argument names; refuse what is neither a str nor anything that stands for a path."""
    if not isinstance(path, str | os.PathLike):
        raise InputError([wrong_type(argument, path, "the name of a file, as str or Path")])
    return Path(path)


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file (UTF-8, or UTF-16 as PowerShell writes it), without a byte order mark."""
    return decoded(read_bytes(path), str(path))


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return what is in a file."""
    file = file_path(path)
    try:
        return file.read_bytes()
    except (OSError, ValueError) as error:
        known: dict[type, str] = {FileNotFoundError: "no such file", IsADirectoryError: "is a folder, a file is wanted"}
        known[PermissionError] = "may not be read; ask for permission"
        _refuse(path, known.get(type(error), f"cannot be read: {_reason(error)}"))


def decoded(data: bytes, source: str) -> str:
    """Return ``data`` as text, without a byte order mark: UTF-8, or UTF-16 where such a mark says so."""
    utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if utf_16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        name = "UTF-16" if utf_16 else "UTF-8"
        _refuse(
            source, f"is not {name} text (byte {error.object[error.start]:#04x} at {error.start}); save it as UTF-8"
        )


def parsed(document: Document, source: str) -> tuple[dict[str, Any], list[Problem]]:
    """Return a JSON document as an object, with a problem for each key that it repeats."""
    if isinstance(document, bytes):
        document = decoded(document, source)
    elif not isinstance(document, str):
        try:
            document = json.dumps(dict(document), default=plain_number)
        except (TypeError, ValueError, RecursionError) as error:
            _refuse(source, f"is not made of what JSON can hold: {error}")
    repeats: dict[int, tuple[object, list[str]]] = {}  # objects by their identity, with keys that they repeat

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            repeats[id(found)] = found, [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
        return found

    try:
        value = json.loads(without_comments(document), object_pairs_hook=collect, parse_int=integer)
    except json.JSONDecodeError as error:
        if not document.strip():
            _refuse(source, "is empty, a JSON object {...} is wanted")
        hint = "; save a table as CSV, in a file whose name ends in .csv" if _TABLE.search(source) else ""
        problem = Problem(f"line {error.lineno}, column {error.colno}", f"not valid JSON: {error.msg}{hint}")
        raise InputError([problem], source) from None
    except RecursionError:
        _refuse(source, "is nested too deeply")
    if not isinstance(value, dict):
        _refuse(source, f"must be a JSON object {{...}}, is {shown(value)}")
    return value, [
        Problem(key_name(key), "this key is given more than once; keep one").below(path)
        for path, part in (_parts(value, "") if repeats else ())
        for key in repeats.get(id(part), ((), []))[1]
    ]


def without_comments(text: str) -> str:
    """Return JSON text with blanks for comments, so that all else stays in its place.

    A comment is what follows ``//`` to the end of the line, outside of strings.

    Examples
    --------
    >>> without_comments('{"a": "//"} // b')
    '{"a": "//"}     '
    """

    def blanked(line: str) -> str:
        return _STRING_OR_COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else " " * len(found[0]), line)

    return "\n".join(blanked(line) if "//" in line else line for line in text.split("\n"))


def _parts(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield a value and every part of it, each with its path."""
    yield path, value
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _parts(entry, f"{path}.{key_name(key)}" if path else key_name(key))
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _parts(entry, f"{path}[{index}]")


def integer(digits: str) -> int | float:
    """Return an integer of a JSON text; one with very many digits as a float, which any message can show."""
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


def shown(value: object, longest: int = 40) -> str:
    """Return a JSON value as messages show it."""
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def key_name(key: str) -> str:
    """Return a key as paths show it: as it is, or in quotes where it is no plain word."""
    return key if _PLAIN_KEY.fullmatch(key) else shown(key)


def rendered(document: Mapping[str, Any]) -> str:
    """Return a document as JSON text with one task, run, operation, service, point or segment on each line."""
    try:
        return _expanded(document, "") + "\n"
    except ValueError:
        raise InputError(
            Problem(path, f"must be a finite number, is {value}")
            for path, value in _parts(document, "")
            if isinstance(value, float) and not math.isfinite(value)
        ) from None


def _expanded(value: object, indent: str) -> str:
    deeper = indent + "  "
    if isinstance(value, list) and value:
        # An entry that holds a list of objects itself, as a table holds its points, takes more lines.
        lines = [
            _expanded(entry, deeper)
            if isinstance(entry, dict)
            and any(isinstance(part, list) and part and isinstance(part[0], dict) for part in entry.values())
            else _json(entry)
            for entry in value
        ]
        brackets = "[]"
    elif isinstance(value, dict) and (not indent or any(isinstance(entry, list) for entry in value.values())):
        lines = [f"{_json(key)}: {_expanded(entry, deeper)}" for key, entry in value.items()]
        brackets = "{}"
    else:
        return _json(value)
    body = f",\n{deeper}".join(lines)
    return f"{brackets[0]}\n{deeper}{body}\n{indent}{brackets[1]}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain_number)


def plain_number(value: Any) -> int | float:
    """Return a number of another library (numpy's, a fraction) as one of Python, as which it is written."""
    try:
        return operator.index(value)
    except TypeError:
        return float(value)


def check_writable(path: str | Path) -> None:
    """Make sure that a file can be written, before work is spent on its content.

    Leaves the folder and an existing file as they are.
    """
    target = _target(path)
    if _replaceable(target):
        with writing_to(path), _temporary(target):
            pass


def check_json(path: str | Path) -> None:
    """Make sure that a file can be written, of a kind that is read from CSV tables, too, but written as JSON only."""
    if file_path(path).suffix.lower() == ".csv":
        _refuse(path, "is written as JSON, which is not read from a file .csv; name one that ends in .json")
    check_writable(path)


def write_text(path: str | Path, text: str) -> None:
    """Write a UTF-8 file such that nobody ever sees a part of it: an existing file is replaced at the end."""
    with writing_to(path):
        data = text.encode("utf-8")
    write_bytes(path, data)


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file such that nobody ever sees a part of it: an existing file is replaced at the end."""
    target = _target(path)
    with writing_to(path):
        if not _replaceable(target):
            target.write_bytes(data)
            return
        with _temporary(target) as temporary:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, temporary)
            temporary.replace(target)


def check_folder(path: str | Path) -> None:
    """Make sure that a folder can be made, or is there, before work is spent on what it is to hold."""
    with writing_to(path):
        there = next(one for one in (Path(path).absolute(), *Path(path).absolute().parents) if one.exists())
        if not there.is_dir():
            what = "is a file" if there == Path(path).absolute() else f"cannot be made: {there} is a file"
            _refuse(path, f"{what}; name a folder")
        if not os.access(there, os.W_OK | os.X_OK):
            _refuse(path, f"cannot be written: the folder {there} is write-protected")


def write_folder(path: str | Path, files: Mapping[str, str]) -> None:
    """Write files by their names into a folder, which is made with those that it is in; scripts can be called.

    What else is there stays.
    """
    for name, text in files.items():
        target = Path(path) / name
        make_folder(target.parent)
        write_text(target, text)
        if target.suffix == ".sh":
            target.chmod(0o755)


def make_folder(path: str | Path) -> None:
    """Make a folder and those that it is in, unless they are there already.

    Raises
    ------
    InputError
        If it cannot be made.
    """
    with writing_to(path):
        Path(path).mkdir(parents=True, exist_ok=True)


def _target(path: str | Path) -> Path:
    """Return the file behind ``path``, links followed, if nothing speaks against writing it."""
    with writing_to(path):
        target = Path(path).resolve()
        if target.is_dir():
            _refuse(path, "cannot be written: is a folder; name a file in it")
        if not target.parent.is_dir():
            _refuse(path, f"cannot be written: there is no folder {target.parent}; create it first")
        with contextlib.suppress(FileNotFoundError):
            target.stat()  # unlike exists(), refuses names that are too long on every Python
            if not os.access(target, os.W_OK):
                _refuse(path, "cannot be written: the file is write-protected")
    return target


def _replaceable(target: Path) -> bool:
    # A device or a pipe (/dev/stdout) is written to; to replace it would destroy it.
    return target.is_file() or not target.exists()


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """Provide an empty file beside ``target``; remove it unless it has been moved away."""
    temporary = target.with_name(f".mig-opt-{os.urandom(8).hex()}.tmp")
    temporary.touch(exist_ok=False)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def writing_to(path: str | Path, advice: str = "") -> Iterator[None]:
    """Raise what the disk refuses as an error of the file that is written; ``advice`` says what to do then."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links that lead in a circle
        _refuse(path, f"cannot be written: {_reason(error)}{advice}")


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _refuse(source: str | os.PathLike[str], message: str) -> NoReturn:
    raise InputError([Problem("", message)], str(source)) from None
