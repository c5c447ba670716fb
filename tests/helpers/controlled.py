"""Methods that run under a control of their own."""

from collections.abc import Callable
from typing import Any

from mig_opt import Batch, Schedule
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions


def controlled(method: Callable[..., None], batch: Batch, *more: Any, **options: Any) -> Control[Schedule]:
    """The control that has heard what a method found; options are those of a run."""
    control = Control[Schedule](RunOptions(**options))
    method(batch, control, *more)
    return control
