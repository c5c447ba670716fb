"""Heuristics for the fewest GPUs that serve every service in time.

ParvaGPU (:mod:`~mig_opt.heuristics.serving.parvagpu`) with its stages in modules of their own, two rivals
(:mod:`~mig_opt.heuristics.serving.mig_serving`, :mod:`~mig_opt.heuristics.serving.first_fit`), and what they share: the
GPUs that are filled (:mod:`~mig_opt.heuristics.serving.rack`) and plans for GPUs of several kinds
(:mod:`~mig_opt.heuristics.serving.pools`).
"""
