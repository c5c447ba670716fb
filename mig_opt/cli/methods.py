"""The command methods."""

from __future__ import annotations

from mig_opt.cli.answers import Answer
from mig_opt.method.registry import AUTO, get_deploy_method, get_method
from mig_opt.method.registry import methods as known_methods
from mig_opt.method.report import Report, Table


def methods() -> Answer:
    """List the methods of solve and deploy, the policies of simulate.

    Examples
    --------
    mig-opt methods
    """
    from mig_opt.simulation.fleet.options import policy_options

    known = {"solve": known_methods(), "deploy": known_methods("deploy")}
    policies = known_methods("simulate")
    auto, deploy_auto = get_method(AUTO).name, get_deploy_method(AUTO).name
    tables: list[Table] = []
    for command, entries in known.items():
        tables += [
            Table([command, "kind", "~summary"], [[entry.name, entry.kind, entry.summary] for entry in entries]),
            Table([command, "~source"], [[entry.name, entry.source] for entry in entries]),
        ]
    notes = [
        f"{AUTO}, the default, stands for {auto} with mig-opt solve, for {deploy_auto} with deploy.",
        "Exact methods end with a proof if they have the time for it.",
    ]
    tables += [
        Table(["simulate", "~summary"], [[policy.name, policy.summary] for policy in policies]),
        Table(["simulate", "~options"], [[policy.name, ", ".join(policy_options(policy))] for policy in policies]),
        Table(["simulate", "~source"], [[policy.name, policy.source] for policy in policies], notes),
    ]
    described = {
        command: [
            {"name": entry.name, "kind": entry.kind, "summary": entry.summary, "source": entry.source}
            for entry in entries
        ]
        for command, entries in known.items()
    }
    data = {
        "auto": auto,
        "methods": described["solve"],
        "deploy_auto": deploy_auto,
        "deploy_methods": described["deploy"],
        "policies": [
            {"name": p.name, "options": list(policy_options(p)), "summary": p.summary, "source": p.source}
            for p in policies
        ],
    }
    return Answer(Report(parts=tables, data=data))
