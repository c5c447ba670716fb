"""FAR's first schedule of the tiny batch, which is valid, and what validators say about others in short."""

import tiny

from mig_opt import Placement, get_gpu
from mig_opt.validation import Validation

A30 = get_gpu("A30")
BATCH, TINY = tiny.BATCH, tiny.FAR_UNREFINED
RUNS, OPERATIONS = TINY.runs, TINY.operations or ()


def found(result: Validation) -> list[tuple[str, str]]:
    return [(str(violation.code), violation.path) for violation in result.violations]


def codes(result: Validation) -> set[str]:
    return {code for code, _ in found(result)}


def exclude(one: Placement, two: Placement) -> bool:
    """True if two placements cannot exist at once."""
    return one.conflicts(two) or (one.profile == two.profile and one.profile.max_count == 1)
