"""The validator: the rules of the problem as an executable specification, one small function per rule.

1. Each task runs exactly once, for exactly its time on that size, within the life of one instance.
2. An instance holds its footprint from the begin of its creation to the end of its destruction (or for ever);
   footprints that are held at the same time are disjoint, and no profile passes its ``max_count``.
3. Operations take the time of the batch's cost table; on one GPU they do not overlap, unless the batch says so.
4. A GPU starts with the batch's initial instances only, each ready once it is free. The makespan is the last end of a
   run.

A schedule without operations is valid if there are operations that make it valid; they are looked for exactly.
"""

from __future__ import annotations

from mig_opt.validation.validator import Validation, validate
from mig_opt.validation.violations import Violation, ViolationCode

__all__ = ["Validation", "Violation", "ViolationCode", "validate"]
