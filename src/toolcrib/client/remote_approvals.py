"""List, decide and watch the approvals of a server."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from toolcrib.client.shapes import APPROVAL_ANSWER, APPROVAL_LIST
from toolcrib.model.approval import Approval, State
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from toolcrib.client.server import Server
    from toolcrib.client.shapes import Document

    # An alias, because `list` is a method in the class below.
    Found = list[Approval]

APPROVALS = "/approvals"
POLL_SECONDS = 1.0


class RemoteApprovals:
    """The interface of `Approvals` for the approvals of a server."""

    def __init__(self, server: Server, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._server = server
        self._sleep = sleep

    def list(self, state: State | None = State.PENDING) -> Found:
        """The approvals in a state, or all of them; the oldest first."""
        query = [("state", "all" if state is None else str(state))]
        found = self._server.ask("GET", APPROVALS, APPROVAL_LIST, query=query).document
        return [_read(document) for document in found["approvals"]]

    def show(self, approval_id: str) -> Approval:
        """The approval of that id."""
        return _read(self._server.ask("GET", _place(approval_id), APPROVAL_ANSWER).document)

    def approve(self, approval_id: str, *, by: str = "", note: str = "") -> Approval:
        """Let the call run once; the server records the holder of the token as the decider."""
        return self._decide(approval_id, "approve", by, note)

    def refuse(self, approval_id: str, *, by: str = "", note: str = "") -> Approval:
        """Refuse the call until the approval expires."""
        return self._decide(approval_id, "refuse", by, note)

    async def wait(self, approval_id: str, seconds: float) -> Approval:
        """Wait until it is decided or expired, for at most `seconds`."""
        end = time.monotonic() + seconds
        while True:
            answer = await self._server.ask_async("GET", _place(approval_id), APPROVAL_ANSWER)
            approval, left = _read(answer.document), end - time.monotonic()
            if approval.state is not State.PENDING or left <= 0:
                return approval
            await self._sleep(min(POLL_SECONDS, left))

    async def watch(self) -> AsyncGenerator[Approval, None]:
        """Yield the pending approvals, and then every approval that is created or changes its state."""
        known: dict[str, State] | None = None
        while True:
            query = [("state", "all")]
            answer = await self._server.ask_async("GET", APPROVALS, APPROVAL_LIST, query=query)
            found = [_read(document) for document in answer.document["approvals"]]
            for approval in found:
                is_news = known is not None and known.get(approval.id) is not approval.state
                if is_news or (known is None and approval.state is State.PENDING):
                    yield approval
            known = {approval.id: approval.state for approval in found}
            await self._sleep(POLL_SECONDS)

    def _decide(self, approval_id: str, decision: str, by: str, note: str) -> Approval:
        if by:
            message = "a server knows by the token who decides; connect with the token of that person, and leave by out"
            raise ToolError(Kind.VALIDATION, message)
        body = {"decision": decision, "note": note}
        return _read(self._server.ask("POST", _place(approval_id), APPROVAL_ANSWER, body=body).document)


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
        runs=None if "runs" not in document else tuple(document["runs"]),
        about=document.get("about", {}),
    )


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
