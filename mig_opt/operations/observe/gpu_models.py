"""Kinds of GPUs as other programs know them: by their names, and as models from what a driver lists.

A driver lists profiles in ``nvidia-smi mig -lgip`` and ``-lgipp``, or by NVML. Foreign names of GPUs and profiles are
those of the catalogue in another spelling.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from dataclasses import dataclass
from os import PathLike
from typing import TypeVar

from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.files.documents import shown
from mig_opt.files.values import Findings
from mig_opt.gpu.catalogue import CostTable, assumed_costs, catalogue, taken_names
from mig_opt.gpu.model import KNOWN, GpuModel, OperationCosts, Profile
from mig_opt.operations.driver.instances import DriverProfile
from mig_opt.operations.driver.nvml import Nvml
from mig_opt.operations.observe.pasted import outputs
from mig_opt.operations.observe.sightings import Sightings, Source, sources_of

_ROW = re.compile(
    r"\|\s+(\d{1,4})\s+MIG (\d{1,2}g\.\d{1,5}gb\S*)\s+(\d{1,9})\s+\d{1,4}/(\d{1,4})\s+"
    r"(\d{1,6}(?:\.\d+)?)\s+\S+\s+(\d{1,6})\s.*\|"
)
_ROW_EXAMPLE = "|   0  MIG 1g.5gb        19     7/7        4.75       No     14     0     0   |"
_PLACES = re.compile(r"GPU\s+(\d{1,4}) Profile ID\s+(\d{1,9}) Placements?\s*: *\{((?:\d{1,3},)*\d{1,3})\}:(\d{1,3})")
_PLACES_EXAMPLE = "GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1"
_PRODUCT = re.compile(r"GPU +(\d{1,4}): (.+?) \(UUID: \S+\)")
_NAME = re.compile(r"(\d{1,2})g\.(\d{1,5})gb((?:\+[\w.]+|-[\w.]+)*)")
"""Profile: compute slices, memory in GB, and attributes such as ``+me``, ``+gfx`` or ``-me``."""

_FOREIGN_NAME = re.compile(r"(?:mig[ -])?([0-9]{1,4})g\.?([0-9]{1,4}(?:\.[0-9]{1,4})?)gb(.*)")
_MEMORY_DRIFT, _SIZE_DRIFT, _UNITS_DRIFT = 0.1, 0.06, 0.25
"""Shares by which memory in a name, memory in MiB and multiprocessors may differ from those of the catalogue.

Names drift with board and driver: 3g.39gb and 3g.40gb are the same profile.
"""

_MAKERS = frozenset({"NVIDIA", "GRID", "TESLA", "MIG", ""})
_BOARDS = (
    ("A100", "40", "SXM SXM4 PCIE", "A100-40GB"),
    ("A100", "80", "SXM SXM4 PCIE LC", "A100-80GB"),
    ("A800", "80", "SXM4 PCIE LC", "A100-80GB"),
    ("A800", "40", "SXM4 PCIE ACTIVE", None),  # so that "A800" alone stands for nothing
    ("H100", "80", "SXM SXM5 PCIE HBM3 HBM2E", "H100-80GB"),
    ("H100", "94", "SXM SXM5 NVL HBM3 HBM2E", "H100-NVL-94GB"),
    ("H100", "96", "SXM SXM5 HBM3", "H100-96GB"),
    ("H800", "80", "SXM5 PCIE HBM3", "H100-80GB"),
    ("H20", "96", "HBM3", "H100-96GB"),
    ("H200", "141", "SXM SXM5 NVL HBM3E", "H200-141GB"),
    # Grace Hopper is called after the memory of its CPU, too.
    ("GH200", "96 120 480", "HBM3", "H100-96GB"),
    ("GH200", "144", "HBM3E", "GH200-144GB"),
    ("B200", "180", "", "B200-180GB"),
    ("GB200", "186", "", "GB200-186GB"),
    ("B300", "269", "SXM6 AC", "B300-269GB"),
    ("GB300", "278", "", "GB300-278GB"),
    ("A30", "24", "PCIE", "A30-24GB"),
    ("RTX-PRO-6000", "96", "BLACKWELL SERVER WORKSTATION MAX Q EDITION", "RTX-PRO-6000-96GB"),
)
"""Boards with MIG: family, sizes in GB that their names may have, other words, and the GPU of the catalogue.

A name with any other word is of a board that nobody has compared with the catalogue: A100-SXM-64GB, H20-3e, A100X.
"""


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


_Own = TypeVar("_Own")
_Key = tuple[int, int]
"""GPU, and number of a profile."""
_Listed = dict[int, tuple[str, tuple[DriverProfile, ...]]]
"""GPUs of a machine by their numbers: the board, if that is told, and the profiles."""


def import_gpu(
    *paths: str | PathLike[str] | Source,
    name: str | None = None,
    device: int | None = None,
    operations: OperationCosts | CostTable | None = None,
) -> GpuImport:
    """Return the model of a GPU from what its driver lists.

    Parameters
    ----------
    *paths : path-like or Source
        Files, or texts, with the output of ``nvidia-smi mig -lgip`` and ``nvidia-smi mig -lgipp``, in one or in two, as
        printed or as pasted; with that of ``nvidia-smi -L`` the GPU has its name. Without files NVML is asked on this
        machine, where MIG mode has to be on.
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

    Examples
    --------
    >>> text = '''
    ... |   0  MIG 1g.16gb       19     2/2        15.00      No     30     1     1   |
    ... |   0  MIG 2g.32gb        0     1/1        31.00      No     82     2     2   |
    ... GPU  0 Profile ID 19 Placements: {0,1}:1
    ... GPU  0 Profile ID  0 Placement : {0}:2
    ... '''
    >>> found = import_gpu(Source(text), name="mine")
    >>> [(profile.name, profile.starts) for profile in found.model.profiles]
    [('1g.16gb', (0, 1)), ('2g.32gb', (0,))]
    """
    sources, label = sources_of(paths)
    findings = Findings(label)
    listed = _read(outputs(sources, Sightings(findings)), findings) if sources else _asked()
    findings.check()
    if device is not None and device not in listed:
        known = ", ".join(map(str, listed)) or "none"
        raise InputError([Problem("device", f"no GPU {device} is listed; those that are: {known}")], label)
    found = {index: gpu for index, gpu in listed.items() if device in (None, index) and gpu[1]}
    if not found:
        message = f"lists no profiles; they are in nvidia-smi mig -lgip, in rows like {_ROW_EXAMPLE}"
        raise InputError([Problem("", message)], label)
    if len({profiles for _, profiles in found.values()}) > 1:
        numbers = ", ".join(map(str, found))
        raise InputError([Problem("device", f"the GPUs {numbers} differ; choose one of them by its number")], label)
    product, profiles = next(iter(found.values()))
    source = "nvidia-smi mig -lgip and -lgipp" if sources else "NVML"
    return _model(tuple(map(_profile, profiles)), product, name, operations, label, source=source)


def _asked() -> _Listed:
    """Return what NVML lists for the GPUs of this machine on which MIG is on."""
    with Nvml() as driver:
        devices = driver.devices()
        known = {each.index: (each.name, driver.profiles(each.uuid)) for each in devices if each.mig}
    if not known:
        trouble = "; ".join(f"GPU {each.index}: {each.trouble()}" for each in devices) or "there is no GPU"
        raise InputError([Problem("", trouble)])
    return known


def _read(sources: list[Source], findings: Findings) -> _Listed:
    """Return what is listed; lines about something else say nothing."""
    products: dict[int, str] = {}
    rows: dict[_Key, tuple[DriverProfile, str]] = {}  # each with its line
    places: dict[_Key, tuple[tuple[tuple[int, ...], int], str]] = {}  # start slices and memory slices, likewise
    for where, line in (each for source in sources for each in source.lines()):
        text = line.strip()
        if found := _PRODUCT.fullmatch(text):
            products[int(found[1])] = found[2]
        elif found := _ROW.fullmatch(text):
            number, mib = int(found[3]), round(float(found[5]) * 1024)
            row = DriverProfile(found[2], number, int(found[4]), mib, int(found[6]))
            _note(rows, (int(found[1]), number), (row, where), "is another one", findings)
        elif found := _PLACES.fullmatch(text):
            own = tuple(sorted(map(int, found[3].split(",")))), int(found[4])
            _note(places, (int(found[1]), int(found[2])), (own, where), "has other places", findings)
        elif re.match(r"\|\s+\d+\s+MIG ", text):
            findings.add(where, f"is no row of nvidia-smi mig -lgip, like {_ROW_EXAMPLE}: {shown(text, 60)}")
        elif re.match(r"GPU\s+\d+ Profile", text):
            findings.add(where, f"is no line of nvidia-smi mig -lgipp, like {_PLACES_EXAMPLE}: {shown(text, 60)}")
    lacking = "profile {1} of GPU {0} {2}; add the output of nvidia-smi mig {3}"
    for key in rows.keys() - places.keys():
        findings.add(rows[key][1], lacking.format(*key, "has no places", "-lgipp"))
    for key in places.keys() - rows.keys():
        findings.add(places[key][-1], lacking.format(*key, "is not listed", "-lgip"))
    listed = defaultdict[int, list[DriverProfile]](list, {index: [] for index in products})
    for key in (key for key in rows if key in places):
        (starts, size), _ = places[key]
        listed[key[0]].append(rows[key][0]._replace(starts=starts, size=size))
    return {index: (products.get(index, ""), tuple(those)) for index, those in listed.items()}


def _note(
    known: dict[_Key, tuple[_Own, str]], key: _Key, own: tuple[_Own, str], wrong: str, findings: Findings
) -> None:
    other, before = known.setdefault(key, own)
    if other != own[0]:
        findings.add(own[1], f"profile {key[1]} {wrong} in {before}; keep one of them")


def _profile(listed: DriverProfile) -> Profile:
    found = _NAME.fullmatch(listed.name)
    if not found:
        wrong = f"the profile {shown(listed.name)} is not called like 1g.5gb or 2g.48gb+gfx"
        raise InputError([Problem("", wrong)])
    attributes = tuple(part.removeprefix("+") for part in re.findall(r"[+-][^+-]+", found[3]))
    sizes = int(found[1]), listed.size, float(found[2]), listed.max_count
    told = listed.mib or None, listed.sm_count or None
    return Profile(listed.name, listed.id, *sizes, listed.starts, *told, attributes)


def _model(
    profiles: tuple[Profile, ...],
    product: str,
    name: str | None,
    operations: OperationCosts | CostTable | None,
    label: str,
    *,
    source: str,
) -> GpuImport:
    same = [gpu for gpu in catalogue() if _is_same(gpu, profiles, product)]
    if len(same) == 1 and name in (None, same[0].name, *same[0].aliases) and operations is None:
        return GpuImport(same[0], (f"this is {same[0].name} of the catalogue, which needs no file",))
    called = name or product_name(product)
    if not called:
        may_be = f" (those of {' and '.join(gpu.name for gpu in same)} are alike)" if same else ""
        hint = "give it a name, or add the output of nvidia-smi -L"
        raise InputError([Problem("name", f"the text does not tell which GPU this is{may_be}; {hint}")], label)
    costs = operations if isinstance(operations, OperationCosts) else assumed_costs(profiles, called)
    memory = max(profile.memory_gb for profile in profiles)
    slices = max(profile.starts[-1] + profile.memory_slices for profile in profiles)
    compute, told = max(profile.compute_slices for profile in profiles), "from its driver"
    model = GpuModel(called, product or called, memory, slices, compute, profiles, costs, (), told, told, (source,))
    if isinstance(operations, CostTable):
        model = dataclasses.replace(model, operation_costs=operations.on(model))
    raise_any(taken_names(model), label)
    return GpuImport(model, (f"creations and destructions: {model.operation_costs.source}",))


def _is_same(gpu: GpuModel, profiles: tuple[Profile, ...], product: str) -> bool:
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
        and abs((known[one.id].usable_mib or one.usable_mib or 0) / (one.usable_mib or 1) - 1) <= _SIZE_DRIFT
        for one in profiles
    )


def kinds_of(product: str) -> tuple[GpuModel, ...]:
    """Return the GPUs that a product name may stand for; none if it has no MIG, or is unknown.

    A name that ends with ``...`` has been cut.

    Examples
    --------
    >>> [[gpu.name for gpu in kinds_of(name)] for name in ("NVIDIA A100-SXM4-40GB", "NVIDIA H100 PCIe", "Tesla T4")]
    [['A100-40GB'], ['H100-80GB'], []]
    >>> [gpu.name for gpu in kinds_of("a100")]
    ['A100-40GB', 'A100-80GB']
    """
    name = product_name(re.sub(r"[^\s_-]*\.\.\.$", "", product).upper())
    found = {kind for family, sizes, words, kind in _BOARDS if _stands_for(name, family, sizes, words)}
    own = [gpu for gpu in KNOWN.values() if gpu.label.casefold() == product.casefold()]
    listed = [] if None in found else [gpu for gpu in catalogue() if gpu.name in found]
    return tuple(dict.fromkeys([*listed, *own]))


def product_name(product: str) -> str:
    """Return the name of a board without its maker, in one word.

    Examples
    --------
    >>> product_name("NVIDIA RTX PRO 4500 Blackwell")
    'RTX-PRO-4500-Blackwell'
    """
    return "-".join(word for word in re.split(r"[\s_-]+", product) if word.upper() not in _MAKERS)


def _stands_for(name: str, family: str, sizes: str, words: str) -> bool:
    """Return True if a name, words joined by hyphens, may be that of a board."""
    allowed = {*words.split(), *(f"{size}{unit}" for size in sizes.split() for unit in ("G", "GB"))}
    return f"{name}-".startswith(f"{family}-") and allowed.issuperset(name.removeprefix(family).split("-")[1:])


def profile_named(
    gpu: GpuModel, name: str, number: int | None = None, size: tuple[int, float] | None = None
) -> Profile | None:
    """Return the profile that a name, a number or a size stands for; None if there is none, or if they disagree.

    ``number`` is the id of the profile, ``size`` are multiprocessors and memory in MiB.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> a100 = get_gpu("A100-80GB")
    >>> [profile_named(a100, name).name for name in ("3g.39gb", "MIG 1g.10gb+me", "1g.10gb.me", "1g10gb")]
    ['3g.40gb', '1g.10gb+me', '1g.10gb+me', '1g.10gb']
    >>> profile_named(a100, "", size=(42, 40192.0)).name, profile_named(a100, "5g.50gb")
    ('3g.40gb', None)
    """
    named = _by_name(gpu, name) if name else _by_size(gpu, size) if size else None
    if number is None:
        return named
    numbered = next((profile for profile in gpu.profiles if profile.id == number), None)
    if not name or numbered is None or named is not None:
        return numbered if named in (None, numbered) else None
    # The number is exact; of a name with attributes in an unknown spelling only the size counts.
    found = _FOREIGN_NAME.match(name.strip().lower())
    alike = found and int(found[1]) == numbered.compute_slices and _near(numbered, float(found[2]))
    return numbered if alike else None


def _near(profile: Profile, memory: float) -> bool:
    return abs(profile.memory_gb - memory) <= max(1.0, _MEMORY_DRIFT * memory)


def _by_name(gpu: GpuModel, name: str) -> Profile | None:
    found = _FOREIGN_NAME.fullmatch(name.strip().lower())
    if not found:
        return None
    # Labels, which must not have a plus sign, have a dot in its place.
    compute, memory, attributes = int(found[1]), float(found[2]), found[3].lstrip("+.")
    alike = [one for one in gpu.profiles if (one.compute_slices, "+".join(one.attributes)) == (compute, attributes)]
    near = [profile for profile in alike if _near(profile, memory)]
    return min(near, key=lambda profile: abs(profile.memory_gb - memory), default=None)


def _by_size(gpu: GpuModel, size: tuple[int, float]) -> Profile | None:
    units, mib = size
    near = [
        profile
        for profile in gpu.profiles
        if abs((profile.usable_mib or profile.memory_gb * 1024) - mib) <= max(_SIZE_DRIFT * mib, 512)
        and (not profile.sm_count or abs(profile.sm_count - units) <= _UNITS_DRIFT * units)
    ]
    # Variants with media engines have the same size; the plain one is the likely one.
    return min(near, key=lambda one: (len(one.attributes), abs((one.sm_count or units) - units)), default=None)
