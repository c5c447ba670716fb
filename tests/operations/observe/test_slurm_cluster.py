"""States of a real cluster: what its Slurm and its nodes print is read as it is."""

from pathlib import Path

import pytest
from documents import refused
from slurm_cluster import Cluster, cluster

from mig_opt import InputError
from mig_opt.operations.observe.state_import import StateImport, import_state


@pytest.fixture
def slurm(tmp_path):
    with cluster(tmp_path / "s", {"n1": ("A100", "A100"), "n2": ("A100",)}) as made:
        made.machines["n1"].add(0, "1g.5gb", 6)  # numbers from 2
        made.machines["n1"].add(0, "1g.5gb", 4)
        made.machines["n1"].add(0, "3g.20gb", 0)
        made.machines["n1"].add(1, "2g.10gb", 2)
        made.machines["n2"].add(0, "2g.10gb", 4)
        listed = [("n1", "1g.5gb", 0, 2), ("n1", "1g.5gb", 0, 3), ("n1", "3g.20gb", 0, 4), ("n1", "2g.10gb", 1, 2)]
        listed.append(("n2", "2g.10gb", 0, 2))
        gres = {"n1": "gpu:a100_1g.5gb:2,gpu:a100_2g.10gb:1,gpu:a100_3g.20gb:1", "n2": "gpu:a100_2g.10gb:1"}
        lines = [
            f"NodeName={node} Name=gpu Type=a100_{profile} MultipleFiles={made.caps(gpu, number)}\n"
            for node, profile, gpu, number in listed
        ]
        made.describe(gres, "".join(lines))
        made.start()
        yield made


def texts(slurm: Cluster, folder: Path, *, gres: bool, listing: tuple[str, ...]) -> list[Path]:
    """Files that the administrator writes: those of Slurm on the controller, and of each node its own."""
    shown = slurm.run("scontrol", "show", "node", "-d") + slurm.run("scontrol", "show", "job", "-d")
    lines = (slurm.root / "etc" / "gres.conf").read_text().replace(str(slurm.root / "dev"), "/dev")
    (folder / "slurm.txt").write_text((lines if gres else "AutoDetect=nvml\n") + shown)
    for name, machine in slurm.machines.items():
        gpus = range(len(machine.state))
        # The real one lists all GPUs without -i.
        ways = [["-L"] if "-L" in listing else ["mig", "-i", str(gpu), *listing] for gpu in gpus]
        text = "".join(
            slurm.run("nvidia-smi", *way, PATH=machine.environment["PATH"], FAKE_GPUS=str(machine.path))
            for way in (ways[:1] if "-L" in listing else ways)
        )
        (folder / f"{name}.txt").write_text(text)
    return [folder / name for name in ("slurm.txt", "n1.txt", "n2.txt")]


def held(found: StateImport) -> list[tuple[str, int, str, int, str]]:
    state = found.state
    homes = [(device.node, device.index) for device in state.devices]
    return [(*homes[one.gpu], one.profile, one.start, one.name) for one in state.instances]


def test_a_job_runs_on_the_instance_that_the_state_tells(slurm, tmp_path):
    job = slurm.submit("sleep 100", "--gres=gpu:a100_1g.5gb:1", "-w", "n1")
    ended = slurm.submit("echo $CUDA_VISIBLE_DEVICES", "--gres=gpu:a100_2g.10gb:1", "-w", "n2")
    assert slurm.output(ended) == "0"
    slurm.until(lambda: slurm.job(job) == "RUNNING")
    paths = texts(slurm, tmp_path, gres=True, listing=("-lgi",))
    found = import_state(*paths, gpu="A100-40GB")
    # The device files of a line tell which instance it is: the first index, which the job has, is number 2 at slice 6.
    assert held(found) == [
        ("n1", 0, "3g.20gb", 0, ""),
        ("n1", 0, "1g.5gb", 4, ""),
        ("n1", 0, "1g.5gb", 6, f"job {job}"),
        ("n1", 1, "2g.10gb", 2, ""),
        ("n2", 0, "2g.10gb", 4, ""),
    ]
    assert [one.name for one in found.state.instances if not one.idle] == [f"job {job}"]
    assert found.state.manager == "slurm"


def test_of_instances_that_autodetect_found_those_used_alike_have_places(slurm, tmp_path):
    paths = texts(slurm, tmp_path, gres=False, listing=("-lgi",))
    places = [one[:4] for one in held(import_state(*paths, gpu="A100-40GB"))]
    assert places[1:3] == [("n1", 0, "1g.5gb", 4), ("n1", 0, "1g.5gb", 6)]
    slurm.submit("sleep 100", "--gres=gpu:a100_1g.5gb:1", "-w", "n1")
    slurm.until(lambda: "RUNNING" in slurm.run("squeue", "-h", "-o", "%T"))
    paths = texts(slurm, tmp_path, gres=False, listing=("-lgi",))
    with pytest.raises(InputError, match=r"nothing tells which 1g\.5gb of n1 is which, and not all are used alike"):
        import_state(*paths, gpu="A100-40GB")
    found = import_state(*paths, gpu="A100-40GB", assume_places=True)
    assert "which 1g.5gb of n1 is used by whom is assumed, it is not in the text" in found.notes


def test_lists_of_devices_tell_gpus_and_uuids(slurm, tmp_path):
    paths = texts(slurm, tmp_path, gres=True, listing=("-L",))
    found = import_state(*paths, assume_places=True)
    assert (found.state.gpu.name, found.state.uuids) == ("A100-40GB", ("GPU-n1-0", "GPU-n1-1", "GPU-n2-0"))


def test_texts_that_do_not_belong_together_are_refused(slurm, tmp_path):
    slurm.machines["n2"].add(0, "1g.5gb", 0)
    paths = texts(slurm, tmp_path, gres=True, listing=("-lgi",))
    with pytest.raises(InputError, match=r"Slurm does not have this 1g\.5gb: the texts are of different moments"):
        import_state(*paths, gpu="A100-40GB")
    other = paths[2].read_text().replace("MIG 2g.10gb          14", "MIG 1g.5gb           19").replace("4:2", "4:1")
    paths[2].write_text(other)
    refused(import_state, *paths, match=r"Slurm has 1 x 2g\.10gb of n2, and nvidia-smi lists 0", gpu="A100-40GB")
    strange = paths[2].rename(tmp_path / "n3.txt")
    with pytest.raises(InputError, match="is of n3, and Slurm's text of n1, n2; call the file of each node by"):
        import_state(*paths[:2], strange, gpu="A100-40GB")
    joined = tmp_path / "all.txt"
    joined.write_text(paths[0].read_text() + paths[1].read_text())
    with pytest.raises(InputError, match="has lines of Slurm and of nvidia-smi; give the output of each node"):
        import_state(joined, gpu="A100-40GB")
