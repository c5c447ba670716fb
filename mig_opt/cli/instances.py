"""The command instances."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mig_opt.cli import options
from mig_opt.cli.answers import Answer
from mig_opt.cli.figures import seconds
from mig_opt.method.report import Points, Report, Table

if TYPE_CHECKING:
    from mig_opt.instances.bundled import Finding, InstanceInfo

_NO_FINDINGS: list[tuple[str, Finding | None]] = [("", None), ("", None)]


def instances(name: options.ListedArgument = None) -> Answer:
    """List the bundled batches and demands, with the best known plans.

    Examples
    --------
    mig-opt instances
    mig-opt instances rodinia-a30
    """
    from mig_opt.instances.bundled import instance_info, instance_names

    if name is not None:
        return Answer(_one(instance_info(name)))
    return Answer(_all(list(map(instance_info, [*instance_names("batch"), *instance_names("demand")]))))


def _all(infos: Sequence[InstanceInfo]) -> Report:
    rows = [
        [info.name, info.kind, str(info.n), info.gpu, *(_shown(info, best) for _, best in _findings(info))]
        for info in infos
    ]
    notes = [
        "batch: n tasks, for mig-opt solve; best and bound are seconds.",
        "demand: n services, for mig-opt deploy; best and bound are GPUs.",
    ]
    sources = [[info.name, info.source, info.licence.partition(",")[0]] for info in infos]
    tables = [
        Table(["instance", "what", ">n", "GPU", ">best", ">bound"], rows, notes),
        Table(["instance", "~source", "licence"], sources),
    ]
    return Report(parts=tables, data={"instances": list(map(dataclasses.asdict, infos))})


def _findings(info: InstanceInfo) -> list[tuple[str, Finding | None]]:
    """Return the best value and the best bound of an instance, each with what it is."""
    if info.kind == "demand":
        fewest = info.fewest_gpus
        return [("GPUs", fewest.gpus), ("lower bound", fewest.lower_bound)] if fewest else _NO_FINDINGS
    best = info.best_known
    return [("makespan", best.makespan), ("lower bound", best.lower_bound)] if best else _NO_FINDINGS


def _shown(info: InstanceInfo, finding: Finding | None) -> str:
    value = finding.value if finding else None
    return f"{value:g}" if value is not None and info.kind == "demand" else seconds(value)


def _one(info: InstanceInfo) -> Report:
    is_batch = info.kind == "batch"
    best = info.best_known or info.fewest_gpus
    found = [
        (
            label,
            f"{_shown(info, finding)}{' s' if is_batch else ''} ({finding.method}, {finding.found_by}, {finding.date}, "
            f"{finding.versions}): {finding.proof}",
        )
        for label, finding in _findings(info)
        if finding
    ]
    facts = [
        ("instance", info.name),
        ("title", info.title),
        ("what", f"{info.kind}, for mig-opt {'solve' if is_batch else 'deploy'}"),
        ("tasks" if is_batch else "services", str(info.n)),
        ("GPU", info.gpu),
        ("best known", best.status.value.replace("_", " ") if best else "nothing on record"),
        *found,
        ("source", info.source),
        ("url", info.url or "-"),
        ("licence", info.licence),
        ("derivation", info.derivation),
    ]
    return Report(facts, [Points(info.notes)] if info.notes else [], data=dataclasses.asdict(info))
