"""Pass the messages of a client on standard input and output to the endpoint `/mcp` of a server elsewhere.

Each message is one POST whose answer is read whole. So a client of the older wire is not declared able to answer questions, which
would come in the middle of an answer, and streams of changes are refused.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import orjson

from toolcrib.client.connection import TOKEN_VARIABLE, Connection
from toolcrib.interfaces.mcp.client_link import CAPABILITIES
from toolcrib.interfaces.mcp.header_values import NAMED, argument_headers, encode, header_rules
from toolcrib.interfaces.mcp.messages import (
    Code,
    Notification,
    ProtocolError,
    Request,
    UnreadableError,
    dump,
    read_message,
    write_error,
)
from toolcrib.interfaces.mcp.stdio_opening import MAX_LINE, Opening, take_stdio
from toolcrib.interfaces.mcp.stdio_transport import DRAIN_SECONDS, MAX_RUNNING, Lines, Reader, Writer
from toolcrib.interfaces.mcp.versions import VERSION_KEY
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.cli import ExitCode, WrongUseError, log_on_stderr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.infra.egress import Response
    from toolcrib.interfaces.mcp.header_values import HeaderRule
    from toolcrib.interfaces.mcp.messages import Message, Params

PATH = "/mcp"
SECONDS = 600.0
UNAUTHORIZED = 401
LISTEN = "subscriptions/listen"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def bridge_server(url: str, token: str | None) -> ExitCode:
    """Bridge the client on standard input and output to the server at the URL until the client closes its end."""
    try:
        connection = Connection(url, token)
    except ToolError as problem:
        if problem.kind is Kind.VALIDATION:
            raise WrongUseError(f"--url: {problem.message}") from problem
        raise
    opening = take_stdio()
    with log_on_stderr():
        asyncio.run(_bridge(connection, opening))
    return ExitCode.DONE


async def _bridge(connection: Connection, opening: Opening) -> None:
    bridge = Bridge(connection, opening)
    for one in (signal.SIGTERM, signal.SIGHUP):
        # In another thread than the first there are no signals to hear.
        with suppress(RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(one, bridge.stop)
    try:
        await bridge.run()
    finally:
        await connection.close()


class Bridge:
    """One client here and one server elsewhere; the session of the older wire is the server's."""

    def __init__(self, connection: Connection, opening: Opening) -> None:
        self._connection = connection
        self._opening = opening
        self._writer = Writer(opening.target, self.stop)
        self._running: dict[object, asyncio.Task[None]] = {}
        self._over = asyncio.Event()
        # Whatever follows an `initialize` waits until that was answered.
        self._order = asyncio.Lock()
        self._session: dict[str, str] = {}
        self._rules: dict[str, tuple[HeaderRule, ...]] = {}

    async def run(self) -> None:
        """Pass messages on until the client closes its end, and answer what it asked before that."""
        Reader(self._opening.source, asyncio.get_running_loop(), Lines(self._receive).feed, self._over.set).start()
        await self._over.wait()
        if self._running:
            await asyncio.wait(self._running.values(), timeout=DRAIN_SECONDS)
        for task in tuple(self._running.values()):
            task.cancel()
        await asyncio.to_thread(self._writer.close)

    def stop(self) -> None:
        """End at once."""
        for task in tuple(self._running.values()):
            task.cancel()
        self._over.set()

    def _receive(self, line: bytes | None) -> None:
        """Take one line; None for one that was too long."""
        try:
            if line is None:
                raise UnreadableError(Code.PARSE, f"a message has more than {MAX_LINE} bytes; send less")
            message = read_message(line, MAX_LINE)
        except UnreadableError as problem:
            self._writer.answer(write_error(problem.id, problem))
            return
        if isinstance(message, Notification) and message.method == "notifications/cancelled":
            request_id = message.params.get("requestId")
            if isinstance(request_id, str | int) and (cancelled := self._running.get(request_id)):
                # The server hears of it as the end of the request.
                cancelled.cancel()
        key = message.id if isinstance(message, Request) else object()
        if len(self._running) >= MAX_RUNNING or key in self._running:
            if isinstance(message, Request):
                refusal = ProtocolError(Code.INVALID_REQUEST, "too many requests, or one with this id, are under way")
                self._writer.answer(write_error(message.id, refusal))
            return
        task = asyncio.get_running_loop().create_task(self._pass_on(line, message))
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))

    async def _pass_on(self, line: bytes, message: Message) -> None:
        request_id = message.id if isinstance(message, Request) else None
        try:
            for answer in await self._exchange(line, message):
                self._writer.answer(answer)
        except ProtocolError as problem:
            if request_id is not None:
                self._writer.answer(write_error(request_id, problem))
        except ToolError as problem:
            if request_id is not None:
                error = ProtocolError(Code.INTERNAL, problem.message, data={"type": str(problem.kind)})
                self._writer.answer(write_error(request_id, error))

    async def _exchange(self, line: bytes, message: Message) -> list[bytes]:
        """What the server answers to one message."""
        if isinstance(message, Request) and message.method == LISTEN:
            raise ProtocolError(Code.METHOD_NOT_FOUND, "crib mcp --url passes on no streams of changes; list again")
        if isinstance(message, Request) and message.method == "initialize":
            async with self._order:
                response = await self._post(dump(_without_questions(message)), {})
                answers = self._read(response)
                self._note_session(response, answers)
                return answers
        async with self._order:
            headers = self._headers(message) or self._session
        answers = self._read(await self._post(line, headers))
        if isinstance(message, Request) and message.method == "tools/list":
            self._note_tools(answers)
        return answers

    async def _post(self, body: bytes, headers: dict[str, str]) -> Response:
        return await self._connection.send("POST", PATH, {**ACCEPT, **headers}, body, SECONDS)

    def _note_session(self, response: Response, answers: list[bytes]) -> None:
        agreed = orjson.loads(answers[-1]).get("result", {}) if answers else {}
        if "protocolVersion" in agreed:
            self._session = {"MCP-Protocol-Version": agreed["protocolVersion"]}
            if session := response.headers.get("mcp-session-id"):
                self._session["MCP-Session-Id"] = session

    def _note_tools(self, answers: list[bytes]) -> None:
        """Remember which arguments the tools of a list want repeated in headers."""
        for tool in orjson.loads(answers[-1]).get("result", {}).get("tools", ()) if answers else ():
            if rules := header_rules(tool["inputSchema"]):
                self._rules[tool["name"]] = rules

    def _headers(self, message: Message) -> dict[str, str]:
        """What a stateless request repeats in its headers; nothing for a message of the older wire."""
        if not isinstance(message, Request) or not isinstance(version := message.meta.get(VERSION_KEY), str):
            return {}
        headers = {"MCP-Protocol-Version": encode(version), "Mcp-Method": encode(message.method)}
        named = message.params.get(NAMED.get(message.method, ""))
        if not isinstance(named, str):
            return headers
        rules = self._rules.get(named, ()) if message.method == "tools/call" else ()
        return headers | {"Mcp-Name": encode(named)} | argument_headers(rules, message.params.get("arguments"))

    def _read(self, response: Response) -> list[bytes]:
        """The messages of an answer; raises for one that is none of the protocol."""
        try:
            return [_one_line(found) for found in _messages(response) if found]
        except ValueError:
            pass
        why = f"{self._connection.url} answers with status {response.status}"
        if response.status == UNAUTHORIZED:
            raise ToolError(Kind.AUTH, f"{why}; put a token that it knows into the variable {TOKEN_VARIABLE}")
        raise ToolError(Kind.PERMANENT, f"{why} and not as a server of this protocol; is this the URL of crib serve?")


def _messages(response: Response) -> Iterator[bytes]:
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        yield response.body
        return
    for line in response.body.split(b"\n"):
        if line.startswith(b"data:"):
            yield line.removeprefix(b"data:").strip()


def _one_line(raw: bytes) -> bytes:
    """A message of the protocol as one line, otherwise as it came; raises ValueError for what is none."""
    found = orjson.loads(raw)
    if not isinstance(found, dict) or found.get("jsonrpc") != "2.0":
        raise ValueError
    # A line break within JSON is white space between its parts.
    return b" ".join(raw.splitlines())


def _without_questions(message: Request) -> Params:
    """The opening of a session whose client is asked nothing."""
    declared = message.params.get("capabilities")
    questions = set(CAPABILITIES.values())
    kept = {key: said for key, said in declared.items() if key not in questions} if isinstance(declared, dict) else {}
    params = {**message.params, "capabilities": kept}
    return {"jsonrpc": "2.0", "id": message.id, "method": message.method, "params": params}
