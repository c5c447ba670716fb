"""The command trace generate."""

from __future__ import annotations

import re
from typing import Annotated

from mig_opt.cli import options
from mig_opt.cli.answers import Call, Product, made
from mig_opt.cli.checks import options_named
from mig_opt.errors import InputError, Problem
from mig_opt.texts import number_in


def trace_generate(
    call: Call,
    family: Annotated[str, options.needed("FAMILY", "One of: mig-opt trace families.")],
    *,
    jobs: Annotated[int | None, "N", "-n", "Number of jobs; short for --set jobs=N."] = None,
    gpu: Annotated[str, "GPU", "One of: mig-opt gpus."] = "A100",
    gpus: Annotated[int | None, "N", "How many; default: those of the family."] = None,
    seed: options.Seed = 0,
    settings: Annotated[
        list[str] | None, "NAME=VALUE", "--set", "Change a parameter of the family; may be repeated."
    ] = None,
    output: options.TraceOutput = None,
) -> Product:
    """Make a trace after the workload of a paper.

    Examples
    --------
    mig-opt trace generate pcie-4 --set pcie_share=0.4 --seed 7 -o trace.json
    """
    from mig_opt.files.fleet.traces import trace_to_json
    from mig_opt.instances.fleet.registry import generate_trace

    values: dict[str, float | int | str] = {}
    call.attempt(_read_settings, family, settings or [], jobs, values)
    names = {name: f"--set {name}" for name in values}
    with call.step(), options_named(names if jobs is None else names | {"jobs": "-n"}):
        trace = generate_trace(family, gpu=gpu, gpus=gpus, seed=seed, **values)
    call.begin(trace=output)
    return made("trace", trace, output, trace_to_json)


def _read_settings(family: str, settings: list[str], jobs: int | None, values: dict[str, float | int | str]) -> None:
    """Put the parameters that ``NAME=VALUE`` and ``-n`` stand for into ``values``, those that can be read."""
    from mig_opt.instances.fleet.registry import trace_families

    texts = {
        parameter.name
        for known in trace_families()
        for parameter in known.parameters
        if known.name == family and parameter.kind == "text"
    }
    problems = []
    if jobs is not None:
        values["jobs"] = jobs
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not re.fullmatch(r"[a-z_0-9]+", name):
            problems.append(Problem("--set", f"must be NAME=VALUE, like jobs=50, is {setting!r:.60}"))
        elif name in values:
            also = " (by -n, too)" if name == "jobs" and jobs is not None else ""
            problems.append(Problem("--set", f"{name} is set more than once{also}; keep one"))
        elif name in ("family", "gpu", "gpus", "seed"):
            problems.append(Problem("--set", f"{name} is no parameter of a family; use its own argument or option"))
        else:
            values[name] = value if name in texts else number_in(value.strip())
    if problems:
        raise InputError(problems)
