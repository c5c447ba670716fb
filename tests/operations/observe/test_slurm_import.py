"""States from Slurm: every pair of a line counts, and types that name no profile are told."""

from functools import partial

import pytest
import state_forms

from mig_opt.operations.observe.state_import import StateImport

CONF = "NodeName=n[1-2] Name=gpu Type=a100_3g.20gb MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap12\n" * 2
JOB = (
    "JobId=41 JobName=step#1 UserId=ada(1000) GroupId=ada(1000) JobState=RUNNING NodeList=n[1-2] "
    "JOB_GRES=gpu:a100_3g.20gb:3 Nodes=n1 CPU_IDs=0-3 Mem=1000 GRES=gpu:a100_3g.20gb:1(IDX:0) "
    "Nodes=n2 CPU_IDs=0-3 Mem=1000 GRES=gpu:a100_3g.20gb:2(IDX:0-1) MinMemoryNode=0 Command=(null)\n"
)
PAIR, SEVEN = "gpu:a100_3g.20gb:2(S:0)", "gpu:a100_1g.5gb:7(S:0)"
NO_PROFILE = "types that name no profile, so they are taken for whole GPUs"


def node(name: str, gres: str, used: str = "") -> str:
    return f"NodeName={name} Arch=x86_64 CoresPerSocket=32 \n   Gres={gres}\n   {used and f'GresUsed={used}'}\n\n"


read = partial(state_forms.state_from_text, form="slurm", assume_places=True)
complaints = partial(state_forms.complaints, form="slurm", assume_places=True)


def users(found: StateImport) -> list[tuple[int, str, bool]]:
    return [(held.gpu, held.name, held.idle) for held in found.state.instances]


BUSY = [(0, "job 41", False), (0, "", True), (1, "job 41", False), (1, "job 41", False)]


def test_all_nodes_of_a_job_on_one_line_are_read():
    used = "gpu:a100_3g.20gb:1(IDX:0)"
    shown = node("n1", PAIR, used) + node("n2", PAIR, used.replace("1(IDX:0)", "2(IDX:0-1)"))
    found = read(CONF + JOB + shown)
    assert users(found) == BUSY
    far = (CONF + JOB + shown).replace("n[1-2]", "n[5001-5002]").replace("n1", "n5001").replace("n2", "n5002")
    assert users(read(far)) == BUSY
    assert {held.owner for held in found.state.busy().instances} == {"ada"}
    # Also where the node does not show its use so soon: what a job has is busy.
    late = node("n1", PAIR, used.replace("1(IDX:0)", "0(IDX:N/A)")) + node("n2", PAIR, used)
    assert users(read(CONF + JOB + late)) == BUSY
    one_line = " ".join(line.strip() for line in late.split("\n\n")[0].split("\n")) + " OS=Linux 5.14.0 #1 SMP\n"
    assert users(read(CONF + JOB + one_line + late.split("\n\n", 1)[1])) == BUSY


def test_lines_that_go_on_in_the_next_one_are_one_line():
    one = CONF.splitlines()[0]
    parted = one.replace(" Type", " \\ # the first\n  Type").replace(" MultipleFiles", " \\\n MultipleFiles")
    assert read(f"{parted} UUID=GPU-1\n# a remark \\\n{one} \\") == read(CONF)


def test_jobs_do_not_tell_that_other_instances_are_idle():
    for shown in ("", node("n1", PAIR) + node("n2", PAIR)):
        found = read(CONF + JOB + shown)
        assert users(found) == [(gpu, name, False) for gpu, name, _ in BUSY]
        assert any("so all count as busy; scontrol show node -d tells it" in note for note in found.notes)


@pytest.mark.parametrize(
    ("gres", "told"),
    [
        ("gpu:a100_small:7(S:0)", "7 x a100_small of n1"),
        ("gpu:v100:4(S:0-1),gpu:rtx_6000:2", "4 x v100 and 2 x rtx_6000 of n1"),
        ("gpu:4", "4 x gpu of n1"),
    ],
)
def test_types_that_name_no_profile_are_told(gres, told):
    note = f"left out the GPUs of 1 node ({NO_PROFILE}): {told}"
    assert complaints(node("n1", gres, "gpu:(null):0(IDX:N/A)")) == [f"tells of no GPU with MIG; {note}"]
    found = read(node("n1", gres) + node("n2", SEVEN))
    assert (found.state.nodes, len(found.state.instances)) == (("n2",), 7)
    assert note in found.notes


def test_whole_gpus_have_indices_too():
    found = read(node("n1", f"gpu:a100:1(S:0),{SEVEN}", "gpu:a100:1(IDX:0),gpu:a100_1g.5gb:1(IDX:7)"))
    assert [held.idle for held in found.state.instances] == [True] * 6 + [False]
    assert f"left out the GPUs of 1 node ({NO_PROFILE}): 1 x a100 of n1" in found.notes


def test_what_does_not_agree_is_refused():
    assert complaints(node("n1", SEVEN, "gpu:a100_1g.5gb:2(IDX:0)")) == [
        'line 3: tells of 2 in use, and of 1 index: "gpu:a100_1g.5gb:2(IDX:0)"'
    ]
    assert complaints(CONF + node("n1", "gpu:a100_4g.20gb:1,gpu:a100_2g.10gb:1"))[0] == (
        "line 4: the node has 1 x 2g.10gb, 1 x 4g.20gb, and gres.conf lists 2 x 3g.20gb for it: they are of different "
        "moments"
    )
    # A node that does not show types has their number only.
    assert len(read(CONF + node("n1", "gpu:2")).state.instances) == 4


def test_nodes_of_which_the_instances_are_not_in_the_text_are_told():
    detected = "NodeName=n3 AutoDetect=nvml Name=gpu Type=a100_1g.5gb Count=7\nNodeName=n4 AutoDetect=nvml\n"
    found = read(f"{detected}\n{JOB}\n{node('n1', SEVEN, 'gpu:a100_1g.5gb:1(IDX:0)')}")
    told = "scontrol show node -d, which tells the instances of n3, n4, n2, is not in the text"
    assert (found.state.nodes, told in found.notes) == (("n1",), True)
