"""States from YAML: what `kubectl get -o yaml` prints is read as what it prints with `-o json`."""

from __future__ import annotations

import json
import sys

import pytest
from state_forms import TEXTS, complaints, state_from_text

from mig_opt import InputError
from mig_opt.files.values import Findings
from mig_opt.operations.observe.kubernetes import read_yaml
from mig_opt.operations.observe.sightings import Source


@pytest.mark.parametrize("name", [name for name in TEXTS if name.endswith(".json")])
def test_yaml_reads_as_json_does(name: str) -> None:
    yaml, raw, read = pytest.importorskip("yaml"), json.loads(TEXTS[name]), state_from_text(TEXTS[name])
    assert state_from_text(yaml.safe_dump(raw, sort_keys=False)) == read
    # Objects one after the other, as of several calls of kubectl.
    if raw.get("kind") == "List":
        assert state_from_text(yaml.safe_dump_all(raw["items"], explicit_start=True)) == read


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kind: List\nitems:\n- {kind: Node}\n- kind: [", "line 4: is no YAML: did not find expected node content"),
        ("kind: List\nitems:\n- kind: Node\n  kind: Pod\n", "line 4: kind stands twice in the same object"),
        ("kind: List\nitems: &all\n- kind: Node\nmore: *all\n", "line 2: stands at several places by an alias"),
        ("kind: List\nitems:\n- metadata: {name: n}\n", "line 3: items[0] has no kind"),
        ("kind: Node\n---\n- 1\n", "line 3: must be an object, is a list"),
        ("kind: Node\nmetadata: !!int x\n", "line 2: cannot be read: "),
        ("kind: Node\nmetadata: \u0007\n", "is no YAML: "),
    ],
)
def test_damaged_yaml_is_told_by_its_line(text: str, complaint: str) -> None:
    pytest.importorskip("yaml")
    assert complaint in "\n".join(complaints(text))


def test_a_date_in_yaml_is_a_text() -> None:
    pytest.importorskip("yaml")
    (found,) = read_yaml(Source("kind: Pod\ncreated: 2026-11-23T08:00:00Z\ncount: 3\nup: true\n"), Findings(""))
    assert found == {"kind": "Pod", "created": "2026-11-23T08:00:00Z", "count": 3, "up": True}


def test_yaml_without_pyyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(InputError, match=r"pip install \"mig-opt\[yaml\]\", or give what kubectl get ... -o json"):
        state_from_text("apiVersion: v1\nkind: List\nitems: []\n")
