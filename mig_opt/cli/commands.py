"""The commands by name: where each is, and under which heading the help lists it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

BATCHES = "Batches (tasks on GPUs)"
SERVICES = "Services (requests on the fewest GPUs)"
FLEETS = "Fleets (jobs that arrive over time)"
MORE = "Files, figures and catalogues"


class Command(NamedTuple):
    """Command: heading, and the module with its function, which is called like the command."""

    heading: str
    module: str


COMMANDS: Mapping[str, Command] = {
    "solve": Command(BATCHES, "batch.solve"),
    "validate": Command(BATCHES, "validate"),
    "bound": Command(BATCHES, "bound"),
    "explain": Command(BATCHES, "batch.explain"),
    "compare": Command(BATCHES, "batch.compare"),
    "prove": Command(BATCHES, "batch.prove"),
    "check": Command(BATCHES, "batch.check"),
    "plot": Command(BATCHES, "plot"),
    "script": Command(BATCHES, "script"),
    "profile": Command(BATCHES, "batch.profile"),
    "run": Command(BATCHES, "batch.run"),
    "deploy": Command(SERVICES, "serving.deploy"),
    "serve": Command(SERVICES, "serving.serve"),
    "services validate": Command(SERVICES, "validate"),
    "services bound": Command(SERVICES, "bound"),
    "services plot": Command(SERVICES, "plot"),
    "services script": Command(SERVICES, "script"),
    "simulate": Command(FLEETS, "fleet.simulate"),
    "defragment": Command(FLEETS, "fleet.defragment"),
    "trace families": Command(FLEETS, "fleet.trace_families"),
    "trace generate": Command(FLEETS, "fleet.trace_generate"),
    "trace import": Command(FLEETS, "fleet.trace_import"),
    "trace describe": Command(FLEETS, "fleet.trace_describe"),
    "state import": Command(FLEETS, "fleet.state_import"),
    "init": Command(MORE, "init"),
    "generate": Command(MORE, "batch.generate"),
    "export": Command(MORE, "batch.export"),
    "schema": Command(MORE, "schema"),
    "bench": Command(MORE, "bench"),
    "instances": Command(MORE, "instances"),
    "gpus": Command(MORE, "gpus"),
    "methods": Command(MORE, "methods"),
    "versions": Command(MORE, "versions"),
    "completion": Command(MORE, "completion"),
}
"""The commands, in the order in which the help lists them."""

GROUPS: Mapping[str, str] = {
    "services": "Check, bound, draw and carry out deployments.",
    "trace": "Make and describe traces: jobs that arrive over time.",
    "state": "Read the instances that there are.",
}
"""What the commands of a group do that begin with the same word."""


def heading(word: str) -> str:
    """Return the heading under which the help lists the commands that begin with a word."""
    return next(command.heading for name, command in COMMANDS.items() if name.split()[0] == word)
