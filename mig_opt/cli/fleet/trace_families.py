"""The command trace families."""

from __future__ import annotations

import dataclasses

from mig_opt.cli import options
from mig_opt.cli.answers import Answer
from mig_opt.cli.checks import options_named
from mig_opt.method.report import Part, Points, Report, Table


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
    documents = [
        {
            "name": family.name,
            "description": family.description,
            "source": family.source,
            "gpus": family.gpus,
            "parameters": list(map(dataclasses.asdict, family.parameters)),
            "assumptions": list(family.assumptions),
        }
        for family in found
    ]
    if name is None:
        table = Table(["family", ">GPUs", "~what"], [[f.name, str(f.gpus), f.description] for f in found])
        return Answer(Report(parts=[table], data={"families": documents}))
    (family,) = found
    facts = [
        ("family", family.name),
        ("what", family.description),
        ("source", family.source),
        ("GPUs", str(family.gpus)),
    ]
    rows = [[parameter.name, str(parameter.default), parameter.description] for parameter in family.parameters]
    parts: list[Part] = [Table(["parameter", ">default", "~what"], rows), Points(family.assumptions, "Assumed:")]
    return Answer(Report(facts, parts, data=documents[0]))
