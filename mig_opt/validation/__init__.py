"""The validators: the rules of each problem as an executable specification, one small function per rule.

Schedules:

1. Each task runs exactly once, for exactly its time on that size, within the lifetime of one instance.
2. An instance holds its footprint from the begin of its creation to the end of its destruction (or for ever);
   footprints that are held at the same time are disjoint, and no profile passes its ``max_count``.
3. Operations take the time of the batch's cost table; on one GPU they do not overlap, unless the batch says so.
4. A GPU starts with the batch's initial instances only, each ready once it is free. The makespan is the last end of a
   run.

A schedule without operations is valid if there are operations that make it valid; they are looked for exactly.

Deployments: segments are in placements that their GPUs have, with disjoint footprints, and at most ``max_count`` of a
profile; each is filled in a way that was measured, in time and with enough memory; every service gets its rate and its
replicas; no pool gives more GPUs than it has.

Changes: steps lead from the running segments to the new ones; on the way the instances of a GPU are disjoint, its
driver does one thing at a time, and the plan names just the segments after whose end their service lacks throughput.

Migrations: each moves an instance that exists and may move to a place that is free beside everything else, the old
instance included; in the end there is the room, or as little fragmentation, as was promised.

The names stand in ``__init__.pyi``; each is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
