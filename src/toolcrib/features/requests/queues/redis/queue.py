"""The queue on a Redis server: the hash of a request is the truth, and messages on channels only wake readers."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import orjson

from toolcrib.features.requests.document.reader import read_request
from toolcrib.features.requests.queues.records import CommandQueue, cut, is_text, unknown
from toolcrib.features.requests.queues.redis.connection import Link, look_after
from toolcrib.features.requests.queues.redis.lua_commands import (
    Commands,
    Names,
    read_claim,
    read_event,
    read_experiment,
    read_filed,
)
from toolcrib.features.requests.queues.redis.submissions import Intake, file_request
from toolcrib.features.requests.queues.redis.subscription import Listener, Watch
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from toolcrib.features.requests.queues.records import Refusal
    from toolcrib.features.requests.queues.redis.lua_commands import Answer
    from toolcrib.model.toolrequest import Claim, Event, Experiment, Filed, Made, ToolRequest

PORTION = 100
LONGEST_COUNT = 18


class RedisQueue(CommandQueue):
    """Keeps requests on a Redis server, which any number of machines may share.

    Nothing is opened before it is needed. The clock is the server's; tests pass `now` to choose the day. A queue that
    waits or reconciles also subscribes, and accepts what foreign clients publish.
    """

    def __init__(
        self,
        url: str,
        *,
        password: str = "",
        requests: str = "fullsend:builder_requests",
        ready: str = "builder:tool_ready",
        hash_prefix: str = "tool_requests",
        original: bool = False,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._names = Names(requests=requests, ready=ready, prefix=hash_prefix, original=original)
        self._link = Link(url, password=password)
        self._watch = Watch()
        self._commands = Commands(self._link, self._names, now=now, seen=self._watch.begin)
        self._intake = Intake(self._commands)
        channels = (*self._names.arrivals, self._names.changed)
        self._listener = Listener(
            self._link, channels, heard=self._hear, quiet=self._intake.look_again, joined=self._join
        )

    def file(self, request: ToolRequest) -> Filed:
        """Store a request and publish it; one without an id gets the next number of today."""
        return file_request(self._commands, request)

    def get(self, request_id: str) -> Filed | None:
        """One request."""
        if not is_text(request_id):
            return None
        answer = self._commands.read("get", id=request_id)
        if not answer.rows and request_id and self._intake.survey([request_id]):
            answer = self._commands.read("get", id=request_id)
        return read_filed(answer.rows[0]) if answer.rows else None

    def requests(self, status: Status | None = None, *, limit: int = 1_000) -> list[Filed]:
        """The newest requests, in the order in which they were filed."""
        statuses = [str(each) for each in Status] if status is None else [str(status)]
        found: list[Filed] = []
        age, more = 0, True
        while more and len(found) < limit:
            portion = min(PORTION, limit - len(found))
            answer = self._commands.read("list", statuses=statuses, age=age, portion=portion)
            found += [read_filed(row) for row in answer.rows]
            age, more = int(str(answer.outcome["age"])), bool(answer.outcome["more"])
        return found[::-1]

    def find_open(self, name: str) -> Filed | None:
        """The oldest request for a tool of that name which is pending or being built, if there is one."""
        answer = self._commands.read("find_open", name=name) if is_text(name) else None
        return read_filed(answer.rows[0]) if answer is not None and answer.rows else None

    def history(self, request_id: str, after: int = 0) -> list[Event]:
        """The events of a request after that number."""
        if not is_text(request_id):
            return []
        events = [read_event(row) for row in self._commands.read("history", id=request_id).rows]
        return [event for event in events if event.number > after]

    def claim(self, owner: str, seconds: float, request_id: str | None = None) -> Claim | None:
        """Claim the next request, or this one, also if it is held; for one that follows, its leader."""
        if request_id is not None and (not request_id or not is_text(request_id)):
            return None
        answer = self._commands.change("claim", id=request_id or "", owner=cut(owner), lease=_milliseconds(seconds))
        return read_claim(answer.outcome, read_filed(answer.rows[0]), owner, seconds) if answer.rows else None

    def experiments(self) -> list[Experiment]:
        """The experiments that wait or waited for a tool."""
        found: list[Experiment] = []
        while True:
            answer = self._commands.read("experiments", start=len(found), portion=PORTION)
            found += [read_experiment(row) for row in answer.rows]
            if len(answer.rows) < PORTION:
                return found

    def reconcile(self) -> int:
        """Accept what foreign clients wrote, repair what they overwrote, and return requests whose lease expired."""
        swept = self._commands.change("sweep").outcome["swept"]
        found = self._intake.sweep()
        self._listener.start()
        return int(str(swept)) + found

    def wait(self, seconds: float) -> bool:
        """Wait until anything may have changed since this object last waited, at most so many seconds."""
        self._listener.start()
        return self._watch.wait(seconds)

    def remarks(self) -> list[str]:
        """What a crash of the server could lose, and how many foreign requests were refused."""
        remarks = look_after(self._link)
        if self._intake.unreadable:
            count, reason = self._intake.unreadable, self._intake.last_reason
            remarks.append(f"{count} requests of foreign clients were refused, the last of them: {reason}")
        return remarks

    def close(self) -> None:
        """Close every connection, and wake the threads that wait."""
        self._watch.close()
        self._listener.stop()
        self._link.close()
        self._listener.join()

    def _act(self, command: str, claim: Claim, **given: object) -> bool:
        whose = {"id": claim.id, "fence": claim.fence, "owner": cut(claim.owner)}
        answer = self._commands.change(command, **whose, lease=_milliseconds(claim.seconds), **given)
        return answer.outcome["done"] is True

    def _describe(self, claim: Claim, made: Made) -> dict[str, object]:
        made_facts = {"name": made.name, "path": made.path, "version": made.version, "tool": made.address}
        facts = ["path", made.path, "version", made.version, *self._description(claim)]
        spelled = orjson.dumps(made_facts).decode()[1:-1]  # the server adds the id and the experiments
        return {"tool": made.address, "made": spelled, "facts": facts}

    def _description(self, claim: Claim) -> list[str]:
        """The description, which the original Builder stored with a tool."""
        if not self._names.original:
            return []
        with suppress(ToolError):
            return ["description", read_request(claim.text).description]
        return []

    def _decide(self, command: str, request_id: str, refusal: Refusal, **given: object) -> Filed:
        if self.get(request_id) is None:
            raise unknown(request_id)
        answer = self._commands.change(command, id=request_id, **given)
        return _read_decision(answer, request_id, refusal)

    def _hear(self, channel: str, data: bytes) -> None:
        if channel != self._names.changed:
            self._intake.hear(data)
        elif data.isdigit() and len(data) <= LONGEST_COUNT:
            self._watch.ring(int(data))

    def _join(self, again: bool) -> None:  # noqa: FBT001 - a callback of the listener
        self._watch.rejoin(self._commands.read("changes").changes)
        if again:
            self._intake.look_again()
            self._intake.sweep()


def _read_decision(answer: Answer, request_id: str, refusal: Refusal) -> Filed:
    outcome = answer.outcome["outcome"]
    if outcome == "refused":
        raise refusal(request_id, Status(str(answer.outcome["status"])))
    if outcome == "unreadable":
        message = f"{request_id} could not be read and cannot be built; file it again under another id, corrected"
        raise ToolError(Kind.CONFLICT, message, details={"id": request_id})
    if outcome == "unknown":
        raise unknown(request_id)
    return read_filed(answer.rows[0])


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1_000))
