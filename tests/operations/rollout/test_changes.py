"""Scripts that carry out changes of deployments and migrations."""

import fcntl
import re
from functools import partial

import pytest
import scripts
from documents import complaints
from scripts import Machine

from mig_opt import Segment, get_gpu
from mig_opt.operations.rollout.changes import change_script
from mig_opt.serving.change_plan import ChangePlan, ChangeStep, StepKind

HOOKS = """
start_segment() {
  gpu=none present=none uuid=none  # variables of a hook are its own
  touch "$FOLDER/users/$CUDA_VISIBLE_DEVICES"
  printf 'start|%s|%s\\n' "$*" "$CUDA_VISIBLE_DEVICES" >>"$FOLDER/done"
}
stop_segment() {
  rm -f "$FOLDER/users/$CUDA_VISIBLE_DEVICES"
  printf 'stop|%s|%s\\n' "$*" "$CUDA_VISIBLE_DEVICES" >>"$FOLDER/done"
}
"""


def change(gpus, kept, *steps: ChangeStep) -> ChangePlan:
    return ChangePlan(gpus, kept, steps, (), 0.0)


segment = partial(scripts.segment, processes=2)


def step(ends: Segment | None, begins: Segment | None) -> ChangeStep:
    """A creation where nothing ends, a destruction where nothing begins, else a switch."""
    kind: StepKind = "create" if ends is None else "destroy" if begins is None else "switch"
    one = begins or ends
    return ChangeStep(kind, one.gpu, one.profile, one.start, 0.0, 0.0, ends, begins)


KEPT = segment("other", 0, "2g.20gb", 4)
OLD = segment("it's $HOME", 0, "4g.40gb", 0)
HALVES = segment("it's $HOME", 0, "2g.20gb", 0), segment("new", 0, "2g.20gb", 2)
SMALL = segment("a", 1, "1g.6gb", 0), segment("a", 1, "1g.6gb", 1), segment("b", 1, "1g.6gb", 0, batch=32)
PLACED = segment("it's $HOME", 1, "2g.12gb", 2)
CHANGE = change(
    ("A100-80GB", "A30", "A30"),
    (KEPT,),
    *(step(None, PLACED), step(OLD, None), step(SMALL[1], None)),
    *(step(None, HALVES[0]), step(SMALL[0], SMALL[2]), step(None, HALVES[1])),
)


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path, "A100-80GB", "A30", "A30")
    for there in (KEPT, OLD, *SMALL[:2]):
        machine.add(there.gpu, there.profile, there.start)
        (tmp_path / "users" / machine.uuid(there.gpu, there.profile, there.start)).touch()
    return machine


@pytest.mark.deep
def test_a_change_is_carried_out_step_by_step(machine, tmp_path):
    kept = machine.uuid(0, "2g.20gb", 4)
    done = machine.run(change_script(CHANGE), HOOKS)
    a100, a30 = get_gpu("A100-80GB"), get_gpu("A30")
    assert machine.placements(0) == {a100.placement("2g.20gb", start) for start in (0, 2, 4)}
    assert machine.placements(1) == {a30.placement("2g.12gb", 2), a30.placement("1g.6gb", 0)}
    assert machine.uuid(0, "2g.20gb", 4) == kept
    steps = [line.split("|") for line in (tmp_path / "done").read_text().splitlines()]
    assert [(what, words) for what, words, _ in steps] == [
        ("start", "it's $HOME 1 2g.12gb 2 8 2"),
        ("stop", "it's $HOME 0 4g.40gb 0 8 2"),
        ("stop", "a 1 1g.6gb 1 8 2"),
        ("start", "it's $HOME 0 2g.20gb 0 8 2"),
        ("stop", "a 1 1g.6gb 0 8 2"),
        ("start", "b 1 1g.6gb 0 32 2"),
        ("start", "new 0 2g.20gb 2 8 2"),
    ]
    assert steps[4][2] == steps[5][2] == machine.uuid(1, "1g.6gb", 0)
    assert steps[6][2] == machine.uuid(0, "2g.20gb", 2)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [r"it\'s\ \$HOME"] * 2 + ["b", "new"]


@pytest.mark.parametrize(
    ("profile", "start", "message"),
    [
        ("1g.10gb", 6, "GPU 0 (0): instance 4 (profile 19 at slice 6) is in the way; destroy it first"),
        (None, None, "GPU 0 (0): an instance of profile 14 at slice 4 should exist, but does not"),
    ],
)
def test_nothing_is_changed_where_something_else_runs(profile, start, message, machine):
    if profile:
        machine.add(0, profile, start)
    else:
        machine.change(0, instances=machine.state[0]["instances"][1:])
    done = machine.run(change_script(CHANGE), HOOKS, code=1)
    assert machine.changes == []
    assert f"error: {message}" in done.stderr


def test_both_hooks_are_needed(machine):
    done = machine.run(change_script(CHANGE), HOOKS.replace("stop_segment", "halt_segment"), code=2)
    assert machine.log == []
    assert "a file that defines start_segment and stop_segment" in done.stderr


def test_a_hook_that_fails_ends_the_change(machine):
    """Nobody destroys an instance after a segment in its place has failed to start."""
    machine.run(change_script(CHANGE), HOOKS + "start_segment() { false; true; }", code=1)
    assert machine.changes == ["mig -i 1 -cgi 5:2 -C"]


@pytest.mark.deep
def test_the_same_command_goes_on_after_a_failure(machine, tmp_path):
    """Nothing is done twice, though the instances are others by then."""
    done = tmp_path / "done"
    again = HOOKS.replace("start_segment()", "really_start()") + (
        'start_segment() { if [[ $2 == 0 && ! -e "$FOLDER/failed" ]]; then touch "$FOLDER/failed"; return 3; fi; '
        'really_start "$@"; }'
    )
    machine.run(change_script(CHANGE), again, code=3)
    assert [line.split()[0] for line in done.read_text().splitlines()] == ["start|it's", "stop|it's", "stop|a"]
    machine.run(change_script(CHANGE), again)
    services = [line.split("|")[1].split()[0] for line in done.read_text().splitlines()]
    assert services == ["it's", "it's", "a", "it's", "a", "b", "new"]
    orders = [re.split(" -(?=[a-z]{3} )", line)[1].split()[0] for line in machine.changes]
    assert orders == ["cgi", *["dci", "dgi"] * 2, "cgi", "cgi"]
    assert not (tmp_path / "plan.sh.done").exists()


def test_a_destruction_that_stopped_half_way_is_gone_on_with(machine, tmp_path):
    """The compute instance is gone, and nvidia-smi refuses to destroy what there is not."""
    machine.first('[[ "$*" != *-dgi* || -e $FOLDER/ready ]] || { echo In use by another client; exit 6; }')
    machine.program("sleep", "")
    machine.run(change_script(CHANGE), HOOKS, code=6)
    (tmp_path / "ready").touch()
    machine.run(change_script(CHANGE), HOOKS)
    assert len(machine.placements(0)) == 3


def test_one_run_at_a_time(machine, tmp_path):
    script = change_script(CHANGE)
    machine.command(script)
    with (tmp_path / "plan.sh").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        done = machine.run(script, HOOKS, code=1)
    assert f"error: {tmp_path}/plan.sh runs already; wait until that has ended" in done.stderr
    assert machine.log == []
    # What a hook has begun does not go on with the lock.
    for _ in range(2):
        machine.run(script, HOOKS + "start_segment() { sleep 5 &>/dev/null & return 3; }", code=3)


def test_what_another_script_has_done_does_not_count(machine, tmp_path):
    machine.run(change_script(CHANGE), HOOKS + "start_segment() { false; }", code=1)
    assert (tmp_path / "plan.sh.done").read_text().splitlines()[1:] == ["create 1 5:2"]
    other = machine.run(change_script(CHANGE, devices=["0", "1", "node/0"]), HOOKS, code=1)
    assert "error: GPU 1 (1): instance 5 (profile 5 at slice 2) is in the way" in other.stderr


def test_steps_that_cannot_be_done_are_all_refused():
    wrong = change(
        ("A100-80GB", "A100-80GB"),
        (segment("a", 0, "3g.40gb", 0),),
        step(None, segment("a", 0, "2g.20gb", 2)),
        step(None, segment("a", 0, "3g.40gb", 4)),
        step(None, segment("a", 3, "3g.40gb", 4)),
        step(None, segment("a", 0, "2g.20gb", 5)),
        ChangeStep("destroy", 0, "1g.10gb", 6, 0.3, 0.3),
        *(step(None, segment("a", 1, "1g.10gb+me", start)) for start in (0, 1)),
    )
    assert complaints(change_script, wrong) == [
        "steps[0]: 2g.20gb@2 shares memory slices of GPU 0 with 3g.40gb@0 then",
        "steps[2].gpu: must be that of a GPU, from 0 to 1",
        "steps[3].start: 2g.20gb cannot start at slice 5; legal starts: 0, 2, 4",
        "steps[4]: there is no 1g.10gb@6 on GPU 0 then",
        "steps[6]: GPU 1 can have no more than 1 of 1g.10gb+me",
    ]
