"""Run statements on SQLite files of the workspace, in threads, so that a query never blocks the event loop.

What a statement may do is up to SQLite itself: a file is opened read-only unless the tool writes, and an authorizer, which SQLite
asks about each step of a statement, refuses all but reading and, for a tool that writes, changing rows.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from toolcrib.infra.files.jail import locked
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence
    from concurrent.futures import Future

    from toolcrib.features.sql_tools.rows import Collected, Row
    from toolcrib.features.sql_tools.statement import Placeholder, Statement
    from toolcrib.infra.files.jail import JailedFile

T = TypeVar("T")

CONNECTIONS = 8
MAX_WAITING = 256
BATCH = 200
# A rollback journal that ends with this names the journal of a transaction over several databases.
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
# SQLite itself waits so long for another process; beyond that we wait, because our own waiting can be ended at once.
BUSY_SECONDS = 0.05
PAUSE_SECONDS = 0.02
LARGEST_INTEGER = 2**63 - 1
# A value may be as large as what the call returns, and arguments must fit: SQLite makes values in our memory, and a function such as
# instr() runs through two large ones in quadratic time, which no interrupt ends.
LEAST_VALUE_BYTES = 1_000_000
# What a row may take, if each of its columns is as large as a value may be.
MAX_ROW_BYTES = 500_000_000
MAX_PATTERN = 1_000
# How long a call waits for a statement that it has stopped; the thread may have to end one step first.
STOP_SECONDS = 2.0
CACHE_KIBIBYTES = 8_192
MEMORY_MB = 512
READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
CHANGING = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
# SQLite asks about these when it describes a virtual table such as json_each; changing them needs a PRAGMA.
SCHEMA_TABLES = frozenset({"sqlite_master", "sqlite_temp_master"})
CLOSED_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer"})
# Full-text tables ask for it, to learn whether the file changed.
OPEN_PRAGMAS = frozenset({"data_version"})
INSPECTION = frozenset({"data_version", "table_list", "table_xinfo"})
LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
LOCKED_MESSAGE = "another program has locked the database; try again later"
ONLY_READING = 'only reading is allowed; a tool that changes rows says "write": true'
NO_DATABASE = (Kind.PERMANENT, "the file cannot be read as a database: {text}; restore it")
REFUSED = (Kind.BLOCKED, "SQLite refused the statement ({text}); {cure}")
TOO_WIDE = (
    Kind.LIMIT_EXCEEDED,
    "SQLite: {text}, at most {columns} may have {bytes} bytes each; select fewer, or lower maxBytes of the tool",
)
TOO_MUCH_MEMORY = (
    "the statement takes more memory than SQLite may have here; ask for less, or raise sql_tools.memory_mb"
)
# What each error code of SQLite means for a call; for any other the message of SQLite is shown.
MESSAGES = {
    **dict.fromkeys(LOCKED, (Kind.TRANSIENT, LOCKED_MESSAGE)),
    sqlite3.SQLITE_INTERRUPT: (Kind.CANCELLED, "the statement was stopped"),
    sqlite3.SQLITE_AUTH: REFUSED,
    sqlite3.SQLITE_READONLY: REFUSED,
    sqlite3.SQLITE_CORRUPT: NO_DATABASE,
    sqlite3.SQLITE_NOTADB: NO_DATABASE,
    sqlite3.SQLITE_IOERR: NO_DATABASE,
    sqlite3.SQLITE_CANTOPEN: (
        Kind.PERMANENT,
        "the file cannot be opened: {text}; see that it can be read, and its folder be written if it is in WAL mode",
    ),
    sqlite3.SQLITE_TOOBIG: (
        Kind.LIMIT_EXCEEDED,
        "a value has more than {bytes} bytes; leave it out, or raise maxBytes of the tool",
    ),
    sqlite3.SQLITE_CONSTRAINT: (Kind.CONFLICT, "the change is refused: {text}"),
    sqlite3.SQLITE_FULL: (Kind.TRANSIENT, "the disk is full; make room on it"),
}


def bind_sqlite(place: Placeholder, value: object) -> object:
    """An argument as SQLite binds it: lists and objects as JSON, which functions such as json_each read."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int) and not -LARGEST_INTEGER - 1 <= value <= LARGEST_INTEGER:
        raise ToolError(Kind.VALIDATION, f"{place.name}: an integer in SQLite has 64 bit; send it as text")
    return value


class SqliteEngine:
    """Runs statements, at most `connections` concurrently in this process; further calls wait."""

    def __init__(self, connections: int = CONNECTIONS, *, memory_mb: int = MEMORY_MB) -> None:
        self.memory_mb = memory_mb
        self._limit = connections
        self._threads: ThreadPoolExecutor | None = None
        self._idle: list[Connection] = []
        self._work: set[_Work] = set()
        self._stopping: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()

    async def run(
        self,
        file: JailedFile,
        find: Callable[[], JailedFile],
        statement: Statement,
        values: Sequence[object],
        collected: Collected,
        *,
        write: bool,
        deadline: float,
        send: Callable[[Sequence[Row]], Awaitable[None]] | None = None,
        pragmas: frozenset[str] = OPEN_PRAGMAS,
    ) -> None:
        """Run a statement on a file until its rows are collected; one that is cancelled is interrupted.

        `find` looks the file up again, once it was opened. `send` takes the rows as they come. `pragmas` are those that the statement may use.
        """
        if len(self._work) >= self._limit + MAX_WAITING:
            message = f"{len(self._work)} statements run or wait already; try again later"
            raise ToolError(Kind.OVERLOADED, message, retryable=True)
        work = _Work(self, file, find, statement, values, collected, write=write, deadline=deadline)
        work.pragmas = pragmas
        work.batch = None if send is None else BATCH
        self._work.add(work)
        try:
            while not work.done:
                rows = await self._in_thread(work)
                if send is not None:
                    await send(rows)
        finally:
            self._work.discard(work)
            work.abandon()

    def take(self, file: JailedFile, *, write: bool, pragmas: frozenset[str]) -> Connection | None:
        """An idle connection to the file; None if there is none."""
        with self._lock:
            for connection in self._idle:
                if (connection.file, connection.write, connection.pragmas) == (file, write, pragmas):
                    self._idle.remove(connection)
                    return connection
        return None

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next call; beyond the limit the oldest is closed."""
        with self._lock:
            self._idle.append(connection)
            surplus = self._idle[: -self._limit] if self._threads is not None else self._idle[:]
            del self._idle[: len(surplus)]
        for old in surplus:
            old.close()

    def explain(self, find: Callable[[], JailedFile], statement: Statement, *, write: bool) -> None:
        """Let SQLite parse a statement, without running it; raises ToolError."""
        try:
            file = find()
            refuse_super_journal(file)
            with locked(file), closing(Connection(file, write=write, memory_mb=self.memory_mb)) as connection:
                connection.execute(f"EXPLAIN {statement.text}", [None] * len(statement.places)).close()
        except (sqlite3.Error, sqlite3.Warning, MemoryError) as problem:
            raise explain(problem, write=write) from None

    def close(self) -> None:
        """Interrupt running statements, and close every connection."""
        threads, self._threads = self._threads, None
        for work in tuple(self._work):
            work.stop()
        if threads is not None:
            threads.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    async def _in_thread(self, work: _Work) -> list[Row]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._limit, thread_name_prefix="toolcrib-sql")
        job = self._threads.submit(work.advance)
        future = asyncio.wrap_future(job)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(_ignore)
            # The call may be cancelled once more; the statement is stopped all the same. A step that cannot be interrupted ends
            # in its thread, which keeps nothing that it changed.
            task = asyncio.ensure_future(_stop(work, job))
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)
            await asyncio.wait({task}, timeout=STOP_SECONDS)
            raise


def _ignore(future: asyncio.Future[list[Row]]) -> None:
    """Consume the result of a stopped statement, which nothing awaits."""
    if not future.cancelled():
        future.exception()


async def _stop(work: _Work, job: Future[list[Row]]) -> None:
    """Interrupt the statement until its thread has ended: an interrupt before its first step has no effect."""
    while not job.cancel() and not job.done():
        work.stop()
        await asyncio.sleep(PAUSE_SECONDS)


class _Work:
    """One running statement; `advance` runs in a thread, everything else in the event loop."""

    def __init__(
        self,
        engine: SqliteEngine,
        file: JailedFile,
        find: Callable[[], JailedFile],
        statement: Statement,
        values: Sequence[object],
        collected: Collected,
        *,
        write: bool,
        deadline: float,
    ) -> None:
        self.done = False
        self.batch: int | None = None
        self.pragmas = OPEN_PRAGMAS
        self._engine = engine
        self._file = file
        self._find = find
        self._statement = statement
        self._values = tuple(values)
        self._collected = collected
        self._write = write
        self._deadline = deadline
        self._stopped = threading.Event()
        # A connection that is given back must not be interrupted any more: it may run the statement of another call.
        self._handing = threading.Lock()
        self._rows: Generator[list[Row], None, None] | None = None
        self._connection: Connection | None = None

    def advance(self) -> list[Row]:
        """Run the statement, or fetch its next rows; raises ToolError."""
        if self._rows is None:
            self._rows = self._run()
        try:
            return next(self._rows)
        except (sqlite3.Error, sqlite3.Warning, MemoryError) as problem:
            raise explain(problem, write=self._write, value_bytes=_value_bytes(self._collected)) from None
        except StopIteration:
            self.done = True
            return []

    def stop(self) -> None:
        """Stop the statement, at the next point at which SQLite can be interrupted."""
        self._stopped.set()
        with self._handing:
            if self._connection is not None:
                self._connection.interrupt()

    def abandon(self) -> None:
        """Close the statement of a reader that stopped before the end."""
        rows, self._rows = self._rows, None
        if rows is not None:
            # A thread that still runs it ends by its interrupt, and closes everything itself.
            with suppress(ValueError):
                rows.close()

    def _run(self) -> Generator[list[Row], None, None]:
        file = self._file
        refuse_super_journal(file)
        with locked(file):
            connection = self._engine.take(file, write=self._write, pragmas=self.pragmas) or self._open(file)
            try:
                self._connection = connection
                connection.bound_values(_value_bytes(self._collected))
                yield from self._collect(connection)
            except BaseException:
                self._release_connection()
                connection.close()
                raise
            self._release_connection()
            self._engine.give_back(connection)

    def _release_connection(self) -> None:
        with self._handing:
            self._connection = None

    def _open(self, file: JailedFile) -> Connection:
        """A new connection; refuses a file that was exchanged while SQLite opened it."""
        connection = self._retry_while_locked(
            lambda: Connection(file, write=self._write, memory_mb=self._engine.memory_mb, pragmas=self.pragmas)
        )
        try:
            self._retry_while_locked(connection.touch)
            if self._find() != file:
                raise ToolError(Kind.TRANSIENT, "the database was replaced by another file; try again", retryable=True)
        except BaseException:
            connection.close()
            raise
        return connection

    def _collect(self, connection: Connection) -> Generator[list[Row], None, None]:
        collected, batch = self._collected, self.batch
        if self._write:
            self._retry_while_locked(connection.begin)
        cursor = self._retry_while_locked(lambda: connection.execute(self._statement.text, self._values))
        try:
            if cursor.description is not None:
                collected.name_columns([column[0] for column in cursor.description])
                at_end = False
                while not (at_end or collected.truncated):
                    rows: list[Row] = []
                    # One by one, because most of a batch of large rows would be read only to be dropped.
                    while len(rows) < BATCH and not collected.truncated:
                        row = cursor.fetchone()
                        at_end = row is None
                        if at_end:
                            break
                        rows += collected.add([row])
                    self._refuse_stopped()
                    if batch is not None and rows:
                        yield rows
            if self._write:
                # The change of a statement that writes is made completely, also if not all of its rows are read.
                while cursor.description is not None and cursor.fetchone() is not None:
                    self._refuse_stopped()
                collected.affected = max(0, cursor.rowcount)
        finally:
            cursor.close()
        if self._write:
            self._retry_while_locked(connection.commit)

    def _retry_while_locked(self, act: Callable[[], T]) -> T:
        """Retry while another process has locked the database, until the deadline of the call."""
        while True:
            self._refuse_stopped()
            try:
                done = act()
            except sqlite3.OperationalError as problem:
                self._collected.is_locked = _code_of(problem) in LOCKED
                left = self._deadline - time.monotonic() - BUSY_SECONDS - PAUSE_SECONDS
                if not self._collected.is_locked or left <= 0:
                    raise
            else:
                self._collected.is_locked = False
                return done
            self._stopped.wait(PAUSE_SECONDS)

    def _refuse_stopped(self) -> None:
        if self._stopped.is_set():
            raise ToolError(Kind.CANCELLED, "the statement was stopped")


class Connection:
    """An open file. Only the statements of `begin` and `commit` may control transactions."""

    def __init__(
        self, file: JailedFile, *, write: bool, memory_mb: int, pragmas: frozenset[str] = OPEN_PRAGMAS
    ) -> None:
        self.file = file
        self.write = write
        self.pragmas = pragmas
        self._is_ours = True
        mode = "rw" if write else "ro"
        self._sqlite = sqlite3.connect(
            f"file:{quote(file.path)}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._close_down(memory_mb)
        except BaseException:
            self._sqlite.close()
            raise

    def touch(self) -> sqlite3.Cursor:
        """Read the head of the file, so that it is opened and found to be a database."""
        return self._ours("SELECT 1 FROM sqlite_master LIMIT 1")

    def bound_values(self, size: int) -> None:
        """Limit the size of the values of the next statement, and the number of columns, so that a row stays within the limit."""
        # After `touch`, so that a wide table that the statement does not use is not an error.
        self._sqlite.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, size)
        self._sqlite.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, _columns_of(size))

    def begin(self) -> sqlite3.Cursor:
        """Begin a transaction that writes; raises if another connection writes."""
        return self._ours("BEGIN IMMEDIATE")

    def commit(self) -> sqlite3.Cursor:
        """Commit the transaction."""
        return self._ours("COMMIT")

    def execute(self, text: str, values: Sequence[object]) -> sqlite3.Cursor:
        """Run the statement of a tool to its first row."""
        # By number, because Python 3.14 refuses a sequence for numbered placeholders.
        return self._sqlite.execute(text, {str(number): value for number, value in enumerate(values, 1)})

    def interrupt(self) -> None:
        """End the statement that runs in another thread."""
        with suppress(sqlite3.ProgrammingError):  # it was closed meanwhile
            self._sqlite.interrupt()

    def close(self) -> None:
        """Close the file, and roll back what was not committed."""
        self._sqlite.close()

    def _ours(self, text: str) -> sqlite3.Cursor:
        self._is_ours = True
        try:
            return self._sqlite.execute(text)
        finally:
            self._is_ours = False

    def _close_down(self, memory_mb: int) -> None:
        """Disable the features of SQLite with which a statement could reach beyond the file or its limits."""
        sqlite = self._sqlite
        # The limit is that of the whole process, and SQLite only lets it be lowered. A few lines of SQL can make it plan a join
        # of millions of tables, which would take all memory, and planning cannot be interrupted.
        sqlite.execute(f"PRAGMA hard_heap_limit={memory_mb << 20}")
        sqlite.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        sqlite.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN)
        sqlite.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
        # Views and triggers of the file run no function with side effects; no page is mapped, so a file that shrinks is an
        # error and no signal; sorts go to a file when they grow; a damaged page is found before it is used.
        for pragma in (
            *("trusted_schema=OFF", "mmap_size=0", "temp_store=FILE", "cell_size_check=ON"),
            *(f"cache_size=-{CACHE_KIBIBYTES}", "foreign_keys=ON"),
            *(() if self.write else ("query_only=ON",)),
        ):
            sqlite.execute(f"PRAGMA {pragma}")
        sqlite.set_authorizer(self._authorize)
        self._is_ours = False

    def _authorize(
        self, action: int, first: str | None, second: str | None, schema: str | None, trigger: str | None
    ) -> int:
        """Whether SQLite may take this step of a statement."""
        if action == sqlite3.SQLITE_FUNCTION:
            is_open = (second or "").lower() not in CLOSED_FUNCTIONS
        elif action in READING or (action == sqlite3.SQLITE_TRANSACTION and self._is_ours):
            is_open = True
        elif action == sqlite3.SQLITE_PRAGMA:
            is_open = first in self.pragmas and (second is None or self.pragmas is INSPECTION)
        elif action == sqlite3.SQLITE_UPDATE and first in SCHEMA_TABLES:
            is_open = True
        else:
            is_open = self.write and action in CHANGING
        return sqlite3.SQLITE_OK if is_open else sqlite3.SQLITE_DENY


def refuse_super_journal(file: JailedFile) -> None:
    """Refuse a database whose journal names another file: SQLite would delete that file when it rolls back."""
    try:
        with open(f"{file.path}-journal", "rb", opener=_open_at_once) as journal:
            journal.seek(-len(JOURNAL_MAGIC), os.SEEK_END)
            names_another = journal.read() == JOURNAL_MAGIC
    except OSError:  # there is no journal, or it is shorter
        return
    if names_another:
        message = f"{file.path}-journal belongs to a transaction over several databases; finish it with sqlite3"
        raise ToolError(Kind.BLOCKED, message)


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)


def _code_of(problem: Exception) -> int:
    """The primary code of an error; 0 for a wrong use of the module."""
    return int(getattr(problem, "sqlite_errorcode", 0) or 0) & 0xFF


def _value_bytes(collected: Collected) -> int:
    return max(LEAST_VALUE_BYTES, collected.max_bytes)


def _columns_of(size: int) -> int:
    """How many values of this size a row may have."""
    return max(1, MAX_ROW_BYTES // size)


def explain(problem: Exception, *, write: bool = False, value_bytes: int = LEAST_VALUE_BYTES) -> ToolError:
    """Convert an error of SQLite to a ToolError."""
    if isinstance(problem, MemoryError):
        return ToolError(Kind.LIMIT_EXCEEDED, TOO_MUCH_MEMORY)
    code, text = _code_of(problem), str(problem)
    if "not authorized" in text or "prohibited" in text:
        code = sqlite3.SQLITE_AUTH
    kind, message = MESSAGES.get(code, (Kind.PERMANENT, "SQLite: {text}"))
    if "too many columns" in text:
        kind, message = TOO_WIDE
    if "Could not decode" in text:
        message = "{text}; select it as bytes with CAST(… AS BLOB)"
    cure = "only rows can be changed" if write else ONLY_READING
    if "function" in text:
        cure = "no tool may use this function"
    return ToolError(
        kind,
        message.format(text=text, cure=cure, bytes=value_bytes, columns=_columns_of(value_bytes)),
        retryable=kind is Kind.TRANSIENT,
        details={"sqlite": getattr(problem, "sqlite_errorname", None) or ""},
    )
