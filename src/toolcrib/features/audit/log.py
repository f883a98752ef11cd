"""Append events to a hash chain in daily files, list them, and verify the chain.

    audit/2026-11-18.jsonl    an event per line, each with the SHA-256 of the line before
    audit/head                the number and hash of the last event
    audit/settings.json       the hashes of the tables of the settings at the last start

A line that is not an event was torn by a crash or a full disk: its change was refused, and the chain goes on after it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from operator import itemgetter
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

import orjson

from toolcrib.infra.files import append, durable, read_small
from toolcrib.infra.files.locks import Locks
from toolcrib.lib.audit_trail import ACTOR
from toolcrib.lib.documents import read_toml
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.protocols import LOCK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from toolcrib.lib.audit_trail import Actor

    Event = dict[str, Any]
    # The number and hash of an event.
    Link = tuple[int, str]

logger = logging.getLogger("toolcrib.audit")

MAX_SETTINGS, MAX_TEXT = 1_000_000, 1_000
CUT = "audit.cut"
START: Link = (0, "0" * 64)
TEXTS = ("time", "what", "about", "actor", "name", "why", "before")
_TYPES = {"number": int, "facts": dict, **dict.fromkeys(TEXTS, str)}
_FILE = re.compile(r"\d{4}-\d\d-\d\d\.jsonl")


class AuditLog:
    """The audit trail in a folder that processes share.

    `caller` is the actor where no request names another. `settings` is the file whose changes are recorded. `hide` masks
    secrets. Files older than `keep_days` are removed when a new one begins; 0 keeps them for ever.
    """

    def __init__(
        self,
        folder: Path,
        *,
        caller: str,
        settings: Path,
        keep_days: int = 0,
        hide: Callable[[object], Any] = lambda value: value,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._caller = caller
        self._settings = settings
        self._keep_days = keep_days
        self._hide = hide
        self._clock = clock
        self._has_started = False

    @contextmanager
    def record(
        self, what: str, about: str, *, why: str = "", actor: Actor | None = None, facts: Event | None = None
    ) -> Iterator[None]:
        """Record an event, then make the change in the `with` block; if that fails, record `WHAT.failed` too."""
        if not self._has_started:
            self.start()
        by, name = actor or ACTOR.get() or (self._caller, "")
        event = {"what": what, "about": about, "actor": by, "name": name, "why": why, "facts": facts or {}}
        self._append(event)
        try:
            yield
        except BaseException as problem:
            with suppress(ToolError):
                self._append({**event, "what": f"{what}.failed", "why": str(problem)})
            raise

    def start(self) -> None:
        """Record which tables of the settings changed since the last start of any process; a failure is only logged."""
        self._has_started = True
        place = self._folder / "settings.json"
        try:
            tables = read_toml((read_small(self._settings, MAX_SETTINGS) or b"").decode("utf-8-sig"), "")
            now = {name: _hash(_to_bytes(table)) for name, table in tables.items()}
            before = orjson.loads(read_small(place, MAX_SETTINGS) or b"{}")
            changed = {name: now.get(name) for name in sorted({*before, *now}) if before.get(name) != now.get(name)}
            if changed:
                # Not by the caller of the request that happens to be the first one.
                by = self._caller, ""
                with self.record("settings.changed", ", ".join(changed), actor=by, facts=changed):
                    durable.replace(place, _to_bytes(now))
        except (ToolError, ValueError, AttributeError) as problem:
            logger.warning("audit: the settings were not recorded: %s", problem)

    def events(self, *, since: str = "", actor: str = "", what: str = "", before: int = 0) -> Iterator[Event]:
        """The events, the newest first: since a time, of an actor's id or name, of or about `what`, or before a number.

        `what` is the beginning of an event's `what`, or its exact `about`.
        """
        begin = since and _read_time(since)
        for file in reversed(self._files()):
            for event in map(_read_event, reversed(list(_lines_of(file)))):
                if (
                    event is not None
                    and event["time"] >= begin
                    and actor in ("", event["actor"], event["name"])
                    and (event["what"].startswith(what) or event["about"] == what)
                    and not 0 < before <= event["number"]
                ):
                    yield event

    def lines(self) -> Iterator[bytes]:
        """The lines of all files, the oldest first; their hashes form the chain."""
        for file in self._files():
            yield from _lines_of(file)

    def verify(self, kept: str = "") -> str:
        """Return the head if every event fits the one before it, and the chain passes through the head and one `kept` elsewhere.

        A head is `NUMBER:HASH`. Raises ToolError with the first problem.
        """
        # Read before the lines, because an event is appended before the head is moved.
        head, known = self._head(), _read_link(kept[:MAX_TEXT])
        if kept and known == START:
            raise ToolError(Kind.VALIDATION, f"{kept!r:.80} is not a head; write it as it was printed: NUMBER:HASH")
        first = end = START
        passed, cuts = {START}, {START}
        for line in self.lines():
            event = _read_event(line)
            if event is None:
                continue
            before = event["number"] - 1, event["before"]
            if end == START:
                first = end = before
            if before != end:
                raise _broken(
                    f"event {event['number']} does not follow event {end[0]}: one was changed, or some removed"
                )
            end = event["number"], _hash(line)
            passed |= {before, end}
            if event["what"] == CUT:
                cuts.add(_read_link(event["about"]))
        # A process may have died while it removed the files that its mark names.
        if first > max(cuts & passed):
            raise _broken(f"events 1 to {first[0]} are missing, and no retention cut removed them")
        if head == START != end:
            raise _broken("its head is lost, so events may be missing from the end; the next event writes it anew")
        for number, _ in sorted({head, known} - passed):
            raise _broken(f"event {number} is missing" if number > end[0] else f"event {number} was changed or cut")
        return _write_link(end)

    def _files(self) -> list[Path]:
        found = self._folder.glob("*.jsonl")
        # Nothing else is read: a link leads elsewhere, and a pipe blocks.
        return sorted(file for file in found if _FILE.fullmatch(file.name) and S_ISREG(file.lstat().st_mode))

    def _head(self) -> Link:
        return _read_link((durable.read(self._folder / "head", MAX_TEXT) or b"").decode("ascii", "replace"))

    def _append(self, event: Event) -> None:
        now = _write_time(datetime.fromtimestamp(self._clock(), UTC))
        with Locks(self._folder.parent / "locks").hold("audit", LOCK_SECONDS), durable.explained(str(self._folder)):
            files = self._files()
            # The newest file even if the clock was set back: the order of the names is that of the chain.
            file = max([self._folder / f"{now[:10]}.jsonl", *files[-1:]])
            # The later one: a process may have died between its line and the head, or lines are missing.
            end = max(self._head(), _end_of(files), key=itemgetter(0))
            if self._keep_days and files and file not in files:
                # Counted back from the newest file and not from the clock, which may be wrong; that file stays.
                newest = date.fromisoformat(files[-1].stem).toordinal()
                oldest = str(date.fromordinal(max(1, newest - self._keep_days)))
                if old := [each for each in files if each.stem < oldest]:
                    cut = {
                        "what": CUT,
                        "about": _write_link(_end_of(old)),
                        "actor": self._caller,
                        "name": "",
                        "why": "",
                    }
                    end = self._write(file, end, {"time": now, **cut, "facts": {}})
                for each in old:
                    each.unlink()
            self._write(file, end, {"time": now, **event})

    def _write(self, file: Path, end: Link, event: Event) -> Link:
        """Append an event after the end of the chain, then move the head; returns the new end."""
        # Only the free texts: a secret that equals a name or a date must not blank who did what, and when.
        event |= {key: self._hide(event[key]) for key in ("why", "facts")}
        cut = {key: text[:MAX_TEXT] if isinstance(text, str) else text for key, text in event.items()}
        line = _to_bytes({"number": end[0] + 1, **cut, "before": end[1]})
        if _read_event(line) is None:
            raise ToolError(Kind.VALIDATION, "the facts of an event must be a JSON object; correct them and try again")
        append(file, line + b"\n", synced=True)
        end = end[0] + 1, _hash(line)
        # The event is recorded; the next one catches up with a head that a full disk left behind.
        with suppress(ToolError):
            durable.replace(self._folder / "head", _write_link(end).encode())
        return end


def _broken(problem: str) -> ToolError:
    return ToolError(Kind.PERMANENT, f"the audit trail is not whole: {problem}")


def _read_link(text: str) -> Link:
    """The number and hash of a head; the start of the chain if there is none."""
    number, _, digest = text.strip().partition(":")
    return (int(number), digest) if number.isdecimal() and len(digest) == len(START[1]) else START


def _write_link(link: Link) -> str:
    return f"{link[0]}:{link[1]}"


def _read_event(line: bytes) -> Event | None:
    """The event of a line; None for anything else."""
    with suppress(orjson.JSONDecodeError, AttributeError):
        found = orjson.loads(line)
        if {key: type(value) for key, value in found.items()} == _TYPES:
            return found  # type: ignore[no-any-return]  # it has the keys of one
    return None


def _lines_of(file: Path) -> Iterator[bytes]:
    with file.open("rb") as lines:
        yield from (line.removesuffix(b"\n") for line in lines)


def _end_of(files: Sequence[Path]) -> Link:
    """The last event of the last file; the start of the chain if there is none."""
    for line in reversed([line for file in files[-1:] for line in _lines_of(file)]):
        if event := _read_event(line):
            return event["number"], _hash(line)
    return START


def _write_time(moment: datetime) -> str:
    """The time as events hold it; these texts sort like the times."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def _read_time(text: str) -> str:
    try:
        return _write_time(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        message = f"since: {text!r:.80} is not a time; write a date such as 2026-11-18, or 2026-11-18T09:30:00Z"
        raise ToolError(Kind.VALIDATION, message) from None


def _to_bytes(value: object) -> bytes:
    # The standard library leaves lone surrogates to the encoding.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace")


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
