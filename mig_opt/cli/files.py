"""The commands init and schema: files to begin with, and the form of files."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated

from mig_opt.cli import completion, options
from mig_opt.cli.answers import File, Product
from mig_opt.cli.checks import refuse
from mig_opt.cli.inputs import STANDARD_INPUT
from mig_opt.files import KINDS

_TEMPLATES = "batch, services, profiles, deployment, rates, requests, commands, trace, state or study."
_KINDS = f"{', '.join(list(KINDS)[:-1])} or {list(KINDS)[-1]}."


def init(
    kind: Annotated[str, options.argument("KIND", _TEMPLATES, completion.template_kinds)],
    file: Annotated[
        str | None,
        options.argument("FILE", "Where to write it, - for standard output.  [default: KIND.json, .csv or .toml]"),
    ] = None,
    *,
    force: Annotated[bool, "Replace a file that exists."] = False,
) -> Product:
    """Write an example of a kind of file, with comments.

    The end of FILE chooses the format: batch, services and trace are there as .json and as .csv.

    Examples
    --------
    mig-opt init batch
    mig-opt init services my-services.json
    mig-opt init rates -
    """
    from mig_opt.files.documents import check_writable
    from mig_opt.files.templates import TEMPLATES, template

    path = Path(f"{kind}.{TEMPLATES[kind][0]}" if kind in TEMPLATES and file is None else file or "")
    text = template(kind, "" if file is None or file == STANDARD_INPUT else path.suffix[1:].lower())
    if file == STANDARD_INPUT:
        return Product(text=text)
    if not force and path.exists():
        refuse("", "exists already; name another file, or replace it with --force", path)
    check_writable(path)
    # The commands in the comments name the file as it is called.
    form = path.suffix[1:].lower() or TEMPLATES[kind][0]
    text = re.sub(rf"(?<= ){kind}\.{form}\b", lambda _: shlex.quote(str(path)), text)
    return Product(files=[File(kind, path, text)])


def schema(kind: Annotated[str, options.argument("KIND", _KINDS, completion.file_kinds)]) -> Product:
    """Print the JSON Schema of a kind of file.

    Examples
    --------
    mig-opt schema batch
    """
    import json

    from mig_opt.files.schema import schema as schema_of

    return Product(text=json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n")
