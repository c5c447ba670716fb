"""Defragmentation of a fleet: the fewest migrations that make room or leave the least fragmentation."""

from mig_opt.defragmentation.entry import defragment
from mig_opt.defragmentation.references import excess_fragmentation, greedy_migrations, least_fragmentation

__all__ = ["defragment", "excess_fragmentation", "greedy_migrations", "least_fragmentation"]
