"""Models of GPUs from texts in the format of ``nvidia-smi mig -lgip`` and ``-lgipp``, and from NVML."""

from functools import partial
from pathlib import Path

import documents
import pytest
from documents import refused
from nvml_machine import Machine

from mig_opt import GpuModel, OperationCosts, catalogue, cost_tables, get_gpu
from mig_opt.operations.observe.gpu_models import GpuImport, import_gpu
from mig_opt.operations.observe.sightings import Source


def lgip(gpu: GpuModel, number: int = 0) -> list[str]:
    """The lines that ``nvidia-smi mig -lgip`` would print; half of the instances are taken."""
    lines = []
    for one in gpu.profiles:
        gib = (one.usable_mib or one.memory_gb * 1000) / 1024
        free = f"{one.max_count // 2}/{one.max_count}"
        figures = f"{one.id:>5}{free:>8}{gib:>12.2f}      No {one.sm_count or 16:>6}     1     0   |"
        lines += [f"|{number:>4}  MIG {one.name:<14}{figures}"]
    return lines


def lgipp(gpu: GpuModel, number: int = 0) -> list[str]:
    return [
        f"GPU {number:>2} Profile ID {one.id:>2} Placement{' ' if len(one.starts) == 1 else 's'}: "
        f"{{{','.join(map(str, one.starts))}}}:{one.memory_slices}"
        for one in gpu.profiles
    ]


def found(*lines: str, **options: object) -> GpuImport:
    return import_gpu(Source("\n".join(lines)), **options)


complaints = partial(documents.complaints, found)


@pytest.mark.parametrize("gpu", catalogue(), ids=lambda gpu: gpu.name)
def test_each_gpu_of_the_catalogue_is_found_again(gpu):
    imported = found(*lgip(gpu), *lgipp(gpu))
    note = f"this is {gpu.name} of the catalogue, which needs no file"
    assert (imported.model, imported.notes) == (gpu, (note,))


def test_two_files_and_the_board_of_another_make(tmp_path):
    # An H100 PCIe has fewer multiprocessors than the SXM board of the catalogue, and the same places.
    (tmp_path / "lgip").write_text("\n".join(lgip(get_gpu("H100"))).replace("   132  ", "   114  "))
    (tmp_path / "lgipp").write_text("\n".join(lgipp(get_gpu("H100"))))
    (tmp_path / "board").write_text("GPU 0: NVIDIA H100 PCIe (UUID: GPU-1234)\n")
    files = [tmp_path / name for name in ("board", "lgip", "lgipp")]
    unknown = "does not tell which GPU this is; give it a name, or add the output of nvid"
    refused(import_gpu, *files[1:], match=unknown)
    assert import_gpu(*files).model is get_gpu("H100")


# A GPU that is not in the catalogue: larger, with a size that no other has, and no plain profile of all of it.
X500 = [
    "GPU 0: NVIDIA X500 Blackwell (UUID: GPU-1234)",
    "|   0  MIG 1g.12gb         14     8/8        11.75      No     20     1     1   |",
    "|   0  MIG 1g.12gb+me      21     1/1        11.75      No     20     1     1   |",
    "|   0  MIG 2g.24gb          5     0/4        23.75      No     40     2     2   |",
    "|   0  MIG 4g.48gb          9     2/2        47.62      No     80     4     4   |",
    "|   0  MIG 8g.96gb-me+gfx   0     1/1        95.00      No     160    0     0   |",
    "GPU  0 Profile ID 14 Placements: {0,1,2,3,4,5,6,7}:1",
    "GPU  0 Profile ID 21 Placements: {0,1,2,3,4,5,6,7}:1",
    "GPU  0 Profile ID  5 Placements: {0,2,4,6}:2",
    "GPU  0 Profile ID  9 Placements: {0,4}:4",
    "GPU  0 Profile ID  0 Placement : {0}:8",
]


def test_costs_are_those_that_are_given():
    table = cost_tables()["nvidia-smi"]
    assert found(*X500, operations=table).model.operation_costs.create == dict.fromkeys((1, 2, 4, 8), 1.0)
    few = OperationCosts({1: 0.1, 2: 0.1}, {1: 0.1, 2: 0.1})
    told = complaints(*X500, name="mine", operations=few)
    assert told[0] == "operation_costs.create: has no seconds for size 4, 8 of mine; add them"
    assert complaints(*lgip(get_gpu("A30")), *lgipp(get_gpu("A30")), operations=table)[0].startswith("name: the text")


def test_one_of_several_gpus():
    a30, a100 = get_gpu("A30"), get_gpu("A100")
    lines = [*lgip(a30, 0), *lgipp(a30, 0), *lgip(a100, 1), *lgipp(a100, 1)]
    assert complaints(*lines) == ["device: the GPUs 0, 1 differ; choose one of them by its number"]
    assert found(*lines, device=1).model is a100
    assert complaints(*lines, device=7) == ["device: no GPU 7 is listed; those that are: 0, 1"]
    assert found(*lgip(a30, 0), *lgipp(a30, 0), *lgip(a30, 3), *lgipp(a30, 3)).model is a30


def test_this_machine_is_asked(tmp_path):
    for name in ("A100", "H100", "A30", "RTX-PRO-6000"):
        with Machine(tmp_path, "A30", name).loaded() as machine:
            machine.mode(0, 0)
            assert import_gpu().model is get_gpu(name)
            machine.mode(1, 0)
            refused(import_gpu, match="GPU 0: MIG mode is off; enable it with: nvidia-smi -i GPU-")


def test_commands_take_the_file_of_a_gpu(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x500.txt").write_text("\n".join(X500))
    assert run("gpus", "import", "x500.txt", "--name", "X501", "-o", "x501.json").code == 0
    Path("tasks.csv").write_text("task,t1_s,t2_s,t8_s\na,9,5,2\nb,8,5,3\nc,12,7,\n")
    solved = run("solve", "tasks.csv", "--gpu", "x501.json", "-o", "plan.json", "--save-batch", "batch.json")
    assert "1 x X501" in solved.out
    assert "schedule  valid" in run("validate", "batch.json", "plan.json").out
    Path("bert.csv").write_text(
        "Mig instance,Batch size,Workload Number,Throughput,Latency\n1,8,1,100,0.05\n4,8,1,500,0.03\n"
    )
    Path("services.csv").write_text("service,model,slo_s,rate_rps\nchat,bert,0.4,700\n")
    given = ("--gpu", "x501.json", "--profiles", "bert.csv")
    assert run("deploy", "services.csv", *given, "-o", "fleet.json").code == 0
    assert "deployment     valid" in run("services", "validate", "services.csv", "fleet.json", *given).out
    Path("lgi.txt").write_text(
        "GPU 0: NVIDIA X500 Blackwell (UUID: GPU-1234)\n| GPU instances:  |\n|   0  MIG 4g.48gb   9   1   4:4  |\n"
    )
    assert run("state", "import", "lgi.txt", "--gpu", "x501.json", "-o", "state.json").code == 0
    assert "1 x X501" in run("defragment", "state.json").out
    assert run("state", "import", "lgi.txt", "-o", "state.json").code == 0  # this program has read what an X501 is
