"""HTTP endpoints of approvals: list, read, decide and follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.approvals.approvals import MAX_NOTE
from toolcrib.lib.hidden_text import show_hidden_in
from toolcrib.lib.run_part import PartKind
from toolcrib.model.approval import State
from toolcrib.model.call import Scope
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.http import answer_json, read_body, text_of
from toolcrib.toolkit.http.contract import (
    ANYTHING,
    OPTIONAL_TEXT,
    OPTIONAL_TIME,
    TEXT,
    TIME,
    Body,
    Reply,
    choice,
    closed,
    in_path,
    schema,
)
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable
from toolcrib.toolkit.http.event_stream import EventStreams, encode_event

if TYPE_CHECKING:
    from toolcrib.features.approvals.approvals import Approvals
    from toolcrib.model.approval import Approval
    from toolcrib.toolkit.http import Answer, Request
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.endpoint import Host

APPROVE, REFUSE = "approve", "refuse"
EVERYTHING = "all"
ONE = "/approvals/{approvalID}"

APPROVAL_KEYS: dict[str, object] = {
    "id": TEXT,
    "state": {"enum": [str(state) for state in State]},
    "tool": {**TEXT, "description": "The address of the tool."},
    "version": TEXT,
    "contentHash": {**TEXT, "description": "What exactly would run; with other content the approval does not count."},
    "arguments": {**ANYTHING, "description": "The arguments, with secrets masked."},
    "digest": {**TEXT, "description": "Binds the approval to the exact tool, arguments and caller."},
    "caller": TEXT,
    "reason": {**TEXT, "description": "Why the call needs a person."},
    "rule": TEXT,
    "createdAt": TIME,
    "expiresAt": TIME,
    "decidedBy": OPTIONAL_TEXT,
    "decidedAt": OPTIONAL_TIME,
    "note": TEXT,
}
ABOUT_KEYS: dict[str, object] = {
    "title": {**TEXT, "description": "The name of the tool for people."},
    "description": {**TEXT, "description": "What its author says of it."},
    "sideEffects": {**TEXT, "description": "What it may change, as its author declares it; empty if that is not said."},
    "arguments": {
        "type": "object",
        "additionalProperties": TEXT,
        "description": "What its author says of each argument.",
    },
    "asker": {**TEXT, "description": "The name of the holder of the caller's token; empty if it has none."},
}
PART_KEYS: dict[str, object] = {
    "kind": {"enum": [str(kind) for kind in PartKind]},
    "title": {**TEXT, "description": "The file, request, command or database."},
    "facts": {"type": "array", "items": closed(("name", "value"), name=TEXT, value=TEXT)},
    "text": {**OPTIONAL_TEXT, "description": "The beginning of the bytes; null where they are not text or not shown."},
    "bytes": {"type": ["integer", "null"], "minimum": 0, "description": "How many bytes there are in all."},
    "shownBytes": {"type": "integer", "minimum": 0, "description": "How many of them the text shows."},
    "sha256": {**OPTIONAL_TEXT, "description": "The hash of all bytes, with names in place of secrets."},
    "exact": {"type": "boolean", "description": "False for a template that is filled while the call runs."},
    "note": TEXT,
}
DECISION_BODY = Body(
    name="ApprovalDecision",
    schema=closed(
        ("decision",),
        decision={"enum": [APPROVE, REFUSE]},
        note={**OPTIONAL_TEXT, "maxLength": MAX_NOTE, "description": "Why; the caller is not told."},
    ),
    example={"decision": APPROVE},
)


class ApprovalEndpoints:
    """List, read, decide and follow approvals."""

    def __init__(self, approvals: Approvals, threads: Threads, streams: EventStreams) -> None:
        self._approvals = approvals
        self._threads = threads
        self._streams = streams

    async def list(self, request: Request) -> Answer:
        """GET /approvals."""
        state = request.query.text("state") or str(State.PENDING)
        found = await self._threads.read(self._approvals.list, None if state == EVERYTHING else State(state))
        return answer_json({"approvals": [_shown(approval) for approval in found]})

    async def read(self, request: Request) -> Answer:
        """GET /approvals/{approvalID}."""
        approval = await self._threads.read(self._approvals.show, request.path_params["approvalID"])
        return answer_json(_shown(approval))

    async def decide(self, request: Request) -> Answer:
        """POST /approvals/{approvalID}."""
        body = await read_body(request)
        decisions = {APPROVE: self._approvals.approve, REFUSE: self._approvals.refuse}
        decide = decisions.get(text_of(body, "decision") or "")
        if decide is None:
            raise ToolError(Kind.VALIDATION, f"body: decision: write {APPROVE!r} or {REFUSE!r}")
        note = text_of(body, "note") or ""
        approval = await self._threads.write(decide, request.path_params["approvalID"], by=request.caller, note=note)
        return answer_json(_shown(approval))

    async def events(self, request: Request) -> Answer:
        """GET /approvals/events."""
        return self._streams.stream(request, self._approvals.watch(), _encode)


def _encode(approval: Approval) -> bytes:
    return encode_event(str(approval.state), _shown(approval))


def _shown(approval: Approval) -> object:
    """The approval for a person: characters that cannot be seen are written out."""
    return show_hidden_in(approval.to_json())


def _make(host: Host) -> ApprovalEndpoints:
    crib = host.crib
    streams = EventStreams(seconds=host.seconds, ending=host.ending)
    return ApprovalEndpoints(crib.approvals, host.threads, streams)


NOW = Reply(description="The approval as it is now.", schema="Approval")
endpoints = (
    EndpointTable(
        tag="approvals",
        summary="Calls that wait for a person other than the caller.",
        make=_make,
        places=(
            in_path(
                "approvalID",
                "The id of the approval, as the refused call names it.",
                {**TEXT, "minLength": 1, "maxLength": 200},
                example="6919c3d0a1b2c3d4e5f6a7b89c0d1e2f",
            ),
        ),
        schemas={
            "ApprovalPart": closed(tuple(PART_KEYS), **PART_KEYS),
            "ApprovalAbout": closed((), **ABOUT_KEYS),
            "Approval": closed(
                tuple(APPROVAL_KEYS),
                **APPROVAL_KEYS,
                about=schema("ApprovalAbout"),
                runs={
                    "type": "array",
                    "items": schema("ApprovalPart"),
                    "description": "What exactly would run or be sent; only where one approval is read.",
                },
            ),
            "ApprovalList": closed(("approvals",), approvals={"type": "array", "items": schema("Approval")}),
        },
        endpoints=(
            Endpoint(
                name="listApprovals",
                method="GET",
                path="/approvals",
                handler=ApprovalEndpoints.list,
                scope=Scope.APPROVE,
                summary="List the calls that wait for a person.",
                query=(
                    choice(
                        "state",
                        "Only these; pending ones if absent.",
                        (*map(str, State), EVERYTHING),
                        key="approvalState",
                    ),
                ),
                replies={200: Reply(description="The approvals, the oldest first.", schema="ApprovalList")},
            ),
            Endpoint(
                name="followApprovals",
                method="GET",
                path="/approvals/events",
                handler=ApprovalEndpoints.events,
                scope=Scope.APPROVE,
                summary="Follow approvals as server-sent events.",
                description="First those that are pending, then each that is stored or changes its state; the event is the state.",
                replies={
                    200: Reply(description="An approval in each event.", media_type="text/event-stream"),
                },
            ),
            Endpoint(
                name="readApproval",
                method="GET",
                path=ONE,
                handler=ApprovalEndpoints.read,
                scope=Scope.APPROVE,
                summary="Read what exactly would run.",
                refusals=(404,),
                replies={200: NOW},
            ),
            Endpoint(
                name="decideApproval",
                method="POST",
                path=ONE,
                handler=ApprovalEndpoints.decide,
                scope=Scope.APPROVE,
                summary="Approve or refuse a call, once.",
                description="The caller that made the call cannot decide about it. An approved call runs when it is made again.",
                body=DECISION_BODY,
                refusals=(404, 409),
                replies={200: NOW},
            ),
        ),
    ),
)
