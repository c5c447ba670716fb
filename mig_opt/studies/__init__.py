"""Studies: methods on batches and schedulers on traces, one row for each run, and what they say together.

:func:`read_study` reads a study file, :func:`run_study` does what is missing of it, :func:`study_rows` only reads its
results, and :func:`compare` runs some methods on some batches without any file.
"""

from mig_opt.method.study import (
    BatchFromFile,
    BundledBatch,
    GeneratedBatches,
    GeneratedTraces,
    MethodSettings,
    PolicySettings,
    Study,
    TraceFromFile,
)
from mig_opt.studies.comparison import compare
from mig_opt.studies.studies import StudyProgress, StudyRows, read_study, run_study, study_from_json, study_rows

__all__ = [
    "BatchFromFile",
    "BundledBatch",
    "GeneratedBatches",
    "GeneratedTraces",
    "MethodSettings",
    "PolicySettings",
    "Study",
    "StudyProgress",
    "StudyRows",
    "TraceFromFile",
    "compare",
    "read_study",
    "run_study",
    "study_from_json",
    "study_rows",
]
