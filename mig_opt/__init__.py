"""Optimal plans for NVIDIA Multi-Instance GPUs.

>>> from mig_opt import load, solve
>>> result = solve(load("rodinia-a30"))
>>> print(result.status, round(result.makespan, 3))
optimal 28.434

The public names are those of ``__all__``; ``__init__.pyi`` lists them, and each is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
