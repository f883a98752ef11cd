"""Run statements on PostgreSQL, over a bounded number of connections to each database.

What a statement may do is up to the server: a transaction is read-only unless the tool writes, and text and values travel apart, so
that one text is one statement.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from toolcrib.infra.egress.postgres import connect
from toolcrib.lib.database_url import POSTGRESQL_PORT
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from toolcrib.features.sql_tools.rows import Collected, Row
    from toolcrib.features.sql_tools.statement import Placeholder, Statement
    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.egress.postgres import Described, PostgresConnection
    from toolcrib.lib.database_url import DatabaseServer
    from toolcrib.lib.http_syntax import HostList

    Open = Callable[[], Awaitable[PostgresConnection]]

IDLE_SECONDS = 60.0
# How long the server may take to reset a session of a Crib that closes.
RESET_SECONDS = 1.0
MAX_WAITING = 256
MAX_DESCRIBED = 1_000
# How much larger a row may be in PostgreSQL's notation than as JSON, of which maxBytes speaks: a byte is up to four characters.
NOTATION = 4
# The server ends a statement a moment before we would, so that its own message reaches the caller.
SERVER_SECONDS = 0.05
ARRAY = "[]"


def bind_postgres(place: Placeholder, value: object) -> object:
    """An argument as text, whose type the server infers; a list or an object is converted once the type is known."""
    _refuse_nul(place, value)
    return value if isinstance(value, list | dict) else _write_scalar(value)


def _refuse_nul(place: Placeholder, value: object) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise ToolError(Kind.VALIDATION, f"{place.name}: PostgreSQL stores no NUL character; leave it out")
    elif isinstance(value, list):
        for item in value:
            _refuse_nul(place, item)


def _write_scalar(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else repr(value)


def write_array(items: Sequence[object]) -> str:
    """A list in PostgreSQL's array notation; every item is quoted, so that none is parsed as part of the notation."""
    return "{" + ",".join(map(_write_item, items)) + "}"


def _write_item(item: object) -> str:
    if item is None:
        return "NULL"
    if isinstance(item, list):
        return write_array(item)
    text = json.dumps(item, ensure_ascii=False) if isinstance(item, dict) else str(_write_scalar(item))
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class PostgresEngine:
    """Runs statements, at most `connections` concurrently on each database; further calls wait."""

    def __init__(self, egress: Callable[[], Egress], connections: int, *, superuser: bool) -> None:
        self._egress = egress
        self._limit = connections
        self._superuser = superuser
        self._pools: dict[tuple[asyncio.AbstractEventLoop, DatabaseServer], _Pool] = {}
        self._described: dict[tuple[DatabaseServer, str], Described] = {}

    async def run(
        self,
        server: DatabaseServer,
        hosts: HostList | None,
        statement: Statement,
        values: Sequence[object],
        collected: Collected,
        *,
        write: bool,
        deadline: float,
        send: Callable[[Sequence[Row]], Awaitable[None]] | None = None,
    ) -> None:
        """Run a statement until its rows are collected; one that is cancelled is cancelled on the server, too."""
        way = self._pool(server).connection(lambda: self._open(server, hosts), write=write, deadline=deadline)
        async with way as connection:
            described = None
            if write or any(isinstance(value, list | dict) for value in values):
                described = await self._describe(server, connection, statement)
            texts = [
                _write_value(place, value, described, number)
                for number, (place, value) in enumerate(zip(statement.places, values, strict=True))
            ]
            if write and described is not None and not described.columns:
                collected.affected = await connection.execute(statement.text, texts)
            else:
                await _collect(connection, statement.text, texts, collected, write=write, send=send)
            if write:
                await _commit(connection)

    async def describe(self, server: DatabaseServer, hosts: HostList | None, text: str, *, seconds: float) -> Described:
        """The parameters and columns of a statement, without running it."""
        until = time.monotonic() + seconds
        way = self._pool(server).connection(lambda: self._open(server, hosts), write=False, deadline=until)
        async with way as connection:
            return await connection.describe(text)

    async def close(self) -> None:
        """Close the connections of the running loop; those of another loop end with it."""
        loop = asyncio.get_running_loop()
        for key in [key for key in self._pools if key[0] is loop]:
            await self._pools.pop(key).close()

    def _pool(self, server: DatabaseServer) -> _Pool:
        loop = asyncio.get_running_loop()
        pool = self._pools.get((loop, server))
        if pool is None:
            self._pools = {key: known for key, known in self._pools.items() if not key[0].is_closed()}
            pool = self._pools[loop, server] = _Pool(self._limit)
        return pool

    async def _open(self, server: DatabaseServer, hosts: HostList | None) -> PostgresConnection:
        addresses = await self._egress().locate(server.url, hosts, POSTGRESQL_PORT)
        return await connect(server, addresses, superuser=self._superuser)

    async def _describe(
        self, server: DatabaseServer, connection: PostgresConnection, statement: Statement
    ) -> Described:
        key = server, statement.text
        if key not in self._described:
            if len(self._described) >= MAX_DESCRIBED:
                self._described.clear()
            self._described[key] = await connection.describe(statement.text)
        return self._described[key]


def _write_value(place: Placeholder, value: object, described: Described | None, number: int) -> str | None:
    """A value as text: a list as an array where the server expects one, and as JSON elsewhere."""
    if not isinstance(value, list | dict):
        return value  # type: ignore[return-value]  # bind_postgres made a text of it
    kind = "" if described is None else described.parameters[number]
    if isinstance(value, list) and (place.is_list or kind == ARRAY):
        return write_array(value)
    return json.dumps(value, ensure_ascii=False)


async def _collect(
    connection: PostgresConnection,
    text: str,
    values: Sequence[str | None],
    collected: Collected,
    *,
    write: bool,
    send: Callable[[Sequence[Row]], Awaitable[None]] | None,
) -> None:
    names: list[str] = []
    count = 0
    rows = connection.stream(text, values, max_row=NOTATION * collected.max_bytes)
    try:
        async for columns, row in rows:
            if columns is not names:
                names = columns
                collected.name_columns(columns)
            count += 1
            if not collected.truncated:
                taken = collected.add([row])
                if send is not None and taken:
                    await send(taken)
            # The change of a statement that writes is made completely, also if not all of its rows are read.
            if collected.truncated and not write:
                break
    finally:
        await rows.aclose()
    if write:
        collected.affected = count


async def _commit(connection: PostgresConnection) -> None:
    try:
        await connection.commit()
    except ToolError as problem:
        # Without a response it is unknown whether the server committed the change.
        is_unknown = "sqlstate" not in problem.details
        raise ToolError(
            problem.kind,
            problem.message,
            partial_side_effects=is_unknown,
            retryable=not is_unknown and problem.retryable,
        ) from None


class _Pool:
    """The connections of one event loop to one database."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._places = asyncio.Semaphore(limit)
        self._waiting = 0
        self._idle: list[tuple[float, PostgresConnection]] = []
        self._cleaning: set[asyncio.Task[None]] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False

    @asynccontextmanager
    async def connection(self, connect: Open, *, write: bool, deadline: float) -> AsyncIterator[PostgresConnection]:
        """An idle or new connection in a new transaction; afterwards it is reset before another call gets it."""
        if self._waiting >= MAX_WAITING:
            message = f"{self._waiting} statements wait for this database already; try again later"
            raise ToolError(Kind.OVERLOADED, message, retryable=True)
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        connection = None
        try:
            connection = await self._begin(connect, write=write, deadline=deadline)
            yield connection
        except ToolError as problem:
            # An error with a code leaves the connection usable.
            self._release(connection, keep="sqlstate" in problem.details)
            raise
        except BaseException:
            self._release(connection, keep=False)
            raise
        self._release(connection, keep=True)

    async def close(self) -> None:
        """Close every idle connection, and those that are being reset, whose server has a second to finish."""
        self._is_closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        if self._cleaning:
            _, late = await asyncio.wait(self._cleaning, timeout=RESET_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        idle, self._idle = self._idle, []
        for _, connection in idle:
            await connection.close()

    async def _begin(self, connect: Open, *, write: bool, deadline: float) -> PostgresConnection:
        seconds = max(SERVER_SECONDS, deadline - time.monotonic() - SERVER_SECONDS)
        while self._idle:
            _, connection = self._idle.pop()
            # A connection that the server has closed fails with the first message, before anything has run.
            try:
                await connection.begin(write=write, seconds=seconds)
            except ToolError:
                await connection.close()
                continue
            except BaseException:
                await connection.close()
                raise
            return connection
        connection = await connect()
        try:
            await connection.begin(write=write, seconds=seconds)
        except BaseException:
            await connection.close()
            raise
        return connection

    def _release(self, connection: PostgresConnection | None, *, keep: bool) -> None:
        """Free the slot once the connection is reset; the caller does not wait for that."""
        if connection is None:
            self._places.release()
            return
        task = asyncio.ensure_future(self._clean(connection, keep=keep))
        self._cleaning.add(task)
        task.add_done_callback(self._cleaned)

    def _cleaned(self, task: asyncio.Task[None]) -> None:
        self._cleaning.discard(task)
        self._places.release()

    async def _clean(self, connection: PostgresConnection, *, keep: bool) -> None:
        try:
            if keep:
                async with asyncio.timeout(SERVER_SECONDS * 100):
                    await connection.reset()
                if not self._is_closed:
                    self._idle.append((time.monotonic(), connection))
                    self._plan_sweep()
                    return
        except (ToolError, TimeoutError):
            pass
        except BaseException:
            await connection.close()
            raise
        with suppress(Exception):
            await connection.close()

    def _plan_sweep(self) -> None:
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._close_old)

    def _close_old(self) -> None:
        self._sweep = None
        oldest = time.monotonic() - IDLE_SECONDS
        old = [connection for since, connection in self._idle if since <= oldest]
        self._idle = [(since, connection) for since, connection in self._idle if since > oldest]
        for connection in old:
            task = asyncio.ensure_future(connection.close())
            self._cleaning.add(task)
            task.add_done_callback(self._cleaning.discard)
        if self._idle:
            self._plan_sweep()
