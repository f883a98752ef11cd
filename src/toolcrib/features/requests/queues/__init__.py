"""The queues of tool requests: a file of the project, or a Redis server that several machines share.

Both queues follow the same rules, which the contract suite checks:

- Of several requests that ask for the same thing one is built, the leader; the others follow it. A follower shows the status of
  its leader as long as both are open, and ends with it: same status, same error, same tool. All of them have the priority of
  the most urgent one.
- Cancelling a follower leaves the others alone. Cancelling a leader hands over to its oldest follower, which is built from the
  beginning; requests without an id that were merged into the leader are cancelled with it.
- Retrying a failed request retries everything that failed with it. A cancelled one comes back alone. If the same thing is being
  built by then, what comes back follows that request.
- An allowance applies to the leader and to all that follow it; given to a failed request, it applies to everything that would be
  retried with it.
- An experiment waits for each request that names it until a request that asks for the same thing is ready; a request that fails
  or is cancelled leaves it blocked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import orjson

from toolcrib.model.errors import Cure, Kind, ToolError, cure_of
from toolcrib.model.toolrequest import Allowance, Filed, RecordedAnswer, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.model.toolrequest import Claim, Made, Priority, ToolRequest

    Refusal = Callable[[str, Status], ToolError]


HISTORY_EVENTS = 200
TEXT_BYTES = 4_096
CUT = "…"
STORED_TEXTS = (
    *("id", "name", "text", "created_at", "updated_at"),
    *("experiment", "error", "tool", "merged_into", "owner"),
)


class HistoryStep(StrEnum):
    """What a queue itself writes into the history of a request; a Builder adds steps of its own."""

    FILED = "filed"
    MERGED = "merged"  # the text is the id of the leader, which is built in its place
    BUILDING = "building"  # the text is the owner of the claim
    HELD = "held"
    RETURNED = "returned"  # for another Builder to claim
    READY = "ready"  # the text is the address of the tool
    FAILED = "failed"
    CANCELLED = "cancelled"
    RETRIED = "retried"
    ALLOWED = "allowed"
    RELEASED = "released"  # the text is the experiment


OPEN = (Status.PENDING, Status.BUILDING)
# The statuses in which each decision about a request is permitted.
PERMITTED: Mapping[str, frozenset[Status]] = {
    "cancel": frozenset(OPEN),
    "retry": frozenset({Status.FAILED, Status.CANCELLED}),
    "allow": frozenset(Status) - {Status.READY},
}


class CommandQueue(ABC):
    """Turns these methods into commands; each kind of queue carries a command out in one step."""

    def renew(self, claim: Claim) -> bool:
        """Renew the lease; False if the claim is lost: another Builder has it, or the request is over."""
        return self._act("renew", claim)

    def note(self, claim: Claim, step: str, text: str = "") -> bool:
        """Write an event into the history; False as for `renew`."""
        return self._act("note", claim, step=cut(step), text=cut(text))

    def hold(self, claim: Claim, text: str) -> bool:
        """Leave it to a person: it stays `building`, without a lease. False as for `renew`."""
        return self._act("hold", claim, text=cut(text))

    def give_back(self, claim: Claim, text: str) -> bool:
        """Return it to the queue for another Builder. False as for `renew`."""
        return self._act("give_back", claim, text=cut(text))

    def finish(self, claim: Claim, made: Made) -> bool:
        """Mark it as ready and release every experiment that waits for it, once. False as for `renew`."""
        return self._act("finish", claim, **self._describe(claim, made))

    def fail(self, claim: Claim, error: str) -> bool:
        """Mark it as failed, with the reason. False as for `renew`."""
        return self._act("fail", claim, error=cut(error))

    def cancel(self, request_id: str, reason: str) -> Filed:
        """Cancel it; if others ask for the same, the oldest of them is built instead."""
        return self._decide("cancel", request_id, is_over, reason=cut(reason))

    def retry(self, request_id: str) -> Filed:
        """Have one that failed, or was cancelled, built again, with those that failed with it."""
        return self._decide("retry", request_id, cannot_be_retried)

    def allow(self, request_id: str, allowance: Allowance) -> Filed:
        """Replace what the operator adds to it."""
        return self._decide("allow", request_id, is_over, allowance=write_allowance(allowance))

    @abstractmethod
    def _act(self, command: str, claim: Claim, **given: object) -> bool:
        """Carry out a command of the Builder that holds the claim; False if the claim is lost."""

    @abstractmethod
    def _decide(self, command: str, request_id: str, refusal: Refusal, **given: object) -> Filed:
        """Carry out a decision; raises NOT_FOUND, or the `refusal` unless the status is among `PERMITTED`."""

    @abstractmethod
    def _describe(self, claim: Claim, made: Made) -> dict[str, object]:
        """What `finish` stores about the tool that was made."""


def utc_now() -> datetime:
    """The present time in UTC."""
    return datetime.now(UTC)


def spell_time(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds, so that the later one is the greater text."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def cut(text: str) -> str:
    """The text as any queue can store it: valid Unicode, cut to a few kilobytes."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= TEXT_BYTES:
        return data.decode()
    return data[: TEXT_BYTES - len(CUT.encode())].decode("utf-8", "ignore") + CUT


def is_text(text: str) -> bool:
    """Whether it can be encoded; a text with a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text(request: ToolRequest) -> None:
    """Refuse a request that contains a lone surrogate, which no queue can store."""
    for what in ("id", "name", "text", "digest", "experiment"):
        if not is_text(getattr(request, what)):
            raise ToolError(Kind.VALIDATION, f"the {what} of the request contains a lone surrogate; remove it")


def to_filed(stored: Mapping[str, object], priority: Priority) -> Filed:
    """The request of these stored values, which both queues name like the fields of `Filed`."""
    facts: dict[str, object] = {name: stored[name] for name in STORED_TEXTS}
    return Filed(
        **facts,  # type: ignore[arg-type]  # texts, all of them
        status=Status(str(stored["status"])),
        priority=priority,
        held=stored["held"] in {1, "1"},
        attempts=int(str(stored["attempts"])),
        requesters=int(str(stored["requesters"])),
        allowance=read_allowance(str(stored["allowance"])),
    )


def write_allowance(allowance: Allowance) -> str:
    """The allowance as JSON with sorted keys."""
    document = {
        "capabilities": sorted(allowance.capabilities),
        "hosts": list(allowance.hosts),
        "answers": [answer.to_json() for answer in allowance.answers],
        "unproved": allowance.unproved,
    }
    try:
        return orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError as problem:
        raise ToolError(Kind.VALIDATION, f"the allowance cannot be written as JSON: {problem}") from problem


def read_allowance(text: str) -> Allowance:
    """Read what `write_allowance` wrote; an empty text allows nothing."""
    if not text:
        return Allowance()
    document = orjson.loads(text)
    return Allowance(
        capabilities=frozenset(document["capabilities"]),
        hosts=tuple(document["hosts"]),
        answers=tuple(RecordedAnswer(**answer) for answer in document["answers"]),
        unproved=document["unproved"],
    )


def unknown(request_id: str) -> ToolError:
    """The error for an id that no request has."""
    cure = Cure(
        "list them with: crib request list", "list them with: GET /requests", model="file one with request_tool"
    )
    return ToolError(Kind.NOT_FOUND, f"there is no request {request_id!r:.200}", cure=cure)


def other_text(request_id: str) -> ToolError:
    """The error for an id that another request has."""
    message = f"another request has the id {request_id}; give this one another id, or none to get the next number"
    return ToolError(Kind.CONFLICT, message, details={"id": request_id})


def is_over(request_id: str, status: Status) -> ToolError:
    """The error for a decision about a request that has ended."""
    again = Cure(
        f"have it built again with: crib request retry {request_id}",
        f"have it built again with: POST /requests/{request_id}/retry",
    )
    cure = cure_of("nothing is left to do") if status == "ready" else again
    return ToolError(
        Kind.CONFLICT, f"{request_id} is {status} already", cure=cure, details={"id": request_id, "status": str(status)}
    )


def cannot_be_retried(request_id: str, status: Status) -> ToolError:
    """The error for retrying a request that neither failed nor was cancelled."""
    cure = "file a request of its own for another tool" if status == "ready" else "wait for it, or cancel it first"
    message = f"{request_id} is {status}; only one that failed or was cancelled can be built again: {cure}"
    return ToolError(Kind.CONFLICT, message, details={"id": request_id, "status": str(status)})
