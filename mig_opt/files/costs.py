"""Tables of operation costs as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mig_opt.errors import Problem, raise_any
from mig_opt.files.kinds import COSTS as EXAMPLE
from mig_opt.files.kinds import FileKind
from mig_opt.files.values import Findings, Raw, made
from mig_opt.gpu.catalogue import Gpu
from mig_opt.gpu.model import GpuModel, OperationCosts
from mig_opt.gpu.problems import operation_problems
from mig_opt.rules import hints_of, wrong_class
from mig_opt.rules.vocabulary import OperationSeconds


@dataclass(frozen=True, slots=True)
class CostsFile:
    """Seconds that creations and destructions of instances take, by number of compute slices."""

    gpu: Gpu
    create: OperationSeconds
    destroy: OperationSeconds
    source: str = ""
    assumed: bool = False

    def _problems(self) -> Iterator[Problem]:
        if self.gpu:
            costs = made(OperationCosts, {"create": self.create, "destroy": self.destroy}, "", Findings(""), good=False)
            yield from operation_problems(self.gpu, costs, "")


def _costs(values: dict[str, Any], _: Raw, path: str, findings: Findings, **_given: object) -> OperationCosts:
    made(CostsFile, values, path, findings, good=False)
    findings.check()
    return OperationCosts(**{key: values[key] for key in hints_of(OperationCosts)})


def _shaped(costs: OperationCosts, *, gpu: Any = None) -> CostsFile:
    """Return the costs of one kind of GPU, also where they are by kind; refuse those that are not of it."""
    raise_any(wrong_class("gpu", gpu, GpuModel, "get_gpu('A100')"))
    own = costs.of_kind(gpu)
    raise_any(operation_problems(gpu, own, ""))
    return CostsFile(gpu, own.create, own.destroy, own.source, own.assumed)


COSTS = FileKind(
    "costs",
    CostsFile,
    {CostsFile: {"gpu": "A30-24GB", **EXAMPLE}},
    described_by={CostsFile: OperationCosts},
    options=("gpu",),
    build=_costs,
    shaped=_shaped,
)
