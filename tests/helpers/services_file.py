"""Small services in a file, with a deployment that serves them, for the tests of commands."""

import json
from pathlib import Path
from typing import Any

from freeze import HERE

SERVICES, FLEET = (json.loads((HERE / "inputs" / name).read_text()) for name in ("services.json", "fleet.json"))
PROFILES = SERVICES["profiles"]
CHAT, SEARCH = SERVICES["services"]


def written(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.write_text(json.dumps(content))
    return path


def services(folder: Path, name: str = "services.json", **changes: Any) -> Path:
    """A file with these services; changes replace its keys, None removes one."""
    content = {key: value for key, value in {**SERVICES, **changes}.items() if value is not None}
    return written(folder, name, content)


def fleet(folder: Path, name: str = "fleet.json", **changes: Any) -> Path:
    """A file with a deployment that serves them, on GPU 1 of two: chat on 2g at 0, search on 1g at 2 and 3."""
    return written(folder, name, {**FLEET, **changes})
