"""Executions of these tests have the machine to themselves, and clusters of their own."""

import pytest
from dask_nodes import dask_nodes
from node_plans import FOREIGN
from nvml_machine import Machine
from slurm_nodes import slurm_nodes


@pytest.fixture(autouse=True)
def _alone(nobody_else):
    pass


@pytest.fixture
def machine(tmp_path):
    """A machine with an A30 and an A100, unless a file has another one."""
    with Machine(tmp_path, "A30", "A100").loaded() as found:
        yield found


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "run.journal"


@pytest.fixture(params=[pytest.param(engine, marks=pytest.mark.deep) for engine in ("dask", "slurm")])
def nodes(request, tmp_path):
    """Two nodes of an engine, each with an instance of somebody else."""
    if request.param == "dask":
        pytest.importorskip("distributed")
    with dask_nodes(tmp_path, "n1", "n2") if request.param == "dask" else slurm_nodes(tmp_path) as found:
        for machine in found.machines.values():
            machine.add(0, *FOREIGN, pid=4711)
        yield found
