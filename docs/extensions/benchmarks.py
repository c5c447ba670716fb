"""Pages of the results of benchmarks, and an overview with the machine, the versions and the date of each."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "bench" / "results"
FOLDER = "benchmarks"


def page_name(path: Path) -> str:
    """Return the name of the page of a file of ``bench``."""
    return "commands" if path.name == "README.md" else path.stem


def write_pages(source: Path) -> None:
    """Write a page for each table of results, and one of the commands that make them."""
    import generated  # which imports this module

    folder = source / FOLDER
    folder.mkdir(exist_ok=True)
    files = [REPOSITORY / "bench" / "README.md", *sorted(RESULTS.glob("*.md"))]
    for file in files:
        page = folder / f"{page_name(file)}.md"
        text = generated.with_links(
            file.read_text(encoding="utf-8"), file.parent.relative_to(REPOSITORY), Path("docs", FOLDER, page.name)
        )
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
    for page in set(folder.glob("*.md")) - {folder / f"{page_name(file)}.md" for file in files}:
        page.unlink()


def overview() -> str:
    """Return a table of all results: title, command, and the machine, versions and date that the file states."""
    rows = ["| results | measured |", "|---|---|"]
    names = []
    for file in sorted(RESULTS.glob("*.md")):
        text = file.read_text(encoding="utf-8")
        title = re.search(r"^# (.*)$", text, re.MULTILINE)
        assert title, file
        rows.append(f"| [{title[1]}](../{FOLDER}/{file.stem}.md) | {measured(text)} |")
        names.append(f"../{FOLDER}/{file.stem}")
    tree = "\n".join(["```{toctree}", ":hidden:", "", f"../{FOLDER}/commands", *names, "```"])
    return "\n".join(rows) + "\n\n" + tree


def measured(text: str) -> str:
    """Return the line of a file of results that states date, machine and versions, or the tables that it is made of."""
    line = re.search(r"^(20\d\d-\d\d-\d\d, .*)$", text, re.MULTILINE)
    others = dict.fromkeys(re.findall(r"\]\((\w+\.md)\)", text))
    links = ", ".join(f"[{name.removesuffix('.md')}](../{FOLDER}/{name})" for name in others)
    return line[1] if line else f"made of {links}" if links else "not stated"
