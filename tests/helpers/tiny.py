"""One instance that can be checked by hand, for every test that needs one.

An A30 has 4 memory slices; it creates 1g / 2g / 4g in 0.11 / 0.12 / 0.13 s and destroys any of them in 0.1 s.

The optimum is 6.34 s. ``big`` needs the whole GPU, ``right`` only runs on one slice, so some slice carries both:
4g created + big + 4g destroyed + 1g created + right = 0.13 + 2 + 0.1 + 0.11 + 4 = 6.34, and as much the other way
round. It is reached:

    4g@0  created 0-0.13     big   0.13-2.13   destroyed 2.13-2.23
    1g@2  created 2.23-2.34  right 2.34-6.34
    2g@0  created 2.34-2.46  left  2.46-5.46   makespan 6.34

FAR's phases 1 and 2 keep ``left`` on 2g and create its instance first (0.12 s before that of ``right``): 6.46 s. The
refinement puts the operations into the better order.

Bounds. Area: big 4 x 2, left min(1 x 5, 2 x 3) = 5, right 1 x 4; (8 + 5 + 4) / 4 = 4.25. Critical task: right with the
creation of 1g, 4.11 (left on 2g: 3.12, big: 2.13). Slice load: all slices look alike, so the area again, and the
shortest creation on top: 4.36.
"""

from mig_opt import Batch, Operation, Run, Schedule, Task, get_gpu

BATCH = Batch(
    (Task("big", {4: 2.0}), Task("left", {1: 5.0, 2: 3.0}), Task("right", {1: 4.0}, memory_gb=5)),
    get_gpu("A30"),
    name="tiny",
)
BEST = Schedule(
    (
        Run("big", 0, "4g.24gb", 0, 0.13, 2.13),
        Run("right", 0, "1g.6gb", 2, 2.34, 6.34),
        Run("left", 0, "2g.12gb", 0, 2.46, 5.46),
    ),
    (
        Operation("create", 0, "4g.24gb", 0, 0.0, 0.13),
        Operation("destroy", 0, "4g.24gb", 0, 2.13, 2.23),
        Operation("create", 0, "1g.6gb", 2, 2.23, 2.34),
        Operation("create", 0, "2g.12gb", 0, 2.34, 2.46),
    ),
)
OPTIMUM = 6.34
FAR_UNREFINED = Schedule(
    (
        Run("big", 0, "4g.24gb", 0, 0.13, 2.13),
        Run("left", 0, "2g.12gb", 0, 2.35, 5.35),
        Run("right", 0, "1g.6gb", 2, 2.46, 6.46),
    ),
    (
        Operation("create", 0, "4g.24gb", 0, 0.0, 0.13),
        Operation("destroy", 0, "4g.24gb", 0, 2.13, 2.23),
        Operation("create", 0, "2g.12gb", 0, 2.23, 2.35),
        Operation("create", 0, "1g.6gb", 2, 2.35, 2.46),
    ),
)
FAR = 6.46
BOUNDS = {"slice load": 4.36, "area": 4.25, "critical task": 4.11}
