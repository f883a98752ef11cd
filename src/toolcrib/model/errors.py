"""Why a call failed.

    Exception
    └── ToolError             a call, or the loading of a tool, failed; `kind` says why
        └── SettingsError     the operator's settings are wrong; nothing starts

Below the pipeline code raises `ToolError`; from the pipeline outwards there is only `Result`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(StrEnum):
    """The closed list of reasons."""

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
    """A reason that names the place and the cure, and says whether to retry and whether effects may remain.

    `value` is what the tool had achieved when it failed; it becomes the result's partial value.
    """

    FACTS = frozenset({"kind", "message", "retryable", "partial_side_effects", "details", "value"})

    kind: Kind
    message: str
    retryable: bool
    partial_side_effects: bool
    details: Mapping[str, object]
    value: object

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        retryable: bool = False,
        partial_side_effects: bool = False,
        details: Mapping[str, object] | None = None,
        value: object = None,
    ) -> None:
        super().__init__(message)
        self.__dict__.update(
            kind=Kind(kind),
            message=message,
            retryable=retryable,
            partial_side_effects=partial_side_effects,
            details={} if details is None else details,
            value=value,
        )

    def __setattr__(self, name: str, value: object) -> None:
        # Only the facts are frozen: contextlib and others set __traceback__ on exceptions that pass through them.
        if name in self.FACTS:
            message = f"{name} of a ToolError cannot be changed"
            raise AttributeError(message)
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[object, ...]:
        return (_revive, (type(self), self.kind, self.message, dict(self.__dict__)))

    def to_json(self) -> dict[str, object]:
        """The error as every face shows it."""
        return {
            "type": str(self.kind),
            "message": self.message,
            "retryable": self.retryable,
            "partialSideEffects": self.partial_side_effects,
            "details": dict(self.details),
        }


class SettingsError(ToolError):
    """A setting that cannot be obeyed, with the file that holds it."""

    def __init__(self, message: str) -> None:
        super().__init__(Kind.VALIDATION, message)


def _revive(cls: type[ToolError], kind: Kind, message: str, facts: dict[str, object]) -> ToolError:
    error = cls.__new__(cls, message)
    error.__dict__.update(facts, kind=kind)
    return error
