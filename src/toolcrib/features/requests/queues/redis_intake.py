"""File requests on the server: our own, and those of foreign clients, which publish a text, write a hash, or do both."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING
from uuid import uuid4

from toolcrib.features.requests.document import LAST_NUMBER, is_safe_id, read_request, spell_id
from toolcrib.features.requests.document.writer import read_message, readable_id, with_id
from toolcrib.features.requests.queues import check_text, cut, other_text, unknown
from toolcrib.features.requests.queues.redis_commands import LONGEST_TEXT, read_foreign_hash
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Priority

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.features.requests.queues.redis_commands import Answer, Commands
    from toolcrib.model.toolrequest import Filed, ToolRequest


PORTION = 100
ANSWER_BYTES = 4_000_000
# The bounds of one pass; the next one continues where it ended.
MOST_IN_ONE_PASS = 1_000
PASS_SECONDS = 10.0
# All subscribers receive the same message at nearly the same time.
ECHO_SECONDS = 5
# How many characters of open requests a process remembers, and how many of those requests it asks about with each command.
MAX_REMEMBERED = 32_000_000
ASKED_ABOUT = 10
# How many ended ones it remembers: more than end while an answer or a message is on its way.
MAX_ENDED = 1_000
# Why one request cannot be filed; any other error is about the server.
OF_THE_REQUEST = frozenset({Kind.VALIDATION, Kind.CONFLICT, Kind.LIMIT_EXCEEDED, Kind.NOT_FOUND})
LOOKS = 3
REFUSALS = {
    "taken": "another request has that id already",
    "occupied": "its key holds something else than a request",
    "full": "the numbers of the day are used up",
}
NUMBER_TO_COME = "req_00000000_000"

logger = logging.getLogger("toolcrib.queues")


def file_request(commands: Commands, request: ToolRequest) -> Filed:
    """Store a request of our own and publish it; raises CONFLICT, or LIMIT_EXCEEDED."""
    answer = give_request(commands, request)
    if answer.outcome["outcome"] == "taken":
        raise other_text(request.id)
    if answer.outcome["outcome"] == "occupied":
        place = f"the key {commands.names.prefix}:{request.id} at {commands.link.place}"
        message = f"{place} holds something else than a request; delete it, or give the request another id"
        raise ToolError(Kind.CONFLICT, message, details={"id": request.id})
    if answer.outcome["outcome"] == "full":
        spell_id(str(answer.outcome["day"]), LAST_NUMBER + 1)
    if not answer.requests:  # it was deleted before the command was sent again
        raise unknown(str(answer.outcome["id"]))
    return answer.requests[0]


def give_request(commands: Commands, request: ToolRequest, **given: object) -> Answer:
    """Send a request to the server; the outcome says whether it was stored."""
    check_text(request)
    text, rest = (request.text, "") if request.id else _around_id(request.text)
    return commands.change(
        "file",
        id=request.id,
        text=text,
        rest=rest,
        name=request.name,
        digest=request.digest,
        priority=str(request.priority),
        experiment=request.experiment,
        **given,
    )


class OpenRequests:
    """The open requests that this process has seen, for a server that loses its data.

    An answer may be overtaken by a later one, so each request has the count of changes after which it was last seen.
    """

    def __init__(self) -> None:
        # In the order in which they were last seen, or asked about.
        self._seen: dict[str, Filed] = {}
        self._characters = 0
        self._counts: dict[str, int] = {}
        self._ended: dict[str, int] = {}
        self.make_locks()

    def make_locks(self) -> None:
        """Make the lock, unheld."""
        self._lock = threading.Lock()

    def note(self, answer: Answer) -> None:
        """Remember the open requests of an answer, and forget those that are over or were deleted."""
        with self._lock:
            for filed in answer.requests:
                if filed.status.is_final:
                    self._end(filed.id, answer.after)
                else:
                    self._see(filed, answer.after)
            for request_id in answer.over:
                if request_id in self._seen:
                    self._end(request_id, answer.after)

    def knows(self, request_id: str) -> bool:
        """Whether it is open, or has ended lately."""
        with self._lock:
            return request_id in self._seen or request_id in self._ended

    def least_recent(self, count: int = ASKED_ABOUT) -> list[str]:
        """Some ids of those that were not seen for longest; the next time others."""
        with self._lock:
            ids = list(islice(self._seen, count))
            for request_id in ids:
                self._seen[request_id] = self._seen.pop(request_id)
            return ids

    def restore(self, commands: Commands) -> None:
        """File them again in their order; one whose id was taken since is logged."""
        with self._lock:
            self._counts.clear()
            self._ended = dict.fromkeys(self._ended, 0)
            seen = sorted(self._seen.values(), key=lambda filed: (filed.created_at, filed.id))
        if seen:
            logger.warning("redis: %s lost its data; %d open requests are filed again", commands.link.place, len(seen))
        for filed in seen:
            try:
                file_request(commands, read_request(filed.text))
            except ToolError as problem:
                if problem.kind not in OF_THE_REQUEST:
                    raise
                logger.warning("redis: %s is lost: %s", filed.id, problem.message)

    def _see(self, filed: Filed, count: int) -> None:
        if self._drop(filed.id, count) and self._characters + len(filed.text) <= MAX_REMEMBERED:
            self._seen[filed.id], self._counts[filed.id] = filed, count
            self._characters += len(filed.text)

    def _end(self, request_id: str, count: int) -> None:
        if self._drop(request_id, count):
            self._ended[request_id] = count
            if len(self._ended) > MAX_ENDED:
                del self._ended[next(iter(self._ended))]

    def _drop(self, request_id: str, count: int) -> bool:
        """Forget it, unless a later answer is known."""
        if count < max(self._counts.get(request_id, 0), self._ended.get(request_id, 0)):
            return False
        self._counts.pop(request_id, None)
        self._ended.pop(request_id, None)
        before = self._seen.pop(request_id, None)
        self._characters -= 0 if before is None else len(before.text)
        return True


class Intake:
    """Accepts the requests of foreign clients, each once; unreadable ones are counted, and stored as failed if they have an id."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._cursor = 0
        self.make_locks()
        self._looks: dict[str, int] = {}
        self._postponed: list[bytes] = []
        self._complained: set[str] = set()
        self.unreadable = 0
        self.last_reason = ""

    def make_locks(self) -> None:
        """Make the locks, unheld."""
        self._pass = threading.Lock()
        self._counting = threading.Lock()

    def hear(self, data: bytes) -> None:
        """Process a message of a channel; if the server cannot be reached or refuses, later."""
        try:
            self._hear(data)
        except ToolError as problem:
            if problem.kind not in OF_THE_REQUEST and len(self._postponed) < PORTION:
                self._postponed.append(data)
            raise

    def look_again(self) -> None:
        """Look again at recently announced requests: some clients write the hash after they publish."""
        while self._postponed:
            self.hear(self._postponed.pop(0))
        ids = sorted(self._looks)
        self._looks = {each: left - 1 for each, left in self._looks.items() if left > 1}
        if ids:
            self.survey(ids)

    def survey(self, ids: Sequence[str]) -> int:
        """Look at hashes: repair ours, accept new ones; how many were changed."""
        count, left = 0, list(ids)
        while left:
            answer = self._commands.read("survey", ids=left, space=ANSWER_BYTES)
            foreign = [read_foreign_hash(row) for row in answer.rows]
            count += int(str(answer.outcome["mended"]))
            count += sum(self._adopt(*found) for found in foreign)
            shown = {found[0] for found in foreign}
            left = [each for each in left if each not in shown] if answer.outcome["full"] else []
        return count

    def sweep(self) -> int:
        """Look at all hashes, as far as one pass gets; how many were accepted or repaired."""
        with self._pass:
            count, deadline = 0, time.monotonic() + PASS_SECONDS
            while True:
                self._cursor, ids = self._commands.scan(self._cursor, PORTION)
                count += self.survey(ids)
                if self._cursor == 0 or count >= MOST_IN_ONE_PASS or time.monotonic() > deadline:
                    return count

    def _hear(self, data: bytes) -> None:
        text = data[:LONGEST_TEXT].decode("utf-8", "replace")
        try:
            request = self._read(text, data)
        except ToolError as problem:
            if problem.kind not in OF_THE_REQUEST:  # a server that is a replica for a moment refuses for good
                raise
            self._refuse(readable_id(text), text, problem.message, heard=True)
            return
        if request is not None:
            self._take(request, data)

    def _read(self, text: str, data: bytes) -> ToolRequest | None:
        _check_size(len(data))
        _check_encoding(data)
        message = read_message(text)
        if not message.text:
            self._follow(message.key, message.id)
            return None
        if message.text == text:
            return read_request(text, place="message")
        # Messages of the original Builder have no id, or one of another form.
        request = read_request(with_id(message.text, message.id or NUMBER_TO_COME), place="message")
        return request if message.id else replace(request, id="")

    def _follow(self, key: str, request_id: str) -> None:
        """Look at the hash that a note names; if it is not there yet, look again later."""
        if key and self._commands.names.id_of(key) != request_id:
            message = f"the note names {key!r:.100}; requests are stored in {self._commands.names.prefix}:{request_id}"
            raise ToolError(Kind.VALIDATION, message)
        self._expect(request_id)
        self.survey([request_id])

    def _expect(self, request_id: str) -> None:
        if len(self._looks) < PORTION:
            self._looks[request_id] = LOOKS

    def _take(self, request: ToolRequest, data: bytes) -> None:
        echo = {"token": hashlib.sha256(data).hexdigest(), "memory": ECHO_SECONDS} if not request.id else {}
        answer = give_request(self._commands, request, heard=True, **echo)
        self._expect(str(answer.outcome.get("id", "")))
        if answer.outcome["outcome"] in REFUSALS:
            self._count(f"{request.id or request.name}: {REFUSALS[str(answer.outcome['outcome'])]}")

    def _adopt(self, request_id: str, text: bytes, length: int) -> bool:
        """Accept the hash of a foreign client, or store it as failed; False if its key is not a request id."""
        if not is_safe_id(request_id):
            if request_id not in self._complained and len(self._complained) < MOST_IN_ONE_PASS:
                self._complained.add(request_id)
                self._count(f"{request_id!r:.100} is not a request id; write req_YYYYMMDD_NNN")
            return False
        try:
            _check_size(length)
            _check_encoding(text)
            request = read_request(text.decode(), place=f"{self._commands.names.prefix}:{request_id}")
            if request.id != request_id:
                message = f"the key says {request_id} and the text {request.id}; write the same id in both"
                raise ToolError(Kind.VALIDATION, message)
        except ToolError as problem:
            self._refuse(request_id, "", problem.message, heard=False)
            return True
        give_request(self._commands, request, heard=True)
        return True

    def _refuse(self, request_id: str, text: str, reason: str, *, heard: bool) -> None:
        self._count(f"{request_id or 'a message without a readable id'}: {reason}")
        if not request_id:
            return
        self._commands.change(
            "reject",
            id=request_id,
            text=text,
            error=cut(reason),
            heard=heard,
            name="",
            digest="",
            priority=str(Priority.LOW),
            experiment="",
        )

    def _count(self, reason: str) -> None:
        self.last_reason = " ".join(reason.split())[:300]
        logger.warning("redis: a request of a foreign client was refused: %s", self.last_reason)
        with self._counting:
            self.unreadable += 1


def _around_id(text: str) -> tuple[str, str]:
    """The text before and after the id, which the server assigns."""
    mark = f"req_{uuid4().hex}"
    before, _, behind = with_id(text, mark).partition(mark)
    return before, behind


def _check_size(length: int) -> None:
    if length > LONGEST_TEXT:
        message = f"the text has {length:,} bytes, the limit is {LONGEST_TEXT:,}; ask for less in one request"
        raise ToolError(Kind.LIMIT_EXCEEDED, message)


def _check_encoding(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as problem:
        message = f"the text is not UTF-8 from byte {problem.start} on; write it in UTF-8"
        raise ToolError(Kind.VALIDATION, message) from None
