"""Files of operation costs."""

from __future__ import annotations

import json

import pytest
from documents import COSTS, DELETE, changed, complaints

from mig_opt.files.costs import costs_from_json, read_costs, write_costs
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.costs import cost_tables, get_costs


@pytest.mark.parametrize("name", cost_tables())
def test_written_and_read_back(tmp_path, name):
    costs, path = get_costs(name, "H100"), tmp_path / "costs.json"
    write_costs(costs, path, gpu=get_gpu("H100"))
    assert read_costs(path) == costs
    assert json.loads(path.read_text())["gpu"] == "H100-80GB"


def test_for_another_gpu_that_has_other_sizes():
    assert costs_from_json(json.dumps(COSTS)).create == {1: 0.11, 2: 1.0, 4: 0.13}
    assert complaints(costs_from_json, json.dumps(COSTS), gpu="A100") == [
        "create: has no seconds for size 3, 7 of A100-40GB; add them",
        "destroy: has no seconds for size 3, 7 of A100-40GB; add them",
    ]


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        ([("create/1", -1)], ["create.1: must be a finite number of seconds >= 0, is -1.0"]),
        ([("create/4", DELETE)], ["create: has no seconds for size 4 of A30-24GB; add them"]),
        ([("destroy", DELETE)], ["destroy: is missing"]),
        ([("create/x", 1)], ["create.x: the key must be a number of compute slices"]),
        ([("destroy", 7), ("gpu", "B")], ["destroy: must be an object {...}, is 7", "gpu: unknown GPU 'B'"]),
        ([("create/3", 1.0), ("speed", 1)], ["create.3: A30-24GB has no instances of 3", "speed: unknown key"]),
    ],
)
def test_everything_that_is_wrong_is_told(changes, messages):
    found = complaints(costs_from_json, json.dumps(changed(COSTS, *changes)))
    assert len(found) == len(messages)
    for complaint, message in zip(found, messages, strict=True):
        assert complaint.startswith(message)
