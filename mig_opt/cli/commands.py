"""The commands by name: where each is, and under which heading the help lists it."""

from __future__ import annotations

from collections.abc import Mapping

HEADINGS: Mapping[str, Mapping[str, str]] = {
    "Batches (tasks on GPUs)": {
        "solve": "batch.solve",
        "validate": "plans",
        "bound": "plans",
        "explain": "batch.explain",
        "compare": "batch.compare",
        "prove": "batch.proofs",
        "check": "batch.proofs",
        "plot": "plans",
        "script": "plans",
        "profile": "batch.profile",
        "run": "batch.run",
    },
    "Services (requests on the fewest GPUs)": {
        "deploy": "serving.deploy",
        "serve": "serving.serve",
        "services import": "profiles",
        "services validate": "plans",
        "services bound": "plans",
        "services plot": "plans",
        "services script": "plans",
        "services export": "serving.export",
    },
    "Fleets (jobs that arrive over time)": {
        "simulate": "fleet.simulate",
        "defragment": "fleet.defragment",
        "trace families": "fleet.traces",
        "trace generate": "fleet.traces",
        "trace import": "fleet.traces",
        "trace describe": "fleet.traces",
        "state import": "fleet.state_import",
    },
    "Files, figures and catalogues": {
        "init": "files",
        "generate": "batch.files",
        "export": "batch.files",
        "schema": "files",
        "bench": "bench",
        "instances": "library",
        "instances verify": "library",
        "instances submit": "library",
        "instances export": "library",
        "instances renew": "library",
        "score": "score",
        "gpus": "catalogues",
        "gpus import": "gpus",
        "methods": "catalogues",
        "versions": "catalogues",
        "completion": "completion",
    },
}
"""Under each heading the commands in the order of the help, each with the module of its function, named like it."""

COMMANDS: Mapping[str, str] = {name: module for commands in HEADINGS.values() for name, module in commands.items()}

GROUPS: Mapping[str, str] = {
    "services": "Read profiles; check, bound, draw, carry out deployments.",
    "trace": "Make and describe traces: jobs that arrive over time.",
    "state": "Read the instances that there are.",
}
"""Help of the groups of commands that begin with the same word."""


def heading(word: str) -> str:
    """Return the heading under which the help lists the commands that begin with a word."""
    first = word.split(maxsplit=1)[0]
    return next(title for title, names in HEADINGS.items() if any(name.split()[0] == first for name in names))
