"""Events of a streamed call: progress, log messages and chunks; the last event is its Result."""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib.model.result import Result


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """The progress of the call, out of a total if that is known."""

    progress: float
    total: float | None = None
    message: str = ""

    def to_json(self) -> dict[str, object]:
        """The event as every interface sends it."""
        return {"progress": self.progress, "total": self.total, "message": self.message}


@dataclass(frozen=True, kw_only=True, slots=True)
class LogMessage:
    """A log message of the tool."""

    level: str
    data: object
    logger: str = ""

    def to_json(self) -> dict[str, object]:
        """The event as every interface sends it."""
        return {"level": self.level, "data": self.data, "logger": self.logger}


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """An item that the tool yielded. It is not validated against the output schema, so it must not reach a model as a result."""

    number: int
    value: object

    def to_json(self) -> dict[str, object]:
        """The event as every interface sends it."""
        return {"number": self.number, "value": self.value, "checked": False}


StreamEvent = Progress | LogMessage | Chunk | Result
