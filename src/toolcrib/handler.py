"""What a handler in Python imports: `from toolcrib.handler import ErrorType, ToolError`.

It stands alone, because the process of a handler starts without the rest of Toolcrib.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ErrorType", "ToolError"]


class ErrorType(StrEnum):
    """Why a tool failed: the words of every error that a caller sees."""

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
    """Raised by a handler that cannot go on: says why, whether to try again, and whether effects may remain."""

    def __init__(
        self,
        type: str,  # noqa: A002 - the word of every face for it
        message: str,
        *,
        retryable: bool = False,
        partial_side_effects: bool = False,
        details: dict[str, object] | None = None,
        partialSideEffects: bool = False,  # noqa: N803 - as a response spells it
    ) -> None:
        super().__init__(message)
        self.type = self.kind = type
        self.message = message
        self.retryable = retryable
        self.partial_side_effects = partial_side_effects or partialSideEffects
        self.details = {} if details is None else details
