"""The screen that ``nvidia-smi`` prints without options: GPUs, and MIG devices with their sizes and processes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mig_opt.files.documents import shown
from mig_opt.operations.observe.sightings import Line, SeenDevice, Sightings

_BEGIN = re.compile(r"\| (NVIDIA-SMI \S.*|MIG devices:\s*)\|")
_TITLE = re.compile(r"\| (NVIDIA-SMI|MIG devices|Processes)\b.*\|")
_GPU = re.compile(r"\|\s+(\d{1,4})\s+(\S.*?)\s+(?:On|Off|N/A)\s*\|\s*[0-9A-Fa-f:.]+\s+(?:On|Off|N/A)\s*\|.*\|")
_MODE = re.compile(r"\|\s*\|\s*\|\s*(Enabled|Disabled|N/A|\[N/A\])(\*?)\s*\|")
_DEVICE = re.compile(
    r"\|\s+(\d{1,4})\s+(\d{1,4})\s+(\d{1,4})\s+(\d{1,4})\s*\|\s*\S+\s*/\s*(\d{1,9})MiB\s*\|\s*(\d{1,4})\s+\S+\s*\|.*\|"
)
_PROCESS = re.compile(r"\|\s+(\d{1,4})\s+(\d{1,4}|N/A)\s+(?:\d{1,4}|N/A)\s+(\d{1,10})\s+\S+\s.*\|")
_ROW = re.compile(r"\|\s+\d{1,4}(\s.*)?")

_EXAMPLES = {
    "NVIDIA-SMI": "|   0  NVIDIA A100-SXM4-40GB  On  |  00000000:07:00.0 Off |  On |",
    "MIG devices": "|  0  7  0  0  |  11MiB / 4864MiB  | 14  0 |  1  0  0  0  0 |",
    "Processes": "|  0  7  0  4007  C  python3  312MiB |",
}
_ROWS = {"NVIDIA-SMI": _GPU, "MIG devices": _DEVICE, "Processes": _PROCESS}
_WORDS = {"NVIDIA-SMI": "GPUs", "MIG devices": "MIG devices", "Processes": "processes"}


def begins_screen(text: str) -> bool:
    """Return True for the first line of a screen, or of its table of MIG devices."""
    return bool(_BEGIN.fullmatch(text))


def read_screen(lines: Sequence[Line], node: str, seen: Sightings) -> list[SeenDevice]:
    """Add the GPUs of one screen, and return its MIG devices."""
    tables: dict[str, list[tuple[re.Match[str], str]]] = {}
    table, gpu, partitioned, told = "", None, "", False
    for where, text in lines:
        if found := _TITLE.fullmatch(text):
            table = found[1]
            tables.setdefault(table, [])
        elif found := _ROWS[table].fullmatch(text):
            tables[table].append((found, where))
            if table == "NVIDIA-SMI":
                gpu = int(found[1])
                seen.gpu(node, gpu, where, product=found[2])
        elif _ROW.fullmatch(text):
            message = f"is no row of the table of {_WORDS[table]}, like {_EXAMPLES[table]}"
            seen.wrong(where, f"{message}: {shown(text.strip(), 60)}")
        elif gpu is not None and table == "NVIDIA-SMI" and (found := _MODE.fullmatch(text)):
            # A star says that the mode is not in force yet: it is that after the next reset.
            mig = (found[1] == "Enabled") != bool(found[2])
            if found[2]:
                seen.pending(node, gpu, mig=mig)
            partitioned = partitioned or (where if mig else "")
            seen.gpu(node, gpu, where, mig=mig)
        told = told or (table == "Processes" and ("No running processes" in text or bool(tables[table])))
    if partitioned and "MIG devices" not in tables:
        seen.wrong(partitioned, "MIG is on, but there is no table of MIG devices below; give the whole output")
    # In a container the table of processes is empty, without a word that none runs.
    running = [(int(found[1]), found[2], f"pid {found[3]}") for found, _ in tables.get("Processes", [])]
    return [
        _device(found, where, running if told else None, node, seen) for found, where in tables.get("MIG devices", [])
    ]


def _device(
    found: re.Match[str], where: str, running: list[tuple[int, str, str]] | None, node: str, seen: Sightings
) -> SeenDevice:
    gpu, instance, _, index, memory, units = map(int, found.groups())
    seen.gpu(node, gpu, where, mig=True)
    processes = None if running is None else tuple(name for on, of, name in running if (on, of) == (gpu, str(instance)))
    return SeenDevice(gpu, index, instance, (units, float(memory)), processes, where)
