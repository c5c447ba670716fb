"""The rules for plans of changes: each mistake is found, where it is."""

import math
from dataclasses import replace

import pytest

from mig_opt import Deployment, InputError, Segment
from mig_opt.serving.change_plan import ChangePlan, ChangeStep
from mig_opt.validation import ChangeViolationCode, validate_change


def on(gpu: int, profile: str, start: int, service: str, batch: int = 1) -> Segment:
    return Segment(service, gpu, profile, start, batch, 1, 10.0, 0.1)


# An A30 creates 1g / 2g / 4g in 0.11 / 0.12 / 0.13 s and destroys any of them in 0.1 s.
#   GPU 0: 2g@0 a stays; 1g@2 b is destroyed 0.11-0.21 when b has come on GPU 1; 2g@2 c is created 0.21-0.33
#   GPU 1: 1g@3 b is created 0-0.11; 2g@0 is d's with batch size 1 and then 4, which interrupts d
STAYS, OLD_B, OLD_D = on(0, "2g.12gb", 0, "a"), on(0, "1g.6gb", 2, "b"), on(1, "2g.12gb", 0, "d")
NEW_B, NEW_C, NEW_D = on(1, "1g.6gb", 3, "b"), on(0, "2g.12gb", 2, "c"), on(1, "2g.12gb", 0, "d", batch=4)
GPUS = ("A30-24GB", "A30-24GB")
RUNNING, NEW = Deployment(GPUS, (STAYS, OLD_B, OLD_D)), Deployment(GPUS, (NEW_D, NEW_C, NEW_B, STAYS))
STEPS = (
    ChangeStep("switch", 1, "2g.12gb", 0, 0.0, 0.0, OLD_D, NEW_D),
    ChangeStep("create", 1, "1g.6gb", 3, 0.0, 0.11, None, NEW_B),
    ChangeStep("destroy", 0, "1g.6gb", 2, 0.11, 0.21, OLD_B, None),
    ChangeStep("create", 0, "2g.12gb", 2, 0.21, 0.33, None, NEW_C),
)
PLAN = ChangePlan(GPUS, (STAYS,), STEPS, (OLD_D,), 0.33)


def found(plan: ChangePlan, running: Deployment = RUNNING) -> list[tuple[str, str]]:
    return [(str(violation.code), violation.path) for violation in validate_change(running, NEW, plan).violations]


def changed(index: int, **changes: object) -> ChangePlan:
    return replace(PLAN, steps=tuple(replace(s, **changes) if i == index else s for i, s in enumerate(STEPS)))


def moved(by: dict[int, float], **changes: object) -> ChangePlan:
    steps = tuple(replace(s, begin=s.begin + by.get(i, 0), end=s.end + by.get(i, 0)) for i, s in enumerate(STEPS))
    return replace(PLAN, steps=tuple(sorted(steps, key=lambda step: step.moment)), **changes)


CASES: list[tuple[list[tuple[str, str]], ChangePlan]] = [
    ([("wrong-gpus", "gpus")], replace(PLAN, gpus=GPUS[:1])),
    ([("wrong-gpus", "gpus[1]")], replace(PLAN, gpus=("A30", "A100-40GB"))),
    ([("wrong-duration", "duration")], replace(PLAN, duration=0.32)),
    ([("wrong-duration", "duration")], replace(PLAN, duration=math.nan)),
    ([("wrong-kept", "kept")], replace(PLAN, kept=())),
    ([("wrong-interrupted", "interrupted")], replace(PLAN, interrupted=())),
    ([("wrong-interrupted", "interrupted")], replace(PLAN, interrupted=(OLD_D, OLD_B))),
    ([("operation-duration", "steps[3]")], replace(changed(3, end=0.34), duration=0.34)),
    ([("operation-duration", "steps[0]")], changed(0, begin=0.0, end=0.05)),
    ([("bad-time", "steps[1].begin")], changed(1, begin=-1.0)),
    ([("wrong-order", "steps[1]")], replace(PLAN, steps=(STEPS[1], STEPS[0], *STEPS[2:]))),
    # b is destroyed before it has come elsewhere, and c is created in the middle of that.
    ([("wrong-interrupted", "interrupted")], moved({2: -0.11, 3: -0.11}, duration=0.22)),
    ([("operations-overlap", "steps[3]"), ("instances-overlap", "steps[3]")], moved({3: -0.05}, duration=0.28)),
    (
        [("wrong-segment", "steps[0]"), ("wrong-end", "steps")],
        replace(PLAN, steps=(replace(STEPS[0], ends=replace(OLD_D, batch=2), begins=OLD_D), *STEPS[1:])),
    ),
    ([("wrong-end", "steps"), ("wrong-duration", "duration")], replace(PLAN, steps=STEPS[:3])),
    ([("wrong-step", "steps[3].ends"), ("wrong-segment", "steps[3]")], changed(3, ends=OLD_B)),
    ([("wrong-step", "steps[2].begins"), ("wrong-end", "steps")], changed(2, begins=OLD_B)),
    ([("unknown-gpu", "steps[3].gpu"), ("wrong-step", "steps[3].begins")], changed(3, gpu=2)),
    ([("unknown-placement", "steps[3].start"), ("wrong-step", "steps[3].begins")], changed(3, start=1)),
]


def test_the_plan_that_the_cases_spoil_is_valid() -> None:
    result = validate_change(RUNNING, NEW, PLAN)
    assert result.valid
    assert (result.duration, result.interrupted) == (0.33, (OLD_D,))
    assert str(result) == "valid, 1 interrupted, 0.33 s"
    assert PLAN.state_after(0).changes_to(RUNNING) == 0
    assert PLAN.state_after(4).changes_to(NEW) == 0


@pytest.mark.parametrize(("expected", "plan"), CASES, ids=[case[0][0][0] for case in CASES])
def test_each_mistake_is_found_where_it_is(expected: list[tuple[str, str]], plan: ChangePlan) -> None:
    assert found(plan) == expected


def test_every_code_has_a_case() -> None:
    tested = {code for case in CASES for code, _ in case[0]} | {"too-many-instances"}
    assert tested == {str(code) for code in ChangeViolationCode}
    assert all(code.description and "\n" not in code.description for code in ChangeViolationCode)


def test_what_nobody_can_change_from_is_refused() -> None:
    with pytest.raises(InputError, match=r"running.segments\[3\]: 2g.12gb@2 of GPU 0"):
        validate_change(Deployment(GPUS, (*RUNNING.segments, NEW_C)), NEW, PLAN)
    with pytest.raises(InputError, match="tolerance: must be a finite number of seconds >= 0"):
        validate_change(RUNNING, NEW, PLAN, tolerance=-1.0)
