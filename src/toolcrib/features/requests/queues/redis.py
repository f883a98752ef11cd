"""The queue on a Redis server: the hash of a request is the truth, and messages on channels only wake readers."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

import orjson

from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.queues import OPEN, PERMITTED, CommandQueue, cut, is_text, unknown
from toolcrib.features.requests.queues.redis_commands import (
    Commands,
    Names,
    read_claim,
    read_event,
    read_experiment,
)
from toolcrib.features.requests.queues.redis_connection import Link, Lost, look_after
from toolcrib.features.requests.queues.redis_intake import (
    MAX_REMEMBERED,
    MOST_IN_ONE_PASS,
    Intake,
    OpenRequests,
    file_request,
)
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from toolcrib.features.requests.queues import Refusal
    from toolcrib.features.requests.queues.redis_commands import Answer
    from toolcrib.features.requests.queues.redis_connection import Connection
    from toolcrib.model.toolrequest import Claim, Event, Experiment, Filed, Made, ToolRequest


PORTION = 100
LONGEST_COUNT = 18

# After so many seconds without a message the server is pinged, and has a few times as long to answer.
QUIET_SECONDS = 1.0
QUIET_TIMES = 5
FIRST_PAUSE, LAST_PAUSE = 0.05, 5.0
# A thread that connects to a host that does not answer, or looks up its name, cannot be woken; it ends by itself later.
CLOSE_SECONDS = 0.5

logger = logging.getLogger("toolcrib.queues")


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
        self._open = OpenRequests()
        self._commands = Commands(
            self._link,
            self._names,
            now=now,
            remembered=self._open.least_recent,
            noted=self._note,
            restore=self._restore,
        )
        self._intake = Intake(self._commands)
        self._announced = b""  # the digest and the id of the next text, if our own scripts publish it
        channels = (*self._names.arrivals, self._names.changed)
        self._listener = Listener(
            self._link, channels, heard=self._hear, quiet=self._intake.look_again, joined=self._join
        )
        own = weakref.WeakMethod(self._start_anew)
        os.register_at_fork(after_in_child=lambda: (start_anew := own()) and start_anew())

    def file(self, request: ToolRequest) -> Filed:
        """Store a request and publish it; one without an id gets the next number of today."""
        return file_request(self._commands, request)

    def get(self, request_id: str) -> Filed | None:
        """One request."""
        if not is_text(request_id):
            return None
        answer = self._commands.read("get", id=request_id, remembered=[request_id])
        if not answer.requests and request_id and self._intake.survey([request_id]):
            answer = self._commands.read("get", id=request_id)
        return answer.requests[0] if answer.requests else None

    def requests(self, status: Status | None = None, *, limit: int = 1_000) -> list[Filed]:
        """The newest requests, in the order in which they were filed."""
        found: list[Filed] = []
        for answer in self._list(tuple(Status) if status is None else (status,), limit):
            found += answer
        return found[::-1]

    def find_open(self, name: str) -> Filed | None:
        """The oldest request for a tool of that name which is pending or being built, if there is one."""
        answer = self._commands.read("find_open", name=name) if is_text(name) else None
        return answer.requests[0] if answer is not None and answer.requests else None

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
        return read_claim(answer.outcome, answer.requests[0], owner, seconds) if answer.requests else None

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
        # In case the server loses its data, those that ended elsewhere are forgotten, and all that are open remembered.
        remembered = self._open.least_recent(MOST_IN_ONE_PASS)
        swept = self._commands.change("sweep", remembered=remembered).outcome["swept"]
        found = self._intake.sweep()
        characters = 0
        for portion in self._list(OPEN):
            characters += sum(len(filed.text) for filed in portion)
            if characters > MAX_REMEMBERED:
                break
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

    def _start_anew(self) -> None:
        """In a forked child: a thread of the parent may have held a lock, and is not here to release it."""
        for part in (self._watch, self._open, self._commands, self._intake, self._listener):
            part.make_locks()

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
        answer = self._commands.change(command, id=request_id, permitted=sorted(PERMITTED[command]), **given)
        return _read_decision(answer, request_id, refusal)

    def _list(self, statuses: Sequence[Status], limit: int = sys.maxsize) -> Iterator[Sequence[Filed]]:
        """The requests of these statuses from the newest on, a portion at a time."""
        age, more = 0, True
        while more and limit > 0:
            portion = min(PORTION, limit)
            answer = self._commands.read("list", statuses=[*map(str, statuses)], age=age, portion=portion)
            yield answer.requests
            limit -= len(answer.requests)
            age, more = int(str(answer.outcome["age"])), bool(answer.outcome["more"])

    def _note(self, answer: Answer) -> None:
        self._watch.begin(answer.before)
        self._open.note(answer)

    def _restore(self, changes: int) -> None:
        self._watch.rejoin(changes)
        self._open.restore(self._commands)

    def _hear(self, channel: str, data: bytes) -> None:
        if channel != self._names.changed:
            announced, self._announced = self._announced, b""
            if not self._is_known(announced, data):
                self._intake.hear(data)
        elif not data.isdigit():
            self._announced = data
        elif len(data) <= LONGEST_COUNT:
            self._watch.notify(int(data))

    def _is_known(self, announced: bytes, data: bytes) -> bool:
        """Whether a text is of a request that this process knows: it may have ended, and be lost, before the message arrives."""
        digest, _, spelled_id = announced.partition(b" ")
        if digest != hashlib.sha1(data, usedforsecurity=False).hexdigest().encode():
            return False
        request_id = spelled_id.decode("utf-8", "replace")
        # Once it is looked up, what other threads have filed or ended is known too.
        return self._open.knows(request_id) or self.get(request_id) is not None or self._open.knows(request_id)

    def _join(self, again: bool) -> None:  # noqa: FBT001 - a callback of the listener
        self._watch.rejoin(self._commands.read("changes").after)
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
    if outcome == "unknown" or not answer.requests:
        raise unknown(request_id)
    return answer.requests[0]


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1_000))


class Listener:
    """Subscribes to channels, and calls `heard` for each message and `quiet` after a moment without any.

    `joined` is called after each subscription, with whether it is a later one: messages in between were missed, and now is
    the time to look for what they announced.
    """

    def __init__(
        self,
        link: Link,
        channels: Sequence[str],
        *,
        heard: Callable[[str, bytes], None],
        quiet: Callable[[], None],
        joined: Callable[[bool], None],
    ) -> None:
        self._link = link
        self._channels = tuple(channels)
        self._heard = heard
        self._quiet = quiet
        self._joined = joined
        self._closing = threading.Event()
        self.make_locks()
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None

    def make_locks(self) -> None:
        """Make the locks, unheld."""
        self._lock = threading.Lock()
        is_closing, self._closing = self._closing.is_set(), threading.Event()
        if is_closing:
            self._closing.set()

    def start(self) -> None:
        """Start the thread, unless it runs."""
        with self._lock:
            # A forked child has no thread but the one that forked.
            if (self._thread is not None and self._thread.is_alive()) or self._closing.is_set():
                return
            self._thread = threading.Thread(target=self._listen, name="toolcrib-redis", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Do not reconnect."""
        self._closing.set()

    def join(self) -> None:
        """Wait a moment until the thread has ended, which it does once the link is closed."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(CLOSE_SECONDS)

    def _listen(self) -> None:
        pause, before = FIRST_PAUSE, False
        while not self._closing.is_set():
            try:
                connection = self._subscribe()
                self._joined(before)
                pause, before = FIRST_PAUSE, True
                self._hear(connection)
            except Exception as problem:  # noqa: BLE001 - the thread must outlive any error, until its queue closes
                if self._closing.is_set():
                    break
                if pause == FIRST_PAUSE:  # logged once, not for every retry
                    logger.warning("redis: cannot subscribe at %s: %s", self._link.place, _spell(problem))
            finally:
                self._disconnect()
            self._closing.wait(pause)
            pause = min(2 * pause, LAST_PAUSE)

    def _subscribe(self) -> Connection:
        connection = self._link.connect()
        with self._lock:
            self._connection = connection
        connection.send_command("SUBSCRIBE", *self._channels)
        for _ in self._channels:
            connection.read_response()
        return connection

    def _hear(self, connection: Connection) -> None:
        silence = 0
        while not self._closing.is_set():
            if connection.can_read(timeout=QUIET_SECONDS):
                silence = 0
                self._tell(connection.read_response())
                continue
            silence += 1
            if silence == 1:
                connection.send_command("PING")
                self._log_errors(self._quiet)
            if silence > QUIET_TIMES:
                raise Lost("it does not answer a ping", sent=False)

    def _tell(self, said: object) -> None:
        if isinstance(said, list) and said[0] == b"message":
            self._log_errors(lambda: self._heard(said[1].decode(), said[2]))

    def _log_errors(self, act: Callable[[], None]) -> None:
        try:
            act()
        except ToolError as problem:
            logger.warning("redis: a message could not be processed: %s", problem.message)

    def _disconnect(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            self._link.drop(connection)


class Watch:
    """Follows the server's counter of changes, and wakes the threads that wait for the next one.

    It begins with the first count that any command returned: no later change is missed.
    """

    def __init__(self) -> None:
        self.make_locks()
        self._latest: int | None = None
        self._seen: int | None = None
        self._closed = False

    def make_locks(self) -> None:
        """Make the condition, without waiters."""
        self._condition = threading.Condition()

    def begin(self, count: int) -> None:
        """Begin with this count, unless there is one already."""
        with self._condition:
            if self._seen is None and self._latest is None:
                self._seen = self._latest = count

    def rejoin(self, count: int) -> None:
        """Continue with this count, also if the server has started to count from zero."""
        with self._condition:
            self._latest = count
            self._condition.notify_all()

    def notify(self, count: int) -> None:
        """Record the count after a change, and wake the waiters."""
        with self._condition:
            if self._latest is None or count > self._latest:
                self._latest = count
                self._condition.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait for a change since the last wait; False if there is none in time."""
        with self._condition:
            seen = self._seen
            woken = self._condition.wait_for(lambda: self._closed or self._latest != seen, max(0.0, seconds))
            self._seen = self._latest
            return woken and not self._closed

    def close(self) -> None:
        """Wake all waiters; from now on `wait` returns at once."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()


def _spell(problem: Exception) -> str:
    return problem.message if isinstance(problem, ToolError) else str(problem)[:200]
