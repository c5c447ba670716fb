"""Loads of the memory slices: the core of every bound, and of the search for better schedules.

A schedule of makespan C gives every memory slice at most C seconds of creations, runs and destructions. How low that
can be made by choosing places for the tasks, whatever the order in time, is a problem of its own: :mod:`.tree` is its
shape, :mod:`.tables` solves it exactly for some twenty tasks, :mod:`.assignments` lists all its solutions, and
:mod:`.neighbourhood` improves solutions for any number of tasks (:mod:`.local_search`, :mod:`.descent`). How much one
GPU can take in at all gives bounds for more tasks: :mod:`.branches` are its parts, :mod:`.contents` fills them, and
:mod:`.prices` weighs that against the tasks.
"""
