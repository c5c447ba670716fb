"""Models of GPUs as files and in place of names in other files, and files of operation costs."""

import dataclasses
import json
import pickle
import subprocess
import sys

import pytest
from documents import COSTS, complaints, refused

from mig_opt import Deployment, FleetState, GpuModel, catalogue, cost_tables, get_costs, get_gpu, load, read, write
from mig_opt.batch.kinds import joined_costs
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.costs import COSTS as COSTS_FILE
from mig_opt.files.kinds import GPU
from mig_opt.files.serving.demands import DEMAND
from mig_opt.files.serving.deployments import DEPLOYMENT
from mig_opt.files.serving.profiles import PROFILES
from mig_opt.serving.demand import Demand, GpuPool, Service
from mig_opt.serving.deployment import Segment
from mig_opt.serving.profile_table import Point, ProfileTable

OWN = dataclasses.replace(get_gpu("A30"), name="F30", label="NVIDIA F30", aliases=("F-30",))


def of_model(document: object) -> list[str]:
    return complaints(GPU.from_json, json.dumps(document))


@pytest.mark.parametrize("gpu", catalogue(), ids=lambda gpu: gpu.name)
def test_what_the_catalogue_has_can_be_in_a_file(gpu):
    assert GPU.from_json(GPU.to_json(gpu)) is gpu


def test_costs_that_are_left_out_are_assumed_and_say_so():
    document = GPU.document(dataclasses.replace(OWN, name="G30", aliases=()))
    del document["operation_costs"]
    document["profiles"][-1] |= {"compute_slices": 9}
    document["compute_slices"] = 9
    costs = GPU.from_json(json.dumps(document)).operation_costs
    h100 = get_gpu("H100").operation_costs
    assert costs.assumed
    assert costs.create == {1: h100.create[1], 2: h100.create[2], 9: h100.create[7]}
    assert costs.source.endswith("measured on H100; assumed for G30, which nobody has measured, 9g taken as 7g")
    few = document | {"name": "H30", "profiles": document["profiles"][:-1], "compute_slices": 2}
    assert of_model(few)[0].startswith("compute_slices: is 2, and instances for which there is room have 4 together; ")


def test_a_name_stands_for_one_model_only(tmp_path):
    write(OWN, tmp_path / "f30.json")
    assert read(GpuModel, tmp_path / "f30.json") == OWN == get_gpu("f-30")
    other = GPU.document(OWN) | {"label": "another"}
    assert of_model(other) == [
        "aliases[0]: 'F-30' is the name of another GPU; choose another one",
        "name: 'F30' is the name of another GPU; choose another one",
    ]


def test_files_have_the_model_where_the_name_comes_first():
    own = load("rodinia-a30").replace(gpu=OWN)
    assert BATCH.document(own)["gpu"] == GPU.document(OWN)
    assert BATCH.from_json(BATCH.to_json(own), name=own.name) == own
    segments = Segment("chat", 0, "2g.12gb", 0, 8, 1, 100.0, 0.1), Segment("chat", 2, "2g.12gb", 0, 8, 1, 100.0, 0.1)
    deployment = Deployment(("F30", "A30-24GB", "F30"), segments)
    assert DEPLOYMENT.document(deployment)["gpus"] == [GPU.document(OWN), "A30-24GB", "F30"]
    assert DEPLOYMENT.from_json(DEPLOYMENT.to_json(deployment)) == deployment
    table = ProfileTable("bert", "F30", (Point(1, 8, 1, 100.0, 0.1),))
    other = dataclasses.replace(table, gpu="A30-24GB")
    for tables in ((table,), (other, table)):
        assert PROFILES.from_json(PROFILES.to_json(tables)) == tables
    pools = GpuPool(get_gpu("A30"), 1), GpuPool(OWN, 2)
    for demand in (
        Demand((Service("bert", 0.4, 90.0),), (table,), (GpuPool(OWN),)),
        Demand((Service("bert", 0.4, 90.0),), (table, other), pools),
    ):
        assert DEMAND.from_json(DEMAND.to_json(demand)) == demand


def test_files_may_name_the_file_of_a_model_from_their_own_folder(tmp_path, monkeypatch):
    folder = tmp_path / "models"
    folder.mkdir()
    write(OWN, folder / "f30.json")
    monkeypatch.chdir(folder)
    state = {"schema": "mig-opt/state/1", "gpu": "models/f30.json", "gpus": 1, "instances": []}
    (tmp_path / "state.json").write_text(json.dumps(state))
    assert read(FleetState, tmp_path / "state.json").gpu == OWN
    (tmp_path / "state.json").write_text(json.dumps(state | {"gpu": "f30.json"}))
    refused(read, FleetState, tmp_path / "state.json", match=r"gpu: f30.json: no such file")
    (folder / "f30.json").write_text(json.dumps(GPU.document(OWN) | {"memory_gb": -1}))
    (tmp_path / "state.json").write_text(json.dumps(state))
    said = r"gpu: models/f30.json: memory_gb: must be a finite number of GB > 0"
    refused(read, FleetState, tmp_path / "state.json", match=said)


def test_the_files_of_a_study_may_be_for_the_gpu_of_a_file(tmp_path):
    from mig_opt.studies import read_study, run_study

    write(OWN, tmp_path / "f30.json")
    (tmp_path / "tasks.csv").write_text("task,t1_s,t4_s\na,3,1\nb,2,1\n")
    (tmp_path / "study.toml").write_text(
        'schema = "mig-opt/study/1"\nbatches = [{file = "tasks.csv", gpu = "f30.json"}]\nmethods = [{method = "far"}]\n'
    )
    study = read_study(tmp_path / "study.toml")
    rows = run_study(study, tmp_path / "rows.jsonl", folder=tmp_path).rows
    assert [row.outcome.makespan for row in rows] == [2.13]


def test_another_process_knows_a_gpu_that_comes_to_it():
    data = pickle.dumps(dataclasses.replace(OWN, name="K30", aliases=()))
    program = f"import pickle; from mig_opt import get_gpu; print(pickle.loads({data!r}) is get_gpu('K30'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_problems_are_the_same_where_nothing_else_has_been_read(tmp_path):
    document = GPU.document(OWN)
    document["operation_costs"] = {"create": {"1": True, "2": 0.1, "4": 0.1}}
    path = tmp_path / "f30.json"
    path.write_text(json.dumps(document))
    program = f"from mig_opt import GpuModel, read; read(GpuModel, {str(path)!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    for complaint in of_model(document):
        assert complaint in done.stderr
    assert "operation_costs.create.1: must be a number, is true" in done.stderr
    assert 'operation_costs.destroy: is missing; add it, for example "destroy": {"1": ' in done.stderr


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


def test_costs_of_several_kinds_are_written_for_one_of_them(tmp_path):
    kinds = get_gpu("A100"), get_gpu("A30")
    joined = joined_costs({kind: kind.operation_costs for kind in kinds})
    for kind in kinds:
        COSTS_FILE.write(joined, tmp_path / "costs.json", gpu=kind)
        assert COSTS_FILE.read(tmp_path / "costs.json") == dataclasses.replace(
            kind.operation_costs, source=joined.source
        )
    refused(COSTS_FILE.write, joined, tmp_path / "none.json", match="gpu: must be a GpuModel", gpu=None)
    assert "create.3" in refused(COSTS_FILE.write, kinds[0].operation_costs, tmp_path / "none.json", gpu=kinds[1])
