"""Moves what runs on a fleet so that room is made, with the fewest migrations."""

from mig_opt.defragmentation.entry import defragment
from mig_opt.defragmentation.greedy import greedy_migrations
from mig_opt.defragmentation.measuring import excess_fragmentation, least_fragmentation

__all__ = ["defragment", "excess_fragmentation", "greedy_migrations", "least_fragmentation"]
