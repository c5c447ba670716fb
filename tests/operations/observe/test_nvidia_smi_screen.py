"""States from the screen that nvidia-smi prints without options."""

import state_forms
from state_forms import TEXTS

from mig_opt.operations.observe.state_import import StateImport

NODE = "node-2: "
TEXT = TEXTS["nvidia-smi-screen-550.txt"]
LINES = [line.removeprefix(NODE) for line in TEXT.splitlines() if line.startswith(NODE)]
TABLE = next(at for at, line in enumerate(LINES) if "GPU instances:" in line) - 1
SCREEN, PLACES = LINES[:TABLE], LINES[TABLE:]
DEVICES = next(at for at, line in enumerate(SCREEN) if "MIG devices:" in line)


def read(*lines: str) -> StateImport:
    return state_forms.state_from_text("\n".join(lines))


def complaints(*lines: str) -> list[str]:
    return state_forms.complaints("\n".join(lines))


def users(found: StateImport) -> list[tuple[str, int, str]]:
    return [(held.profile, held.start, held.name) for held in found.state.instances]


BUSY = [("4g.20gb", 0, "pid 4007"), ("2g.10gb", 4, "pid 4014"), ("1g.5gb", 6, "")]


def test_screen_and_places_tell_all_in_any_order():
    for lines in ((*SCREEN, *PLACES), (*PLACES, *SCREEN)):
        found = read(*lines)
        assert users(found) == BUSY
        assert [held.profile for held in found.state.idle] == ["1g.5gb"]
        assert found.notes == ()


def test_a_screen_alone_suffices_where_there_is_one_way_to_place_its_instances():
    assert [place[:2] for place in users(read(*SCREEN))] == [place[:2] for place in BUSY]
    without = [line for line in SCREEN if not line.startswith("|  0    1 ")]
    (found,) = complaints(*without)
    assert "the places of its instances are not in the text" in found
    assert "add the output of nvidia-smi mig -lgi" in found


def test_processes_that_a_container_does_not_show_do_not_make_instances_idle():
    rows = [line for line in SCREEN if "python3" not in line]
    hidden = read(*rows, *PLACES)
    assert not hidden.state.idle
    assert any("all count as busy" in note for note in hidden.notes)
    other = ["GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)", *PLACES[:5], *PLACES[-2:]]
    (note,) = read(*(f"{NODE}{line}" for line in LINES), *(f"node-3: {line}" for line in other)).notes
    assert "so 1 of them counts as busy" in note
    none = "|  No running processes found                                                             |"
    assert len(read(*rows[:-1], none, rows[-1], *PLACES).state.idle) == 3


def test_an_instance_without_a_device_computes_nothing_and_is_idle():
    lines = [line for line in SCREEN if not line.startswith(("|  0    1 ", "|    0    1 "))]
    assert [held.profile for held in read(*lines, *PLACES).state.idle] == ["4g.20gb", "1g.5gb"]


def test_gpus_that_are_not_partitioned_are_left_out():
    at = next(at for at, line in enumerate(SCREEN) if line.startswith("+") and at > 8)
    other = [
        "|   1  Tesla T4                       On  |   00000000:41:00.0 Off |                    0 |",
        "| N/A   32C    P0             66W /  400W |   14211MiB /  40960MiB |     100%     Default |",
        "|                                         |                        |                  N/A |",
    ]
    on = "|    1  N/A  N/A       5001      G   /usr/lib/xorg/Xorg                             78MiB |"
    found = read(*SCREEN[: at + 1], *other, *SCREEN[at:-1], on, SCREEN[-1], *PLACES)
    assert (found.state.gpus, users(found)) == (1, BUSY)
    assert found.notes == ("left out 1 GPU (MIG is off): GPU 1",)


def test_every_damaged_row_is_told():
    changed = [
        line.replace("NVIDIA A100-SXM4-40GB          On ", "NVIDIA A100-SXM4-40GB          ").replace(
            "9856MiB", "lots of"
        )
        for line in SCREEN
    ]
    found = complaints(*[line.replace("   4014  ", "   four  ") for line in changed])
    assert [line.partition(", like ")[0].partition(": ")[2] for line in found] == [
        "is no row of the table of GPUs",
        "is no row of the table of MIG devices",
        "is no row of the table of processes",
    ]


def test_a_screen_without_its_devices_is_refused():
    (found,) = complaints(*SCREEN[: DEVICES - 1])
    assert found == "line 11: MIG is on, but there is no table of MIG devices below; give the whole output"
    for end in range(DEVICES + 1, DEVICES + 6):  # within the head of that table
        (found,) = complaints(*SCREEN[:end])
        assert "MIG is on, but there is no row in the table of MIG devices below; give the whole output" in found


def test_an_empty_text_is_told_as_that():
    assert complaints("", "\n" * 50_000) == ["is empty; give what nvidia-smi, kubectl or scontrol prints"]


def test_what_is_refused_below_a_screen_is_told():
    (found,) = complaints(*SCREEN, "Insufficient Permissions")
    assert found == f'line {TABLE + 1}: nvidia-smi was refused: "Insufficient Permissions"; run it as root'
