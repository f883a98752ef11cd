"""What a call tells while it runs: how far it is, messages of the log, and chunks; the last event is its Result."""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib.model.result import Result


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far the call is."""

    progress: float
    total: float | None = None
    message: str = ""

    def to_json(self) -> dict[str, object]:
        """The event as every interface sends it."""
        return {"progress": self.progress, "total": self.total, "message": self.message}


@dataclass(frozen=True, kw_only=True, slots=True)
class LogMessage:
    """A message of the log."""

    level: str
    data: object
    logger: str = ""

    def to_json(self) -> dict[str, object]:
        """The event as every interface sends it."""
        return {"level": self.level, "data": self.data, "logger": self.logger}


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """What the tool yielded. No schema has judged it yet, so it is for people to watch and never a result for a model."""

    number: int
    value: object

    def to_json(self) -> dict[str, object]:
        """The event as every interface sends it."""
        return {"number": self.number, "value": self.value, "checked": False}


StreamEvent = Progress | LogMessage | Chunk | Result
