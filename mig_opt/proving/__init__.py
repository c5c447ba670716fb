"""A second proof: whether a schedule can be beaten is asked of another method, and the answer can be checked."""

from mig_opt.proving.checker import Check, check
from mig_opt.proving.prover import check_proof_options, prove

__all__ = ["Check", "check", "check_proof_options", "prove"]
