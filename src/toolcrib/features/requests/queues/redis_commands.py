"""Run the Lua commands of the queue: the server carries out each in one atomic step, by its own clock."""

from __future__ import annotations

import hashlib
import re
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import orjson

from toolcrib.features.requests.document import LAST_NUMBER, request_day
from toolcrib.features.requests.queues import HISTORY_EVENTS, spell_time, to_filed
from toolcrib.features.requests.queues.redis_connection import LONGEST_SECONDS
from toolcrib.lib.documents import MAX_DEFINITION_BYTES
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.model.toolrequest import Claim, Event, Experiment, Priority

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from toolcrib.features.requests.queues.redis_connection import Link
    from toolcrib.model.toolrequest import Filed


TASKS = "fullsend:builder_tasks"
# Further channels and keys of the original Builder.
ORIGINAL = {
    "results": "fullsend:builder_results",
    "orchestrator": "fullsend:to_orchestrator",
    "execute": "fullsend:execute_now",
    "experiments": "pending_experiments:",
    "tools": "tools:",
}
OURS = "toolcrib:"

LONGEST_TEXT = MAX_DEFINITION_BYTES
LONGEST_KEY = 1_000
NEWLINES = 64  # more at the end of a text than a shell adds or strips
# How long the server remembers the answer of a command: longer than a command is retried.
MEMORY_SECONDS = 120
# How often the server may lose its data within one command before the command gives up.
MAX_LOSSES = 20
ANOTHER_TEXT = "another text came under this id and was refused; give it an id of its own"
LEASE_EXPIRED = "the lease of its Builder expired"

_PARTS: Final = ("common.lua", "submissions.lua", "builds.lua", "decisions.lua")

# The order in which `common.lua` answers with the fields of a request.
STORED = (
    *("id", "name", "status", "priority", "text", "created_at", "updated_at", "experiment", "error", "tool"),
    *("merged_into", "owner", "held", "attempts", "requesters", "allowance"),
)

# The commands that answer with other rows than requests.
_OTHER_ROWS = frozenset({"history", "survey", "experiments"})

# Printable ASCII without spaces, short enough for a log line.
_WORD = re.compile(r"[!-~]{1,200}")
_GLOB = re.compile(r"([*?\[\]\\^])")


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """The channels of requests and of finished tools, the prefix of request hashes, and whether the original Builder is served."""

    requests: str
    ready: str
    prefix: str
    original: bool = False

    def __post_init__(self) -> None:
        for setting, word in (("requests", self.requests), ("ready", self.ready), ("hash", self.prefix)):
            if not _WORD.fullmatch(word):
                raise SettingsError(f"queue.{setting}: {word!r:.200} is not a name; write letters, digits, `:` and `_`")
        if self.prefix.startswith(OURS):
            raise SettingsError(
                f"queue.hash: keys that begin with {OURS} are for the queue itself; choose another word"
            )

    @property
    def base(self) -> str:
        """The prefix of our own keys."""
        return f"{OURS}{self.prefix}:"

    @property
    def changed(self) -> str:
        """The channel on which every change is published."""
        return f"{self.base}changed"

    @property
    def arrivals(self) -> tuple[str, ...]:
        """The channels on which requests arrive."""
        return (self.requests, TASKS) if self.original else (self.requests,)

    @property
    def pattern(self) -> str:
        """The glob pattern of request keys."""
        return _GLOB.sub(r"\\\1", self.prefix) + ":*"

    def id_of(self, key: str) -> str:
        """The request id in a key; empty if it is not a request key."""
        return key.removeprefix(f"{self.prefix}:") if key.startswith(f"{self.prefix}:") else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The outcome of a command, and what it read: requests, or rows of another kind.

    `before` and `after` count the changes on the server before and after it. `over` are requests that are not open any more.
    `epoch` is another one after the server lost its data.
    """

    outcome: Mapping[str, object]
    requests: Sequence[Filed]
    rows: Sequence[Sequence[object]]
    before: int
    after: int
    over: Sequence[str]
    epoch: str


class _LostAgainError(Exception):
    """The server lost its data while open requests were restored."""


class Commands:
    """Sends the commands of `scripts/`; one whose answer is lost is sent again and takes effect once.

    `remembered` gives some requests that this process takes for open, for the server to say which of them are over. `noted` is
    called with every answer, in the order of their epochs. `restore` is called with the count of changes when the server has lost
    its data, before any other command is sent.
    """

    def __init__(
        self,
        link: Link,
        names: Names,
        *,
        now: Callable[[], datetime] | None = None,
        remembered: Callable[[], list[str]] = list,
        noted: Callable[[Answer], None] = lambda _answer: None,
        restore: Callable[[int], None] = lambda _changes: None,
    ) -> None:
        self.link = link
        self.names = names
        self._now = now
        self._remembered = remembered
        self._noted = noted
        self._restore = restore
        self._epoch = ""
        # How many changes the server has counted at least in this epoch.
        self._known = 0
        # Both as they were before the data was lost that is being restored.
        self._before = self._epoch, self._known
        self._restorer = 0
        self.make_locks()
        self._given = {
            "base": names.base,
            "prefix": names.prefix,
            "requests": names.requests,
            "ready": names.ready,
            "events": HISTORY_EVENTS,
            "numbers": LAST_NUMBER,
            "longest": LONGEST_TEXT,
            "newlines": NEWLINES,
            "memory": MEMORY_SECONDS,
            "another_text": ANOTHER_TEXT,
            "silent": LEASE_EXPIRED,
        }

    def make_locks(self) -> None:
        """Make the lock, unheld; a forked child restores itself what its parent was about to."""
        if self._restorer:
            self._epoch, self._known = self._before
        self._turns = threading.Condition()
        self._in_flight = 0
        self._restorer = 0  # the thread that restores
        self._failures = 0  # how often restoring failed

    def read(self, command: str, **given: object) -> Answer:
        """Send a command that is idempotent."""
        return self._run({**self._given, **self._clock(), "command": command, **given})

    def change(self, command: str, **given: object) -> Answer:
        """Send a command that takes effect once, however often it arrives."""
        return self.read(command, **{"token": uuid4().hex, **self._original(), **given})

    def scan(self, cursor: int, count: int) -> tuple[int, list[str]]:
        """Some ids of hashes that may be requests, and the next cursor; 0 is the end."""
        answer = self.link.ask("SCAN", cursor, "MATCH", self.names.pattern, "COUNT", count, "TYPE", "hash")
        position, keys = answer if isinstance(answer, list) else (0, [])
        ids = []
        for key in keys:
            if len(key) > LONGEST_KEY:
                continue
            with suppress(UnicodeDecodeError):  # not a request: ids are ASCII
                ids.append(self.names.id_of(key.decode()))
        return int(position), ids

    def _original(self) -> dict[str, object]:
        return {"original": ORIGINAL} if self.names.original else {}

    def _clock(self) -> dict[str, object]:
        if self._now is None:
            return {}
        moment = self._now()
        return {"stamp": spell_time(moment), "today": request_day(moment)}

    def _run(self, given: Mapping[str, object]) -> Answer:
        for _ in range(MAX_LOSSES):
            with self._turns:
                # While another thread restores, the server answers as if what is missing had never been there.
                self._turns.wait_for(self._is_free)
                self._in_flight += 1
                epoch, known = self._epoch, self._known
                remembered = [] if self._restorer else self._remembered()
            answer = None
            try:
                answer = self._send({"remembered": remembered, **given, "epoch": epoch, "known": known})
            finally:
                with self._turns:
                    self._in_flight -= 1
                    self._turns.notify_all()
                    epoch, failures = self._epoch, self._failures
                    is_valid = answer is not None and epoch in {"", answer.epoch} and answer.before >= known
                    if answer is not None and is_valid:
                        self._epoch, self._known = answer.epoch, max(self._known, answer.after)
                        self._noted(answer)
            if is_valid:
                return answer
            self._begin_epoch(epoch, failures)
        raise self._keeps_losing()

    def _is_free(self) -> bool:
        """Whether this thread may send a command: no other one restores."""
        return self._restorer in {0, threading.get_ident()}

    def _begin_epoch(self, before: str, failures: int) -> None:
        """Restore open requests on a server that lost its data; of several threads one does.

        Where that fails it fails for the others too: if each tried again, the last of them would wait for all.
        """
        if self._restorer == threading.get_ident():  # it begins again instead of restoring within
            raise _LostAgainError
        with self._turns:
            self._turns.wait_for(self._is_free)
            if self._epoch != before:
                return
            if self._failures != failures:
                message = (
                    f"redis: {self.link.place} lost its data, and open requests could not be restored; call again later"
                )
                raise ToolError(Kind.TRANSIENT, message, retryable=True)
            self._before = before, self._known
            try:
                self._restorer = threading.get_ident()
                # What commands on their way have filed is restored too, and what they have ended is not.
                self._turns.wait_for(lambda: not self._in_flight, LONGEST_SECONDS)
                self._restore_all()
            except BaseException:
                self._epoch, self._known = self._before
                self._failures += 1
                raise
            finally:
                self._restorer = 0
                self._turns.notify_all()

    def _restore_all(self) -> None:
        for _ in range(MAX_LOSSES):
            facts = {"command": "changes", "token": uuid4().hex, "remembered": []}
            answer = self._send({**self._given, **facts, "epoch": self._epoch, "known": self._known})
            self._epoch, self._known = answer.epoch, answer.after
            with suppress(_LostAgainError):
                return self._restore(answer.after)
        raise self._keeps_losing()

    def _keeps_losing(self) -> ToolError:
        message = f"redis: {self.link.place} loses its data again and again; see who empties it, and call again later"
        return ToolError(Kind.TRANSIENT, message, retryable=True)

    def _send(self, given: Mapping[str, object]) -> Answer:
        from redis.exceptions import NoScriptError

        script, digest = _script()
        argument = orjson.dumps(given)
        try:
            answer = self.link.ask("EVALSHA", digest, 0, argument)
        except NoScriptError:
            answer = self.link.ask("EVAL", script, 0, argument)
        spelled, rows, before, after, epoch, over = answer if isinstance(answer, list) else (b"{}", [], 0, 0, b"", [])
        outcome = orjson.loads(spelled)
        ended = outcome.get("ended")
        return Answer(
            outcome=outcome,
            requests=() if given["command"] in _OTHER_ROWS else tuple(map(_read_filed, rows)),
            rows=rows,
            before=before,
            after=after,
            over=(*_texts(over), *(ended if isinstance(ended, list) else ())),
            epoch=_text(epoch),
        )


def read_claim(outcome: Mapping[str, object], filed: Filed, owner: str, seconds: float) -> Claim:
    """A claim, from the outcome of the command and the request."""
    return Claim(
        id=filed.id,
        fence=int(str(outcome["fence"])),
        owner=owner,
        seconds=seconds,
        attempts=int(str(outcome["attempts"])),
        text=filed.text,
        allowance=filed.allowance,
    )


def read_event(row: object) -> Event:
    """An event of a history."""
    number, at, step, text = orjson.loads(_text(row))
    return Event(number=number, at=at, step=step, text=text)


def read_experiment(row: Sequence[object]) -> Experiment:
    """An experiment that waits, or waited."""
    name, ids, missing, released_at = row
    return Experiment(
        id=_text(name),
        ready=not missing,
        waits_for=tuple(dict.fromkeys(_texts(missing))),
        requests=tuple(_texts(ids)),
        released_at=_text(released_at),
    )


def read_foreign_hash(row: Sequence[object]) -> tuple[str, bytes, int]:
    """The id of a hash that a foreign client wrote, its text, and the length of that; a text over the limit is left out."""
    name, text, length = row
    return _text(name), text if isinstance(text, bytes) else b"", int(str(length))


def _read_filed(row: Sequence[object]) -> Filed:
    """A request, from its fields in the order of `STORED`."""
    stored = dict(zip(STORED, map(_text, row), strict=True))
    return to_filed(stored, Priority(stored["priority"]))


def _texts(values: object) -> list[str]:
    return [_text(value) for value in values] if isinstance(values, list) else []


def _text(value: object) -> str:
    """Decode bytes; foreign clients may write invalid UTF-8."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


@cache
def _script() -> tuple[str, str]:
    folder = files("toolcrib.features.requests.queues") / "scripts"
    text = "\n".join([*((folder / part).read_text(encoding="utf-8") for part in _PARTS), "return answer()"])
    return text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
