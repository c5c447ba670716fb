"""Explanations: minimal sets of requirements for which a batch is infeasible or its makespan above a target."""

from mig_opt.api.explain.explainer import explain
from mig_opt.api.explain.explanation import Conflict, Explanation, Remedy, Verdict
from mig_opt.api.explain.requirements import Requirement, RequirementKind

__all__ = ["Conflict", "Explanation", "Remedy", "Requirement", "RequirementKind", "Verdict", "explain"]
