"""Change plans as part of a document."""

from __future__ import annotations

from mig_opt.files.parts import Raw
from mig_opt.serving.change_plan import ChangePlan, ChangeStep


def change_document(plan: ChangePlan) -> Raw:
    """Return a change plan as part of a document, with the names of services in place of segments.

    Returns
    -------
    dict
        ``kept``, the number of segments that go on all the time; ``interrupted``, the services that lack throughput on
        the way, each once; ``duration_s``; ``proven``; ``steps``, where ``begin`` and ``end`` are seconds, and ``ends``
        and ``begins`` the services whose segment ends or begins there (None if none does).
    """
    return {
        "kept": len(plan.kept),
        "interrupted": list(dict.fromkeys(segment.service for segment in plan.interrupted)),
        "duration_s": plan.duration,
        "proven": list(plan.proven),
        "steps": [_step_document(step) for step in plan.steps],
    }


def _step_document(step: ChangeStep) -> Raw:
    return {
        "kind": step.kind,
        "gpu": step.gpu,
        "profile": step.profile,
        "start": step.start,
        "begin": step.begin,
        "end": step.end,
        "ends": None if step.ends is None else step.ends.service,
        "begins": None if step.begins is None else step.begins.service,
    }
