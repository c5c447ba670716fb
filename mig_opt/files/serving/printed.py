"""Figures that programs print: throughput and latency of a model, and that there was not enough memory."""

from __future__ import annotations

import re

_FIGURE = r"[\"']?\s*[:=]?\s*([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)"
_THROUGHPUT, _LATENCY = (re.compile(rf"\b{word}{_FIGURE}") for word in ("throughput", "latency"))
_NO_MEMORY = re.compile(r"out[ _]of[ _]memory|cudaErrorMemoryAllocation", re.IGNORECASE)


def printed_figures(text: str) -> tuple[float, float] | None:
    r"""Return the last throughput (requests per second) and latency (seconds) of an output; None if it lacks one.

    Examples
    --------
    >>> printed_figures('warming up\n{"throughput": 410.5, "latency": 0.04}')
    (410.5, 0.04)
    >>> printed_figures("throughput=96 latency=8.3e-2")
    (96.0, 0.083)
    >>> printed_figures("throughput 96") is None
    True
    """
    throughputs, latencies = _THROUGHPUT.findall(text), _LATENCY.findall(text)
    return (float(throughputs[-1]), float(latencies[-1])) if throughputs and latencies else None


def tells_of_memory(text: str) -> bool:
    """Return True if an output says that memory was not enough.

    Examples
    --------
    >>> tells_of_memory("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB")
    True
    """
    return bool(_NO_MEMORY.search(text))
