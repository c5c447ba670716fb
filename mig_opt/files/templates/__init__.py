"""Files to begin with: an example of each kind, with comments."""

from __future__ import annotations

from importlib import resources

from mig_opt.errors import InputError, Problem, nearest

TEMPLATES = {
    "batch": ("json", "csv"),
    "services": ("json", "csv"),
    "profiles": ("json",),
    "deployment": ("json",),
    "rates": ("csv",),
    "requests": ("csv",),
    "commands": ("json",),
    "trace": ("json", "csv"),
    "state": ("json",),
    "study": ("toml",),
}
"""The kinds of files, each with the formats that there are of it; the first is the usual one."""


def template(kind: str, form: str = "") -> str:
    """Return an example of a kind of file, one of :data:`TEMPLATES`, with comments that say what everything means.

    The form is ``json``, ``csv`` or ``toml``; by default it is the usual one of the kind.

    Raises
    ------
    InputError
        If there is no such kind, or none in this format.

    Examples
    --------
    >>> print(template("requests").splitlines()[-1])
    0.5,chat
    """
    if kind not in TEMPLATES:
        raise InputError([Problem("kind", f"there is no example of the kind {kind!r}; {nearest(kind, TEMPLATES)}")])
    forms = TEMPLATES[kind]
    if form and form not in forms:
        known = " or ".join(f".{name}" for name in forms)
        raise InputError([Problem("file", f"an example of {kind} ends in {known}, not in .{form}")])
    name = f"{kind}.{form or forms[0]}"
    return resources.files("mig_opt.files.templates").joinpath(name).read_text(encoding="utf-8")
