"""Runs of CP-SAT: however it searches, the optimum is the same."""

from __future__ import annotations

import pytest
from ortools.sat.python import cp_model

from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.method.result import Status
from mig_opt.models.solvers.backend import Request
from mig_opt.models.solvers.cpsat import run


def even_split(numbers: list[int]) -> cp_model.CpModel:
    """Model of numbers on two sides, whose larger sum is to be small."""
    model = cp_model.CpModel()
    largest = model.new_int_var(0, sum(numbers), "largest")
    left = [model.new_bool_var(f"{number} is left") for number in numbers]
    model.add(sum(number * here for number, here in zip(numbers, left, strict=True)) <= largest)
    model.add(sum(number * (1 - here) for number, here in zip(numbers, left, strict=True)) <= largest)
    model.minimize(largest)
    return model


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize(
    "request_", [Request(), Request(for_proof=True), Request(tight=True)], ids=["plain", "proof", "tight"]
)
def test_the_optimum_is_the_same_however_it_searches(request_: Request, workers: int) -> None:
    control = Control[None](RunOptions(workers=workers))
    outcome = run(even_split([41, 37, 30, 22, 17, 11, 5]), control, request_)
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == outcome.bound == 82
