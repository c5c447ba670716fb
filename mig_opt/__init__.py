"""Optimal plans for NVIDIA Multi-Instance GPUs.

>>> from mig_opt import load, solve
>>> result = solve(load("rodinia-a30"))
>>> print(result.status, round(result.makespan, 3))
optimal 28.434

The public names are those of ``__all__``; ``__init__.pyi`` lists them, and each is imported when it is first used.
"""

from functools import cache


@cache
def _attached() -> tuple:
    # Only now: the command line has to be there before anything slow is imported.
    from lazy_loader import attach_stub

    return attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    load, _, names = _attached()
    return names if name == "__all__" else load(name)


def __dir__() -> list[str]:
    return _attached()[1]()
