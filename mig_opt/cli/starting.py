"""The command init: files to begin with."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from mig_opt.cli import completing
from mig_opt.cli.inputs import STANDARD_INPUT
from mig_opt.cli.outcome import Checks, options_named, print_text, refuse
from mig_opt.cli.screens import show_written


def init(
    kind: Annotated[
        str,
        Argument(
            metavar="KIND",
            help="batch, services, profiles, deployment, rates, requests, commands, trace, state or study.",
            show_default=False,
            autocompletion=completing.template_kinds,
        ),
    ],
    file: Annotated[
        str | None,
        Argument(metavar="FILE", help="Where to write it, - for standard output.  [default: KIND.json, .csv or .toml]"),
    ] = None,
    *,
    force: Annotated[bool, Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Write an example of a kind of file, with comments.

    The end of FILE chooses the format: batch, services and trace are there as .json and as .csv.
    """
    from mig_opt.files.documents import check_writable, write_text
    from mig_opt.files.templates import TEMPLATES, template

    checks = Checks()
    path = Path(f"{kind}.{TEMPLATES[kind][0]}" if kind in TEMPLATES and file is None else file or "")
    text = ""
    with checks.step(), options_named({"kind": "KIND", "file": "FILE"}):
        text = template(kind, "" if file is None or file == STANDARD_INPUT else path.suffix[1:].lower())
        if file != STANDARD_INPUT:
            if not force and path.exists():
                refuse("", "exists already; name another file, or replace it with --force", path)
            check_writable(path)
    checks.finish()
    if file == STANDARD_INPUT:
        print_text(text)
        return
    # The commands in the comments name the file as it is called.
    text = re.sub(rf"(?<= ){kind}{path.suffix}\b", lambda _: shlex.quote(str(path)), text)
    write_text(path, text)
    show_written(kind.capitalize(), path)
