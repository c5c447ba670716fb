"""Studies: many methods on many batches, one row for each run, and what they say together.

:func:`read_study` reads a study file, :func:`run_study` does what is missing of it, :func:`study_rows` only reads its
results, and :func:`compare` runs some methods on some batches without any file.
"""

from __future__ import annotations

from mig_opt.studies.comparing import Compared, Comparison, compare
from mig_opt.studies.engine import SourcesChangedError
from mig_opt.studies.outcome import Outcome
from mig_opt.studies.reading import read_study, study_from_json
from mig_opt.studies.records import Row
from mig_opt.studies.running import StudyProgress, StudyRows, run_study, study_rows
from mig_opt.studies.runs import StudyRun
from mig_opt.studies.summary import Figures, Judged, Line
from mig_opt.study import BatchFromFile, BundledBatch, GeneratedBatches, MethodSettings, Study

__all__ = [
    "BatchFromFile",
    "BundledBatch",
    "Compared",
    "Comparison",
    "Figures",
    "GeneratedBatches",
    "Judged",
    "Line",
    "MethodSettings",
    "Outcome",
    "Row",
    "SourcesChangedError",
    "Study",
    "StudyProgress",
    "StudyRows",
    "StudyRun",
    "compare",
    "read_study",
    "run_study",
    "study_from_json",
    "study_rows",
]
