"""What a judge says about a call: allow, confirm or deny, why, where that is set, and what would allow it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Decision(StrEnum):
    """The three answers of a judge."""

    ALLOW = "allow"
    CONFIRM = "confirm"
    DENY = "deny"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """A decision with its grounds. `rule` names who decided, `where` the setting behind it, `cure` what would allow it."""

    decision: Decision
    reason: str = ""
    rule: str = ""
    where: str = ""
    cure: str = ""
    kind: Kind = Kind.BLOCKED
    details: Mapping[str, object] = field(default_factory=dict)
    retryable: bool = False

    def to_error(self, gate: str) -> ToolError:
        """The refusal as the caller sees it."""
        grounds = {"gate": gate, "rule": self.rule, "where": self.where, "cure": self.cure}
        details = {**{name: text for name, text in grounds.items() if text}, **self.details}
        message = self.reason if not self.cure or self.cure in self.reason else f"{self.reason}; {self.cure}"
        return ToolError(self.kind, message, retryable=self.retryable, details=details)


ALLOW = Verdict(decision=Decision.ALLOW)


def deny(
    reason: str,
    *,
    rule: str = "",
    where: str = "",
    cure: str = "",
    kind: Kind = Kind.BLOCKED,
    details: Mapping[str, object] | None = None,
    retryable: bool = False,
) -> Verdict:
    """Refuse the call."""
    return Verdict(
        decision=Decision.DENY,
        reason=reason,
        rule=rule,
        where=where,
        cure=cure,
        kind=kind,
        details=details or {},
        retryable=retryable,
    )


def confirm(reason: str, *, rule: str = "", where: str = "", cure: str = "") -> Verdict:
    """Let the call run once somebody has confirmed it."""
    return Verdict(
        decision=Decision.CONFIRM, reason=reason, rule=rule, where=where, cure=cure, kind=Kind.CONFIRMATION_REQUIRED
    )
