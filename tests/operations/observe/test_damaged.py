"""Damaged texts of other programs: refused with their lines, or read for what they say."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from state_forms import LGI, TEXTS, complaints, state_from_text

from mig_opt import InputError, get_gpu
from mig_opt.files.values import Findings
from mig_opt.operations.observe.kubernetes import read_yaml
from mig_opt.operations.observe.sightings import Source
from mig_opt.operations.observe.state_import import Format, StateImport

JUNK = ["", "garbage", "|   0  MIG", "{", "}", "</gpu>", "<a>", "GPU 0:", "null", "[1]", "\x00", "=", '"']

Change = Callable[[list[str], int, int, str], object]
"""Changes a list of lines, given the index of a line, one in it, and a piece of text."""


def _character(lines: list[str], at: int, where: int, piece: str) -> None:
    lines[at] = lines[at][:where] + piece[:1] + lines[at][where + 1 :]


def _number(lines: list[str], at: int, where: int, piece: str) -> None:
    digits = [index for index, character in enumerate(lines[at]) if character.isdigit()]
    if digits:
        _character(lines, at, digits[where % len(digits)], str(len(piece) % 10))


def _replace(lines: list[str], at: int, where: int, piece: str) -> None:
    lines[at] = lines[at][:where] if where % 2 else piece


CHANGES: list[Change] = [
    lambda lines, at, *_: lines.pop(at),
    lambda lines, at, *_: lines.insert(at, lines[at]),
    lambda lines, at, where, _: lines.insert(where % len(lines), lines.pop(at)),
    lambda lines, at, *_: lines.__delitem__(slice(at + 1, None)),
    _character,
    _number,
    _replace,
]


@st.composite
def mutations(draw: st.DrawFn, text: str) -> str:
    """A text with some lines left out, doubled, moved, cut or replaced, and some characters changed."""
    lines = text.split("\n")
    for change in draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3)):
        at = draw(st.integers(0, len(lines) - 1))
        piece = draw(st.sampled_from(JUNK) | st.text(st.characters(codec="utf-8"), max_size=2))
        change(lines, at, draw(st.integers(0, len(lines[at]))), piece)
        lines = lines or [""]
    return "\n".join(lines)


def outcome(text: str, form: Format | None = None, **options: Any) -> StateImport | InputError:
    try:
        return state_from_text(text, form, **options)
    except InputError as error:
        return error


@pytest.mark.deep
@pytest.mark.parametrize("name", TEXTS)
def test_damaged_texts_are_refused_with_lines_or_read(name):
    @settings(max_examples=120, deadline=None)
    @given(mutations(TEXTS[name]), st.booleans())
    def check(text: str, assume: bool) -> None:
        found = outcome(text, assume_places=assume)
        assert isinstance(found, StateImport) or all(problem.message for problem in found.problems)

    check()


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["nvidia-smi", "dra", "device-plugin", "hami", "slurm", None]))
@example("<!DOCTYPE a [<!ENTITY b 'c'>]><nvidia_smi_log>&b;</nvidia_smi_log>", "nvidia-smi")
@example("[" * 5000, "dra")
@example('{"kind": "Node", "metadata": {"labels": {"nvidia.com/gpu.product": "A30"}}}', None)
@example("NodeName=a[1-99999999] Name=gpu Type=1g.5gb MultipleFiles=/dev/nvidia0", "slurm")
def test_any_text_is_refused_or_read(text, form):
    found = outcome(text, form, gpu="A100")
    assert isinstance(found, StateImport) or found.problems


ROWS = (
    "0  MIG 3g.20gb  9  1  0:4",
    "0  MIG 2g.10gb  14  3  1:2",
    "0  MIG 9g.9gb  7  4  4:2",
    "0  MIG 1g.5gb  19  9  2:2",
)


def test_what_the_hardware_cannot_have_is_told_by_its_line():
    text = "\n".join([LGI, *(f"|   {row}     |" for row in ROWS)])
    names = ", ".join(profile.name for profile in get_gpu("A100").profiles)
    assert complaints(text, gpu="A100") == [
        "line 3: 2g.10gb cannot start at slice 1; legal starts: 0, 2, 4",
        f'line 4: A100-40GB has not the profile "9g.9gb" with the number 7; its profiles are {names}',
        "line 5: 1g.5gb has 1 memory slice, not 2",
    ]
    overlapping = "\n".join([LGI, f"|   {ROWS[0]}     |", "|   0  MIG 1g.5gb  19  9  2:1     |"])
    assert complaints(overlapping, gpu="A100") == ["line 3: 1g.5gb@2 overlaps 3g.20gb@0 of line 2 on GPU 0"]


def test_outputs_of_different_moments_are_refused():
    text = TEXTS["nvidia-smi-550.txt"].split("\n")
    rows = [at for at, line in enumerate(text) if line.startswith("node-2: |   0  MIG 2g.10gb")]
    found = complaints("\n".join(text[: rows[0]] + text[rows[0] + 2 :]))
    assert [line.partition(": ")[2] for line in found] == [
        "instance 5 of GPU 0 is not in the table of GPU instances",
        "instance 5 of GPU 0 is not in the table of GPU instances: the two outputs are of different moments",
    ]


def test_damaged_json_is_told_by_the_line_of_the_object():
    text = TEXTS["dra-25.3.json"]
    lines = text.split("\n")
    claimed = next(at for at, line in enumerate(lines, 1) if '"device": "gpu-0-mig-9-4-4"' in line)
    named = next(at for at, line in enumerate(lines, 1) if '"name": "gpu-0-mig-14-4-2"' in line)
    broken = text.replace('"name": "gpu-0-mig-9-4-4"', '"name": "gpu-0-mig-9-5-4"').replace(
        '"name": "gpu-0-mig-14-4-2"', '"name": 7'
    )
    begin = max(at for at, line in enumerate(lines[:claimed], 1) if line.strip() == "{")
    first = max(at for at, line in enumerate(lines[:named], 1) if line.strip() == "{")
    found = [problem for problem in complaints(broken) if "legal starts" not in problem]
    assert found[0] == f"line {first}: items[2].spec.devices[1].name must be a text, is 7"
    assert found[1].startswith(f"line {begin}: items[5].status.allocation.devices.results[0] has the device")
    assert [problem.partition(":")[0] for problem in complaints(text[:-20])] == [f"line {len(lines) - 5}"]


def test_a_gpu_of_the_slices_needs_its_claims_pool():
    document = json.loads(TEXTS["dra-25.12.json"])
    document["items"] = [item for item in document["items"] if item["metadata"]["name"] != "node-2-gpu"]
    found = complaints(json.dumps(document, indent=1))
    assert len(found) == 2
    assert all('is of the pool "node-2", and no resource slice is' in line for line in found)


@pytest.mark.parametrize("name", [name for name in TEXTS if name.endswith(".json")])
def test_yaml_reads_as_json_does(name):
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
def test_damaged_yaml_is_told_by_its_line(text, complaint):
    pytest.importorskip("yaml")
    assert complaint in "\n".join(complaints(text))


def test_a_date_in_yaml_is_a_text():
    pytest.importorskip("yaml")
    (found,) = read_yaml(Source("kind: Pod\ncreated: 2026-11-23T08:00:00Z\ncount: 3\nup: true\n"), Findings(""))
    assert found == {"kind": "Pod", "created": "2026-11-23T08:00:00Z", "count": 3, "up": True}


def test_yaml_without_pyyaml(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(InputError, match=r"pip install \"mig-opt\[yaml\]\", or give what kubectl get ... -o json"):
        state_from_text("apiVersion: v1\nkind: List\nitems: []\n")
