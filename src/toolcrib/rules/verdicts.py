"""What the rules have in common: the strictest verdict counts, and what cannot be read is refused."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind
from toolcrib.model.verdict import ALLOW, Decision, Verdict, deny

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.model.errors import ToolError

STRICTNESS = {Decision.ALLOW: 0, Decision.CONFIRM: 1, Decision.DENY: 2}
# What rules that are asked together have read of a call, so that each need not read it again.
SHARED: ContextVar[dict[tuple[int, int], object] | None] = ContextVar("shared", default=None)


class TooMuchToReadError(Exception):
    """More than a rule can judge while others wait."""


def strictest_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Deny before confirm before allow, and of equally strict ones the first."""
    return max(verdicts, key=lambda verdict: STRICTNESS[verdict.decision], default=ALLOW)


def unreadable(place: str, error: ToolError, *, rule: str, where: str) -> Verdict:
    """Deny a command that nobody can read; the error says what would make it readable."""
    return deny(f"rule {rule!r}: {place}: {error.message}", rule=rule, where=where, details={"argument": place})


def too_much(rule: str, where: str) -> Verdict:
    """Deny a call of which nobody can read everything."""
    return deny(
        f"rule {rule!r}: the arguments hold more strings than can be judged",
        rule=rule,
        where=where,
        cure="send fewer of them in one call",
        kind=Kind.LIMIT_EXCEEDED,
    )
