"""Connect to PostgreSQL at a checked address, and run single statements; the only module that uses the driver."""

from __future__ import annotations

import asyncio
import json
import os
import select
import socket
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from toolcrib.infra.egress.dialler import MAX_DIALLED, block_of, unreachable
from toolcrib.model.errors import Cure, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from toolcrib.infra.egress.dialler import Address
    from toolcrib.lib.database_url import DatabaseServer

CONNECT_SECONDS = 10
# No file is there, so the passwords of the host's own user are not sent to a server that a tool names.
NO_FILE = "/dev/null/none"
INSTALL = "pip install 'toolcrib[postgres]'"
# Whether the role could read files of the server, or start programs there, in spite of a read-only transaction.
# A statement can take on each role that its own is a member of: set_config('role', …).
POWERFUL = """
    SELECT count(*) > 0 FROM pg_roles
    WHERE (rolsuper OR rolname IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program'))
        AND (pg_has_role(session_user, oid, 'MEMBER') OR pg_has_role(current_user, oid, 'MEMBER'))
"""
# How many bytes the server may send for one row, or for one answer without rows. libpq would take up to 1 GB into our memory.
MAX_ANSWER = 1_000_000
PIECE = 65_536
CANCEL_SECONDS = 5.0
# Types without a counterpart in Python stay the text that PostgreSQL writes.
AS_TEXT = (
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange", "int4multirange", "int8multirange"),
    *("nummultirange", "datemultirange", "tsmultirange", "tstzmultirange", "record", "timetz"),
)
KINDS = {
    "08": Kind.TRANSIENT,
    "22": Kind.VALIDATION,
    "23": Kind.CONFLICT,
    "25": Kind.BLOCKED,
    "28": Kind.AUTH,
    "40": Kind.TRANSIENT,
    "53": Kind.TRANSIENT,
    "57": Kind.TRANSIENT,
}
CANCELLED, READ_ONLY, DENIED, LOCK_TIMEOUT = "57014", "25006", "42501", "55P03"


class Described(NamedTuple):
    """The types of the parameters and the columns of a statement, by their names in PostgreSQL."""

    parameters: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]


def check_installed() -> None:
    """Raise an error, with the command to install it, if the driver is missing."""
    try:
        import psycopg  # noqa: F401 - without its library it is there and cannot be imported
    except ImportError:
        message = "PostgreSQL needs a driver that is not installed"
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, message, cure=Cure(f"run: {INSTALL}")) from None


async def connect(server: DatabaseServer, addresses: Sequence[Address], *, superuser: bool) -> PostgresConnection:
    """Connect to the first address that answers; refuses a role with access beyond its database."""
    import psycopg

    reason = "no address"
    for address in addresses[:MAX_DIALLED]:
        try:
            driver = await _driver_class().connect(**_words(server, address))
        except psycopg.OperationalError as problem:
            if not _is_unreachable(problem):
                raise explain(problem) from None
            reason = "connection failed"
            continue
        driver.take_over()
        connection = PostgresConnection(driver)
        try:
            await connection.settle(superuser=superuser)
        except BaseException:
            await connection.close()
            raise
        return connection
    raise unreachable(server.url.authority, reason)


def _words(server: DatabaseServer, address: Address) -> dict[str, Any]:
    """The parameters of libpq: the checked address, and the host name, which certificates are verified against."""
    return {
        # Beyond this machine and its network, connections are encrypted unless the URL says otherwise.
        "sslmode": "require" if block_of(address) is None else "prefer",
        "connect_timeout": str(CONNECT_SECONDS),
        "application_name": "toolcrib",
        **dict(server.options),
        "host": server.url.host,
        "hostaddr": str(address),
        "port": str(server.url.port),
        "dbname": server.name,
        "user": server.user,
        "password": server.password,
        "passfile": NO_FILE,
        "sslcertmode": "disable",
        "gssencmode": "disable",
        "client_encoding": "utf-8",
        "autocommit": True,
        "prepare_threshold": None,
    }


def _is_unreachable(problem: Exception) -> bool:
    """Whether the server was not reached; the error of a server that answers has a code, or says FATAL."""
    text = str(problem)
    return getattr(problem, "sqlstate", None) is None and not any(
        word in text for word in ("FATAL", "SSL", "certificate")
    )


@cache
def _driver_class() -> Any:
    import psycopg

    return type("CountedConnection", (_Counted, psycopg.AsyncConnection), {})


class _Counted:
    """A mixin for the connection of the driver that counts the bytes of the server before libpq reads them.

    libpq reads its socket up to the end of a row, so nothing could be limited there in time. Once connected, it therefore gets one
    end of a socket pair in place of the connection, and `wait` copies the bytes between that pair and the server.
    """

    max_answer = MAX_ANSWER
    pgconn: Any
    _try_cancel: Any

    def take_over(self) -> None:
        """Put a socket pair between libpq and the server."""
        descriptor = self.pgconn.socket
        self.server = socket.socket(fileno=os.dup(descriptor))
        self.library, end = socket.socketpair()
        with end:
            os.dup2(end.fileno(), descriptor, inheritable=False)
        os.set_blocking(descriptor, False)
        self.server.settimeout(0)
        self.library.settimeout(0)

    async def wait(self, gen: Any, *_words: object, **_options: object) -> Any:
        """Run the steps of the driver; while one waits, copy bytes until it can continue."""
        from psycopg.pq import TransactionStatus

        try:
            return await self._run(gen)
        except asyncio.CancelledError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self._try_cancel(timeout=CANCEL_SECONDS)
                self.pgconn.finish()
            raise

    async def _run(self, steps: Any) -> Any:
        from psycopg.waiting import READY_R, READY_W, WAIT_W

        received = 0
        try:
            awaited = next(steps)
            while True:
                await self._send_on()
                if awaited & WAIT_W:
                    awaited = steps.send(READY_W)
                    continue
                received += await self._fetch_more()
                if received > self.max_answer:
                    # The driver would read the rest of the row to end the statement properly.
                    self.pgconn.finish()
                    raise _too_large(self.max_answer)
                awaited = steps.send(READY_R)
        except StopIteration as end:
            await self._send_on()
            return end.value

    async def _send_on(self) -> None:
        """Send the server what libpq has written."""
        # The library learns from its own reading that the server is gone; and it may have closed its end itself.
        with suppress(OSError):
            while written := self.library.recv(PIECE):
                await asyncio.get_running_loop().sock_sendall(self.server, written)

    async def _fetch_more(self) -> int:
        """Pass a piece of what the server sends to libpq, unless it still has one to read; returns the number of bytes."""
        if _is_readable(self.pgconn.socket):
            return 0
        # Yields to the event loop, which a fast server would block otherwise.
        await asyncio.sleep(0)
        try:
            piece = await asyncio.get_running_loop().sock_recv(self.server, PIECE)
        except OSError:
            piece = b""
        if piece:
            await asyncio.get_running_loop().sock_sendall(self.library, piece)
        else:
            self.library.shutdown(socket.SHUT_WR)
        return len(piece)

    async def close(self) -> None:
        """End the session and close both connections."""
        with self.server, self.library:
            await super().close()  # type: ignore[misc]  # of the driver
            await self._send_on()


def _is_readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _too_large(most: int) -> ToolError:
    message = (
        f"the server sends more than {most} bytes for one row; leave large columns out, or raise maxBytes of the tool"
    )
    return ToolError(Kind.LIMIT_EXCEEDED, message)


class PostgresConnection:
    """A connection on which statements run one after the other, each in a transaction of its own."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    async def settle(self, *, superuser: bool) -> None:
        """Configure how values are read, and refuse a role that is too powerful."""
        _choose_loaders(self._driver)
        if superuser:
            return
        cursor = await self._driver.execute(POWERFUL)
        row = await cursor.fetchone()
        if row is None or row[0]:
            cure = Cure("use a role that may only do what the tool needs, or set sql_tools.superuser")
            message = "the role of the URL can read files of the server or start programs there"
            raise ToolError(Kind.BLOCKED, message, cure=cure)

    async def begin(self, *, write: bool, seconds: float) -> None:
        """Begin a transaction, which the server aborts at its time limit."""
        milliseconds = max(1, int(seconds * 1000))
        mode = "READ WRITE" if write else "READ ONLY"
        self._driver.max_answer = MAX_ANSWER
        # The styles are those that the driver reads; a role may have others.
        await self._ours(
            f"BEGIN {mode}; SET LOCAL statement_timeout = {milliseconds};"
            f" SET LOCAL idle_in_transaction_session_timeout = {milliseconds + 1_000};"
            " SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'postgres'"
        )

    async def commit(self) -> None:
        """Commit the transaction."""
        await self._ours("COMMIT")

    async def reset(self) -> None:
        """Roll back, and reset settings, locks and all other state of the session."""
        await self._ours("ROLLBACK")
        await self._ours("DISCARD ALL")

    async def describe(self, text: str) -> Described:
        """Let the server parse a statement, without running it."""
        pgconn = self._driver.pgconn
        async with self._driver.lock:
            pgconn.send_prepare(b"", text.encode())
            await self._result()
            pgconn.send_describe_prepared(b"")
            result = await self._result()
        parameters = [result.param_type(number) for number in range(result.nparams)]
        columns = [(result.fname(number), result.ftype(number)) for number in range(result.nfields)]
        names = await self._names_of({*parameters, *(oid for _, oid in columns)})
        return Described(
            tuple(names[oid] for oid in parameters),
            tuple(((name or b"").decode(), names[oid]) for name, oid in columns),
        )

    async def _result(self) -> Any:
        """The response of the server to what was sent."""
        from psycopg import generators
        from psycopg.errors import error_from_result
        from psycopg.pq import ExecStatus

        result = (await self._driver.wait(generators.execute(self._driver.pgconn)))[-1]
        if result.status != ExecStatus.COMMAND_OK:
            raise explain(error_from_result(result))
        return result

    async def _names_of(self, types: set[int]) -> dict[int, str]:
        """The names of types; that of an array ends in []."""
        text = "SELECT oid::int8, CASE WHEN typcategory = 'A' THEN '[]' ELSE typname END FROM pg_type WHERE oid = ANY($1::oid[])"
        cursor = self._cursor()
        try:
            await cursor.execute(text, [sorted(types)])
            found = dict(await cursor.fetchall())
        except _errors() as problem:
            raise explain(problem) from None
        return {oid: str(found.get(oid, "")) for oid in types}

    async def stream(
        self, text: str, values: Sequence[str | None], *, max_row: int
    ) -> AsyncGenerator[tuple[list[str], tuple[Any, ...]]]:
        """Run one statement that returns rows; each row with the names of its columns. Leaving early cancels the statement.

        A row of more than `max_row` bytes ends the connection.
        """
        cursor = self._cursor()
        names: list[str] = []
        self._driver.max_answer = max(MAX_ANSWER, max_row)
        try:
            async for row in cursor.stream(text, values):
                names = names or [column.name for column in cursor.description]
                yield names, row
        except _errors() as problem:
            raise explain(problem) from None

    async def execute(self, text: str, values: Sequence[str | None]) -> int:
        """Run one statement that returns no rows; how many it changed."""
        cursor = self._cursor()
        try:
            # Prepared, because otherwise a text without parameters could hold several statements.
            await cursor.execute(text, values, prepare=True)
        except _errors() as problem:
            raise explain(problem) from None
        return max(0, int(cursor.rowcount))

    async def close(self) -> None:
        """Close the connection; the server ends a statement that still runs."""
        await self._driver.close()

    @property
    def is_usable(self) -> bool:
        """Whether the connection is open and waits for a statement."""
        return not self._driver.closed

    def _cursor(self) -> Any:
        from psycopg import AsyncRawCursor

        return AsyncRawCursor(self._driver)

    async def _ours(self, text: str) -> None:
        try:
            await self._driver.execute(text)
        except _errors() as problem:
            raise explain(problem) from None


def _errors() -> type[Exception]:
    import psycopg

    return psycopg.Error


def _choose_loaders(driver: Any) -> None:
    """Read values as Python types; dates that Python does not support, such as infinity, stay text."""
    from psycopg import DataError
    from psycopg.types import datetime as moments
    from psycopg.types.json import set_json_loads
    from psycopg.types.string import TextLoader

    adapters = driver.adapters
    set_json_loads(_load_json, driver)
    for name in AS_TEXT:
        adapters.register_loader(name, TextLoader)
    for name, known in (
        ("date", moments.DateLoader),
        ("time", moments.TimeLoader),
        ("timestamp", moments.TimestampLoader),
        ("timestamptz", moments.TimestamptzLoader),
        ("interval", moments.IntervalLoader),
    ):

        def load(self: Any, data: Any, known: Any = known) -> object:
            try:
                return known.load(self, data)
            except DataError:
                return bytes(data).decode()

        adapters.register_loader(name, type(known.__name__, (known,), {"load": load}))


def _load_json(text: str | bytes) -> object:
    try:
        return json.loads(text)
    except RecursionError:
        message = "a JSON value is nested too deeply; select a part of it, or the whole as text with ::text"
        raise ToolError(Kind.PERMANENT, message) from None


def explain(problem: Exception) -> ToolError:
    """Convert an error of PostgreSQL to a ToolError; it contains only the message of the server."""
    code = getattr(problem, "sqlstate", None) or ""
    said = getattr(getattr(problem, "diag", None), "message_primary", None)
    details = {"sqlstate": code} if code else {}
    if not code:
        is_login = "FATAL" in str(problem) or "certificate" in str(problem) or "SSL" in str(problem)
        text = _login_message(str(problem)) if is_login else "the connection to the database was lost; try again"
        return ToolError(Kind.AUTH if is_login else Kind.TRANSIENT, text, retryable=not is_login, details=details)
    if code == CANCELLED:
        return ToolError(Kind.TIMEOUT, f"the statement was stopped: {said}", retryable=True, details=details)
    if code == READ_ONLY:
        cure = 'only reading is allowed; a tool that changes rows says "write": true'
        return ToolError(Kind.BLOCKED, f"PostgreSQL refused the statement ({said}); {cure}", details=details)
    kind = (
        Kind.BLOCKED
        if code == DENIED
        else Kind.TRANSIENT
        if code == LOCK_TIMEOUT
        else KINDS.get(code[:2], Kind.PERMANENT)
    )
    return ToolError(kind, f"PostgreSQL: {said}", retryable=kind is Kind.TRANSIENT, details=details)


def _login_message(text: str) -> str:
    """The message of libpq for a failed login, without the address."""
    return "PostgreSQL refused the connection: " + text.strip().rpartition("failed: ")[2].splitlines()[0][:300]
