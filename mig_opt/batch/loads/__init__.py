"""Loads of the memory slices: the core of every bound, and of the search for better schedules.

A schedule of makespan C gives every memory slice at most C seconds of creations, runs and destructions. How small the
largest load can be made by choosing places for the tasks, whatever the order in time, is a problem of its own:

* :mod:`.tree` is its shape; :mod:`.subsets` are sets of tasks and tables over them, with which
  :mod:`mig_opt.models.batch.subset_proof` solves it exactly for some twenty tasks;
* :mod:`.neighbourhood` and :mod:`.local_search` improve solutions for any number of tasks; on several GPUs
  :mod:`.starts` has starts for that;
* :mod:`.branches` and :mod:`.columns` bound the tasks that one GPU can run within some time (patterns and dual prices);
* :mod:`.layouts` are the choices of the placements in use; :mod:`.layout_values` and :mod:`.layout_bounds` bound what
  each of them takes, and :mod:`.task_sets` lists the solutions of one close to the bound, for some dozens of tasks;
* :mod:`.gpu_sets` lists sets of tasks that one GPU can run, and :mod:`.partitions` divides all tasks into such sets.

The innermost loops are in C (:mod:`mig_opt.native`).
"""
