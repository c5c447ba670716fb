"""The common parts of the scripts that carry plans out: the head, the functions, and words that are never executed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources

from mig_opt._version import __version__
from mig_opt.errors import Problem
from mig_opt.gpu.model import Placement
from mig_opt.operations.rollout.layouts import Address
from mig_opt.serving.deployment import Segment
from mig_opt.texts import printable


def shell_word(text: str) -> str:
    r"""Return ``text`` as one word on one line, which bash takes for exactly that text.

    Examples
    --------
    >>> print(shell_word("it's $HOME"), shell_word("two\nlines"))
    'it'"'"'s $HOME' $'two\x0alines'
    """
    if text.isprintable():
        return shlex.quote(text)
    text = re.sub(r"[\\']", r"\\\g<0>", text)
    # Hexadecimal escapes have at most two digits: what follows is not taken for a part of them.
    parts = (one if one.isprintable() else "".join(f"\\x{byte:02x}" for byte in one.encode()) for one in text)
    return f"$'{''.join(parts)}'"


def name_problems(paths: Iterable[tuple[str, str]]) -> Iterator[Problem]:
    """Yield a problem for each name (with its path) that cannot be an argument of a program."""
    for path, name in paths:
        if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in name):
            message = "has a character that no program can be given (NUL, or half of a surrogate pair); take it out"
            yield Problem(path, message)


def comment(text: str) -> str:
    """Return ``text`` as a line of comment, whatever is in it."""
    return f"# {printable(text)}".rstrip()


def place(placement: Placement) -> str:
    """Return the word for a placement in the scripts: its profile's number and its start slice."""
    return f"{placement.profile.id}:{placement.start}"


def check_words(
    gpu: int, *, must: Iterable[Placement] = (), may: Iterable[Placement] = (), wanted: Iterable[Placement]
) -> str:
    """Return the words about a GPU for a function that checks it before anything is changed."""
    possible = [f"{place(placement)}:{placement.profile.memory_slices}" for placement in wanted]
    lists = (map(place, must), map(place, may), possible)
    return " ".join([str(gpu), *(f"'{' '.join(dict.fromkeys(words))}'" for words in lists)])


def batch_and_processes(segment: Segment) -> str:
    """Return the batch size and the number of processes of a segment in words."""
    processes = f", {segment.processes} processes" if segment.processes > 1 else ""
    return f"batch size {segment.batch}{processes}"


def check_mps_lines(segments: Iterable[Segment]) -> list[str]:
    """Return the calls that look for the Multi-Process Service on GPUs with segments of several processes."""
    gpus = sorted({segment.gpu for segment in segments if segment.processes > 1})
    return [f"check_mps {gpu}" for gpu in gpus]


def required(*hooks: str) -> list[str]:
    """Return the lines that end a script unless the file of the user has defined these functions."""
    return [
        f"if ! {{ {' && '.join(f'defined {hook}' for hook in hooks)}; }}; then",
        f'  say "usage: bash $0 HOOKS, a file that defines {" and ".join(hooks)}"',
        "  exit 2",
        "fi",
    ]


def segment_words(segment: Segment) -> str:
    """Return the words about a segment that functions of the scripts get, beside its GPU and its place."""
    return f"{segment.profile} {segment.batch} {segment.processes} {shell_word(segment.service)}"


_HOST = "MIG_OPT_HOST is the machine of the GPU, empty for this one: hooks run here and start processes there."
_HOOKS = """\
# A hook cannot take the place of one of these functions by chance.
mapfile -t own < <(compgen -A function)
readonly -f "${own[@]}"
if (($#)); then
  if [[ $1 != */* ]]; then set -- "./$1"; fi
  # shellcheck source=/dev/null
  source "$1"
fi
"""


def functions_of(*parts: str) -> list[str]:
    """Return the texts of files with functions of bash."""
    package = resources.files("mig_opt.operations.rollout")
    return [package.joinpath(part).read_text(encoding="utf-8") for part in parts]


def remarks(*lines: str) -> list[str]:
    """Return the comments that a file begins with: its title, and its usage after an empty line."""
    at = lines.index("")
    return [*map(comment, [*lines[:at], f"Written by mig-opt {__version__}.", *lines[at:]])]


def head(*lines: str) -> list[str]:
    """Return the first lines of a script: its title, and its usage after an empty line."""
    return ["#!/usr/bin/env bash", *remarks(*lines), "", "set -euo pipefail", ""]


def script(
    title: str,
    usage: Sequence[str],
    places: Sequence[Address],
    parts: Sequence[str],
    body: Iterable[str],
    *,
    hooks: bool = True,
) -> str:
    """Return a script: its title, usage and GPUs, the functions in the files ``parts``, and its own lines.

    Its argument is a file with ``hooks``, unless it says itself what it takes.
    """
    lines = [
        *head(title, "", *usage, *([_HOST] if hooks else [])),
        "# What nvidia-smi -i takes for each GPU of the plan, after HOST/ if ssh has to be used to get there.",
        f"GPUS=({' '.join(shlex.quote(str(address)) for address in places)})",
        "# What messages call each of them.",
        f"NAMES=({' '.join(shell_word(address.name) for address in places)})",
        "# Set NVIDIA_SMI='sudo nvidia-smi' if that is what it takes to create instances.",
        'read -ra SMI <<<"${NVIDIA_SMI:-nvidia-smi}"',
        "",
        *functions_of(*parts),
        *([_HOOKS] if hooks else []),
        *body,
    ]
    return "\n".join(lines) + "\n"
