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


# What every gate says to a call that was not made.


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What one gate says about a call; `verdict` is None where an earlier gate leaves it nothing to judge."""

    gate: str
    verdict: Verdict | None

    def to_json(self) -> dict[str, object]:
        """The finding as every face shows it."""
        if self.verdict is None:
            return {"gate": self.gate, "decision": "not reached"}
        grounds = {"reason": self.verdict.reason, "rule": self.verdict.rule}
        grounds |= {"where": self.verdict.where, "cure": self.verdict.cure}
        decision = {"gate": self.gate, "decision": str(self.verdict.decision)}
        return {**decision, **{name: text for name, text in grounds.items() if text}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """Every gate's finding, in the order of the call."""

    tool: str
    findings: tuple[Finding, ...]

    @property
    def refusal(self) -> Finding | None:
        """The first gate that stops the call, which is the one its result would name."""
        for finding in self.findings:
            if finding.verdict is not None and finding.verdict.decision is not Decision.ALLOW:
                return finding
        return None

    @property
    def allowed(self) -> bool:
        """Whether the call would run."""
        return self.refusal is None

    def to_json(self) -> dict[str, object]:
        """The explanation as every face shows it."""
        findings = [finding.to_json() for finding in self.findings]
        return {"tool": self.tool, "allowed": self.allowed, "findings": findings}
