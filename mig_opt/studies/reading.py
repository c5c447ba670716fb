"""Studies from files."""

from __future__ import annotations

from pathlib import Path

from mig_opt.files.documents import Document
from mig_opt.files.studies import study_document
from mig_opt.files.studies import study_from_json as from_json
from mig_opt.studies.checking import part_problems
from mig_opt.study import Study


def read_study(path: str | Path) -> Study:
    """Read a study from a JSON file, or from a TOML file if its name ends in ``.toml``.

    Raises
    ------
    InputError
        With every problem of the file, and of the files that it names.
    """
    return study_from_json(study_document(path), folder=Path(path).parent, source=str(path))


def study_from_json(document: Document, *, folder: str | Path = ".", source: str = "") -> Study:
    """Return the study that a JSON document describes.

    Parameters
    ----------
    document : str, bytes or mapping
        JSON text, or the object that it stands for.
    folder : str or Path
        Where relative paths of files begin.
    source : str
        Where the document is from, for messages.

    Raises
    ------
    InputError
        With every problem of the document, and of the files that it names.

    Examples
    --------
    >>> study = study_from_json(
    ...     '{"schema": "mig-opt/study/1", "batches": [{"n": [10, 20], "seeds": 3}],'
    ...     ' "methods": [{"method": "far"}, {"method": "cp", "time_limit": 10}]}'
    ... )
    >>> study.batches[0].seeds, study.methods[1].time_limit
    ((0, 1, 2), (10.0,))
    """
    return from_json(document, lambda parts: part_problems(parts, Path(folder)), source=source)
