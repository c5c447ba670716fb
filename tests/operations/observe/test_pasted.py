"""States from texts as they are pasted. The files in ``pasted`` have the shapes that real ones have."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_forms import TEXTS, complaints, state_from_text

from mig_opt.files.documents import decoded
from mig_opt.operations.observe.state_import import import_state

PASTES = Path(__file__).parent / "pasted"


def each(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(map(change, text.split("\n")))


DECORATIONS: dict[str, Callable[[str], str]] = {
    "indent": each(lambda line: f"    {line}"),
    "tab": each(lambda line: f"\t{line}"),
    "nbsp": each(lambda line: f"\u00a0\u00a0{line}"),
    "quote": each(lambda line: f"> {line}"),
    "fence": lambda text: f"```text\n{text}\n```",
    "prompt": lambda text: f"root@node:~# nvidia-smi \\\n  -L\n{text}\nroot@node:~#",
    "short prompt": lambda text: f"$ kubectl get nodes -o json\n{text}\n$ exit",
    "set -x": lambda text: f"+ nvidia-smi mig -lgi\n{text}",
    "colours": each(lambda line: f"\x1b[1;32m{line}\x1b[0m\x1b[K"),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "UTF-16": lambda text: decoded(text.encode("utf-16"), ""),
    "date": lambda text: f"Mon 03 Nov 2025 10:00:00 AM UTC\n{text}\n2025-11-03T10:00:00+01:00\n",
    "stamps": each(lambda line: f"2025-11-03T10:00:00.123456789Z {line}"),
    "container": lambda text: f'Defaulted container "a" out of: a, b (init)\n{text}',
    "exit code": lambda text: f"{text}\ncommand terminated with exit code 6\nclush: n2: exited with exit code 6",
    "host": each(lambda line: f"gpu_node1: {line}"),
    "bracketed host": each(lambda line: f"[node.9] {line}"),
}


names, kinds = st.sampled_from(sorted(TEXTS)), st.sampled_from(sorted(DECORATIONS))
decorations = st.lists(kinds, max_size=5, unique=True)


@settings(max_examples=100, deadline=None)
@given(names, st.booleans(), decorations)
def test_decorations_change_nothing(name, in_yaml, chosen):
    text = TEXTS[name].rstrip("\n")
    if in_yaml and name.endswith(".json"):
        yaml = pytest.importorskip("yaml")
        text = yaml.safe_dump(json.loads(text), sort_keys=False)
    decorated = text
    for decoration in chosen:
        decorated = DECORATIONS[decoration](decorated)
    assert state_from_text(decorated) == state_from_text(text)


@settings(max_examples=100, deadline=None)
@given(names, decorations, st.data())
def test_a_line_that_nobody_knows_is_told_with_its_number(name, chosen, data):
    lines = TEXTS[name].rstrip("\n").split("\n")
    at = data.draw(st.integers(0, len(lines)))
    node = f"{lines[min(at, len(lines) - 1)].partition(': ')[0]}: " if name.startswith("nvidia-smi") else ""
    decorated = "\n".join([*lines[:at], f"{node}what is this", *lines[at:]])
    for decoration in chosen:
        decorated = DECORATIONS[decoration](decorated)
    number = next(n for n, line in enumerate(decorated.split("\n"), 1) if "what is this" in line)
    assert any(line.startswith(f"line {number}: ") for line in complaints(decorated)), complaints(decorated)


TWO = [" 0 1g.5gb@0", " 0 3g.20gb@4"]
PASTED = {
    "ansible.txt": ["dgx1 0 7g.40gb@0", "dgx2 1 4g.20gb@0", "dgx2 1 2g.10gb@4", "dgx2 1 1g.5gb@6"],
    "brackets.txt": ["node1 0 7g.40gb@0", "node2 1 7g.40gb@0"],
    "compute-instances.txt": [" 0 4g.20gb@0", " 0 3g.20gb@4"],
    "issue.txt": TWO,
    "machines.txt": ["dgx1 0 3g.20gb@0", "dgx2 1 3g.20gb@4"],
    "objects.ndjson": [
        *("node-1 0 3g.20gb@0", "node-1 0 3g.20gb@4", "node-1 1 3g.20gb@0 idle", "node-1 1 3g.20gb@4 idle"),
        *("node-2 2 4g.20gb@0", "node-2 2 2g.10gb@4", "node-2 2 1g.5gb@6 idle"),
    ],
    "pdsh.txt": ["gpu_node1 0 3g.20gb@4", "gpu_node2 1 2g.10gb@2"],
    "pending-list.txt": [" 0 4g.24gb@0"],
    "pending-screen.txt": [" 0 4g.24gb@0 idle"],
    "pods.txt": ["nvidia-driver-4xk2p 0 3g.20gb@0", "nvidia-driver-9zt7w 1 1g.5gb@3"],
    "powershell.txt": [" 0 3g.20gb@4"],
    "slurm.txt": ["dgx1 0 4g.20gb@0", "dgx1 0 3g.20gb@4 idle"],
    "terminal.txt": TWO,
}
NOTES = {
    "machines.txt": ["by its command lines the text is of several machines: dgx1, dgx2"],
    "objects.ndjson": [
        'line 1 warns: "W1123 06:12:11.301912   13973 warnings.go:70] v1beta1 ResourceSlice is deprecated"'
    ],
    "pending-list.txt": ["line 1: MIG is to be enabled by the next reset of a GPU, and is not yet"],
    "pending-screen.txt": [
        "line 2: MIG is to be enabled by the next reset of a GPU, and is not yet",
        "GPU 0: MIG is on, and will be off after the next reset of the GPU",
        "GPU 1: MIG is off, and will be on after the next reset of the GPU",
        "left out 1 GPU (MIG is off): GPU 1",
    ],
    "terminal.txt": ['line 16 warns: "WARNING: infoROM is corrupted at gpu 0000:07:00.0"'],
}


@pytest.mark.parametrize("name", PASTED)
def test_pasted_texts_are_read(name):
    found = import_state(PASTES / name, gpu=None if name.startswith("pending") else "A100")
    state = found.state
    assert [
        f"{state.nodes[held.gpu] if state.nodes else ''} {held.gpu} {held.profile}@{held.start}{' idle' * held.idle}"
        for held in state.instances
    ] == PASTED[name]
    assert set(NOTES.get(name, ())) <= set(found.notes)


def test_a_pending_mode_in_xml():
    text = TEXTS["nvidia-smi-xml-550.txt"]
    node = text.index("node-2: <?xml")
    text = text[:node] + text[node:].replace("<pending_mig>Enabled", "<pending_mig>Disabled")
    found = state_from_text(text)
    assert found.state.gpus == 3
    assert "GPU 0 of node-2: MIG is on, and will be off after the next reset of the GPU" in found.notes
