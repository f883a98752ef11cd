"""The approvals of a server: listed and decided there, with a token that may approve."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from toolcrib.client.shapes import APPROVAL_ANSWER, APPROVAL_LIST
from toolcrib.model.approval import Approval, State

if TYPE_CHECKING:
    from toolcrib.client.remote_requests import Ask
    from toolcrib.client.shapes import Document

    # Within the class below, `list` is what it does.
    Found = list[Approval]

APPROVALS = "/approvals"


class RemoteApprovals:
    """Does with the approvals of a server what `Approvals` does with those of this machine."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def list(self, state: State | None = State.PENDING) -> Found:
        """The approvals in a state, or all that are stored; the oldest first."""
        query = [("state", "all" if state is None else str(state))]
        found = self._ask("GET", APPROVALS, APPROVAL_LIST, query=query).document
        return [_read(document) for document in found["approvals"]]

    def show(self, approval_id: str) -> Approval:
        """One of them."""
        return _read(self._ask("GET", _place(approval_id), APPROVAL_ANSWER).document)

    def approve(self, approval_id: str, *, note: str = "") -> Approval:
        """Let the call run once."""
        return self._decide(approval_id, "approve", note)

    def refuse(self, approval_id: str, *, note: str = "") -> Approval:
        """Refuse the call until the approval expires."""
        return self._decide(approval_id, "refuse", note)

    def _decide(self, approval_id: str, decision: str, note: str) -> Approval:
        body = {"decision": decision, "note": note}
        return _read(self._ask("POST", _place(approval_id), APPROVAL_ANSWER, body=body).document)


def _place(approval_id: str) -> str:
    return f"{APPROVALS}/{quote(approval_id, safe='')}"


def _read(document: Document) -> Approval:
    decided_at = document["decidedAt"]
    return Approval(
        id=document["id"],
        tool=document["tool"],
        version=document["version"],
        content_hash=document["contentHash"],
        arguments=document["arguments"],
        digest=document["digest"],
        caller=document["caller"],
        reason=document["reason"],
        rule=document["rule"],
        created_at=_moment(document["createdAt"]),
        expires_at=_moment(document["expiresAt"]),
        state=State(document["state"]),
        decided_by=document["decidedBy"],
        decided_at=None if decided_at is None else _moment(decided_at),
        note=document["note"],
    )


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
