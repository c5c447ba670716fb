"""Places in files that the paths of problems are about."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mig_opt.files.documents import key_name
from mig_opt.files.locations import place_of

BROKEN = ["", "{", '{"gpu": ', '{"gpu": "A30" "x"', "[1, 2", "nonsense", '{"gpu" 3}', '{"a": 1,']


@pytest.mark.parametrize("text", BROKEN)
def test_broken_documents_have_no_places_or_right_ones(text):
    place = place_of("gpu", text)
    assert place is None or place.text[place.column - 1 :][: place.width] == '"A30"'


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
def test_every_part_of_a_document_is_found(document, indent):
    text = "// a comment\n" + json.dumps(document, indent=indent, ensure_ascii=indent is None)
    for path, value in parts(document, ""):
        place = place_of(path, text)
        begin = sum(len(line) + 1 for line in text.split("\n")[: place.line - 1]) + place.column - 1
        assert json.JSONDecoder().raw_decode(text, begin)[0] == value
        assert place == place_of(f"{path}.absent", text) == place_of(f"{path}[99]", text)
    assert place_of("absent", text) is place_of("line 999", text) is None
