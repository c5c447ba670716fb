"""Fleet states as files."""

from documents import round_trip
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import FleetState, HeldInstance, get_gpu
from mig_opt.files.fleet.states import STATE

A30 = get_gpu("A30")
PLACED = tuple(A30.placed_states())


@st.composite
def states(draw: st.DrawFn) -> FleetState:
    held = [
        HeldInstance(
            *(gpu, placement.profile.name, placement.start, draw(st.text(max_size=3)), draw(st.booleans())),
            owner=draw(st.text(max_size=2)),
            idle=draw(st.booleans()),
            weight=draw(st.integers(1, 9)),
        )
        for gpu in range(draw(st.integers(1, 4)))
        for placement in draw(st.sampled_from(PLACED))
    ]
    gpus = max((entry.gpu for entry in held), default=0) + draw(st.integers(1, 3))
    surroundings = {
        "nodes": draw(st.sampled_from([(), tuple(f"node-{gpu // 2}" for gpu in range(gpus))])),
        "indices": draw(st.sampled_from([(), tuple(range(1, 2 * gpus, 2))])),
        "uuids": draw(st.sampled_from([(), ("",) * (gpus - 1) + ("GPU-1",)])),
        "manager": draw(st.sampled_from(["", "dra"])),
        "budgets": draw(st.dictionaries(st.text(max_size=2), st.integers(0, 3), max_size=2)),
    }
    return FleetState(A30, gpus, tuple(held), **surroundings)


@settings(max_examples=60, deadline=None)
@given(states())
def test_round_trip(state):
    round_trip(STATE, state)


def test_files(tmp_path):
    state = FleetState(A30, 3, (HeldInstance(1, "2g.12gb", 2, "chat", pinned=True), HeldInstance(0, "1g.6gb", 0)))
    STATE.write(state, tmp_path / "fleet.json")
    read = STATE.read(tmp_path / "fleet.json")
    assert (read, read.name) == (state, "fleet")
    assert STATE.read(tmp_path / "fleet.json", gpus=5).gpus == 5
    (tmp_path / "fleet.csv").write_text("profile,gpu,pinned,start,name\n2g.12gb,1,Yes,2,chat\n1g.6gb,0,,0,\n")
    assert STATE.read(tmp_path / "fleet.csv", gpu="A30", gpus=3) == state
    assert STATE.read(tmp_path / "fleet.csv", gpu="A30").gpus == 2
