"""The command completion, and what shells may complete in a command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context

from mig_opt.cli.answers import Product
from mig_opt.cli.checks import refuse
from mig_opt.method.functions import imported

if TYPE_CHECKING:
    from mig_opt.instances.bundled import InstanceKind

PROGRAM = "mig-opt"
VARIABLE = "_MIG_OPT_COMPLETE"
"""Set by the shell when it asks what can follow."""

_SHELLS = ("bash", "zsh", "fish")


def completion(
    shell: Annotated[str, Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)],
) -> Product:
    """Print a script that completes commands, options and names.

    Write it to where the shell looks for such files, as in the examples, or evaluate it when the shell starts: in
    ~/.bashrc or ~/.zshrc the line: source <(mig-opt completion bash)

    Examples
    --------
    mig-opt completion bash > ~/.local/share/bash-completion/completions/mig-opt
    mig-opt completion zsh > ~/.zfunc/_mig-opt
    mig-opt completion fish > ~/.config/fish/completions/mig-opt.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # imported there

    if shell not in _SHELLS:
        refuse("SHELL", f"there is no completion for {shell!r}, but for {', '.join(_SHELLS)}")
    return Product(text=get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell) + "\n")


def asked_of(environment: Mapping[str, str]) -> str | None:
    """Return the first word of the command line that a shell wants to complete; None if it wants nothing.

    Empty while that word itself is typed.
    """
    if not environment.get(VARIABLE):
        return None
    import shlex

    text = environment.get("COMP_WORDS", environment.get("_TYPER_COMPLETE_ARGS", ""))
    try:
        words = shlex.split(text)
    except ValueError:  # a quote that is still open
        words = text.split()
    typing_it = len(words) == 1 or (len(words) == 2 and not text.endswith((" ", "\n")))
    typing_it = int(environment["COMP_CWORD"]) == 1 if "COMP_CWORD" in environment else typing_it
    return "" if typing_it or len(words) < 2 else words[1]


# Values: what can stand for an argument or an option that begins as given.


def gpus(incomplete: str) -> list[str]:
    """Return names and aliases of GPUs."""
    from mig_opt.gpu.catalogue import catalogue

    return _beginning(incomplete, [name for model in catalogue() for name in (*model.aliases, model.name)])


def _instances_and_files(kind: InstanceKind) -> Callable[[str], list[str]]:
    """Return what completes bundled instances of a kind, and files that may hold one."""

    def complete(incomplete: str) -> list[str]:
        from mig_opt.instances.bundled import instance_names

        return [*_beginning(incomplete, instance_names(kind, drawn=True)), *_files(incomplete)]

    return complete


batches, demands = _instances_and_files("batch"), _instances_and_files("demand")
traces, states = _instances_and_files("trace"), _instances_and_files("state")


def methods_of_command(ctx: Context, incomplete: str) -> list[str]:
    """Return the methods for the command that is typed."""
    from mig_opt.method.registry import DEPLOY_METHODS, METHODS

    registry = DEPLOY_METHODS if ctx.info_name == "deploy" else METHODS
    return _beginning(incomplete, [method.name for method in registry.entries])


def policies(incomplete: str) -> list[str]:
    """Return policies, behind those of the list that have a comma behind them."""
    from mig_opt.method.registry import POLICIES

    head, comma, last = incomplete.rpartition(",")
    return [f"{head}{comma}{name}" for name in _beginning(last, [policy.name for policy in POLICIES.entries])]


def _names_in(place: str) -> Callable[[str], list[str]]:
    """Return what completes the names in a table of the package."""
    return lambda incomplete: _beginning(incomplete, imported(place))


template_kinds, file_kinds = _names_in("mig_opt.files.templates:TEMPLATES"), _names_in("mig_opt.files:KINDS")


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _files(incomplete: str) -> list[str]:
    """Return the folders, JSON and CSV files that begin as given; a shell of its own would leave out the names."""
    folder = Path(incomplete if incomplete.endswith("/") else Path(incomplete).parent)
    prefix = incomplete[: incomplete.rfind("/") + 1]
    try:
        found = sorted(folder.expanduser().iterdir())
    except OSError:
        return []
    names = [f"{prefix}{path.name}{'/' if path.is_dir() else ''}" for path in found if not path.name.startswith(".")]
    return [name for name in _beginning(incomplete, names) if name.endswith(("/", ".json", ".csv"))]
