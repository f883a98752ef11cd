"""Run SQL tools: bind the arguments, run the statement on its database, and write the rows as a value."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from toolcrib.features.sql_tools import SqlToolsSettings
from toolcrib.features.sql_tools.database import dialect_of, fill_slots, slots_in, written_host
from toolcrib.features.sql_tools.description import list_arguments, problems_of
from toolcrib.features.sql_tools.postgres_engine import PostgresEngine, bind_postgres
from toolcrib.features.sql_tools.rows import Collected, shape_value
from toolcrib.features.sql_tools.sqlite_engine import LOCKED_MESSAGE, OpenFile, SqliteEngine, bind_sqlite
from toolcrib.features.sql_tools.statement import Dialect, compile_statement
from toolcrib.infra.egress.postgres import check_installed
from toolcrib.infra.secrets.grants import ToolGrants, granted_value, tell_all
from toolcrib.infra.secrets.secret import VariableMasking
from toolcrib.lib.database_url import POSTGRESQL_PORT, parse_server
from toolcrib.lib.http_syntax import parse_hosts
from toolcrib.lib.run_part import PartKind, RunPart
from toolcrib.model.errors import Cure, Kind, SettingsError, ToolError
from toolcrib.model.result import Outcome
from toolcrib.model.tool import Rows, Spelling, Sql

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from toolcrib.core.resources import Resources
    from toolcrib.features.sql_tools.database import SlotName
    from toolcrib.features.sql_tools.rows import Row
    from toolcrib.features.sql_tools.statement import Statement
    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.files.jail import Jail
    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import WorkspacePolicy
    from toolcrib.infra.secrets.secret import Secret
    from toolcrib.lib.database_url import DatabaseServer
    from toolcrib.lib.http_syntax import HostList
    from toolcrib.model.call import Call, Context
    from toolcrib.model.tool import Tool


class SecretSource(Protocol):
    """Looks secrets up by name."""

    def get(self, name: str) -> Secret | None:
        """The secret, or None."""


class SqlRunner:
    """Runs statements on files of the workspace, and on PostgreSQL servers that the operator allows.

    `hosts` are patterns as in the setting sql_tools.hosts. Without any, a tool of a bundle may reach no server, and a script every
    public address. `max_rows` and `max_bytes` are upper limits for every tool, even if it declares more.
    """

    kind = Sql.kind

    def __init__(
        self,
        *,
        jail: Jail,
        sandbox: Sandbox,
        workspace_policy: WorkspacePolicy,
        egress: Callable[[], Egress],
        secrets: SecretSource,
        hosts: tuple[str, ...] = (),
        variable: Callable[[Tool, str], str | None] = lambda _tool, _name: None,
        environment: Mapping[str, str] | None = None,
        max_rows: int,
        max_bytes: int,
        connections: int,
        superuser: bool = False,
    ) -> None:
        self.jail = jail
        self.egress = egress
        self.secrets = secrets
        self.max_rows = max_rows
        self.max_bytes = max_bytes
        self.sqlite = SqliteEngine(sandbox, workspace_policy, connections)
        self.postgres = PostgresEngine(egress, connections, superuser=superuser)
        self._hosts = parse_hosts(hosts, "the setting sql_tools.hosts")
        self._variable = variable
        self._environment = environment or {}

    def bind(self, tool: Tool) -> BoundSql:
        """Compile the statement of a tool, once for each combination of its choices."""
        if not isinstance(tool.run, Sql):
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name} is a {tool.kind} and runs no statement")
        if problems := [f"{key}: {problem}" for key, problem in problems_of(tool.run, tool.parameters)]:
            raise ToolError(Kind.VALIDATION, f"{tool.name}: {'; '.join(problems)}", details={"problems": problems})
        grants = ToolGrants(partial(granted_value, tool, variable=self._variable), self._environment)
        return BoundSql(self, tool, tool.run, grants, self._allowed(tool.run))

    async def close(self) -> None:
        """End running statements, and close every connection."""
        await self.postgres.close()
        await self.sqlite.close()

    def _allowed(self, run: Sql) -> HostList | None:
        """The hosts of the operator, narrowed to those of the tool; None means every public host."""
        is_open = run.spelling is Spelling.BRACES and not self._hosts.patterns
        operators = None if is_open else self._hosts
        return operators if run.hosts is None else replace(parse_hosts(run.hosts), within=operators)


class Prepared(NamedTuple):
    """A checked call: its statement, the values of its placeholders, and its database file or server."""

    bound: BoundSql
    statement: Statement
    values: Sequence[object]
    place: OpenFile | DatabaseServer


class BoundSql:
    """A tool prepared for calls: everything that does not depend on the arguments."""

    is_async = True
    wants_context = True
    checks = True
    function = None

    def __init__(self, runner: SqlRunner, tool: Tool, run: Sql, grants: ToolGrants, hosts: HostList | None) -> None:
        self.declared = run
        self.runner = runner
        self.dialect = dialect_of(run.database)
        self.statements = compile_statement(
            run.statement, self.dialect, choices=run.choices, lists=list_arguments(tool.parameters)
        )
        self.hosts = hosts
        self.masking = VariableMasking()
        self._tool = tool
        self._grants = grants
        self._choices = sorted(run.choices)

    def check(self, arguments: dict[str, object], call: Call) -> Prepared:
        """Raise ToolError for what can be checked without running anything: names, values, secrets, the file or the host."""
        try:
            return self._prepare(arguments)
        except ToolError as refusal:
            raise self.tell_all(refusal) from None

    def tell_all(self, refusal: ToolError) -> ToolError:
        """The refusal with everything else that is missing, without secrets."""
        return self.masking.hide_error(tell_all(refusal, self._needs()))

    def _needs(self) -> Iterator[Callable[[], object]]:
        """The checks of what the operator provides for a server: the package, secrets, variables, the host."""
        if self.dialect is Dialect.SQLITE:
            return
        yield check_installed
        yield from (partial(self._look_up, slot) for slot in slots_in(self.declared.database))
        if (url := written_host(self.declared.database)) is not None:
            yield partial(self.runner.egress().check_server, url, self.hosts, POSTGRESQL_PORT)
            yield partial(self.runner.egress().check_address, url)

    def preview(self, arguments: dict[str, object], call: Call) -> Iterator[RunPart]:
        """The statement as the database gets it, with the value of each placeholder; secrets in the database name are not filled in."""
        statement = self._chosen(arguments)
        places = (
            (f"{number}: {place.name}", json.dumps(arguments.get(place.name), ensure_ascii=False))
            for number, place in enumerate(statement.places, 1)
        )
        changes = "may change the database" if self.declared.write else "only reads; the database refuses a change"
        yield RunPart(
            kind=PartKind.STATEMENT,
            title=str(self.dialect),
            data=statement.text.encode(),
            facts=(("database", self.declared.database), ("effect", changes), *places),
        )

    async def run(self, arguments: dict[str, object], context: Context | None) -> Outcome:
        """Run the statement once."""
        if context is None:
            raise ToolError(Kind.INTERNAL, f"{self._tool.name} runs only in a call")
        prepared = context.prepared
        try:
            if not isinstance(prepared, Prepared) or prepared.bound is not self:
                prepared = self._prepare(arguments)
            return await self._run(prepared, context)
        except ToolError as error:
            raise self.masking.hide_error(error) from None

    async def _run(self, prepared: Prepared, context: Context) -> Outcome:
        run, runner = self.declared, self.runner
        meta: dict[str, object] = {"database": str(self.dialect)}
        if isinstance(prepared.place, OpenFile):
            meta["sandbox"] = await runner.sqlite.prepare()
        started = time.monotonic()
        seconds = max(0.0, min(run.timeout_ms / 1000, context.deadline - started))
        collected = Collected(
            max_rows=min(run.max_rows, runner.max_rows), max_bytes=min(run.max_bytes, runner.max_bytes)
        )
        try:
            async with asyncio.timeout(seconds):
                await self._collect(prepared, collected, context, started + seconds)
        except TimeoutError:
            if collected.is_locked:
                raise ToolError(Kind.TRANSIENT, LOCKED_MESSAGE, retryable=True) from None
            limit = min(run.timeout_ms / 1000, context.seconds)
            message = f"the statement was stopped after {limit:g} s; ask for less, or allow it more time"
            raise ToolError(
                Kind.TIMEOUT,
                message,
                retryable=not run.write,
                details={"seconds": limit},
                value=collected.rows or None,
            ) from None
        meta["rows"] = len(collected.rows)
        if collected.truncated:
            meta["truncated"] = collected.truncated
        return Outcome(value=shape_value(run, collected), meta=meta)

    async def _collect(self, prepared: Prepared, collected: Collected, context: Context, deadline: float) -> None:
        send = _sender(context) if self.declared.returns is Rows.LIST and not self.declared.write else None
        place = prepared.place
        if isinstance(place, OpenFile):
            await self.runner.sqlite.run(
                place, prepared.statement, prepared.values, collected, deadline=deadline, send=send
            )
            return
        await self.runner.postgres.run(
            place,
            self.hosts,
            prepared.statement,
            prepared.values,
            collected,
            write=self.declared.write,
            deadline=deadline,
            send=send,
        )

    def find_file(self) -> OpenFile:
        """The database file, as the jail of the workspace finds it; refuses a machine that cannot sandbox its statements."""
        self.runner.sqlite.check()
        write = self.declared.write
        return OpenFile(self.runner.jail.find(self.declared.database, to_write=write), write)

    def find_server(self) -> DatabaseServer:
        """The server that the URL names, with its secrets filled in; refuses a host that is not allowed."""
        check_installed()
        server = parse_server(fill_slots(self.declared.database, self._look_up))
        if server.password:
            self.masking.add(server.password)
        self.runner.egress().check_server(server.url, self.hosts, POSTGRESQL_PORT)
        return server

    def _chosen(self, arguments: Mapping[str, object]) -> Statement:
        """The statement for the choices in the arguments."""
        keys = tuple(str(arguments.get(name)) for name in self._choices)
        statement = self.statements.get(keys)
        if statement is None:
            raise ToolError(
                Kind.VALIDATION, f"there is no choice {', '.join(keys)[:80]}; give one of the values of its enum"
            )
        return statement

    def _prepare(self, arguments: Mapping[str, object]) -> Prepared:
        statement = self._chosen(arguments)
        bind = bind_sqlite if self.dialect is Dialect.SQLITE else bind_postgres
        values = [bind(place, arguments.get(place.name)) for place in statement.places]
        if self.dialect is Dialect.SQLITE:
            return Prepared(self, statement, values, self.find_file())
        return Prepared(self, statement, values, self.find_server())

    def _look_up(self, slot: SlotName) -> str:
        """The value of a slot; a script needs secrets granted by name, a tool of a bundle does not."""
        if slot.source == "env":
            value = self._grants.variable(slot.name)
            cure = Cure(f"set the variable {slot.name}")
        else:
            if self.declared.spelling is Spelling.BRACES:
                self._grants.value(slot.name)
            secret = self.runner.secrets.get(slot.name)
            value = None if secret is None else str(secret.reveal())
            cure = Cure(f"run: crib secret set {slot.name}")
        if not value:
            raise ToolError(Kind.VALIDATION, f"database: {slot} is not there", cure=cure, details={"name": slot.name})
        self.masking.add(value)
        return value


def _sender(context: Context) -> Callable[[Sequence[Row]], Awaitable[None]] | None:
    """Sends rows to a streaming client, one by one."""
    chunk = context.send_chunk
    if chunk is None:
        return None

    async def send(rows: Sequence[Row]) -> None:
        for row in rows:
            await chunk(row)

    return send


def check_hosts(resources: Resources) -> None:
    """Raise SettingsError now for invalid hosts, which would otherwise only fail when a statement runs."""
    settings = resources.settings
    try:
        parse_hosts(settings.table(SqlToolsSettings).hosts)
    except ToolError as problem:
        raise SettingsError(f"{settings.where('sql_tools.hosts')}: {problem.message}") from problem
