"""Traces drawn at random, after the workloads of papers whose own traces are not public.

What a paper prints is used; what it does not print is a parameter, and a line among the assumptions of the family.
"""

from mig_opt.instances.fleet.family import Parameter, TraceFamily
from mig_opt.instances.fleet.registry import generate_trace, get_trace_family, trace_families

__all__ = ["Parameter", "TraceFamily", "generate_trace", "get_trace_family", "trace_families"]
