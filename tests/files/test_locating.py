"""Places in files that the paths of problems are about."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mig_opt.files.documents import key_name
from mig_opt.files.locations import Place, place_of

TEXT = """// a batch
{
  "gpu": "A30", // the GPU
  "tasks": [
    {"name": "a, \\"b\\" [0]", "times": {"1": 4.0, "2": -1}},
\t{"odd key": {"": [true, null]}}
  ]
}
"""


def shown(path: str, text: str = TEXT) -> str | None:
    place = place_of(path, text)
    if place is None:
        return None
    assert text.splitlines()[place.line - 1] == place.text
    return place.text[place.column - 1 : place.column - 1 + place.width]


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("gpu", '"A30"'),
        ("tasks[0].times.2", "-1"),
        ("tasks[0].times", '{"1": 4.0, "2": -1}'),
        ("tasks[0].name", '"a, \\"b\\" [0]"'),
        ('tasks[1]."odd key"', '{"": [true, null]}'),
        ('tasks[1]."odd key"."" [0]', "[true, null]"),
        ("tasks[1].name", '{"odd key": {"": [true, null]}}'),
        ("tasks[0].times.7", '{"1": 4.0, "2": -1}'),
        ("tasks[7]", "["),
        ("tasks", "["),
    ],
)
def test_the_innermost_part_that_is_there(path: str, part: str) -> None:
    assert shown(path) == part


@pytest.mark.parametrize("path", ["", "gpus", "--gpu", "line 99", "[0]"])
def test_nothing_of_the_path_is_there(path: str) -> None:
    assert place_of(path, TEXT) is None


BROKEN = ["", "{", '{"gpu": ', '{"gpu": "A30" "x"', "[1, 2", "nonsense", '{"gpu" 3}', '{"a": 1,']


@pytest.mark.parametrize("text", BROKEN)
def test_broken_documents_have_no_places_or_right_ones(text: str) -> None:
    assert shown("gpu", text) in (None, '"A30"')


def test_lines_and_columns_of_text() -> None:
    assert place_of("line 2, column 3", "ab\ncdef") == Place(2, 3, 1, "cdef")
    assert place_of("line 2", "ab\r\n  cd ") == Place(2, 3, 2, "  cd ")


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("line 3, t2_s", "x"),
        ("line 3, task", "a"),
        ("line 4, t2_s", '"b,c",1,2'),
        ("line 5, t2_s", "d"),
        ("line 3, t9_s", "a, 3 , x"),
        ("line 2, t2_s", "t2_s"),
    ],
)
def test_cells_of_tables(path: str, part: str) -> None:
    assert shown(path, '# comment\ntask, t1_s,t2_s\na, 3 , x\n"b,c",1,2\nd\n') == part


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


def parts(value: Any, path: str) -> list[tuple[str, Any]]:
    found = [(path, value)] if path else []
    if isinstance(value, dict):
        for key, entry in value.items():
            found += parts(entry, f"{path}.{key_name(key)}" if path else key_name(key))
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            found += parts(entry, f"{path}[{index}]")
    return found


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), st.sampled_from([None, 2]))
def test_every_part_of_a_document_is_found(document: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=indent is None)
    for path, value in parts(document, ""):
        place = place_of(path, text)
        assert place is not None
        begin = sum(len(line) + 1 for line in text.split("\n")[: place.line - 1]) + place.column - 1
        assert json.JSONDecoder().raw_decode(text, begin)[0] == value
