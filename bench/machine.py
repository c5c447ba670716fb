"""What a study was measured on."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from mig_opt.studies.environment import environment

RESULTS = Path(__file__).parent / "results"


def describe(*packages: str) -> str:
    """Return a line with the date, the machine and the versions of some packages, those that are installed."""
    here = environment(packages)
    installed = ", ".join(f"{package} {version}" for package, version in here["packages"].items())
    return (
        f"{date.today().isoformat()}, {here['system']}, {here['processor']}, {here['cores']} cores, "
        f"Python {here['python']}, {installed}"
    )


def save(name: str, text: str, folder: Path = RESULTS) -> None:
    """Write the result of a study beside the others and show it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
