"""Optimal plans for NVIDIA Multi-Instance GPUs.

>>> from mig_opt import load, solve
>>> result = solve(load("rodinia-a30"))
>>> print(result.status, round(result.makespan, 3))
optimal 28.434

The public names are those of ``__all__``; ``__init__.pyi`` lists them, and each is imported when it is first used.
"""


def __getattr__(name: str) -> object:
    from lazy_loader import attach_stub  # only now: the command line has to be there before anything slow is imported

    globals().update(zip(("__getattr__", "__dir__", "__all__"), attach_stub(__name__, __file__), strict=True))
    return globals().get(name) or __getattr__(name)


def __dir__() -> list[str]:
    return [*__getattr__("__all__")]
