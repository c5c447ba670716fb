"""Foreign names of GPUs and profiles as those of the catalogue."""

from __future__ import annotations

import re

from mig_opt.gpu.catalogue import catalogue
from mig_opt.gpu.model import KNOWN, GpuModel, Profile

_NAME = re.compile(r"(?:mig[ -])?([0-9]{1,4})g\.?([0-9]{1,4}(?:\.[0-9]{1,4})?)gb(.*)")
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
    found = _NAME.match(name.strip().lower())
    alike = found and int(found[1]) == numbered.compute_slices and _near(numbered, float(found[2]))
    return numbered if alike else None


def _near(profile: Profile, memory: float) -> bool:
    return abs(profile.memory_gb - memory) <= max(1.0, _MEMORY_DRIFT * memory)


def _by_name(gpu: GpuModel, name: str) -> Profile | None:
    found = _NAME.fullmatch(name.strip().lower())
    if not found:
        return None
    # Labels, which must not have a plus sign, have a dot in its place.
    compute, memory, attributes = int(found[1]), float(found[2]), found[3].lstrip("+.")
    alike = [
        profile
        for profile in gpu.profiles
        if profile.compute_slices == compute and "+".join(profile.attributes) == attributes
    ]
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
    return min(
        near, key=lambda profile: (len(profile.attributes), abs((profile.sm_count or units) - units)), default=None
    )
