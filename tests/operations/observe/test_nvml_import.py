"""A state from NVML: the genuine bindings on the tests' GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from nvml_machine import Machine

from mig_opt import Device
from mig_opt.errors import DriverError
from mig_opt.operations.observe.state_import import import_state

pytest.importorskip("pynvml", reason="needs nvidia-ml-py")


def test_the_instances_of_this_machine(tmp_path: Path) -> None:
    with Machine(tmp_path, "A100", "A100", "A100").loaded() as machine:
        uuid = machine.add(0, "4g.20gb", 0, pid=4711)
        machine.add(0, "1g.5gb+me", 6)
        machine.add(1, "3g.20gb", 4, compute=False)
        machine.mode(2, 0, 1)
        found = import_state(format="nvml")
        assert [(h.gpu, h.profile, h.start, h.name, h.idle) for h in found.state.instances] == [
            (0, "4g.20gb", 0, "pid 4711", False),
            (0, "1g.5gb+me", 6, "", True),
            (1, "3g.20gb", 4, "", True),
        ]
        assert found.state.instances[0].uuid == uuid
        assert found.state.uuids == (Machine.uuid(0), Machine.uuid(1))
        assert set(found.notes) == {
            "left out 1 GPU (MIG is off): GPU 2",
            "GPU 2: MIG is off, and will be on after the next reset of the GPU",
        }
        machine.mode(0, 0)
        assert import_state(format="nvml").state.devices == (Device(1, uuid=Machine.uuid(1)),)
        machine.fault("no-permission", -1, gpu=1)
        with pytest.raises(DriverError, match="sudo"):
            import_state(format="nvml")
