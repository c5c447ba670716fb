"""Optimal plans for NVIDIA Multi-Instance GPUs.

>>> from mig_opt import load, solve
>>> result = solve(load("rodinia-a30"))
>>> print(result.status, round(result.makespan, 3))
optimal 28.434

The public names are those of ``__all__``; ``__init__.pyi`` lists them, and each is imported when it is first used.
"""


def __getattr__(name: str) -> object:
    # Only when a name is asked for: the command line has to be there before anything slow is imported.
    import lazy_loader

    found = globals()
    found["__getattr__"], found["__dir__"], found["__all__"] = lazy_loader.attach_stub(__name__, __file__)
    return found[name] if name in found else found["__getattr__"](name)


def __dir__() -> list[str]:
    return [*__getattr__("__all__")]
