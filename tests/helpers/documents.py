"""A document of each kind of file, with its reader, and what is wrong with a document."""

import json
from pathlib import Path
from typing import Any
from unittest import mock

import jsonschema
import pytest
import wrong
from hypothesis import strategies as st

from mig_opt import InputError, schema
from mig_opt.files import KINDS
from mig_opt.gpu.model import KNOWN
from mig_opt.method.functions import imported
from mig_opt.studies import study_from_json

DELETE = wrong.DELETE
FOLDER = Path(__file__).parents[1] / "files" / "release_1_0"
DOCUMENTS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))
}
"""Files of the first release, with every key that it knew, and of kinds that came later."""
DOCUMENTS["gpu"] = json.loads((FOLDER.parents[1] / "golden" / "inputs" / "own-gpu.json").read_text(encoding="utf-8"))
for _key in ("batches", "methods"):
    del DOCUMENTS["study"][_key][2:]  # the others take time, or name a file beside it
BATCH, SCHEDULE, RESULT, COSTS = (DOCUMENTS[kind] for kind in ("batch", "schedule", "result", "costs"))
SERVICES, PROFILES, DEPLOYMENT = (DOCUMENTS[kind] for kind in ("services", "profiles", "deployment"))
DEPLOYMENT_RESULT, TRACE, STATE = (DOCUMENTS[kind] for kind in ("deployment-result", "trace", "state"))
POINT = PROFILES["profiles"][0]["points"][0]
READERS = {name: imported(kind.place).from_json for name, kind in KINDS.items()} | {"study": study_from_json}


def _read_gpu(document: Any) -> Any:
    with mock.patch.dict(KNOWN):  # other documents may say something else under the name
        return imported(KINDS["gpu"].place).from_json(document)


READERS["gpu"] = _read_gpu


def changed(document: dict[str, Any], *changes: tuple[str, Any]) -> dict[str, Any]:
    """Return a copy with the values at some paths (``tasks/0/name``) replaced or deleted."""
    return wrong.replaced(document, dict(changes))


def complaints(read: Any, *args: Any, **kwargs: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(*args, **kwargs)
    return [str(problem) for problem in caught.value.problems]


def refused(call: Any, *args: Any, match: str | None = None, **kwargs: Any) -> list[str]:
    """Return the paths of all that a call refuses; its message may have to match a pattern."""
    with pytest.raises(InputError, match=match) as caught:
        call(*args, **kwargs)
    return [problem.path for problem in caught.value.problems]


_DRAFT = jsonschema.Draft202012Validator
_VALIDATOR = jsonschema.validators.extend(  # to JSON Schema 1.0 is an integer, to our files it is not
    _DRAFT, type_checker=_DRAFT.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
)


def flaws(schema: dict[str, Any], value: Any) -> list[str]:
    """Check a value by a JSON Schema."""
    return [f"{flaw.json_path}: {flaw.message}" for flaw in _VALIDATOR(schema).iter_errors(value)]


def round_trip(kind: Any, value: Any) -> str:
    """Write a value as a file of a kind, which reads and describes it, and return the text."""
    text: str = kind.to_json(value)
    assert kind.from_json(text) == value == kind.from_json(json.loads(text))
    assert flaws(schema(kind.name), json.loads(text)) == []
    return text


def text_file(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


seconds = st.floats(min_value=1e-9, max_value=1e12)
