"""Heuristics for the fewest GPUs that serve every service in time.

ParvaGPU (:mod:`~mig_opt.heuristics.serving.parvagpu`), two rivals (:mod:`~mig_opt.heuristics.serving.mig_serving`, and
first fit), the toolkit's own (:mod:`~mig_opt.heuristics.serving.search`), and what the first three share: demand
matching and GPUs that are filled (:mod:`~mig_opt.heuristics.serving.filling`).
"""
