"""Wrong documents, made from right ones: everything that can be wrong anywhere, in turn, and what a list names."""

import copy
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

DELETE = "DELETE"
"""In place of a value: the key is left out."""

_ENOUGH = 30
"""Changes of a document in about as many places."""

_LONG = "x" * 300
_VALUES: Mapping[type, tuple[Any, ...]] = {
    str: (7, None, "", "nix", True, DELETE, ["x"], _LONG, "a\nb", {}),
    float: ("7", -1, None, DELETE, float("nan"), 0, 1e400, True, 1e30, [], 2.5, 1e-320),
    bool: ("yes", 1, None, []),
    list: ({}, None, DELETE, [], "x", [None], [[]], 3),
    dict: ([], None, DELETE, {}, 3, {"nix": 1}, "x"),
    type(None): ("x", -1, {}, DELETE),
}


def wrong_documents(text: str, changes: list[dict[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """Yield wrong JSON documents, each with what is wrong about it."""
    document = json.loads(text)
    stated = document["schema"]
    yield "as it is", text.encode()
    yield from _wrong_texts(text)
    yield "nested too deeply", b'{"schema": ' + b"[" * 100_000
    first = next(key for key in document if key != "schema")
    yield "keys twice", text.replace(f'"{first}": ', f'"{first}": 1, "{first}": ').encode()
    other = "mig-opt/state/1" if stated != "mig-opt/state/1" else "mig-opt/batch/1"
    for schema in (DELETE, other, stated[:-1] + "2", "mig-opt/nix/1", stated.upper(), 1, None):
        yield _changed(document, {"schema": schema})
    yield _changed(document, {"nix": 1, "Gpu": "A30"})
    places = list(_places(document))
    each = max(1, round(_ENOUGH / len(places)))
    several: dict[str, Any] = {}
    for index, (path, value) in enumerate(places):
        kind = float if type(value) is int else type(value)
        values = itertools.islice(itertools.cycle(_VALUES[kind]), index * each, (index + 1) * each)
        for wrong in values:
            yield _changed(document, {path: wrong})
        if path.count("/") == 2:
            several[path] = _VALUES[kind][0]
        if isinstance(value, list) and value:
            yield _changed(document, {path: [*value, value[0]]}, f"{path}: the first entry once more, at the end")
            yield _changed(document, {path: [*value, None, {"nix": 1}]}, f"{path}: with null and {{nix: 1}} at the end")
    yield _changed(document, several, "several at once")
    for change in changes:
        yield _changed(document, change)


def wrong_tables(text: str, changes: list[str | dict[str, str]]) -> Iterator[tuple[str, bytes]]:
    """Yield wrong CSV tables, each with what is wrong about it; a change is a whole table, or new words by old ones."""
    header, *rows = text.splitlines()
    columns, first = header.split(","), rows[0].split(",")
    yield "as it is", text.encode()
    yield from _wrong_texts(text, "\n")
    yield "header only", f"{header}\n".encode()
    yield "no header", "\n".join(rows).encode()
    yield "semicolons", text.replace(",", ";").encode()
    yield "unknown column", f"{header},nix\n{rows[0]},1\n".encode()
    yield "a column twice", f"{header},{columns[-1]}\n{rows[0]},1\n".encode()
    yield "a row twice", "\n".join([header, *rows, rows[0]]).encode()
    yield "a short row", "\n".join([header, columns[0], *rows]).encode()
    yield "a long row", "\n".join([header, f"{rows[0]},1,2", *rows]).encode()
    yield "empty rows", "\n".join([header, "", ",,", *rows]).encode()
    yield "an open quote", "\n".join([header, f'"{rows[0]}', *rows]).encode()
    values = itertools.cycle(("", "nix", "-1", "nan", "0", "1e400", "1,5", " 7 ", "inf", "2.5", "0x10", _LONG))
    for index, column in enumerate(columns):
        table = [row.split(",") for row in (header, *rows)]
        yield f"no column {column}", "\n".join(",".join(row[:index] + row[index + 1 :]) for row in table).encode()
        for value in itertools.islice(values, 2):
            cells = [*first[:index], value if "," not in value else f'"{value}"', *first[index + 1 :]]
            yield f"{column}: {value[:20]!r}", "\n".join([header, ",".join(cells), *rows[1:]]).encode()
    yield from changed_texts(text, changes)


def changed_texts(text: str, changes: list[str | dict[str, str]]) -> Iterator[tuple[str, bytes]]:
    """Yield what is given in place of a text, or with new words by old ones, each with what is changed."""
    for change in changes:
        new = change if isinstance(change, str) else text
        for old, word in () if isinstance(change, str) else change.items():
            new = new.replace(old, word)
        yield json.dumps(change), new.encode()


def wrong_lines(text: str, changes: list[dict[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """Yield wrong files of a JSON object on each line, such as journals, each with what is wrong about it."""
    lines = text.splitlines()
    yield "as it is", text.encode()
    yield from _wrong_texts(text, "\n")
    for number in sorted({0, 1, min(4, len(lines) - 1), len(lines) - 1}):
        before, line, after = lines[:number], lines[number], lines[number + 1 :]
        for title, new in (("no", []), ("twice", [line, line]), ("cut", [line[:20]]), ("a list in", ["[]"])):
            yield f"{title} line {number + 1}", "\n".join([*before, *new, *after]).encode()
        document = json.loads(line)
        for index, (path, value) in enumerate(_places(document)):
            kind = float if type(value) is int else type(value)
            title, new = _changed_line(line, {path: _VALUES[kind][index % len(_VALUES[kind])]})
            yield f"line {number + 1}, {title}", "\n".join([*before, new, *after]).encode()
    for change in changes:
        own = dict(change)
        number = own.pop("line") - 1
        title, line = _changed_line(lines[number], own)
        yield f"line {number + 1}, {title}", "\n".join([*lines[:number], line, *lines[number + 1 :]]).encode()


def _changed_line(line: str, changes: Mapping[str, Any]) -> tuple[str, str]:
    title, data = _changed(json.loads(line), changes)
    return title, json.dumps(json.loads(data))


def _wrong_texts(text: str, cut_at: str = ":") -> Iterator[tuple[str, bytes]]:
    cut = text[: text.index(cut_at, len(text) // 2) + 1]
    yield "empty", b""
    yield "blank", b" \n"
    yield "cut off", cut.encode()
    yield "a list", b"[1, 2]"
    yield "a text", b'"batch"'
    yield "two documents", (text + text).encode()
    yield "not UTF-8", text.encode().replace(b"a", b"\xe4", 1)
    yield "byte order mark", text.encode("utf-8-sig")


def _places(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the parts of a document with their paths: of a list the first entry, of sizes and the like the first."""
    if path:
        yield path, value
    if isinstance(value, dict):
        entries = list(value.items())
        for key, entry in entries[:1] if path and entries and entries[0][0].isdigit() else entries:
            if key != "schema" and "/" not in key:
                yield from _places(entry, f"{path}/{key}" if path else key)
    elif isinstance(value, list) and value:
        yield from _places(value[0], f"{path}/0")


def _changed(document: dict[str, Any], changes: Mapping[str, Any], title: str = "") -> tuple[str, bytes]:
    """Return a document with the values at some paths replaced or left out, and a title for it."""
    shown = (f"{path}: {value if value == DELETE else json.dumps(value)}" for path, value in changes.items())
    title = title or ", ".join(entry if len(entry) < 80 else f"{entry[:70]}..." for entry in shown)
    return title, json.dumps(replaced(document, changes), indent=1).encode()


def replaced(document: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy with the values at some paths (``tasks/0/name``) replaced or left out."""
    document = copy.deepcopy(document)
    for path, value in changes.items():
        *way, last = path.split("/")
        place: Any = document
        for step in way:
            place = place[int(step) if isinstance(place, list) else step]
        key: Any = int(last) if isinstance(place, list) else last
        if value == DELETE:
            del place[key]
        else:
            place[key] = value
    return document
