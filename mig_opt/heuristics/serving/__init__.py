"""Heuristics for the fewest GPUs that serve every service in time.

ParvaGPU (:mod:`~mig_opt.heuristics.serving.parvagpu`), its rivals (:mod:`~mig_opt.heuristics.serving.mig_serving`,
:mod:`~mig_opt.heuristics.serving.gpulet`, :mod:`~mig_opt.heuristics.serving.igniter` and first fit), the toolkit's own
(:mod:`~mig_opt.heuristics.serving.search`), and what all but that share: demand matching and GPUs that are filled
(:mod:`~mig_opt.heuristics.serving.fill`).
"""
