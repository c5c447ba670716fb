"""Why a batch is infeasible, or its makespan not below a target, in the words of whoever wrote the batch."""

from mig_opt.explaining.explainer import explain
from mig_opt.explaining.explanation import Conflict, Explanation, Remedy, Verdict
from mig_opt.explaining.requirements import Requirement, RequirementKind

__all__ = ["Conflict", "Explanation", "Remedy", "Requirement", "RequirementKind", "Verdict", "explain"]
