"""Error types for handlers written in Python: `from toolcrib.handler import ErrorType, ToolError`.

This module imports nothing of Toolcrib, because the child process of a handler starts without the rest of the package.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ErrorType", "ToolError"]


class ErrorType(StrEnum):
    """Why a tool failed: the `type` of every error that a caller sees."""

    VALIDATION = "VALIDATION"
    NOT_FOUND = "NOT_FOUND"
    INTERNAL = "INTERNAL"
    MODE_RESTRICTED = "MODE_RESTRICTED"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    CONFIRMATION_REQUIRED = "CONFIRMATION_REQUIRED"
    SESSION_INACTIVE = "SESSION_INACTIVE"
    TRANSIENT = "TRANSIENT"
    PERMANENT = "PERMANENT"
    RATE_LIMIT = "RATE_LIMIT"
    AUTH = "AUTH"
    CONFLICT = "CONFLICT"
    BLOCKED = "BLOCKED"
    DISABLED = "DISABLED"
    CAPABILITY_MISSING = "CAPABILITY_MISSING"
    TIMEOUT = "TIMEOUT"
    OUTPUT_INVALID = "OUTPUT_INVALID"
    HOST_NOT_ALLOWED = "HOST_NOT_ALLOWED"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    EXECUTOR_NOT_FOUND = "EXECUTOR_NOT_FOUND"
    CIRCULAR_DEPENDENCY = "CIRCULAR_DEPENDENCY"
    CHAIN_TOO_DEEP = "CHAIN_TOO_DEEP"
    LOOP_DETECTED = "LOOP_DETECTED"
    SANDBOX_UNAVAILABLE = "SANDBOX_UNAVAILABLE"
    OVERLOADED = "OVERLOADED"
    CANCELLED = "CANCELLED"


class ToolError(Exception):
    """Raised by a handler to fail its call: says why, whether to retry, and whether side effects may remain."""

    def __init__(
        self,
        type: str,  # noqa: A002 - the name of the field on the wire
        message: str,
        *,
        retryable: bool = False,
        partial_side_effects: bool = False,
        details: dict[str, object] | None = None,
        partialSideEffects: bool = False,  # noqa: N803 - the name of the field on the wire
    ) -> None:
        super().__init__(message)
        self.type = self.kind = type
        self.message = message
        self.retryable = retryable
        self.partial_side_effects = partial_side_effects or partialSideEffects
        self.details = {} if details is None else details
