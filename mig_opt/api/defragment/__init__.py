"""Defragmentation of a fleet: the fewest migrations that make room or leave the least fragmentation."""

from mig_opt.api.defragment.defragmentation import defragment
from mig_opt.api.defragment.references import excess_fragmentation, greedy_migrations, least_fragmentation

__all__ = ["defragment", "excess_fragmentation", "greedy_migrations", "least_fragmentation"]
