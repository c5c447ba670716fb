"""Small services in a file, with a deployment that serves them, for the tests of commands."""

import json
from pathlib import Path
from typing import Any

PROFILES = [
    {
        "model": "bert",
        "points": [
            {"size": 1, "batch": 4, "processes": 1, "throughput": 50.0, "latency": 0.08},
            {"size": 2, "batch": 8, "processes": 2, "throughput": 110.0, "latency": 0.07},
            {"size": 4, "batch": 8, "processes": 3, "throughput": 200.0, "latency": 0.04},
        ],
    },
    {
        "model": "gpt",
        "points": [
            {"size": 1, "batch": 1, "processes": 1, "throughput": 5.0, "latency": 0.2},
            {"size": 2, "batch": 2, "processes": 1, "throughput": 12.0, "latency": 0.15},
        ],
    },
]
CHAT = {"name": "chat", "model": "gpt", "slo": 0.5, "rate": 10.0}
SEARCH = {"name": "search", "model": "bert", "slo": 0.2, "rate": 90.0}
SERVICES = {"schema": "mig-opt/services/1", "gpu": "A30", "services": [CHAT, SEARCH], "profiles": PROFILES}


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
    segments = [
        {"service": "chat", "gpu": 1, "profile": "2g.12gb", "start": 0, "batch": 2, "processes": 1},
        {"service": "search", "gpu": 1, "profile": "1g.6gb", "start": 2, "batch": 4, "processes": 1},
        {"service": "search", "gpu": 1, "profile": "1g.6gb", "start": 3, "batch": 4, "processes": 1},
    ]
    content = {"schema": "mig-opt/deployment/1", "gpus": ["A30", "A30"], "segments": segments, **changes}
    return written(folder, name, content)
