"""Jobs that arrive over time on a fleet of MIG GPUs: traces, one simulator, and the schedulers that run in it.

The names stand in ``face.py``, which is imported when one of them is first used: requests of services need none.
"""

from mig_opt.method.functions import imported


def __getattr__(name: str) -> object:
    return imported(f"{__name__}.face:{name}")


def __dir__() -> list[str]:
    return [*imported(f"{__name__}.face:__all__")]
