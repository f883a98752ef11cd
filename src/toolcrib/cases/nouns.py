"""A case, and what trying it came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.cases.context import FakeContext

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.result import Result


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Arguments for a tool, the client that calls it, and what is expected, in the words of a file of cases.

    Unless `expect` speaks of `ok` or `error`, the call is expected to succeed. `problem` says why there is nothing to try:
    such a case has failed where it is written. `is_documented` marks an example that the author of the tool shows.
    """

    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    context: FakeContext = field(default_factory=FakeContext)
    expect: Mapping[str, object] = field(default_factory=dict)
    place: str = ""
    problem: str = ""
    is_documented: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def expects_failure(self) -> bool:
        """Whether the call is expected to come to nothing."""
        return "error" in self.expect or self.expect.get("ok") is False

    @property
    def expected_kind(self) -> object:
        """The type of error that is expected; None if none is named."""
        error = self.expect.get("error")
        return error.get("type") if isinstance(error, dict) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseResult:
    """How a case went.

    `reasons` are all differences between what was expected and what came; `skipped` says why it could not be tried here,
    and `warnings` what is not as it should be although the case may have passed.
    """

    name: str
    place: str = ""
    passed: bool
    reasons: tuple[str, ...] = ()
    skipped: str = ""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    result: Result | None = None

    @property
    def failed(self) -> bool:
        """Whether it was tried, or could not even be read, and is not right."""
        return not self.passed and not self.skipped

    def to_json(self) -> dict[str, object]:
        """The report as JSON."""
        return {
            "name": self.name,
            "place": self.place,
            "passed": self.passed,
            "skipped": self.skipped or None,
            "reasons": list(self.reasons),
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "result": None if self.result is None else self.result.to_json(),
        }
