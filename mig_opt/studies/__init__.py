"""Studies: methods on batches and schedulers on traces, one row for each run, and what they say together.

:func:`read_study` reads a study file, :func:`run_study` does what is missing of it, :func:`study_rows` only reads its
results, and :func:`compare` runs some methods on some batches without any file.
"""

from __future__ import annotations

from mig_opt.studies.batch import BatchRun
from mig_opt.studies.comparing import Comparison, compare
from mig_opt.studies.execution import SourcesChangedError
from mig_opt.studies.fleet import TraceRun
from mig_opt.studies.reading import read_study, study_from_json
from mig_opt.studies.rows import Outcome, Row
from mig_opt.studies.running import StudyProgress, StudyRows, run_study, study_rows
from mig_opt.studies.runs import StudyRun
from mig_opt.studies.summary import Figures, Judged, Line, TraceLine, Winners
from mig_opt.study import (
    BatchFromFile,
    BundledBatch,
    GeneratedBatches,
    GeneratedTraces,
    MethodSettings,
    PolicySettings,
    Study,
    TraceFromFile,
)

__all__ = [
    "BatchFromFile",
    "BatchRun",
    "BundledBatch",
    "Comparison",
    "Figures",
    "GeneratedBatches",
    "GeneratedTraces",
    "Judged",
    "Line",
    "MethodSettings",
    "Outcome",
    "PolicySettings",
    "Row",
    "SourcesChangedError",
    "Study",
    "StudyProgress",
    "StudyRows",
    "StudyRun",
    "TraceFromFile",
    "TraceLine",
    "TraceRun",
    "Winners",
    "compare",
    "read_study",
    "run_study",
    "study_from_json",
    "study_rows",
]
