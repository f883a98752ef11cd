"""Errors of calls and of loading, with a cure for each reader.

    Exception
    └── ToolError             a call, or the loading of a tool, failed; `kind` says why
        └── SettingsError     the operator's settings are wrong; the start is refused

Below the pipeline code raises `ToolError`; from the pipeline outwards there is only `Result`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from toolcrib.values.records import record

if TYPE_CHECKING:
    from typing import Self


class Kind(StrEnum):
    """Why a call failed: the closed list."""

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


class Reader(StrEnum):
    """Who reads an error, which decides what cure can be followed."""

    OPERATOR = "operator"  # edits files and settings of the project, runs commands
    CLIENT = "client"  # sends HTTP requests to the server, without access to its files and commands
    MODEL = "model"  # calls the tools that it was given
    SEARCHER = "searcher"  # a model that finds the tools of a large catalog by searching
    ADMINISTRATOR = "administrator"  # a client that may do everything; it only turns to files and commands where requests do not help


# Those who are told which setting or file decided.
SETTING_READERS = frozenset({Reader.OPERATOR, Reader.ADMINISTRATOR})
ASK_THE_OPERATOR = "ask the operator"


@record(kw_only=False)
class Cure:
    """How to resolve a failure, worded for each reader; one without a text of its own gets that of the client (an administrator no ASK_THE_OPERATOR)."""

    operator: str
    client: str = ASK_THE_OPERATOR
    model: str = ""
    searcher: str = ""
    administrator: str = ""

    def words_for(self, reader: Reader) -> str:
        """The text for this reader."""
        if reader is Reader.OPERATOR:
            return self.operator
        if reader is Reader.ADMINISTRATOR:
            return self.administrator or (self.operator if self.client.startswith(ASK_THE_OPERATOR) else self.client)
        told = {Reader.MODEL: self.model, Reader.SEARCHER: self.searcher or self.model}
        return told.get(reader) or self.client

    def then(self, other: Cure) -> Cure:
        """Both cures, one after the other."""
        return Cure(*(_join(self.words_for(reader), other.words_for(reader)) for reader in Reader))


def _join(words: str, more: str) -> str:
    """Both texts, each clause once."""
    return "; ".join(dict.fromkeys(clause for clause in (*words.split("; "), *more.split("; ")) if clause))


def cure_of(cure: Cure | str) -> Cure:
    """Make a Cure of a plain text, which every reader can follow."""
    return cure if isinstance(cure, Cure) else Cure(cure, cure)


NO_CURE = Cure("", "")
# The key in `details` for the seconds until a retry.
RETRY_AFTER = "retryAfter"
MAX_RETRY_SECONDS = 10**9
READ_THE_LOG = cure_of("the log has the details")
LIST_THE_TOOLS = Cure(
    "list the tools with: crib list",
    "list the tools with: GET /crib/tools",
    model="use one that is listed",
    searcher="find one with search_tools",
)


class ToolError(Exception):
    """Why a call failed, with place and cure, whether to retry, and whether side effects may remain.

    `message` is the reason with the cure for the operator; `told_to` gives it with the cure for another reader. `value` is
    the partial result of a tool that failed.
    """

    FACTS = frozenset({"kind", "message", "reason", "cure", "retryable", "partial_side_effects", "details", "value"})

    kind: Kind
    message: str
    reason: str
    cure: Cure
    retryable: bool
    partial_side_effects: bool
    details: Mapping[str, object]
    value: object
    # The traceback of what failed, for the journal; no interface shows it to a caller.
    trace: str = ""
    # The messages about what every call of the tool lacks, whatever its arguments, each with the kind of its error.
    lacks: Mapping[str, Kind] = MappingProxyType({})

    def __init__(
        self,
        kind: Kind,
        reason: str,
        *,
        cure: Cure | str = NO_CURE,
        retryable: bool = False,
        partial_side_effects: bool = False,
        details: Mapping[str, object] | None = None,
        value: object = None,
    ) -> None:
        super().__init__()
        self.__dict__.update(
            kind=Kind(kind),
            retryable=retryable,
            partial_side_effects=partial_side_effects,
            details={} if details is None else details if isinstance(details, Mapping) else {"details": details},  # type: ignore[redundant-expr]  # code of tools is not type-checked
            value=value,
        )
        self._word(reason, cure_of(cure))

    def _word(self, reason: str, cure: Cure) -> None:
        message = reason if cure.operator in reason else f"{reason}; {cure.operator}"
        details = {**self.details, "cure": cure.operator} if cure.operator else self.details
        self.__dict__.update(reason=reason, cure=cure, message=message, details=details)
        self.args = (message,)

    def replace(self, **facts: object) -> Self:
        """The same error with other facts, without traceback and cause."""
        error = _revive(type(self), {**self.__dict__, **facts})
        ToolError._word(error, error.reason, cure_of(error.cure))
        return error

    def told_to(self, reader: Reader) -> Self:
        """The error with a cure that this reader can follow."""
        words = self.cure.words_for(reader)
        if words == self.cure.operator and (reader in SETTING_READERS or "where" not in self.details):
            return self
        hidden = {"cure"} if reader in SETTING_READERS else {"cure", "where"}
        details = {name: fact for name, fact in self.details.items() if name not in hidden}
        return self.replace(cure=words, details=details)

    @property
    def retry_after(self) -> float | None:
        """Seconds until a retry; None if unknown. The value comes from tools and servers, so it is validated here."""
        wait = self.details.get(RETRY_AFTER)
        if isinstance(wait, bool) or not isinstance(wait, int | float) or wait != wait:  # noqa: PLR0124 - not a number
            return None
        return float(min(max(0, wait), MAX_RETRY_SECONDS))

    def as_cure(self) -> Cure:
        """The whole message as the cure of another error."""
        return Cure(*(self.told_to(reader).message for reader in Reader))

    def __setattr__(self, name: str, value: object) -> None:
        # Only these fields are frozen: contextlib and others set __traceback__ on exceptions that pass through them.
        if name in self.FACTS:
            message = f"{name} of a ToolError cannot be changed"
            raise AttributeError(message)
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[object, ...]:
        return (_revive, (type(self), dict(self.__dict__)))

    def to_json(self) -> dict[str, object]:
        """The error as every interface shows it."""
        return {
            "type": str(self.kind),
            "message": self.message,
            "retryable": self.retryable,
            "partialSideEffects": self.partial_side_effects,
            "details": dict(self.details),
        }


class SettingsError(ToolError):
    """An invalid setting, with the file that holds it."""

    def __init__(self, reason: str, *, cure: Cure | str = NO_CURE) -> None:
        super().__init__(Kind.VALIDATION, reason, cure=cure)

    def told_to(self, reader: Reader) -> Self:
        """Hide from all but the operator which setting of which file is wrong."""
        if reader in SETTING_READERS:
            return self
        return self.replace(reason="the server is not set up for this", cure=ASK_THE_OPERATOR, details={})


_ErrorT = TypeVar("_ErrorT", bound=ToolError)


def _revive(cls: type[_ErrorT], facts: dict[str, object]) -> _ErrorT:
    error = cls.__new__(cls, facts["message"])
    error.__dict__.update(facts)
    return error
