"""A stored question to a person: whether exactly this call may run once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class State(StrEnum):
    """The state of an approval."""

    PENDING = "pending"
    APPROVED = "approved"
    REFUSED = "refused"
    USED = "used"
    EXPIRED = "expired"


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval:
    """A call that waits for a person: what exactly would run, for which caller, and why it needs approval.

    `arguments` have secrets masked; `digest` binds the approval to them and to `runs`. `about` has the words of the tool's author,
    and who asks. Both are only loaded for a single approval. Times are seconds since 1970.
    """

    id: str
    tool: str
    version: str
    content_hash: str
    arguments: Mapping[str, object]
    digest: str
    caller: str
    reason: str
    rule: str
    created_at: float
    expires_at: float
    state: State = State.PENDING
    decided_by: str | None = None
    decided_at: float | None = None
    note: str = ""
    runs: tuple[Mapping[str, object], ...] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """The approval as every interface shows it."""
        facts: dict[str, object] = {
            "id": self.id,
            "state": str(self.state),
            "tool": self.tool,
            "version": self.version,
            "contentHash": self.content_hash,
            "arguments": dict(self.arguments),
            "digest": self.digest,
            "caller": self.caller,
            "reason": self.reason,
            "rule": self.rule,
            "createdAt": _spell(self.created_at),
            "expiresAt": _spell(self.expires_at),
            "decidedBy": self.decided_by,
            "decidedAt": None if self.decided_at is None else _spell(self.decided_at),
            "note": self.note,
        }
        return facts if self.runs is None else {**facts, "about": dict(self.about), "runs": [*map(dict, self.runs)]}


def _spell(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
