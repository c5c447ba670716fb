"""Fleet states as files."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from documents import DELETE, STATE, changed, complaints, flaws
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import FleetState, HeldInstance, InputError, defragment, get_gpu
from mig_opt.files.fleet.states import (
    defragmentation_document,
    read_state,
    state_from_csv,
    state_from_json,
    state_to_json,
    write_state,
)
from mig_opt.files.schema import schema

A30 = get_gpu("A30")
PLACED = tuple(A30.placed_states())


@st.composite
def states(draw: st.DrawFn) -> FleetState:
    held = [
        HeldInstance(
            *(gpu, placement.profile.name, placement.start, draw(st.text(max_size=3)), draw(st.booleans())),
            owner=draw(st.text(max_size=2)),
            idle=draw(st.booleans()),
            weight=draw(st.integers(1, 9)),
        )
        for gpu in range(draw(st.integers(1, 4)))
        for placement in draw(st.sampled_from(PLACED))
    ]
    gpus = max((entry.gpu for entry in held), default=0) + draw(st.integers(1, 3))
    surroundings = {
        "nodes": draw(st.sampled_from([(), tuple(f"node-{gpu // 2}" for gpu in range(gpus))])),
        "indices": draw(st.sampled_from([(), tuple(range(1, 2 * gpus, 2))])),
        "uuids": draw(st.sampled_from([(), ("",) * (gpus - 1) + ("GPU-1",)])),
        "manager": draw(st.sampled_from(["", "dra"])),
        "budgets": draw(st.dictionaries(st.text(max_size=2), st.integers(0, 3), max_size=2)),
    }
    return FleetState(A30, gpus, tuple(held), **surroundings)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(states())
def test_round_trip(state: FleetState) -> None:
    text = state_to_json(state)
    assert state_from_json(text) == state
    assert flaws(schema("state"), json.loads(text)) == []


def test_files(tmp_path: Path) -> None:
    state = FleetState(A30, 3, (HeldInstance(1, "2g.12gb", 2, "chat", pinned=True), HeldInstance(0, "1g.6gb", 0)))
    write_state(state, tmp_path / "fleet.json")
    read = read_state(tmp_path / "fleet.json")
    assert (read, read.name) == (state, "fleet")
    assert read_state(tmp_path / "fleet.json", gpus=5).gpus == 5
    (tmp_path / "fleet.csv").write_text("profile,gpu,pinned,start,name\n2g.12gb,1,Yes,2,chat\n1g.6gb,0,,0,\n")
    assert read_state(tmp_path / "fleet.csv", gpu="A30", gpus=3) == state
    assert read_state(tmp_path / "fleet.csv", gpu="A30").gpus == 2


def test_everything_wrong_with_a_document_is_told_at_once() -> None:
    document = changed(
        STATE,
        ("instances/0/start", 5),
        ("instances/1/gpu", 2),
        ("instances/1/pinned", "yes"),
        ("instances/1/free", 3),
        ("color", "red"),
    )
    assert complaints(state_from_json, document) == [
        "color: unknown key; known: schema, gpu, instances, gpus, nodes, indices, uuids, manager, budgets",
        "instances[0].start: 1g.6gb cannot start at slice 5; legal starts: 0, 1, 2, 3",
        "instances[1].free: unknown key; known: gpu, profile, start, name, pinned, owner, idle, weight, uuid",
        "instances[1].gpu: must be from 0 to 1, is 2",
        'instances[1].pinned: must be true or false, is "yes"',
    ]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("gpus", 0), "gpus: must be from 1 to 1000000, is 0"),
        (("gpu", DELETE), 'gpu: is missing; add it, for example "gpu": "A100-40GB"'),
        (("schema", "mig-opt/trace/1"), "schema: this is a trace (mig-opt/trace/1), but a state is wanted"),
        (("instances", "none"), 'instances: must be a list [...], is "none"'),
        (
            ("instances/1", {"gpu": 0, "profile": "2g.12gb", "start": 2}),
            "instances[1]: 2g.12gb@2 overlaps 1g.6gb@3 of instances[0] on GPU 0",
        ),
        (
            ("instances/1", {"gpu": 0, "profile": "9g", "start": 2}),
            "instances[1].profile: A30-24GB has no profile '9g'",
        ),
    ],
)
def test_mistakes_in_a_document(change: tuple[str, object], complaint: str) -> None:
    (found,) = complaints(state_from_json, changed(STATE, change))
    assert found.startswith(complaint)


def test_mistakes_in_what_surrounds_the_instances() -> None:
    document = changed(
        STATE,
        ("nodes", ["a"]),
        ("indices", [0, True]),
        ("uuids", "GPU-1"),
        ("manager", 3),
        ("budgets", {"web": -1, "db": "x"}),
        ("instances/0/weight", 0),
        ("instances/0/idle", 1),
    )
    assert complaints(state_from_json, document) == [
        'budgets.db: must be a whole number without a decimal point, is "x"',
        "indices[1]: must be a whole number without a decimal point, is true",
        "instances[0].idle: must be true or false, is 1",
        "instances[0].weight: must be from 1 to 1000000, is 0",
        "manager: must be a text in quotes, is 3",
        "nodes: has 1 entries for 2 GPUs; give one for each GPU, or none",
        'uuids: must be a list [...], is "GPU-1"',
    ]
    assert complaints(state_from_json, changed(STATE, ("budgets", {"web": -1}))) == [
        "budgets.web: must be from 0 to 1000000, is -1"
    ]
    twice = changed(STATE, ("nodes", ["a", "a"]), ("indices", [3, 3]), ("uuids", ["GPU-1", "GPU-1"]), ("gpu", "A31"))
    assert complaints(state_from_json, twice)[1:] == [
        "indices[1]: GPU 3 of a is that of indices[0] already; each GPU needs its own",
        "uuids[1]: GPU-1 is that of uuids[0] already; each GPU needs its own",
    ]
    far = changed(STATE, ("indices", [0, -1]))
    assert complaints(state_from_json, far) == ["indices[1]: must be from 0 to 999999, is -1"]
    with pytest.raises(InputError, match=r"nodes\[0\]: must be a text"):
        FleetState(A30, 1, (), nodes=(1,))  # type: ignore[arg-type]


def test_everything_wrong_with_a_table_is_told_at_once() -> None:
    table = "gpu,profile,start,pinned\n0,1g.6gb,3,maybe\n0,2g.12gb,2,\nx,2g.12gb,1,\n"
    assert complaints(state_from_csv, table, gpu="A30") == [
        'line 2, pinned: must be yes or no, is "maybe"',
        "line 3: 2g.12gb@2 overlaps 1g.6gb@3 of line 2 on GPU 0",
        'line 4, gpu: must be a whole number without a decimal point, is "x"',
    ]
    assert complaints(state_from_csv, "gpu,profile,begin\n0,1g.6gb,3\n") == [
        "line 1: has no column start; add one",
        'line 1, begin: unknown column "begin"; known: gpu, profile, start, name, pinned, owner, idle, weight',
    ]
    (found,) = complaints(state_from_csv, "gpu,profile,start\n0,1g.6gb,3\n")
    assert found.startswith("gpu: a CSV file does not name its GPU")


def test_the_document_of_a_defragmentation() -> None:
    state = FleetState(A30, 1, (HeldInstance(0, "1g.6gb", 1, "chat"),))
    document = defragmentation_document(defragment(state, ["2g.12gb", "1g.6gb"]))
    assert (document["status"], document["migrations"], document["gap"]) == ("optimal", 0, 0.0)
    assert document["room"] == [
        {"gpu": 0, "profile": "2g.12gb", "start": 2},
        {"gpu": 0, "profile": "1g.6gb", "start": 0},
    ]
    known = dataclasses.replace(state, nodes=("a",), indices=(3,), uuids=("GPU-7",))
    assert defragmentation_document(defragment(known, ["2g.12gb"]))["room"] == [
        {"gpu": 0, "profile": "2g.12gb", "start": 2, "node": "a", "index": 3, "uuid": "GPU-7"}
    ]
    none = defragmentation_document(defragment(state, ["4g.24gb"]))
    assert (none["status"], none["migrations"], none["steps"], none["gap"]) == ("infeasible", None, [], None)
