"""What the rules have in common: the strictest verdict counts, and what cannot be read is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.verdict import ALLOW, Decision, Verdict, deny

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.model.errors import ToolError

STRICTNESS = {Decision.ALLOW: 0, Decision.CONFIRM: 1, Decision.DENY: 2}


def strictest_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Deny before confirm before allow, and of equally strict ones the first."""
    return max(verdicts, key=lambda verdict: STRICTNESS[verdict.decision], default=ALLOW)


def unreadable(place: str, error: ToolError, *, rule: str, where: str) -> Verdict:
    """Deny a command that nobody can read; the error says what would make it readable."""
    return deny(f"rule {rule!r}: {place}: {error.message}", rule=rule, where=where, details={"argument": place})
