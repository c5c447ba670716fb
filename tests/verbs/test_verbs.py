"""The verbs of the face: their tables lead somewhere, and what is given decides what is done."""

import inspect
import itertools
from pathlib import Path
from typing import Any, get_args

import pytest

import mig_opt
from mig_opt import Batch, Deployment, FleetState, InputError, Migration, ProfileTable, RateTable, Trace
from mig_opt.fleet.admission import AdmissionGoal
from mig_opt.instances.bundled import BatchName, DemandName
from mig_opt.method.functions import imported
from mig_opt.method.study import BundledBatch, GeneratedBatches, MethodSettings, Study
from mig_opt.models.fleet.arrivals import TraceGoal
from mig_opt.operations.observe.state_import import FORMATS
from mig_opt.verbs import files, plans

TABLES: list[dict[Any, str]] = [
    files.READERS,
    files.WRITERS,
    files.IMPORTERS,
    files.EXPORTERS,
    plans.VALIDATORS,
    plans.BOUNDS,
    plans.OPTIMA,
]
BATCH, DEMAND = mig_opt.load("rodinia-a30"), mig_opt.load("parvagpu-s1")
A100 = mig_opt.get_gpu("A100")
JOB = mig_opt.Job("a", 0.0, {4: 10.0})
SCHEDULE = mig_opt.solve(BATCH, "far").schedule


def complaint(call: Any) -> str:
    with pytest.raises(InputError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("entry", sorted(set(itertools.chain(*(table.values() for table in TABLES)))))
def test_every_entry_is_a_function(entry: str) -> None:
    assert callable(imported(entry))


def test_the_face_is_small() -> None:
    assert len(mig_opt.__all__) <= 100


def test_choices_are_those_of_what_is_called() -> None:
    assert set(plans.OPTIMA) == {*get_args(TraceGoal), *get_args(AdmissionGoal)}
    assert {*FORMATS, "state"} == {form for form, entry in files.IMPORTERS.items() if entry == files._STATE}
    assert set(get_args(BatchName)) == set(mig_opt.instance_names())
    assert set(get_args(DemandName)) == set(mig_opt.instance_names("demand"))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    deployment = mig_opt.deploy(DEMAND, "first-fit").deployment
    for number, content in enumerate(
        [BATCH, SCHEDULE, DEMAND, deployment, Trace((JOB,), mig_opt.get_gpu("A30"), name="x"), FleetState(A100, 2, ())]
    ):
        path = tmp_path / f"{number}.json"
        mig_opt.write(content, path)
        found: Any = mig_opt.read(type(content), path)
        mig_opt.write(found, tmp_path / "again.json")
        assert (tmp_path / "again.json").read_text() == path.read_text()
    mig_opt.write(DEMAND.tables[0], tmp_path / "table.json")
    assert mig_opt.read(ProfileTable, tmp_path / "table.json") == DEMAND.tables[:1]
    mig_opt.write(list(DEMAND.tables), tmp_path / "tables.json")
    assert mig_opt.read(ProfileTable, tmp_path / "tables.json") == DEMAND.tables
    mig_opt.write(deployment, tmp_path / "plan.csv")
    assert mig_opt.read(Deployment, tmp_path / "plan.csv").gpus == deployment.gpus
    mig_opt.write(A100.operation_costs, tmp_path / "costs.json", gpu=A100)
    assert mig_opt.read(mig_opt.OperationCosts, tmp_path / "costs.json") == A100.operation_costs
    study = Study((BundledBatch("rodinia-a30"), GeneratedBatches((20,))), (MethodSettings("far"),))
    mig_opt.write(study, tmp_path / "study.json")
    assert mig_opt.read(Study, tmp_path / "study.json") == study
    (tmp_path / "requests.csv").write_text("time,service\n0.5,chat\n")
    assert mig_opt.read(mig_opt.Arrivals, tmp_path / "requests.csv").recorded == {"chat": (0.5,)}
    row = "|   0  MIG 3g.20gb         9        2          4:4     |"
    (tmp_path / "gpu.txt").write_text(f"| GPU instances:                                        |\n{row}\n")
    found = mig_opt.import_from("nvidia-smi", tmp_path / "gpu.txt", gpu="A100")
    assert [held.start for held in found.state.instances] == [4]
    mig_opt.export(BATCH, "program", tmp_path / "model.lp")
    assert "run_gaussian" in (tmp_path / "model.lp").read_text()


def test_the_problem_decides_what_is_checked_bounded_and_drawn(tmp_path: Path) -> None:
    assert mig_opt.validate(BATCH, SCHEDULE).makespan == SCHEDULE.makespan
    assert mig_opt.validate(DEMAND, Deployment((), ())).violations[0].code == "unserved"
    moved = [Migration(0, "1g.5gb", 0, 0, 6, "a")]
    state = FleetState(A100, 1, (mig_opt.HeldInstance(0, "1g.5gb", 0, "a"),))
    assert mig_opt.validate(state, moved, room=[(0, "4g.20gb", 0)]).valid
    trace = Trace((JOB,), mig_opt.get_gpu("A30"))
    assert mig_opt.bounds(trace, resizing=False).makespan[0].value == pytest.approx(10.13)
    assert mig_opt.bounds(trace, reject=True).jobs == 1
    assert mig_opt.bounds(DEMAND)[0].value > 0
    assert mig_opt.optimum(trace, "jobs", workers=1).objective == 0
    mig_opt.plot(BATCH, SCHEDULE, to=tmp_path / "plan.png")
    mig_opt.plot(BATCH, to=tmp_path / "batch.png")
    for name in ("plan", "batch"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert inspect.ismethod(mig_opt.plot([mig_opt.simulate(trace, "first-fit")]).savefig)
    assert mig_opt.export(state, "script", moved).startswith("#!")


def test_what_no_table_has_is_told(tmp_path: Path) -> None:
    anything: Any = 3
    assert "kind: cannot be 'int'; known: Batch, Schedule" in complaint(lambda: mig_opt.read(type(anything), "x"))
    assert "content: cannot be 'list'" in complaint(lambda: mig_opt.write([BATCH], "x"))
    assert "gpu: must be a GpuModel" in complaint(lambda: mig_opt.write(A100.operation_costs, "x"))
    assert "content: cannot be 'RateTable'" in complaint(lambda: mig_opt.write(RateTable((0, 1), {"a": (1,)}), "x"))
    assert "did you mean nvidia-smi" in complaint(lambda: mig_opt.import_from("nvidia_smi", "x"))
    wrong: Any = "kubernets"
    assert "did you mean Deployment as kubernetes" in complaint(lambda: mig_opt.export(Deployment((), ()), wrong))
    assert "problem: cannot be 'int'" in complaint(lambda: mig_opt.validate(anything, 1))
    assert "there is no picture of int" in complaint(lambda: mig_opt.plot(anything))
    assert "no bundled instance" in complaint(lambda: mig_opt.load("parvagpu"))
    assert "did you mean simulate" in complaint(lambda: mig_opt.methods("simulte"))


def test_a_class_of_the_user_is_read_as_the_one_that_it_is_derived_from(tmp_path: Path) -> None:
    class Mine(Batch):
        pass

    mig_opt.write(BATCH, tmp_path / "b.json")
    assert mig_opt.read(Mine, tmp_path / "b.json", gpu="A30").tasks == BATCH.tasks
