"""Moves what runs on a fleet so that room is made, with the fewest migrations."""

from mig_opt.defragmenting.entry import defragment, least_fragmentation

__all__ = ["defragment", "least_fragmentation"]
