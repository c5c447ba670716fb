"""The registry of policies: which schedulers :func:`mig_opt.simulate` can run, and where they come from."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.simulation.cluster import Policy


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A scheduler that can be had by name.

    Attributes
    ----------
    name : str
        What ``simulate(policy=...)`` calls it.
    summary : str
        One line.
    source : str
        Where it comes from.
    entry : str
        Module and class, imported when first used.
    """

    name: str
    summary: str
    source: str
    entry: str

    def load(self, **options: object) -> Policy:
        """Return a new scheduler with some options."""
        return self._class()(**options)

    def options(self) -> tuple[str, ...]:
        """Return the names of its options."""
        return tuple(inspect.signature(self._class()).parameters)

    def option_problems(self, options: Mapping[str, object]) -> Iterator[Problem]:
        """Yield the options that it does not have; what is wrong with the values of others it says itself."""
        known = self.options()
        for option in options:
            if option not in known:
                yield Problem(option, f"is no option of the policy {self.name!r}; {nearest(option, known)}")

    def read_option(self, option: str, text: str) -> object:
        """Return the value that a text stands for: ``true`` or ``false``, a number, or several words with ``/``.

        Where the option takes texts, numbers stay texts: a partition may be called ``7``. Where it may be None, that is
        ``none``.
        """
        parameter = inspect.signature(self._class()).parameters.get(option)
        if parameter is not None and "None" in str(parameter.annotation) and text.casefold() == "none":
            return None
        if parameter is not None and "str" in str(parameter.annotation):
            return tuple(text.split("/")) if "/" in text else text
        if text.casefold() in ("true", "false"):
            return text.casefold() == "true"
        for kind in (int, float):
            with contextlib.suppress(ValueError):
                return kind(text)
        return text

    def _class(self) -> Callable[..., Policy]:
        module, name = self.entry.split(":")
        found: Callable[..., Policy] = getattr(importlib.import_module(module), name)
        return found


_FRAGMENTATION = "An Online Fragmentation-Aware Scheduler for Managing GPU-Sharing Workloads on Multi-Instance GPUs"

_MEMORY = "Managing Multi Instance GPUs for High Throughput and Energy Savings (MIGM)"
_PCIE = "PCIe Bandwidth-Aware Scheduling for Multi-Instance GPUs"

_POLICIES = (
    PolicyEntry(
        "fragmentation-aware",
        "conditional load balancing, least fragmentation, reuse of instances, migration on departure",
        f"{_FRAGMENTATION}, section IV",
        "mig_opt.heuristics.fleet.fragmentation_aware:FragmentationAware",
    ),
    PolicyEntry(
        "first-fit",
        "the GPU of lowest index with room, its first placement",
        f"the baseline of: {_FRAGMENTATION}, section V, with repartitioning",
        "mig_opt.heuristics.fleet.queueing:FirstFit",
    ),
    PolicyEntry(
        "best-fit",
        "the GPU with the least room that is enough, its first placement",
        "folklore",
        "mig_opt.heuristics.fleet.queueing:BestFit",
    ),
    PolicyEntry(
        "load-balancing",
        "the GPU with the least load that has room, its first placement",
        "folklore",
        "mig_opt.heuristics.fleet.queueing:LoadBalancing",
    ),
    PolicyEntry(
        "static",
        "first fit on partitions that never change",
        f"the rival of: {_FRAGMENTATION}, section V-C",
        "mig_opt.heuristics.fleet.queueing:StaticPartition",
    ),
    PolicyEntry(
        "memory-aware-a",
        "tightest memory, jobs by size, placements by reachability, early restart by prediction",
        f"{_MEMORY}, scheme A",
        "mig_opt.heuristics.fleet.memory_aware:MemoryAwareBySize",
    ),
    PolicyEntry(
        "memory-aware-b",
        "tightest memory, jobs in order, placements by reachability, early restart by prediction",
        f"{_MEMORY}, scheme B",
        "mig_opt.heuristics.fleet.memory_aware:MemoryAwareInOrder",
    ),
    PolicyEntry(
        "whole-gpu",
        "one job at a time on each GPU, on its largest instance",
        f"the baseline of: {_MEMORY}, section 5",
        "mig_opt.heuristics.fleet.queueing:WholeGpu",
    ),
    PolicyEntry(
        "pcie-aware",
        "the GPU where PCIe contention slows the job down least; reconfigures idle GPUs only",
        f"{_PCIE}, section 4",
        "mig_opt.heuristics.fleet.pcie_aware:PcieAware",
    ),
    PolicyEntry(
        "pcie-unaware",
        "the GPU of lowest index with an idle instance; reconfigures idle GPUs only",
        f"the baseline of: {_PCIE}, section 5.1",
        "mig_opt.heuristics.fleet.pcie_aware:PcieUnaware",
    ),
    PolicyEntry(
        "planner",
        "rolling plans for the jobs that wait, from the state of the fleet",
        "this toolkit (docs/fleet/planner.md)",
        "mig_opt.heuristics.fleet.planner:Planner",
    ),
)


def policies() -> tuple[PolicyEntry, ...]:
    """Return the schedulers that :func:`mig_opt.simulate` knows.

    Examples
    --------
    >>> [policy.name for policy in policies()][:5]
    ['fragmentation-aware', 'first-fit', 'best-fit', 'load-balancing', 'static']
    """
    return _POLICIES


def get_policy(name: str) -> PolicyEntry:
    """Return the scheduler called ``name``.

    Raises
    ------
    InputError
        If there is none; the message offers the nearest names.
    """
    for policy in _POLICIES:
        if policy.name == name:
            return policy
    message = f"unknown policy {name!r}; {nearest(name, [policy.name for policy in _POLICIES])}"
    raise InputError([Problem("policy", message)])


def policy_label(name: str, options: Mapping[str, object]) -> str:
    """Return a policy with options as the command line takes it.

    Examples
    --------
    >>> policy_label("static", {"partition": ("4+3", "2+2+3"), "backfill": True})
    'static:partition=4+3/2+2+3:backfill=true'
    """
    return ":".join([name, *(f"{option}={_spelled(value)}" for option, value in options.items())])


def _spelled(value: object) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return "/".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
