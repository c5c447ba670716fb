"""The command methods."""

from __future__ import annotations

from collections.abc import Sequence

from mig_opt.cli.answers import Answer
from mig_opt.method.registry import AUTO, Method, get_deploy_method, get_method
from mig_opt.method.registry import methods as known_methods
from mig_opt.method.report import Report, Table, data_of


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

    def table(command: str, entries: Sequence[Method], *columns: str, notes: Sequence[str] = ()) -> Table:
        cells = {column: [str(getattr(entry, column.lstrip("~"))) for entry in entries] for column in columns}
        names = [entry.name for entry in entries]
        return Table([command, *columns], list(zip(names, *cells.values(), strict=True)), notes)

    tables: list[Table] = []
    for command, entries in known.items():
        tables += [table(command, entries, "kind", "~summary"), table(command, entries, "~source")]
    notes = [
        f"{AUTO}, the default, stands for {auto} with mig-opt solve, for {deploy_auto} with deploy.",
        "Exact methods end with a proof if they have the time for it.",
    ]
    options = {policy.name: policy_options(policy) for policy in policies}
    tables += [
        table("simulate", policies, "~summary"),
        Table(["simulate", "~options"], [[name, ", ".join(of)] for name, of in options.items()]),
        table("simulate", policies, "~source", notes=notes),
    ]
    data = {
        "auto": auto,
        "methods": [data_of(entry, "name", "kind", "summary", "source") for entry in known["solve"]],
        "deploy_auto": deploy_auto,
        "deploy_methods": [data_of(entry, "name", "kind", "summary", "source") for entry in known["deploy"]],
        "policies": [
            {"name": policy.name, "options": list(options[policy.name]), **data_of(policy, "summary", "source")}
            for policy in policies
        ],
    }
    return Answer(Report(parts=tables, data=data))
