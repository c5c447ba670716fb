"""The command trace families."""

from __future__ import annotations

from mig_opt.cli import options
from mig_opt.cli.answers import Answer
from mig_opt.cli.checks import options_named
from mig_opt.method.report import Part, Points, Report, Table, data_of


def trace_families(name: options.ListedArgument = None) -> Answer:
    """List the families of traces that can be generated; with NAME its parameters and what is assumed.

    Examples
    --------
    mig-opt trace families
    mig-opt trace families normal-25
    """
    from mig_opt.instances.fleet.registry import get_trace_family
    from mig_opt.instances.fleet.registry import trace_families as known_families

    with options_named({"family": "NAME"}):
        found = known_families() if name is None else (get_trace_family(name),)
    data = [data_of(family, "name", "description", "source", "gpus", "parameters", "assumptions") for family in found]
    if name is None:
        table = Table(["family", ">GPUs", "~what"], [[f.name, str(f.gpus), f.description] for f in found])
        return Answer(Report(parts=[table], data={"families": data}))
    (family,) = found
    facts = [
        ("family", family.name),
        ("what", family.description),
        ("source", family.source),
        ("GPUs", str(family.gpus)),
    ]
    rows = [[parameter.name, str(parameter.default), parameter.description] for parameter in family.parameters]
    parts: list[Part] = [Table(["parameter", ">default", "~what"], rows), Points(family.assumptions, "Assumed:")]
    return Answer(Report(facts, parts, data=data[0]))
