"""One fleet in each form of two versions, and what is said of texts that cannot be read."""

import json
from pathlib import Path
from typing import Any

import documents

from mig_opt import FleetState
from mig_opt.operations.observe.sightings import Source
from mig_opt.operations.observe.state_import import Format, StateImport, import_state

FORMS = Path(__file__).parents[1] / "operations" / "observe" / "forms"
FILES = sorted(FORMS.iterdir())
TEXTS = {file.name: file.read_text() for file in FILES}
LGI = "| GPU instances:                                         |"


def state_from_text(text: str, form: Format | None = None, **options: Any) -> StateImport:
    return import_state(Source(text), format=form, **options)


def places(state: FleetState, *, idle: bool | None = None) -> list[tuple[int, str, int]]:
    """Places of the instances of a state: of all of them, or of those that are idle, or not."""
    return [(held.gpu, held.profile, held.start) for held in state.instances if idle in (None, held.idle)]


def complaints(text: str, form: Format | None = None, **options: Any) -> list[str]:
    return documents.complaints(state_from_text, text, form, **options)


def node(name: str, product: str, gpus: int, *labels: str, capacity: str = "", **counts: int) -> dict[str, Any]:
    """A node with labels like ``mig.strategy=mixed``, instances by profile, and what it hands out."""
    texts = [f"gpu.product={product}", f"gpu.count={gpus}", *labels]
    texts += [f"mig-{profile}.count={number}" for profile, number in counts.items()]
    given = [dict(entry.split("=") for entry in entries) for entries in (texts, capacity.split())]
    keyed = [{f"nvidia.com/{key}": value for key, value in entries.items()} for entries in given]
    status = {"status": {"capacity": {"cpu": "8", **keyed[1]}}} if capacity else {}
    return {"kind": "Node", "metadata": {"name": name, "labels": keyed[0]}, **status}


def cluster(*objects: dict[str, Any]) -> str:
    return json.dumps({"kind": "List", "items": objects})
