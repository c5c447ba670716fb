"""From a running deployment to a new one: which GPU becomes which, and in which order instances come and go."""

from mig_opt.api.change.alignment import align
from mig_opt.api.change.plans import plan_change

__all__ = ["align", "plan_change"]
