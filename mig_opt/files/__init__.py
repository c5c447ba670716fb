"""The kinds of files, and those of other programs: what :func:`mig_opt.read` and :func:`mig_opt.write` call.

This is the edge of the package: nothing else parses, and only here pydantic is used. Whatever is wrong with an input
raises one :class:`~mig_opt.errors.InputError` that lists *all* its problems, each with its path
(``tasks[3].times.2: must be a finite number of seconds > 0, is -1.0``). Files are UTF-8 and carry the name of their
format, such as ``mig-opt/batch/1``; :func:`mig_opt.schema` describes each of them in full. All times are seconds, all
memory is in GB, sizes are numbers of compute slices.
"""

from typing import Literal, get_args

Kind = Literal[
    "batch",
    "schedule",
    "result",
    "certificate",
    "commands",
    "study",
    "services",
    "profiles",
    "deployment",
    "deployment-result",
    "trace",
    "state",
    "costs",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The names of the kinds; :data:`mig_opt.files.schema.FILES` has the kinds themselves."""
