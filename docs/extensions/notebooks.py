"""Executes the notebooks, and stores what they show without when and where: ``python docs/extensions/notebooks.py``."""

import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "notebooks"


def execute(path: Path, target: Path) -> None:
    """Execute a notebook in the folder of ``target``, and store it there with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    patience = {"timeout": 300, "startup_timeout": 300}  # seconds for a cell, and for the first, on a busy machine
    NotebookClient(notebook, record_timing=False, resources={"metadata": {"path": target.parent}}, **patience).execute()
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, target)


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(FOLDER.glob("*.ipynb")):
        execute(Path(name), Path(name).resolve())
