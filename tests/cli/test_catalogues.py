"""The lists of what there is: findings on record, which no bundled instance has."""

from __future__ import annotations

import dataclasses
import re

from mig_opt.instances.bundled import FewestGpus, Finding, instance_info
from mig_opt.method.result import Status


def test_instances_show_the_fewest_gpus_on_record(run, monkeypatch):
    found, bound = (Finding(value, "exact", "me", "2025-01-01", "mig_opt 0.1.0", "why") for value in (13, 12))
    known = dataclasses.replace(
        instance_info("parvagpu-s5"), fewest_gpus=FewestGpus(Status.FEASIBLE, gpus=found, lower_bound=bound)
    )
    monkeypatch.setattr("mig_opt.instances.bundled.instance_info", lambda name: known)
    assert re.search(r"^parvagpu-s5 +demand +11 +A100-80GB +13 +12$", run("instances").out, re.MULTILINE)
    shown = run("instances", "parvagpu-s5").out
    assert re.search(r"^best known +feasible$", shown, re.MULTILINE)
    assert re.search(r"^GPUs +13 \(exact, me, 2025-01-01, mig_opt 0.1.0\): why$", shown, re.MULTILINE)
    assert re.search(r"^lower bound +12 \(", shown, re.MULTILINE)
