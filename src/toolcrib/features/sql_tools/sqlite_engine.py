"""Run statements on SQLite files of the workspace, each in a sandboxed process that reaches the file and what SQLite puts beside it."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.features.sql_tools.rows import Collected
from toolcrib.infra.channel import MAX_LINE_BYTES
from toolcrib.infra.programs import describe_end, refuse_early_end
from toolcrib.infra.programs.warm_process import WarmProcess
from toolcrib.infra.programs.worker_pool import Workers
from toolcrib.infra.sandbox import child
from toolcrib.infra.sandbox.jobs import PythonFile, build_policy, python_runtime
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Convention

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

    from toolcrib.features.sql_tools.rows import Row
    from toolcrib.features.sql_tools.statement import Placeholder, Statement
    from toolcrib.infra.files.jail import JailedFile
    from toolcrib.infra.sandbox.attempt import Talk
    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import CompletedJob, WorkspacePolicy

    Send = Callable[[Sequence[Row]], Awaitable[None]]

PROGRAM = Path(child.__file__).with_name("sqlite_file.py")
# What it imports is loaded before its process is forked.
IMPORTS = ("binascii", "json", "math", "signal", "sqlite3", "urllib.parse")
BESIDE = ("", "-journal", "-wal", "-shm")
LONGEST_SECONDS = 7 * 24 * 3600.0
LARGEST_INTEGER = 2**63 - 1
LEAST_VALUE_BYTES = 1_000_000
# A row and the rest of its batch fit into a line of the channel.
MAX_ROW_BYTES = MAX_LINE_BYTES - 1_000_000
LOCKED_MESSAGE = "another program has locked the database; try again later"
HOT = "SQLITE_READONLY_ROLLBACK"
NO_DATABASE = (Kind.PERMANENT, "the file cannot be read as a database: {text}; restore it")
REFUSED = (Kind.BLOCKED, "SQLite refused the statement ({text}); {cure}")
# What each error code of SQLite means for a call; for any other the message of SQLite is shown.
MESSAGES = {
    "SQLITE_BUSY": (Kind.TRANSIENT, LOCKED_MESSAGE),
    "SQLITE_LOCKED": (Kind.TRANSIENT, LOCKED_MESSAGE),
    "TOOLCRIB_REPLACED": (Kind.TRANSIENT, "the database was replaced by another file; try again"),
    "SQLITE_AUTH": REFUSED,
    "SQLITE_READONLY": REFUSED,
    HOT: (
        Kind.PERMANENT,
        "a program was ended within a change, which cannot be undone here; open the database once with sqlite3",
    ),
    "SQLITE_CORRUPT": NO_DATABASE,
    "SQLITE_NOTADB": NO_DATABASE,
    "SQLITE_IOERR": NO_DATABASE,
    "SQLITE_CANTOPEN": (
        Kind.PERMANENT,
        "the file, or its -journal, -wal or -shm, cannot be opened: {text}; none of them may be a link, have a second name or name another file, and the folder of a file in WAL mode must be writable",
    ),
    "SQLITE_TOOBIG": (
        Kind.LIMIT_EXCEEDED,
        "a value has more than {bytes} bytes; leave it out, or raise maxBytes of the tool",
    ),
    "SQLITE_CONSTRAINT": (Kind.CONFLICT, "the change is refused: {text}"),
    "SQLITE_FULL": (Kind.TRANSIENT, "the disk is full, or the statement sorts more than sandbox.disk_mb; make room"),
    "SQLITE_NOMEM": (
        Kind.LIMIT_EXCEEDED,
        "the statement takes more memory than it may have; ask for less, or raise sandbox.memory_mb",
    ),
}


def bind_sqlite(place: Placeholder, value: object) -> object:
    """An argument as SQLite binds it: lists and objects as JSON, which functions such as json_each read."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int) and not -LARGEST_INTEGER - 1 <= value <= LARGEST_INTEGER:
        raise ToolError(Kind.VALIDATION, f"{place.name}: an integer in SQLite has 64 bit; send it as text")
    return value


class OpenFile(NamedTuple):
    """A database file as one process has it open; `inspects` allows the pragmas that describe tables."""

    file: JailedFile
    write: bool = False
    inspects: bool = False


class SqliteEngine:
    """Runs statements, at most `connections` concurrently in this process; further calls wait."""

    def __init__(self, sandbox: Sandbox, workspace_policy: WorkspacePolicy, connections: int) -> None:
        self._sandbox = sandbox
        self._workspace_policy = workspace_policy
        self._workers = Workers[SqliteProcess](connections, "sql_tools.connections")

    async def prepare(self) -> dict[str, list[str]]:
        """What the sandbox guarantees for a statement; to find that out takes long once, which is no time of the statement."""
        await self._sandbox.learn()
        return self._sandbox.report()

    def check(self) -> None:
        """Refuse a machine that cannot sandbox a statement."""
        self._sandbox.check()

    async def run(
        self,
        place: OpenFile,
        statement: Statement,
        values: Sequence[object],
        collected: Collected,
        *,
        deadline: float,
        send: Send | None = None,
    ) -> None:
        """Run a statement on a file until its rows are collected; one that is cancelled is undone. `send` takes the rows as they come."""
        order: dict[str, object] = {"text": statement.text, "values": list(values), "writes": place.write}
        await self._perform(place, order, collected, deadline, send)

    async def explain(self, place: OpenFile, statement: Statement, *, deadline: float) -> None:
        """Let SQLite parse a statement, without running it; raises ToolError."""
        values = [None] * len(statement.places)
        order: dict[str, object] = {"text": f"EXPLAIN {statement.text}", "values": values, "writes": False}
        await self._perform(place, order, _drop_rows(), deadline)

    async def close(self) -> None:
        """End every process, and undo what was not committed."""
        await self._workers.close()

    async def _perform(
        self, place: OpenFile, order: dict[str, object], collected: Collected, deadline: float, send: Send | None = None
    ) -> None:
        said = await self._converse(place, order, collected, deadline, send)
        if said.get("name") == HOT and not place.write:
            # A program was killed within a change. As for any reader of SQLite, that change is undone first.
            undo: dict[str, object] = {"text": "SELECT 1", "values": [], "writes": True}
            said = await self._converse(place._replace(write=True), undo, _drop_rows(), deadline)
            if "error" not in said:
                said = await self._converse(place, order, collected, deadline, send)
        if "error" in said:
            raise _explain(said, write=place.write, value_bytes=max(LEAST_VALUE_BYTES, _most_bytes(collected)))

    async def _converse(
        self, place: OpenFile, order: dict[str, object], collected: Collected, deadline: float, send: Send | None = None
    ) -> dict[str, Any]:
        """Have a process run the statement; returns its last answer, which may be an error of SQLite."""
        max_bytes = _most_bytes(collected)
        worker = await self._workers.take(place, partial(self._start, place), deadline)
        # Unless its statement succeeds, the process is ended: it may wait with a statement, or be cut off from a folder that was replaced.
        worker.is_spent = True
        try:
            said = await worker.ask({**order, "maxBytes": max_bytes}, collected)
            while "error" not in said:
                if said["columns"] is not None:
                    collected.name_columns(said["columns"])
                rows = collected.add([_read_value(value) for value in row] for row in said["rows"])
                if said.get("large") is True and not collected.truncated:
                    collected.truncated = f"more than {max_bytes} bytes"
                if send is not None and rows:
                    await send(rows)
                if "affected" in said:
                    collected.affected = said["affected"] if place.write else None
                    break
                said = await worker.ask({"more": not collected.truncated}, collected)
            worker.is_spent = "error" in said
        finally:
            self._workers.give_back(worker)
            if worker.is_spent:
                await worker.see_ended()
        return said

    def _start(self, place: OpenFile) -> SqliteProcess:
        return SqliteProcess(place, partial(self._live, place))

    async def _live(self, place: OpenFile, talk: Talk) -> CompletedJob:
        # Outside the job slots: the process outlives its call.
        return await self._sandbox.run(
            _make_job(place, self._workspace_policy),
            deadline=time.monotonic() + LONGEST_SECONDS,
            talk=talk,
            nested=True,
        )


class SqliteProcess(WarmProcess):
    """A process with one open file."""

    async def ask(self, message: dict[str, object], collected: Collected) -> dict[str, Any]:
        """Send a message; returns the answer. Raises ToolError if the process gives none."""
        self._is_heard = True
        try:
            await asyncio.wait((self._lines, self._running), return_when=asyncio.FIRST_COMPLETED)
            if self._lines.done():
                lines = self._lines.result()
                try:
                    await lines.write(message)
                except ToolError as problem:
                    text = "the arguments are too long for a statement on SQLite; send less at once"
                    raise ToolError(Kind.LIMIT_EXCEEDED, text) from problem
                while (said := await lines.read()) is not None:
                    collected.is_locked = said.get("locked") is True
                    if not collected.is_locked:
                        return said
        finally:
            self._is_heard = False
        raise await self._early_end()

    async def _early_end(self) -> ToolError:
        """Why there is no answer; the process has ended by then."""
        self._close_channel()
        self.end()
        await self.see_ended()
        if self._reason is not None:
            return self._reason
        how = "did not end in time"
        if self._running.done() and not self._running.cancelled():
            try:
                ended = self._running.result()
                refuse_early_end("the statement", ended, LONGEST_SECONDS)
            except ToolError as problem:
                return problem
            how = describe_end(ended)
        return ToolError(Kind.INTERNAL, f"the process of the statement gave no answer, and {how}; try again")


def _make_job(place: OpenFile, workspace_policy: WorkspacePolicy) -> PythonFile:
    file = place.file
    folder = Path(file.path).parent
    # SQLite opens the folder, too, so that a removed journal stays removed.
    only = (folder, *(Path(file.path + ending) for ending in BESIDE))
    policy = build_policy((), workspace_policy, python_runtime())
    return PythonFile(
        path=PROGRAM,
        code=_read_program(),
        entry="serve",
        arguments={
            "path": file.path,
            "identity": list(file.identity),
            "write": place.write,
            "inspects": place.inspects,
        },
        policy=replace(policy, write=(folder,), only=only, processes=1),
        convention=Convention.PARAMS,
        imports=IMPORTS,
        channel=True,
    )


@cache
def _read_program() -> bytes:
    return PROGRAM.read_bytes()


def _most_bytes(collected: Collected) -> int:
    return min(collected.max_bytes, MAX_ROW_BYTES)


def _drop_rows() -> Collected:
    return Collected(max_rows=0, max_bytes=0)


def _read_value(value: object) -> object:
    """A float that JSON has not comes as a list with its name."""
    return float(value[0]) if isinstance(value, list) else value


def _explain(said: dict[str, Any], *, write: bool, value_bytes: int) -> ToolError:
    """Convert an error of SQLite to a ToolError."""
    text, name = str(said["error"]), str(said.get("name"))
    if "not authorized" in text or "prohibited" in text:
        name = "SQLITE_AUTH"
    code = name if name in MESSAGES else "_".join(name.split("_")[:2])
    kind, message = MESSAGES.get(code, (Kind.PERMANENT, "SQLite: {text}"))
    if "Could not decode" in text:
        message = "{text}; select it as bytes with CAST(… AS BLOB)"
    cure = (
        "only rows can be changed" if write else 'only reading is allowed; a tool that changes rows says "write": true'
    )
    if "function" in text:
        cure = "no tool may use this function"
    return ToolError(
        kind,
        message.format(text=text, cure=cure, bytes=value_bytes),
        retryable=kind is Kind.TRANSIENT,
        details={"sqlite": name},
    )
