"""Run statements on one SQLite file, one after the other, for the host at the other end of the channel.

host   {"text": "SELECT …", "values": […], "maxBytes": 1000000, "writes": false}   {"more": true}   {"more": false}
here   {"rows": [[…]], "columns": […]}   {"rows": […], "columns": […], "affected": 1}, which is the last   {"locked": true}
       {"error": "…", "name": "SQLITE_CONSTRAINT_CHECK"}

What a statement may do is up to SQLite itself: a file is opened read-only unless the tool writes, and an authorizer, which SQLite
asks about each step of a statement, refuses all but reading and, for a tool that writes, changing rows.
"""

# ruff: noqa: PTH116 - see system
from __future__ import annotations

import binascii
import json
import math
import os
import signal
import sqlite3
import time
from contextlib import closing
from urllib.parse import quote

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, TypeVar

    T = TypeVar("T")

# A batch of rows ends with whichever comes first.
BATCH, BATCH_BYTES = 200, 64_000
# SQLite itself waits so long for another program; beyond that we wait, because that can be ended at once.
BUSY_SECONDS, PAUSE_SECONDS = 0.05, 0.02
# How many steps SQLite takes before it lets a signal through.
STEPS = 10_000
# Values may be as large as what the call returns, and arguments must fit.
LEAST_VALUE_BYTES = 1_000_000
CACHE_KIBIBYTES = 8_192
READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
CHANGING = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
# SQLite asks about these when it describes a virtual table such as json_each; changing them needs a PRAGMA.
SCHEMA_TABLES = frozenset({"sqlite_master", "sqlite_temp_master"})
CLOSED_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer"})
# Full-text tables ask for the first, to learn whether the file changed.
OPEN_PRAGMAS = frozenset({"data_version"})
INSPECTION = frozenset({"data_version", "table_list", "table_xinfo"})
LOCKED = ("SQLITE_BUSY", "SQLITE_LOCKED")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def serve(file: dict[str, Any]) -> None:
    """Run every statement that the host sends, until one fails, or the host closes the channel or ends this process.

    `file` has `path` and `identity` (device and inode); `write` opens it for changes, `inspects` the pragmas that describe tables.
    """
    host = Host(int(os.environ["TOOLCRIB_CHANNEL"]))
    signal.signal(signal.SIGTERM, host.leave)
    try:
        with closing(Connection(host, **file)) as connection:
            while True:
                connection.run(host.read())
    except (sqlite3.Error, sqlite3.Warning, MemoryError, UnicodeError) as problem:
        # The file is closed, and what was not committed is undone. The name of a column may be no text.
        if not host.is_gone:
            host.send(error=str(problem), name=_name_of(problem))


class ReplacedError(sqlite3.Error):
    """The file is not the one that the host found."""

    sqlite_errorname = "TOOLCRIB_REPLACED"


class Host:
    """The host at the other end of the channel."""

    def __init__(self, channel: int) -> None:
        self.is_gone = False
        self._channel = channel
        self._lines = open(channel, "rb")  # noqa: SIM115 - open until the process ends

    def leave(self, *_: object) -> NoReturn:
        """Exit; in a callback of SQLite the exception only interrupts the statement."""
        self.is_gone = True
        raise SystemExit

    def read(self) -> dict[str, Any]:
        """The next message."""
        line = self._lines.readline()
        if not line:
            self.leave()
        message: dict[str, Any] = json.loads(line)
        return message

    def send(self, rows: list[str] | None = None, **facts: object) -> None:
        """Send a message; the rows are JSON already."""
        head = "{" if rows is None else f'{{"rows":[{",".join(rows)}],'
        left = memoryview(f"{head}{_encode(facts)[1:]}\n".encode())
        while left:
            left = left[os.write(self._channel, left) :]


class Connection:
    """An open file. Only the statements of `_control` may control transactions."""

    def __init__(self, host: Host, path: str, identity: list[int], *, write: bool, inspects: bool) -> None:
        self._host = host
        self._write = write
        self._pragmas = INSPECTION if inspects else OPEN_PRAGMAS
        self._is_ours = False
        self._sqlite = sqlite3.connect(
            f"file:{quote(os.fsencode(path))}?mode={'rw' if write else 'ro'}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
        )
        try:
            self._close_down()
            # Read the head, so that the file is opened; it may have been replaced since the host found it.
            self._control("SELECT 1 FROM sqlite_master LIMIT 1")
            if _identify(path) != identity:
                raise ReplacedError
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file, and roll back what was not committed."""
        self._sqlite.close()

    def run(self, order: dict[str, Any]) -> None:
        """Run a statement, and send its rows as the host asks for them; a change is one transaction."""
        # After the file was opened, so that a large table that the statement does not use is not an error.
        self._sqlite.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(LEAST_VALUE_BYTES, order["maxBytes"]))
        if order["writes"]:
            self._control("BEGIN IMMEDIATE")
        # By number, because Python 3.14 refuses a sequence for numbered placeholders.
        values = {str(number): value for number, value in enumerate(order["values"], 1)}
        cursor = self._patiently(lambda: self._sqlite.execute(order["text"], values))
        columns = None if cursor.description is None else [column[0] for column in cursor.description]
        rows: list[str] = []
        is_over = columns is None
        while not is_over:
            rows, is_over, is_large = _fetch(cursor, order["maxBytes"])
            if not is_over or order["writes"]:
                # Before the change is committed, because the host may refuse the rows.
                self._host.send(rows, columns=columns, large=is_large)
                is_over = not self._host.read()["more"] or is_over
                rows = []
        # All changes are counted, also if not all of their rows are read.
        while order["writes"] and columns is not None and cursor.fetchone() is not None:
            pass
        affected = max(0, cursor.rowcount)
        cursor.close()
        if order["writes"]:
            self._control("COMMIT")
        self._host.send(rows, columns=columns, affected=affected)

    def _control(self, text: str) -> None:
        """Run a statement of our own."""
        self._is_ours = True
        try:
            self._patiently(lambda: self._sqlite.execute(text).close())
        finally:
            self._is_ours = False

    def _patiently(self, act: Callable[[], T]) -> T:
        """Retry while another program has locked the file, and tell the host, which ends this process when the time is over."""
        while True:
            try:
                return act()
            except sqlite3.OperationalError as problem:
                if not _name_of(problem).startswith(LOCKED):
                    raise
            self._host.send(locked=True)
            time.sleep(PAUSE_SECONDS)

    def _close_down(self) -> None:
        """Disable the features of SQLite with which a statement could reach beyond the file."""
        self._sqlite.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        self._sqlite.set_progress_handler(lambda: self._host.is_gone, STEPS)
        # Views and triggers of the file run no function with side effects; no page is mapped, so a file that shrinks is an
        # error and no signal; sorts go to a file when they grow, in our own folder, whose name SQLite looked up before we were
        # forked; a damaged page is found before it is used.
        scratch = os.environ["TMPDIR"].replace("'", "''")
        for pragma in (
            *("trusted_schema=OFF", "mmap_size=0", "temp_store=FILE", "cell_size_check=ON"),
            *(f"temp_store_directory='{scratch}'", f"cache_size=-{CACHE_KIBIBYTES}", "foreign_keys=ON"),
            *(() if self._write else ("query_only=ON",)),
        ):
            self._control(f"PRAGMA {pragma}")
        self._sqlite.set_authorizer(self._authorize)

    def _authorize(
        self, action: int, first: str | None, second: str | None, schema: str | None, trigger: str | None
    ) -> int:
        """Whether SQLite may take this step of a statement."""
        if action == sqlite3.SQLITE_FUNCTION:
            is_open = (second or "").lower() not in CLOSED_FUNCTIONS
        elif action in READING or (action == sqlite3.SQLITE_TRANSACTION and self._is_ours):
            is_open = True
        elif action == sqlite3.SQLITE_PRAGMA:
            is_open = first in self._pragmas and (second is None or self._pragmas is INSPECTION)
        elif action == sqlite3.SQLITE_UPDATE and first in SCHEMA_TABLES:
            is_open = True
        else:
            is_open = self._write and action in CHANGING
        return sqlite3.SQLITE_OK if is_open else sqlite3.SQLITE_DENY


def _fetch(cursor: sqlite3.Cursor, max_bytes: int) -> tuple[list[str], bool, bool]:
    """The next rows as JSON, whether they are the last, and whether the next one is too large to be sent."""
    rows: list[str] = []
    size = 0
    while len(rows) < BATCH and size < BATCH_BYTES:
        values = cursor.fetchone()
        if values is None:
            return rows, True, False
        row = _encode([_to_json(value) for value in values])
        if len(row) > max_bytes:
            return rows, False, True
        rows.append(row)
        size += len(row)
    return rows, False, False


def _to_json(value: object) -> object:
    """Bytes as base64; a float that JSON has not as a list with its name."""
    if isinstance(value, bytes):
        return binascii.b2a_base64(value, newline=False).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return [str(value)]
    return value


def _identify(path: str) -> list[int]:
    try:
        facts = os.stat(path)
    except OSError:
        return []
    return [facts.st_dev, facts.st_ino]


def _name_of(problem: Exception) -> str:
    """The name of an error code; empty for a wrong use of the module."""
    return "SQLITE_NOMEM" if isinstance(problem, MemoryError) else getattr(problem, "sqlite_errorname", None) or ""
