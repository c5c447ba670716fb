"""The command versions."""

from __future__ import annotations

from mig_opt.cli.answers import Answer
from mig_opt.method.report import Report
from mig_opt.method.result import versions_with

_PACKAGES = (
    *("ortools", "pulp", "highspy", "networkx", "numpy", "pydantic", "typer", "rich"),
    *("matplotlib", "bokeh", "dask"),
)


def versions() -> Answer:
    """Show the versions of mig-opt and of what it runs on.

    Examples
    --------
    mig-opt versions --json
    """
    installed = versions_with(_PACKAGES)
    found = {package: installed.get(package) for package in ("mig-opt", "python", *_PACKAGES)}
    return Answer(Report([(package, version or "not installed") for package, version in found.items()], data=found))
