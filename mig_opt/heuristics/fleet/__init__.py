"""Heuristics for the fewest GPUs that serve every service in time.

ParvaGPU (:mod:`~mig_opt.heuristics.fleet.parvagpu`) with its stages in modules of their own, two rivals
(:mod:`~mig_opt.heuristics.fleet.mig_serving`, :mod:`~mig_opt.heuristics.fleet.first_fit`), and what they share: the
GPUs that are filled (:mod:`~mig_opt.heuristics.fleet.rack`) and plans for GPUs of several kinds
(:mod:`~mig_opt.heuristics.fleet.pools`).
"""
