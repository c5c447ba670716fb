"""The command schema."""

from __future__ import annotations

from typing import Annotated, cast

from mig_opt.cli import completion, options
from mig_opt.cli.answers import Product

_KINDS = (
    "batch, schedule, result, certificate, study, services, profiles, deployment, deployment-result, trace, state, "
    "costs or commands."
)


def schema(kind: Annotated[str, options.needed("KIND", _KINDS, completion.file_kinds)]) -> Product:
    """Print the JSON Schema of a kind of file.

    Examples
    --------
    mig-opt schema batch
    """
    import json

    from mig_opt.files import Kind
    from mig_opt.files.schema import schema as schema_of

    return Product(text=json.dumps(schema_of(cast(Kind, kind)), indent=2, ensure_ascii=False) + "\n")
