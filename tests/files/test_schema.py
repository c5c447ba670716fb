"""JSON Schemas: they say the same as the readers."""

import copy
import re
from typing import Any

import pytest
from documents import DELETE, DOCUMENTS, READERS, flaws
from freeze import KINDS

from mig_opt import InputError, schema


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of everything in a document."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, entry in entries for place in places_in(entry, (*path, key))]


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.deep) if kind == "study" else kind for kind in DOCUMENTS]
)
def test_schema_and_reader_agree(kind):
    """Put wrong and right values everywhere: what the schema refuses the reader refuses, and the other way round."""
    stated, read = schema(kind), READERS[kind]
    values = [DELETE, None, True, 0, -1, 2, 2.5, "", "x", "create", [], {}, {"1": 1.0}, {"x": 1}, {"1": 0}]
    # About these a schema can say nothing: they depend on the GPU or on another part of the file.
    beyond = re.compile(
        r"cannot start|no profile|must be from 0 to|has no seconds|no instances|follows from|"
        r"no bundled|unknown method|unknown '|another label|no profile table|none is for|is that of|"
        r"give the kind of GPU, or|"
        r"already; keep|there is no GPU|unknown GPU|several kinds|GPU that was measured|add the profile tables|"
        r"times has no seconds|must rise|overlaps|entries for|is less than memory_growth reaches|"
        r"and the whole GPU has|has room is|lies within the other|, too; each profile|has a slice twice|"
        r", for \d+ start|, and instances for|"
        r"no family|has no parameter|unknown policy|no option of the policy|^.*\.parameters\.|^.*\.options\."
    )
    refused = accepted = 0
    for place in places_in(DOCUMENTS[kind]):
        for value in values:
            document = copy.deepcopy(DOCUMENTS[kind])
            parent: Any = document
            for step in place[:-1]:
                parent = parent[step]
            if value == DELETE:
                del parent[place[-1]]
            else:
                parent[place[-1]] = value
            flawed = flaws(stated, document)
            error = ""
            try:
                read(document)
            except InputError as caught:
                error = str(caught)
            if error:
                refused += 1
                assert flawed or beyond.search(error), (place, value, error)
            else:
                accepted += 1
                assert not flawed, (place, value)
    assert refused > 50
    assert accepted > 10


def test_every_kind_has_a_document_to_test_it_with():
    assert set(DOCUMENTS) == set(READERS) == set(KINDS)
