"""Lets a process of a test see no program of anybody else: a slurmd of another test, or who owns the partitions."""

from mig_opt.operations.driver import surroundings

surroundings._processes = lambda root: iter(())
