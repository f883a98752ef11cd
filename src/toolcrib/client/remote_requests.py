"""The requests and approvals of a server: requests are filed, followed and delivered there, approvals listed and decided."""

from __future__ import annotations

import base64
import time
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from toolcrib.client import shapes
from toolcrib.client.connection import SECONDS
from toolcrib.client.shapes import APPROVAL_ANSWER, APPROVAL_LIST, read_event, read_experiment, read_filed
from toolcrib.features.requests.candidate import read_candidate
from toolcrib.features.requests.document import read_request
from toolcrib.model.approval import Approval, State
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Status, Submitted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from toolcrib.client.connection import Answer, Query
    from toolcrib.client.shapes import Document, Shape
    from toolcrib.model.toolrequest import Allowance, Event, Experiment, Filed

    # Within the classes below, `list` is what they do.
    Filings = list[Filed]
    Events = list[Event]
    Experiments = list[Experiment]
    Found = list[Approval]


REQUESTS = "/requests"
PLACE = "request"
MAX_LISTED = 1_000
# How long the server lets us wait for news at most, and how long an answer without any takes at least.
WAIT_SECONDS = 25
QUIET_SECONDS = 1.0
# A server that is started anew comes back in that time.
PATIENCE_SECONDS = 60.0
AGAIN_SECONDS = 2.0
# Failures that pass by themselves: the server is away, overloaded or ending.
PASSING = frozenset({Kind.TRANSIENT, Kind.TIMEOUT, Kind.OVERLOADED, Kind.RATE_LIMIT, Kind.CANCELLED})
# The gate of the server has limits of its own; this is for a server that has stopped to answer.
DELIVERY_SECONDS = 3_600.0


class Ask(Protocol):
    """Asks the server."""

    def __call__(
        self,
        method: str,
        path: str,
        shape: Shape,
        *,
        query: Query = (),
        body: Mapping[str, object] | None = None,
        seconds: float = ...,
    ) -> Answer:
        """An answer of that shape; raises ToolError where the server refuses."""


class RemoteRequests:
    """Does with the requests of a server what `Requests` does with those of this machine."""

    def __init__(self, ask: Ask, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._ask = ask
        self._sleep = sleep

    def submit(self, text: str, *, strict: bool | None = None, place: str = PLACE) -> Submitted:
        """File a request under the id that it has; the same text again is no second request. Complaints name the `place`."""
        # The server would give one without an id a number.
        read_request(text, place=place)
        return self.new(text, strict=strict, place=place)

    def new(self, text: str, *, strict: bool | None = None, place: str = PLACE) -> Submitted:
        """File a request; without an id it gets the next number of the day. The server may be stricter than `strict` asks for."""
        # The server would say the same, but it does not know what the file is called.
        read_request(text, place=place, strict=bool(strict), numbered=False)
        query = [("strict", "true")] if strict else []
        found = self._ask("POST", REQUESTS, shapes.SUBMITTED, query=query, body={"yaml": text}).document
        return Submitted(filed=read_filed(found), warnings=tuple(found["warnings"]), merged=found["merged"])

    def list(self, status: Status | None = None, *, limit: int = MAX_LISTED) -> Filings:
        """The requests in the order in which they were filed; of many the newest."""
        query = [("limit", str(max(1, min(limit, MAX_LISTED)))), *([] if status is None else [("status", str(status))])]
        found = self._ask("GET", REQUESTS, shapes.FILED_LIST, query=query).document
        return [read_filed(filed) for filed in found["requests"]]

    def show(self, request_id: str) -> Filed:
        """One request; raises NOT_FOUND."""
        return self._filed("GET", request_id)

    def history(self, request_id: str, after: int = 0) -> Events:
        """What happened to a request, from the event behind that number on."""
        return self._news(request_id, after, 0)[1]

    def follow(self, request_id: str, hear: Callable[[Event], None]) -> Filed:
        """Hear what happens to a request until it is over; a server that is away for a while is asked again."""
        status, events = self._news(request_id, 0, 0)
        after = 0
        while True:
            for event in events:
                after = event.number
                hear(event)
            if status.is_final:
                return self.show(request_id)
            status, events = self._later_news(request_id, after)

    def package(self, request_id: str) -> Path | None:
        """None: what was laid out for a person lies on the machine of the server."""
        return None

    def deliver(self, request_id: str, path: Path, hear: Callable[[str], None]) -> Filed:
        """Send what a person made for a request to be proved and published; it is read here within the same bounds."""
        files = self._read(request_id, path)
        hear(f"sending {len(files)} files to be proved" if len(files) > 1 else "sending 1 file to be proved")
        body = _body_of(files)
        return self._filed("POST", request_id, "/deliver", body=body, seconds=DELIVERY_SECONDS)

    def cancel(self, request_id: str, reason: str = "") -> Filed:
        """Cancel it; a builder that works on it stops."""
        return self._filed("POST", request_id, "/cancel", body={"reason": reason})

    def retry(self, request_id: str) -> Filed:
        """Have one built again that failed or was cancelled."""
        return self._filed("POST", request_id, "/retry", body={})

    def allow(self, request_id: str, allowance: Allowance) -> Filed:
        """Add what the operator allows to a request that is open."""
        return self._filed("PUT", request_id, "/allowance", body=_spell_allowance(allowance))

    def experiments(self) -> Experiments:
        """Everything that waits or waited for a tool."""
        found = self._ask("GET", "/experiments", shapes.EXPERIMENTS).document
        return [read_experiment(one) for one in found["experiments"]]

    def _filed(
        self,
        method: str,
        request_id: str,
        act: str = "",
        *,
        body: Mapping[str, object] | None = None,
        seconds: float = SECONDS,
    ) -> Filed:
        answer = self._ask(method, _place_of(request_id) + act, shapes.FILED_ANSWER, body=body, seconds=seconds)
        return read_filed(answer.document)

    def _news(self, request_id: str, after: int, wait: int) -> tuple[Status, Events]:
        query = [("after", str(after)), *([("wait", str(wait))] if wait else [])]
        found = self._ask("GET", f"{_place_of(request_id)}/history", shapes.HISTORY, query=query).document
        events = sorted((read_event(event) for event in found["history"]), key=lambda event: event.number)
        return Status(found["status"]), [event for event in events if event.number > after]

    def _later_news(self, request_id: str, after: int) -> tuple[Status, Events]:
        """What there is to tell after a while; asks again while the server is away, and raises when it stays so."""
        began, wait = time.monotonic(), WAIT_SECONDS
        while True:
            asked = time.monotonic()
            try:
                status, events = self._news(request_id, after, wait)
            except ToolError as problem:
                if problem.kind not in PASSING or time.monotonic() - began > PATIENCE_SECONDS:
                    raise
                # Where too many listen already, a request that does not wait is still answered.
                wait = 0 if problem.kind is Kind.OVERLOADED else WAIT_SECONDS
                self._sleep(AGAIN_SECONDS)
                continue
            # One that does not wait, as it was asked to, is not asked all the time.
            if not events and not status.is_final and (left := QUIET_SECONDS - (time.monotonic() - asked)) > 0:
                self._sleep(left)
            return status, events

    def _read(self, request_id: str, path: Path) -> Mapping[str, bytes]:
        request = read_request(self.show(request_id).text)
        try:
            return read_candidate(path, request).files
        except ToolError as problem:
            # As the gate would say it, which reads what lies on its own machine.
            raise ToolError(Kind.VALIDATION, problem.message, details={"complaints": [problem.message]}) from problem


def _place_of(request_id: str) -> str:
    if not request_id or request_id in {".", ".."}:
        raise ToolError(Kind.NOT_FOUND, f"there is no request {request_id!r}; list them with: crib request list")
    return f"{REQUESTS}/{quote(request_id, safe='')}"


def _body_of(files: Mapping[str, bytes]) -> dict[str, object]:
    """The files as they are sent: text as itself, all else as base64."""
    texts: dict[str, str] = {}
    binary: dict[str, str] = {}
    for path, content in files.items():
        try:
            texts[path] = content.decode()
        except UnicodeDecodeError:
            binary[path] = base64.b64encode(content).decode()
    return {"files": texts, "binary": binary}


def _spell_allowance(allowance: Allowance) -> dict[str, object]:
    return {
        "capabilities": sorted(allowance.capabilities),
        "hosts": list(allowance.hosts),
        "answers": [answer.to_json() for answer in allowance.answers],
        "unproved": allowance.unproved,
    }


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
