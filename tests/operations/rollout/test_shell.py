"""Scripts of nvidia-smi commands, carried out on GPUs that are a file."""

import dataclasses
import re
import subprocess

import pytest
from documents import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts import Machine, segment

from mig_opt import Deployment, get_gpu
from mig_opt.gpu.catalogue import add_gpu
from mig_opt.operations.rollout.nvidia_smi import deployment_script
from mig_opt.operations.rollout.shell import comment, shell_word


def deployment(*names: str) -> Deployment:
    one, two = (*names, "chat", "vision")[:2]
    return Deployment(
        ("A100-80GB", "A100-80GB", "A30"),
        (
            segment(one, 0, "1g.10gb", 6),
            segment(two, 0, "3g.40gb", 0, processes=2),
            segment(one, 0, "2g.20gb", 4),
            segment(two, 2, "1g.6gb", 1),
        ),
    )


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path, "A100-80GB", "A100-80GB", "A30")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8), max_size=20))
@settings(max_examples=30)
def test_bash_reads_every_text_as_it_is(names):
    assert all(re.fullmatch("#.*", comment(name)) for name in names), "a comment ends with its line"
    words = " ".join(map(shell_word, ["", *names]))
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True)
    assert (done.stdout.decode("utf-8").split("\0")[:-1], "\n" in words) == (["", *names], False)


@pytest.mark.parametrize("name", ["a\0b", "half \ud83d"])
def test_names_that_no_program_can_be_given_are_refused(name):
    assert refused(deployment_script, deployment(name)) == ["segments[0].service", "segments[2].service"]
    a30 = get_gpu("A30")
    profiles = tuple(dataclasses.replace(one, name=f"{one.name}; {name}") for one in a30.profiles)
    odd = add_gpu(dataclasses.replace(a30, name=f"odd {name}", aliases=(), profiles=profiles))
    plan = Deployment((odd.name,), (segment("chat", 0, profiles[0].name, 0),))
    assert refused(deployment_script, plan) == ["segments[0].profile"]


def test_a_deployment_on_empty_gpus(machine):
    plan = deployment()
    done = machine.run(deployment_script(plan))
    for gpu in range(3):
        assert machine.placements(gpu) == {plan.placement(segment) for segment in plan.on(gpu)}
    assert machine.changes == ["mig -i 0 -cgi 9:0,14:4,19:6 -C", "mig -i 2 -cgi 14:1 -C"]
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert lines == [
        ["vision", "0", "3g.40gb", "0", "8", "2", machine.uuid(0, "3g.40gb", 0)],
        ["chat", "0", "2g.20gb", "4", "8", "1", machine.uuid(0, "2g.20gb", 4)],
        ["chat", "0", "1g.10gb", "6", "8", "1", machine.uuid(0, "1g.10gb", 6)],
        ["vision", "2", "1g.6gb", "1", "8", "1", machine.uuid(2, "1g.6gb", 1)],
    ]


def test_a_second_run_completes_what_is_missing(machine):
    machine.add(0, "2g.20gb", 4)
    machine.change(0, instances=[machine.state[0]["instances"][0] | {"compute": False}])
    for _ in range(2):
        machine.run(deployment_script(deployment()))
        assert machine.changes == ["mig -i 0 -cci -gi 2", "mig -i 0 -cgi 9:0,19:6 -C", "mig -i 2 -cgi 14:1 -C"]


def test_every_trouble_is_found_before_anything_is_changed(tmp_path):
    machine = Machine(tmp_path, "A100-80GB", "A30", "A100-80GB", "A100-80GB")
    machine.add(3, "1g.10gb", 2)
    machine.add(3, "2g.20gb", 4)
    machine.change(0, mode="Disabled")
    plan = Deployment(
        ("A100-80GB",) * 5,
        (*(segment("chat", gpu, "3g.40gb", 4) for gpu in (0, 1, 3, 4)), segment("chat", 3, "1g.10gb", 2)),
    )
    done = machine.run(deployment_script(plan), code=1)
    assert [line for line in done.stderr.splitlines() if line.startswith("error")] == [
        "error: GPU 0 (0): MIG mode is Disabled; enable it with: nvidia-smi -i 0 -mig 1",
        "error: GPU 1 (1): profile 9 of 4 memory slices at slice 4 is not possible; is it another kind of GPU?",
        "error: GPU 3 (3): instance 3 (profile 14 at slice 4) is in the way; destroy it first",
        "error: GPU 4 (4): nvidia-smi does not find it; correct the list of GPUs in this script",
    ]
    assert done.stderr.endswith("Nothing has been changed.\n")
    assert machine.changes == []


def test_lists_in_another_form_stop_the_script(tmp_path):
    machine = Machine(tmp_path, "A30")
    machine.program("nvidia-smi", 'case "$*" in *mode*) echo Enabled ;; *) echo "| 0 | 3g | new form |" ;; esac')
    done = machine.run(deployment_script(Deployment(("A30",), (segment("chat", 0, "1g.6gb", 0),))), code=1)
    assert "in a form that is not known" in done.stderr
    assert "Nothing has been changed." in done.stderr


def test_gpus_of_other_machines_and_other_names(machine, tmp_path):
    machine.program("ssh", 'echo "$*" >>"$FOLDER/ssh"; while [[ $1 == -* ]]; do [[ $1 == -o ]] && shift; shift; done\n'
                           'shift; exec bash -c "$*"')  # fmt: skip
    machine.program("sudo", 'touch "$FOLDER/root"; exec "$@"')
    machine.change(2, uuid="GPU-5fa1")
    script = deployment_script(deployment(), devices=["node-1/1", "node-1/0", "GPU-5fa1"])
    command = machine.command(script)
    environment = machine.environment | {"NVIDIA_SMI": "sudo nvidia-smi"}
    subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, check=True)
    assert [len(machine.placements(gpu)) for gpu in range(3)] == [0, 3, 1]
    assert (tmp_path / "root").exists()
    used = (tmp_path / "ssh").read_text().splitlines()
    assert all(line.startswith("-n -o BatchMode=yes node-1 sudo nvidia-smi ") for line in used)


def test_wrong_layouts_and_devices_are_refused_together():
    plan = Deployment(
        ("A30", "X1"),
        (segment("a", 0, "2g.12gb", 0), segment("b", 0, "1g.6gb", 1), segment("c", 2, "1g.6gb", 0),
         segment("d", 0, "9g", 0)),
    )  # fmt: skip
    assert refused(deployment_script, plan) == ["gpus[1]", "segments[2].gpu", "segments[3].profile", "segments[1]"]
    assert refused(deployment_script, deployment(), devices=["0", "00", "9" * 5000]) == ["devices[1]", "devices[2]"]
    refused(deployment_script, deployment(), match="must name 3, one for each GPU, names 1", devices=["0"])
