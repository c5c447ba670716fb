from .batch.schedules import Validation, validate
from .fleet.migrations import MigrationValidation, validate_migrations
from .serving.changes import ChangeValidation, validate_change
from .serving.days import DayValidation, validate_day
from .serving.deployments import DeploymentValidation, validate_deployment
from .violations import (
    ChangeViolationCode,
    DayViolationCode,
    DeploymentViolationCode,
    MigrationViolationCode,
    Violation,
    ViolationCode,
)

__all__ = [
    "ChangeValidation",
    "ChangeViolationCode",
    "DayValidation",
    "DayViolationCode",
    "DeploymentValidation",
    "DeploymentViolationCode",
    "MigrationValidation",
    "MigrationViolationCode",
    "Validation",
    "Violation",
    "ViolationCode",
    "validate",
    "validate_change",
    "validate_day",
    "validate_deployment",
    "validate_migrations",
]
