from .batch.schedules import Validation, validate
from .fleet.migrations import MigrationValidation, validate_migrations
from .serving.changes import ChangeValidation, validate_change
from .serving.deployments import DeploymentValidation, validate_deployment
from .violations import (
    ChangeViolationCode,
    DeploymentViolationCode,
    MigrationViolationCode,
    Violation,
    ViolationCode,
)

__all__ = [
    "ChangeValidation",
    "ChangeViolationCode",
    "DeploymentValidation",
    "DeploymentViolationCode",
    "MigrationValidation",
    "MigrationViolationCode",
    "Validation",
    "Violation",
    "ViolationCode",
    "validate",
    "validate_change",
    "validate_deployment",
    "validate_migrations",
]
