"""Models of GPUs from what their driver lists: ``nvidia-smi mig -lgip`` and ``-lgipp``, or NVML."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from mig_opt.errors import InputError, Problem
from mig_opt.files.documents import read_text, shown
from mig_opt.files.values import Findings
from mig_opt.gpu.catalogue import CostTable, assumed_costs, catalogue, taken_names
from mig_opt.gpu.model import GpuModel, OperationCosts, Profile
from mig_opt.operations.driver import DriverProfile, Nvml
from mig_opt.operations.observe.kinds import kinds_of, product_name
from mig_opt.operations.observe.pasted import outputs
from mig_opt.operations.observe.sightings import Sightings, Source

_ROW = re.compile(
    r"\|\s+(\d{1,4})\s+MIG (\S+)\s+(\d{1,9})\s+\d{1,4}/(\d{1,4})\s+(\d{1,6}(?:\.\d+)?)\s+\S+\s+(\d{1,6})\s.*\|"
)
_ROW_EXAMPLE = "|   0  MIG 1g.5gb        19     7/7        4.75       No     14     0     0   |"
_PLACES = re.compile(r"GPU\s+(\d{1,4}) Profile ID\s+(\d{1,9}) Placements?\s*: *\{((?:\d{1,3},)*\d{1,3})\}:(\d{1,3})")
_PLACES_EXAMPLE = "GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1"
_PRODUCT = re.compile(r"GPU +(\d{1,4}): (.+?) \(UUID: \S+\)")
_NAME = re.compile(r"(\d{1,2})g\.(\d{1,5})gb((?:\+[\w.]+|-[\w.]+)*)")
"""Profile: compute slices, memory in GB, and attributes such as ``+me``, ``+gfx`` or ``-me``."""

_SAME_MEMORY = 0.06
"""Share by which memory may differ between drivers for one GPU."""


@dataclass(frozen=True, slots=True)
class GpuImport:
    """A model of a GPU, and what there is to know about how it was made.

    Attributes
    ----------
    model : GpuModel
        The model; the catalogue's own if the GPU is in there.
    notes : tuple of str
        Which GPU of the catalogue it is, whence its operation costs are, and the like.
    """

    model: GpuModel
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Listed:
    """The profiles and places that are listed of a GPU of a machine."""

    where: str
    product: str = ""
    profiles: dict[int, DriverProfile] = field(default_factory=dict)
    rows: dict[int, str] = field(default_factory=dict)  # where each profile is listed
    places: dict[int, tuple[tuple[int, ...], int, str]] = field(default_factory=dict)

    def complete(self, index: int, findings: Findings) -> tuple[DriverProfile, ...]:
        """Return the profiles with their places; note what is listed by one command only."""
        for number in self.profiles.keys() - self.places.keys():
            missing = f"profile {number} of GPU {index} has no places; add the output of nvidia-smi mig -lgipp"
            findings.add(self.rows[number], missing)
        for number in self.places.keys() - self.profiles.keys():
            missing = f"profile {number} of GPU {index} is not listed; add the output of nvidia-smi mig -lgip"
            findings.add(self.places[number][2], missing)
        return tuple(
            profile._replace(starts=self.places[number][0], size=self.places[number][1])
            for number, profile in self.profiles.items()
            if number in self.places
        )


def import_gpu(
    *paths: str | PathLike[str],
    name: str | None = None,
    device: int | None = None,
    operations: OperationCosts | CostTable | None = None,
) -> GpuImport:
    """Return the model of a GPU from what its driver lists.

    Parameters
    ----------
    *paths : path-like
        Files with the output of ``nvidia-smi mig -lgip`` and ``nvidia-smi mig -lgipp``, in one or in two, as printed or
        as pasted; with that of ``nvidia-smi -L`` the GPU has its name. Without files NVML is asked on this machine,
        where MIG mode has to be on.
    name : str, optional
        Its name; by default that of the board, or of the catalogue if the same GPU is in there.
    device : int, optional
        Number of the GPU, where several that differ are listed.
    operations : OperationCosts or CostTable, optional
        Seconds of its creations and destructions, as measured, or of a table of the catalogue; by default those of an
        H100, marked as assumed.

    Returns
    -------
    GpuImport
        The model, and notes.

    Raises
    ------
    InputError
        With every problem of the files, each with its line, or of the model.
    DriverError
        If NVML does not answer.
    """
    label = str(paths[0]) if len(paths) == 1 else ""
    texts = [Source(read_text(path), str(path) if len(paths) > 1 else "") for path in map(Path, paths)]
    return gpu_from_text(texts, name=name, device=device, operations=operations, label=label)


def gpu_from_text(
    sources: list[Source],
    *,
    name: str | None = None,
    device: int | None = None,
    operations: OperationCosts | CostTable | None = None,
    label: str = "",
) -> GpuImport:
    """Return the model of a GPU from texts, as :func:`import_gpu` does; ``label`` is where they are from.

    Examples
    --------
    >>> text = '''
    ... |   0  MIG 1g.16gb       19     2/2        15.00      No     30     1     1   |
    ... |   0  MIG 2g.32gb        0     1/1        31.00      No     82     2     2   |
    ... GPU  0 Profile ID 19 Placements: {0,1}:1
    ... GPU  0 Profile ID  0 Placement : {0}:2
    ... '''
    >>> found = gpu_from_text([Source(text)], name="mine")
    >>> [(profile.name, profile.starts) for profile in found.model.profiles]
    [('1g.16gb', (0, 1)), ('2g.32gb', (0,))]
    """
    findings = Findings(label)
    seen = Sightings(findings)
    listed = _read(outputs(sources, seen), findings) if sources else _asked()
    findings.check()
    if device is not None and device not in listed:
        known = ", ".join(map(str, listed)) or "none"
        raise InputError([Problem("device", f"no GPU {device} is listed; those that are: {known}")], label)
    chosen = {index: gpu for index, gpu in listed.items() if device in (None, index)}
    found = {index: gpu.complete(index, findings) for index, gpu in chosen.items() if gpu.profiles or gpu.places}
    if not chosen or not found:
        findings.add("", f"lists no profiles; they are in nvidia-smi mig -lgip, in rows like {_ROW_EXAMPLE}")
    findings.check()
    first = next(iter(found))
    if len(set(found.values())) > 1:
        numbers = ", ".join(map(str, found))
        raise InputError([Problem("device", f"the GPUs {numbers} differ; choose one of them by its number")], label)
    profiles = [_profile(each, chosen[first].rows.get(each.id, "name"), findings) for each in found[first]]
    findings.check()
    return _model(
        [each for each in profiles if each], chosen[first].product, name, operations, label, asked=not sources
    )


def _asked() -> dict[int, _Listed]:
    """Return what NVML lists for the GPUs of this machine on which MIG is on."""
    with Nvml() as driver:
        devices = driver.devices()
        known = {device.index: driver.profiles(device.uuid) for device in devices if device.mig}
        if not known:
            trouble = "; ".join(f"GPU {device.index}: {device.trouble()}" for device in devices) or "there is no GPU"
            raise InputError([Problem("", trouble)])
    listed = {}
    for device in devices:
        if device.mig:
            where = f"GPU {device.index}"
            listed[device.index] = _Listed(where, device.name)
            for each in known[device.index]:
                listed[device.index].profiles[each.id] = each
                listed[device.index].places[each.id] = each.starts, each.size, where
    return listed


def _read(sources: list[Source], findings: Findings) -> dict[int, _Listed]:
    """Return what is listed, by the number of the GPU; lines about something else say nothing."""
    listed: dict[int, _Listed] = defaultdict(lambda: _Listed(""))
    for source in sources:
        for where, line in source.lines():
            text = line.strip()
            if found := _PRODUCT.fullmatch(text):
                listed[int(found[1])].product = found[2]
            elif found := _ROW.fullmatch(text):
                gpu, number = listed[int(found[1])], int(found[3])
                row = DriverProfile(found[2], number, int(found[4]), round(float(found[5]) * 1024), int(found[6]))
                if gpu.profiles.setdefault(number, row) != row:
                    findings.add(where, f"profile {number} is another one in {gpu.rows[number]}; keep one of them")
                gpu.rows.setdefault(number, where)
            elif found := _PLACES.fullmatch(text):
                gpu, number = listed[int(found[1])], int(found[2])
                starts = tuple(sorted(map(int, found[3].split(","))))
                if gpu.places.setdefault(number, (starts, int(found[4]), where))[:2] != (starts, int(found[4])):
                    findings.add(
                        where, f"profile {number} has other places in {gpu.places[number][2]}; keep one of them"
                    )
            elif re.match(r"\|\s+\d+\s+MIG ", text):
                findings.add(where, f"is no row of nvidia-smi mig -lgip, like {_ROW_EXAMPLE}: {shown(text, 60)}")
            elif re.match(r"GPU\s+\d+ Profile", text):
                findings.add(where, f"is no line of nvidia-smi mig -lgipp, like {_PLACES_EXAMPLE}: {shown(text, 60)}")
    return dict(listed)


def _profile(listed: DriverProfile, where: str, findings: Findings) -> Profile | None:
    found = _NAME.fullmatch(listed.name)
    if not found:
        findings.add(where, f"the profile {shown(listed.name)} is not called like 1g.5gb or 2g.48gb+gfx")
        return None
    attributes = tuple(part.removeprefix("+") for part in re.findall(r"[+-][^+-]+", found[3]))
    return Profile(
        name=listed.name,
        id=listed.id,
        compute_slices=int(found[1]),
        memory_slices=listed.size,
        memory_gb=float(found[2]),
        max_count=listed.max_count,
        starts=listed.starts,
        usable_mib=listed.mib or None,
        sm_count=listed.sm_count or None,
        attributes=attributes,
    )


def _model(
    profiles: list[Profile],
    product: str,
    name: str | None,
    operations: OperationCosts | CostTable | None,
    label: str,
    *,
    asked: bool,
) -> GpuImport:
    same = [gpu for gpu in catalogue() if _is_same(gpu, profiles, product)]
    if len(same) == 1 and name in (None, same[0].name, *same[0].aliases) and operations is None:
        return GpuImport(same[0], (f"this is {same[0].name} of the catalogue, which needs no file",))
    called = name or product_name(product)
    if not called:
        may_be = f" (those of {' and '.join(gpu.name for gpu in same)} are alike)" if same else ""
        message = (
            f"the text does not tell which GPU this is{may_be}; give it a name, or add the output of nvidia-smi -L"
        )
        raise InputError([Problem("name", message)], label)
    source = "NVML" if asked else "nvidia-smi mig -lgip and -lgipp"
    costs = operations if isinstance(operations, OperationCosts) else assumed_costs(profiles, called)
    model = GpuModel(
        called,
        product or called,
        max(profile.memory_gb for profile in profiles),
        max(profile.starts[-1] + profile.memory_slices for profile in profiles),
        max(profile.compute_slices for profile in profiles),
        tuple(profiles),
        costs,
        profiles_status="from its driver",
        placements_status="from its driver",
        sources=(source,),
    )
    if isinstance(operations, CostTable):
        model = dataclasses.replace(model, operation_costs=operations.on(model))
    problems = list(taken_names(model))
    if problems:
        raise InputError(problems, label)
    return GpuImport(model, (f"creations and destructions: {model.operation_costs.source}",))


def _is_same(gpu: GpuModel, profiles: list[Profile], product: str) -> bool:
    """Return True if plans for a GPU of the catalogue are right for one with these profiles."""

    def shape(profile: Profile) -> tuple[object, ...]:
        return profile.name, profile.id, profile.memory_slices, profile.max_count, profile.starts

    known = {profile.id: profile for profile in gpu.profiles}
    if {shape(profile) for profile in profiles} != {shape(profile) for profile in gpu.profiles}:
        return False
    if product:
        return gpu in kinds_of(product)
    return all(
        known[one.id].sm_count in (None, one.sm_count)
        and abs((known[one.id].usable_mib or one.usable_mib or 0) / (one.usable_mib or 1) - 1) <= _SAME_MEMORY
        for one in profiles
    )
