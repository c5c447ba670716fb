"""Deployments of fewest GPUs: for the rates of services, for a promise to requests, and for the steps of a day."""

from mig_opt.api.deploy.deployment import check_size, deploy, retained_segments, updating, why_unservable

__all__ = ["check_size", "deploy", "retained_segments", "updating", "why_unservable"]
