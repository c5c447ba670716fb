"""The lists of what there is: findings on record, which no bundled instance has."""

import dataclasses
import re

from mig_opt.instances.bundled import FewestGpus, Finding, instance_info, library
from mig_opt.method.result import Status


def test_instances_show_the_fewest_gpus_on_record(run, monkeypatch):
    found, bound = (Finding(value, "exact", "me", "2025-01-01", "mig_opt 0.1.0", "why") for value in (13, 12))
    known = dataclasses.replace(instance_info("parvagpu-s5"), best=found, lower_bound=bound, difficulty="open")
    assert known.fewest_gpus == FewestGpus(Status.FEASIBLE, gpus=found, lower_bound=bound)
    monkeypatch.setattr(library(), "infos", {known.name: known})
    assert re.search(r"^parvagpu-s5 +demand +13 +12 +7\.692% +open$", run("instances").out, re.MULTILINE)
    shown = run("instances", "parvagpu-s5").out
    assert re.search(r"^best known +feasible$", shown, re.MULTILINE)
    assert re.search(r"^GPUs +13 \(exact, me, 2025-01-01, mig_opt 0.1.0\): why$", shown, re.MULTILINE)
    assert re.search(r"^lower bound +12 \(", shown, re.MULTILINE)
