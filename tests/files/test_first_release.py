"""Files of the first release stay readable: one of each kind, with every key that it knew."""

import json
from pathlib import Path
from typing import Any

import pytest
from documents import READERS, flaws

from mig_opt.files import KINDS
from mig_opt.files.schema import schema

FOLDER = Path(__file__).parent / "release_1_0"
STORED = sorted(FOLDER.glob("*.json"))

_DEVICES = {"devices", "index", "node", "uuid"}
_LATENCIES = {"continuous", "itl", "quantile", "ttft"}
LATER: dict[str, set[str]] = {
    "batch": _DEVICES | {"pools", "count", "cost", "mig"},
    "certificate": {"priced_work", "prices"},
    "deployment": _DEVICES,
    "deployment-result": _DEVICES | {"cost"},
    "profiles": _LATENCIES,
    "services": _LATENCIES | {"cost", "mig", "slo_itl", "slo_ttft"},
    "state": {"elsewhere", "indices", "kinds"},
    "trace": {"declared", "crashes", "outages", "begin", "end", "pools", "count", "cost", "mig"},
}
"""Keys that kinds of files have since then, all of them optional."""
LATER_KINDS = {"gpu"}
"""InstanceTypes of files that there are since then."""


def keys_of(document: object) -> set[str]:
    inner = document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    own = set(document) if isinstance(document, dict) else set()
    return own.union(*map(keys_of, inner))


def keys_known(schema: dict[str, Any]) -> set[str]:
    return {key for shape in (schema, *schema["$defs"].values()) for key in shape.get("properties", ())}


def test_there_is_one_of_each_kind():
    assert {path.stem for path in STORED} == KINDS.keys() - LATER_KINDS


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_files_of_the_first_release_are_read(path, monkeypatch):
    """Do not change the files: users have such."""
    monkeypatch.chdir(FOLDER)  # the study names the batch beside it
    document = json.loads(path.read_text(encoding="utf-8"))
    kind: Any = path.stem
    assert document["schema"] == f"mig-opt/{kind}/1"
    assert READERS[kind](document) is not None
    assert flaws(schema(kind), document) == []


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_they_have_every_key_of_that_time(path):
    """A key that is new belongs into ``LATER``; one that is gone makes a file unreadable."""
    kind: Any = path.stem
    known, of_gpus = keys_known(schema(kind)), keys_known(schema("gpu"))  # which files of that time only name
    assert known - keys_of(json.loads(path.read_text(encoding="utf-8"))) - of_gpus == LATER.get(kind, set())
    assert LATER.get(kind, set()) <= known
