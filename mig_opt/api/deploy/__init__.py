"""Deployments of fewest GPUs: for the rates of services, and for a promise to their requests.

The module :mod:`.entry` has :func:`deploy`, and :mod:`.promises` has :func:`mig_opt.deploy_with_promise` on top of it.
"""

from __future__ import annotations

from mig_opt.api.deploy.deployment import check_size, deploy, updating, why_unservable
from mig_opt.api.deploy.retained import retained_segments

__all__ = ["check_size", "deploy", "retained_segments", "updating", "why_unservable"]
