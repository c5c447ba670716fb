"""Files of operation costs."""

import json

import pytest
from documents import COSTS, complaints

from mig_opt.files.costs import COSTS as COSTS_FILE
from mig_opt.gpu.catalogue import cost_tables, get_costs, get_gpu


@pytest.mark.parametrize("name", cost_tables())
def test_written_and_read_back(tmp_path, name):
    costs, path = get_costs(name, "H100"), tmp_path / "costs.json"
    COSTS_FILE.write(costs, path, gpu=get_gpu("H100"))
    assert COSTS_FILE.read(path) == costs
    assert json.loads(path.read_text())["gpu"] == "H100-80GB"


def test_for_another_gpu_that_has_other_sizes():
    assert COSTS_FILE.from_json(json.dumps(COSTS)).create == {1: 0.11, 2: 1.0, 4: 0.13}
    assert complaints(COSTS_FILE.from_json, json.dumps(COSTS), gpu="A100") == [
        "create: has no seconds for size 3, 7 of A100-40GB; add them",
        "destroy: has no seconds for size 3, 7 of A100-40GB; add them",
    ]
