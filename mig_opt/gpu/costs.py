"""Tables of what operations cost, by the program that does them: NVML, ``nvidia-smi``, plugins of Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import GpuModel, OperationCosts, wrong_size
from mig_opt.rules import wrong_type

DRIVER = "nvml"
"""The table with the driver's own times, which :attr:`~mig_opt.gpu.model.GpuModel.operation_costs` are."""


@dataclass(frozen=True, slots=True)
class CostTable:
    """A table of operation costs in the catalogue.

    Attributes
    ----------
    name : str
        Name of the table.
    by : str
        The program that does the operations.
    create, destroy : float or None
        Seconds of any creation, and of any destruction; None for the driver's own, which differ by GPU and size.
    source : str
        Where the figures come from, and how they were made; empty for the driver's own, which have one for each GPU.
    """

    name: str
    by: str
    create: float | None
    destroy: float | None
    source: str

    def on(self, gpu: GpuModel) -> OperationCosts:
        """Return the costs on a kind of GPU.

        Parameters
        ----------
        gpu : GpuModel
            The GPU.

        Returns
        -------
        OperationCosts
            Seconds for each of its sizes, with their source.
        """
        if self.create is None or self.destroy is None:
            return gpu.operation_costs
        create, destroy = (dict.fromkeys(gpu.sizes, seconds) for seconds in (self.create, self.destroy))
        return OperationCosts(create, destroy, f"{self.by}: {self.source}", assumed=True)


@cache
def cost_tables() -> Mapping[str, CostTable]:
    """Return the tables of operation costs in the catalogue, by name.

    Examples
    --------
    >>> list(cost_tables())
    ['nvml', 'nvidia-smi', 'kubernetes']
    """
    data = json.loads(resources.files("mig_opt.gpu").joinpath("costs.json").read_text(encoding="utf-8"))
    tables = (CostTable(**entry) for entry in data["tables"])
    return {table.name: table for table in tables}


def get_costs(name: str, gpu: str | GpuModel) -> OperationCosts:
    """Return the operation costs of a table of the catalogue.

    Parameters
    ----------
    name : str
        ``nvml``, ``nvidia-smi`` or ``kubernetes``.
    gpu : str or GpuModel
        The kind of GPU.

    Returns
    -------
    OperationCosts
        Seconds for each size of the GPU, with their source.

    Raises
    ------
    InputError
        If there is no such table, or no such GPU.

    Examples
    --------
    >>> get_costs("nvml", "A30").create
    {1: 0.11, 2: 0.12, 4: 0.13}
    >>> get_costs("nvidia-smi", "A30").create
    {1: 1.0, 2: 1.0, 4: 1.0}
    """
    if not isinstance(name, str):
        raise InputError([wrong_type("name", name, "a string")])
    model = gpu if isinstance(gpu, GpuModel) else get_gpu(gpu)
    if name not in cost_tables():
        raise InputError([Problem("name", f"no table of costs is called {name!r}; {nearest(name, cost_tables())}")])
    return cost_tables()[name].on(model)


def operation_problems(gpu: GpuModel, operations: OperationCosts, path: str = "operations") -> Iterator[Problem]:
    """Yield a problem for each size of ``gpu`` that costs at a path lack, and for each that the GPU does not have."""
    below = f"{path}." if path else ""
    for kind, costs in (("create", operations.create), ("destroy", operations.destroy)):
        missing = [size for size in gpu.sizes if size not in costs]
        if missing:
            sizes = ", ".join(map(str, missing))
            yield Problem(f"{below}{kind}", f"has no seconds for size {sizes} of {gpu.name}; add them")
        for size in costs:
            yield from wrong_size(f"{below}{kind}.{size}", gpu, size)
