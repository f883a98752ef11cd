"""Commands that the server carries out in one step each, whoever asks besides, by its own clock."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import orjson

from toolcrib.pure.documents import MAX_DEFINITION_BYTES
from toolcrib.pure.requests.ids import LAST_NUMBER, request_day
from toolcrib.queues.documents import HISTORY_EVENTS, spell_time
from toolcrib.queues.redis.names import ORIGINAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from toolcrib.queues.redis.link import Link
    from toolcrib.queues.redis.names import Names

LONGEST_TEXT = MAX_DEFINITION_BYTES
LONGEST_KEY = 1_000
NEWLINES = 64  # more at the end of a text than any shell adds or strips
# Longer than any command is repeated, and not long enough to fill a server.
MEMORY_SECONDS = 120
ANOTHER_TEXT = "another text came under this id and was refused; give it an id of its own"
SILENT = "the lease ran out: whoever built it fell silent"

_PARTS: Final = ("common.lua", "filing.lua", "building.lua", "deciding.lua")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a command came to, and the rows it read. `changes` counts what had changed on the server before."""

    outcome: Mapping[str, object]
    rows: Sequence[Sequence[object]]
    changes: int


class Commands:
    """Gives the commands of `scripts/`; one whose answer is lost is given again and obeyed once."""

    def __init__(
        self,
        link: Link,
        names: Names,
        *,
        now: Callable[[], datetime] | None = None,
        seen: Callable[[int], None] = lambda _changes: None,
    ) -> None:
        self.link = link
        self.names = names
        self._now = now
        self._seen = seen
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
            "silent": SILENT,
        }

    def read(self, command: str, **given: object) -> Answer:
        """Give a command that changes nothing, or nothing more the second time."""
        return self._run({**self._given, **self._clock(), "command": command, **given})

    def change(self, command: str, **given: object) -> Answer:
        """Give a command that counts once, however often it arrives."""
        return self.read(command, **{"token": uuid4().hex, **self._original(), **given})

    def scan(self, cursor: int, count: int) -> tuple[int, list[str]]:
        """Some ids of hashes that may be requests, and where to go on; 0 is the end."""
        answer = self.link.ask("SCAN", cursor, "MATCH", self.names.pattern, "COUNT", count, "TYPE", "hash")
        position, keys = answer if isinstance(answer, list) else (0, [])
        ids = []
        for key in keys:
            if len(key) > LONGEST_KEY:
                continue
            with suppress(UnicodeDecodeError):  # no request: ids are made of plain letters
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
        from redis.exceptions import NoScriptError

        script, digest = _script()
        argument = orjson.dumps(given)
        try:
            answer = self.link.ask("EVALSHA", digest, 0, argument)
        except NoScriptError:
            answer = self.link.ask("EVAL", script, 0, argument)
        outcome, rows, changes = answer if isinstance(answer, list) else (b"{}", [], 0)
        self._seen(changes)
        return Answer(outcome=orjson.loads(outcome), rows=rows, changes=changes)


@cache
def _script() -> tuple[str, str]:
    folder = files("toolcrib.queues.redis") / "scripts"
    text = "\n".join([*((folder / part).read_text(encoding="utf-8") for part in _PARTS), "return answer()"])
    return text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
