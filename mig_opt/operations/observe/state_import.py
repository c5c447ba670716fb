"""Import of what a GPU, a node or a cluster says about its instances."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal, get_args

from mig_opt.errors import Problem, nearest, raise_any
from mig_opt.files.values import Findings
from mig_opt.fleet.state import FleetState
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.operations.driver.nvml import Nvml
from mig_opt.operations.observe.assembly import assemble
from mig_opt.operations.observe.kubernetes import Part, items, looks_like_yaml, read_documents
from mig_opt.operations.observe.managers import ALLOCATIONS, REGISTER, has_labels, read_dra, read_hami, read_labels
from mig_opt.operations.observe.nvidia_smi import read_nvidia_smi
from mig_opt.operations.observe.pasted import outputs
from mig_opt.operations.observe.sightings import SeenInstance, Sightings, Source, sources_of
from mig_opt.operations.observe.slurm import read_slurm
from mig_opt.rules import wrong_flag

Format = Literal["nvidia-smi", "nvml", "dra", "device-plugin", "hami", "slurm"]
FORMATS: tuple[Format, ...] = get_args(Format)
_SIGNS: dict[Format, re.Pattern[str]] = {
    "slurm": re.compile(r"^[ \t]*(NodeName|AutoDetect|JobId|Name)\s*=", re.MULTILINE | re.IGNORECASE),
    "nvidia-smi": re.compile(
        r"<nvidia_smi_log|No (MIG-enabled devices|GPU instances|compute instances) found|"
        r"^[ \t]*(GPU \d+: .*UUID|\| ((GPU|Compute) instances:|NVIDIA-SMI |MIG devices:))",
        re.MULTILINE,
    ),
}
"""Pattern that a text of each form has; the nodes of Slurm tell theirs with the output of nvidia-smi."""
_JSON = re.compile(r"\A\s*\[|^[ \t]*\{", re.MULTILINE)
_OF_KUBERNETES = {"dra": read_dra, "hami": read_hami, "device-plugin": read_labels}


@dataclass(frozen=True, slots=True)
class StateImport:
    """Imported state.

    Attributes
    ----------
    state : FleetState
        What there is.
    format : str
        Form of the source.
    notes : tuple of str
        What was left out, and what is not in the source.
    """

    state: FleetState
    format: Format
    notes: tuple[str, ...]


def import_state(
    *paths: str | PathLike[str] | Source,
    format: Format | None = None,  # noqa: A002 - the word of the command line
    gpu: str | None = None,
    assume_places: bool = False,
) -> StateImport:
    """Read what there is from the text of other programs.

    The forms are: ``nvidia-smi`` (the text of ``nvidia-smi``, ``nvidia-smi -L``, ``nvidia-smi mig -lgi``,
    ``nvidia-smi mig -lci`` and ``nvidia-smi -q -x``, any of them, one after the other in any order; of several nodes
    with the prefix ``node: `` on each line),
    ``dra`` (ResourceSlices and ResourceClaims of NVIDIA's DRA driver for GPUs), ``device-plugin`` (nodes with the
    labels of GPU feature discovery), ``hami`` (pods and nodes with the annotations of HAMi), ``slurm`` (``gres.conf``,
    ``scontrol show node -d``, ``scontrol show job -d``; for the places, too, what ``nvidia-smi mig -lgi`` or ``-L``
    prints on each node, as a file called after it), and ``nvml`` (the GPUs of this machine, without a file).
    Objects of Kubernetes are as ``kubectl get ... -o json`` prints them, one after the other, or ``-o yaml``, which
    needs the extra ``yaml``; pods and disruption budgets among them tell owners and their limits. Quotes, prompts with
    what was typed, colours, dates and names of nodes around the outputs do no harm.

    Parameters
    ----------
    *paths : path-like or Source
        Files, or texts, of one form. Of several files of nvidia-smi each is about the node that it is called after.
    format : str, optional
        Form; by default it is guessed.
    gpu : str, optional
        Name or alias of the GPU: the others are left out. By default the state has all kinds that there are.
    assume_places : bool
        Whether instances whose places the source does not tell may be put anywhere. By default that is refused, unless
        there is only one way.

    Returns
    -------
    StateImport
        GPUs in the order of their nodes, with notes.

    Raises
    ------
    InputError
        With every problem of the files, each with its line.

    Examples
    --------
    >>> text = '''
    ... | GPU instances:                                        |
    ... |   0  MIG 3g.20gb         9        2          4:4     |
    ... '''
    >>> found = import_state(Source(text), gpu="A100")
    >>> found.format, [(held.profile, held.start) for held in found.state.instances]
    ('nvidia-smi', [('3g.20gb', 4)])
    """
    given, label = sources_of(paths)
    problems = list(wrong_flag("assume_places", assume_places))
    if format is not None and format not in FORMATS:
        problems.append(Problem("format", f"no form is called {format!r:.60}; {nearest(str(format), FORMATS)}"))
    if not given and format != "nvml":
        problems.append(Problem("paths", "is missing; name at least one file"))
    if given and format == "nvml":
        problems.append(Problem("paths", "NVML is asked itself; leave the files out"))
    raise_any(problems)
    model = get_gpu(gpu) if gpu is not None else None
    findings = Findings(label)
    seen = Sightings(findings)
    given = outputs(given, seen)
    if not any(source.text for source in given):
        findings.check()  # what says why there is nothing
    parts: list[Part] = []
    if format in _OF_KUBERNETES or all(_JSON.search(source.text) or looks_like_yaml(source.text) for source in given):
        documents = read_documents(given, findings)
        findings.check()
        parts = list(items(documents, findings))
        findings.check()
    found = format or _guessed(given, parts, findings)
    if found == "nvml":
        _read_nvml(seen)
    elif found in _OF_TEXTS:
        _OF_TEXTS[found](given, seen)
    else:
        seen.manager = found
        if not parts:
            seen.wrong("", "holds no object of Kubernetes; give what kubectl get ... -o json prints")
        _OF_KUBERNETES[found](parts, seen)
    named = next((path for path in paths[:1] if not isinstance(path, Source)), "")
    state = assemble(seen, model, assume_places=assume_places, name=Path(named).stem)
    return StateImport(state, found, tuple(dict.fromkeys(seen.notes)))


def _read_slurm(sources: Sequence[Source], seen: Sightings) -> None:
    """Add what texts of Slurm tell, and what nvidia-smi tells of the nodes, if that is among them."""
    seen.manager = "slurm"
    of_nodes = [source for source in sources if _SIGNS["nvidia-smi"].search(source.text)]
    read_slurm([source for source in sources if source not in of_nodes], seen)
    for source in of_nodes:
        if _SIGNS["slurm"].search(source.text):
            message = "has lines of Slurm and of nvidia-smi; give the output of each node as a file of its own"
            seen.wrong(source.where(1), f"{message}, called after the node")
    seen.findings.check()
    if of_nodes:
        seen.there = Sightings(seen.findings)
        read_nvidia_smi(of_nodes, seen.there)


_OF_TEXTS = {"nvidia-smi": read_nvidia_smi, "slurm": _read_slurm}


def _guessed(sources: Sequence[Source], parts: Sequence[Part], findings: Findings) -> Format:
    """Return the form of texts; InputError if they are of none."""
    if parts:
        kinds = {part.value.get("kind") for part in parts}
        annotations = {key for part in parts for key in part.texts("metadata", "annotations")}
        if kinds & {"ResourceSlice", "ResourceClaim"}:
            return "dra"
        if annotations & {ALLOCATIONS, REGISTER}:
            return "hami"
        if any(map(has_labels, parts)):
            return "device-plugin"
    else:
        text = "\n".join(source.text for source in sources)
        for form, sign in _SIGNS.items():
            if sign.search(text):
                return form
    empty = "is empty; give what nvidia-smi, kubectl or scontrol prints"
    unknown = f"is in no form that is known ({', '.join(FORMATS)}); say which it is with --format"
    findings.add("", unknown if any(source.text.strip() for source in sources) else empty)
    findings.check()
    raise AssertionError


def _read_nvml(seen: Sightings) -> None:
    """Add what NVML tells of this machine; InputError without the bindings, DriverError if it cannot be asked."""
    with Nvml() as driver:
        for device in driver.devices():
            where = f"GPU {device.index}"
            if device.lost:
                seen.leave_out(device.lost, where)
                continue
            seen.gpu("", device.index, where, product=device.name, uuid=device.uuid, mig=bool(device.mig))
            if device.mig is not None and device.mig_pending != device.mig:
                seen.pending("", device.index, mig=device.mig)
            for held in driver.instances(device.uuid) if device.mig else ():
                where = f"instance {held.number} of GPU {device.index}"
                found = SeenInstance("", device.index, where, held.profile, start=held.start, slices=held.size)
                found.instance, found.uuid = held.number, held.uuid
                found.idle = None if held.processes is None else not held.processes
                found.name = ", ".join(f"pid {process}" for process in held.processes or ())
                seen.instances.append(found)
    seen.note_unknown("run as root, the driver tells it")
