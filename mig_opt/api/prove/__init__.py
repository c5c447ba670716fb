"""A second proof: whether a schedule can be beaten is asked of another method, and the answer can be checked."""

from mig_opt.api.prove.checker import Check, check
from mig_opt.api.prove.prover import certify, check_proof_options, prove

__all__ = ["Check", "certify", "check", "check_proof_options", "prove"]
