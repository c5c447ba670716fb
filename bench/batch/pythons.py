"""The library of instances under one Python and one numpy: whether specs draw the same, and every entry is right.

Run: python -m bench.batch.pythons, in each environment that is to be tried; rows of the others stay. It takes about ten
seconds; with --cut one. To try another numpy: pip install --only-binary :all: --target older numpy==1.26.0, and
PYTHONPATH=older before the command.
"""

import platform
from collections.abc import Sequence
from datetime import date

import numpy as np

from bench.report import Page, parser_of, start
from mig_opt.instances.bundled import library
from mig_opt.instances.goals import content_digest
from mig_opt.instances.library import problems_of

HEAD = ("Python", "numpy", "system", "day", "specs that draw the same", "entries that are right")


def measured(*, cut: bool) -> tuple[list[str], list[str]]:
    """Return the row of this Python, and all that is wrong."""
    known = library()
    infos = list(known.infos.values())[:: 20 if cut else 1]
    drawn = [info for info in infos if info.spec is not None]
    same = sum(content_digest(info.kind, known.load(info.name), info.question) == info.sha256 for info in drawn)
    problems = {info.name: list(problems_of(known, info)) for info in infos}
    right = sum(not found for found in problems.values())
    system = f"{platform.system()} {platform.machine()}"
    row = [platform.python_version(), np.__version__, system, date.today().isoformat()]
    row += [f"{same} of {len(drawn)}", f"{right} of {len(infos)}"]
    return row, [f"{name}: {problem}" for name, found in problems.items() for problem in found]


@start
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return 1 if something is wrong."""
    options = parser_of(__doc__, "pythons.md", "every twentieth entry, in a second").parse_args(arguments)
    title = "The library of instances under several Pythons and numpys"
    page = Page("pythons", title, "mig-opt", folder=options.results)
    page.add("""Each row is a run in an environment of its own. Specs are drawn anew, and have the SHA-256 of the index;
        entries are right if digests, plans, values, bounds and certificates are, as in `mig-opt instances verify`.""")
    row, wrong = measured(cut=options.cut)
    rows = {key: cells for key, cells in page.earlier_rows(2).items() if key[0][:1].isdigit()} | {tuple(row[:2]): row}
    order = sorted(rows, key=lambda key: [[int(part) for part in own.split(".") if part.isdigit()] for own in key])
    page.table(HEAD, (rows[key] for key in order), range(4))
    failed = page.wrong(wrong)
    page.save()
    return int(failed)
