"""What every gate says to a call that was not made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.model.verdict import Decision

if TYPE_CHECKING:
    from toolcrib.model.verdict import Verdict


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
