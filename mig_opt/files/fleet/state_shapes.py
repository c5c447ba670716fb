"""The shape of the files of fleet states: their keys, their types, and what their JSON Schema says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mig_opt.arguments import MOST_GPUS
from mig_opt.fleet.state import HeldInstance


@dataclass(frozen=True, slots=True)
class StateFile:
    """Identical MIG GPUs and the instances on them at one moment."""

    schema: Literal["mig-opt/state/1"]
    gpu: str
    instances: tuple[HeldInstance, ...]
    gpus: int = 1


STATE_KEYWORDS: dict[type, dict[str, dict[str, Any]]] = {
    StateFile: {
        "schema": {"description": "Name and version of the format.", "examples": ["mig-opt/state/1"]},
        "gpu": {"description": "Name of the GPU in the catalogue, or a short alias.", "examples": ["A100-40GB", "A30"]},
        "instances": {
            "description": "What something runs on; instances without work are left out.",
            "examples": [[{"gpu": 0, "profile": "1g.5gb", "start": 2, "name": "chat"}]],
        },
        "gpus": {"description": "How many GPUs there are.", "minimum": 1, "maximum": MOST_GPUS},
    },
    HeldInstance: {
        "gpu": {"description": "Index of the GPU, from 0.", "minimum": 0, "examples": [0]},
        "profile": {"description": "Profile name of the instance.", "examples": ["1g.5gb"]},
        "start": {"description": "First memory slice of the instance.", "minimum": 0, "examples": [2]},
        "name": {"description": "Of what runs on it, for display."},
        "pinned": {"description": "Whether it must stay where it is."},
    },
}
"""For each kind of object and each of its keys: keywords of JSON Schema beside those that follow from the type."""
