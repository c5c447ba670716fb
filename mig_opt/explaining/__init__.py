"""Explanations: minimal sets of requirements for which a batch is infeasible or its makespan above a target."""

from mig_opt.explaining.explainer import explain
from mig_opt.explaining.explanation import Conflict, Explanation, Remedy, Verdict
from mig_opt.explaining.requirements import Requirement, RequirementKind

__all__ = ["Conflict", "Explanation", "Remedy", "Requirement", "RequirementKind", "Verdict", "explain"]
