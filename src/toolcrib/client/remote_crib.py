"""RemoteCrib: the interface of a Crib, over the HTTP API of a server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, NoReturn, TypeVar
from urllib.parse import quote

from toolcrib.client import shapes
from toolcrib.client.call_request import SESSION_HEADER, check_call, write_call
from toolcrib.client.remote_approvals import RemoteApprovals
from toolcrib.client.remote_audit import RemoteAudit
from toolcrib.client.remote_bundles import RemoteBundles, place_of
from toolcrib.client.remote_requests import RemoteRequests
from toolcrib.client.remote_session import NO_STATE, RemoteSession
from toolcrib.client.remote_stream import read_call
from toolcrib.client.server import Server
from toolcrib.client.shapes import read_explanation, read_failure, read_success
from toolcrib.client.tool_entries import read_entry
from toolcrib.core.execution import PendingCall, named_for_warning
from toolcrib.features.exports.facade import read_provider
from toolcrib.features.exports.framework_tools import hand_over
from toolcrib.features.requests.auto_request import Obtainer
from toolcrib.infra.plain_code import PlainRunner, refuse_inside_a_loop
from toolcrib.lib.export_schemas.definitions import export_tools
from toolcrib.lib.names import slug_of
from toolcrib.lib.presentation import write_prompt
from toolcrib.model.call import Call
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.events import Chunk, LogMessage, Progress
from toolcrib.model.result import Piece, Result

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Generator, Iterable, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Any, Self

    from toolcrib.client.connection import Answer
    from toolcrib.lib.export_schemas import Export
    from toolcrib.lib.presentation import Prompt
    from toolcrib.model.call import ClientLink
    from toolcrib.model.events import StreamEvent
    from toolcrib.model.result import Explanation, Intent
    from toolcrib.model.session import Send, Session
    from toolcrib.model.tool import Entry, Tool
    from toolcrib.toolkit.tool_facts import Facts

T = TypeVar("T")

# A tool has its own time limit on the server; this timeout is for a server that no longer responds.
CALL_SECONDS = 3_600.0
PIECE_LETTERS = 1_000_000
MAX_LETTERS = 256_000_000
TOOLS = "/crib/tools"
# Keys for the client, which are not facts of a tool.
FOR_CLIENTS = frozenset({"order", "bundleID"})

# The attributes that only a local crib has, each with the cure for a remote one.
ON_THE_MACHINE = "open the project on the machine of the server, with Crib(…), or use the command line there"
LOCAL_ONLY: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("settings", "check_settings", "plugins", "registries", "secrets", "tokens", "access_tokens", "journal"),
            *("metrics", "latencies", "costs", "usages", "usage_ledger", "run_history", "examples", "publications"),
            *(
                "executors",
                "unstored_entries",
                "entries_with",
                "same_name",
                "generation",
                "check",
                "warnings",
                "missing",
            ),
            *("ignored_files", "prepare", "publish", "publish_bundle", "pull", "sandbox_report", "derive_key"),
            *("expiring", "has_own_rules", "misleading_tools", "inspect_database", "problems_of"),
            *("grants", "obstacles", "probe_sandbox", "missing_imports"),
        ),
        ON_THE_MACHINE,
    ),
    **dict.fromkeys(("add", "add_rule"), "what the program of the server adds is there for its clients; add it there"),
    **dict.fromkeys(("call_unstored", "perform"), "store the tool with bundles.put_tool(…) and call it"),
    "sink": "write the events where they arise, in a program with Crib(…) on the machine of the sink",
    "builder": "run it beside the queue, on the machine of the server: crib builder",
}


class RemoteCrib:
    """The crib of a server: `async with Crib.connect("http://127.0.0.1:8765") as crib: result = await crib.call("name", city="Oslo")`.

    Only the host and port of the URL are reached. `token` is an access token of the server; a server on this machine needs
    none. Capabilities are granted only on the server. Methods that are not async block until the server responds; they may
    be called from any thread.
    """

    # The server identifies its callers by their tokens.
    caller = ""

    def __init__(self, url: str, *, token: str | None = None) -> None:
        self.server = server = Server(url, token)
        self._plain = PlainRunner()
        self.url = server.url
        self.bundles = RemoteBundles(server)
        self.requests = RemoteRequests(server)
        self.approvals = RemoteApprovals(server)
        self.audit = RemoteAudit(server)

    if not TYPE_CHECKING:  # so that type checkers report unknown attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError, with the cure for an attribute that only a local crib has."""
            cure = LOCAL_ONLY.get(name)
            message = f"the crib of a server has no {name}" + (f"; {cure}" if cure else "")
            raise AttributeError(message, name=name, obj=self)

    # --- calls ---------------------------------------------------------------------------------------------------------

    def call(self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object) -> PendingCall:
        """Make a call: `await crib.call("name", city="Oslo")`; a failure to reach the server is a Result, too."""
        work = self._call(name, arguments, more)
        pending = PendingCall()
        pending.work = work
        pending.__await__ = work.__await__  # type: ignore[method-assign]  # an attribute, see PendingCall
        return pending

    def call_sync(self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object) -> Result:
        """Make a call from code that is not async."""
        work = self._call(name, arguments, more)
        refuse_inside_a_loop(work)
        return self.server.loop.wait_for(work)

    async def call_all(self, calls: Iterable[Call]) -> list[Result]:
        """Make several calls concurrently; one result for each, in their order."""
        return await asyncio.gather(*(self.call(call) for call in calls))

    async def stream(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> AsyncGenerator[StreamEvent, None]:
        """Make a call and stream its events, as `Crib.stream` does; closing the generator cancels the call."""
        call = _call_of(name, arguments, more)
        async with aclosing(self.server.loop.iterate(self._events(call))) as events:
            async for event in events:
                if isinstance(event, Result) and isinstance(call.session, RemoteSession):
                    call.session.hear(event)
                yield event

    def stream_sync(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> Generator[StreamEvent, None, None]:
        """Stream the events of a call from code that is not async; each event is read when it is requested."""
        return self._plain.iterate(self.stream(name, arguments, **more))

    def run_sync(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine that uses this crib from code that is not async."""
        return self._plain.run(work)

    def explain(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> Explanation:
        """The finding of every gate for a call, without making it."""
        body = _question_of(_call_of(name, arguments, more))
        return read_explanation(self.server.ask("POST", "/crib/explain", shapes.EXPLANATION, body=body).document)

    def session(
        self,
        *,
        mode: str = "text",
        state: None = None,
        send: Send | None = None,
        on_intent: Callable[[Intent], None] | None = None,
        max_calls: int | None = None,
        max_turn_calls: int | None = None,
        max_turn_retrievals: int | None = None,
        max_repeats: int | None = None,
    ) -> RemoteSession:
        """Open a session, whose calls the server limits together; `on_intent` is called here with each Intent of a tool."""
        for word, given in (("state", state), ("send", send)):
            if given is not None:
                raise ToolError(Kind.VALIDATION, NO_STATE.format(word))
        bounds = {
            "maxCalls": max_calls,
            "maxTurnCalls": max_turn_calls,
            "maxTurnRetrievals": max_turn_retrievals,
            "maxRepeats": max_repeats,
        }
        return RemoteSession(self.server, {"mode": mode, **bounds}, on_intent=on_intent)

    def read_result(self, handle: str, *, offset: int = 0, length: int = 100_000) -> Piece:
        """A piece of a stored result that was too large to return at once, read with as many requests as needed."""
        texts: list[str] = []
        size, total, next_offset = 0, 0, offset if length > 0 else None
        path = f"/crib/results/{quote(handle, safe='')}"
        while next_offset is not None and size < length:
            query = [("offset", str(next_offset)), ("length", str(min(length - size, PIECE_LETTERS)))]
            piece = self.server.ask("GET", path, shapes.PIECE, query=query).document
            texts.append(piece["text"])
            size, total, next_offset = size + len(piece["text"]), piece["total"], piece["next"]
            if (next_offset is not None and not piece["text"]) or size > MAX_LETTERS:
                raise ToolError(Kind.LIMIT_EXCEEDED, f"{self.url}: the result does not end; read it in pieces")
        return Piece(text="".join(texts), offset=offset, total=total, next=next_offset)

    # --- tools ---------------------------------------------------------------------------------------------------------

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Every tool except executors."""
        return tuple(entry.tool for entry in self.entries)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every tool except executors, each with whether it is enabled."""
        return tuple(read_entry(facts, self.url) for facts in self.list_tools() if facts.get("built", True))

    @property
    def tags(self) -> set[str]:
        """Every tag that a tool has."""
        return {tag for facts in self.list_tools() for tag in facts["tags"]}

    def find(self, name: str, session: Session | None = None) -> Entry | None:
        """The tool of that name, slug or address, as a session finds it if one is given."""
        found = self._find(name, session)
        return None if isinstance(found, str) else read_entry(found, self.url)

    def require(self, name: str, session: Session | None = None) -> Entry:
        """The tool of that name, slug or address; raises ToolError, with a cure, if there is none."""
        query = [("name", name)]
        answer = self.server.ask("GET", TOOLS, shapes.SHOWN_PAGE, query=query, headers=_session_header(session))
        return read_entry(answer.document["tools"][0], self.url)

    def suggest(self, name: str) -> str:
        """A hint at the similar name that may have been meant; empty if there is none."""
        found = self._find(name)
        return found if isinstance(found, str) else ""

    def documentation(self, name: str) -> str:
        """The documentation of a tool; empty if it has none, or if there is no such tool."""
        entry = self.find(name)
        return "" if entry is None else entry.tool.documentation

    def find_tools(self, text: str, *, limit: int = 10) -> list[Tool]:
        """The tools that have their grants and match a text, best match first, then those that answer it as a question."""
        found, _ = self.search_tools(text, limit=limit)
        shown = (self._find(facts["address"]) for facts in found)
        granted = (facts for facts in shown if not isinstance(facts, str) and not facts["missingGrants"])
        return [read_entry(facts, self.url).tool for facts in granted]

    def list_tools(self, *, tags: Sequence[str] = (), executors: bool = False) -> list[Facts]:
        """The tools that have all of the tags, as JSON; or the executors instead."""
        query = [*(("tags", tag) for tag in tags), *([("executors", "true")] if executors else [])]
        tools = self.server.list(TOOLS, query, "tools", shapes.LISTED_PAGE)
        return [_facts(tool) for tool in sorted(tools, key=lambda tool: tool["order"])]

    def show_tool(self, name: str) -> Facts | None:
        """All facts of the tool that a name means, as JSON."""
        found = self._find(name)
        return None if isinstance(found, str) else _facts(found)

    def search_tools(
        self, text: str, *, is_question: bool = False, everything: bool = False, limit: int = 10
    ) -> tuple[list[Facts], bool]:
        """The tools that match a search text, then those that answer it as a question; and whether there are more."""
        query = [("question" if is_question else "q", text), ("includeDisabled", str(everything).lower())]
        page = self.server.ask("GET", TOOLS, shapes.FOUND_PAGE, query=[*query, ("pageSize", str(limit))]).document
        tools: list[Facts] = page["tools"]
        return tools, bool(page["nextPageToken"])

    def request_from_search(self, text: str) -> str:
        """Always empty, because a search over HTTP files no request."""
        return ""

    def switch_tool(self, name: str, *, on: bool) -> tuple[str, str] | None:
        """Enable or disable a tool; returns its address and why it still cannot be called, or None if there is no such tool."""
        facts = self._find(name)
        if isinstance(facts, str):
            return None
        path = place_of(facts["bundleID"], slug_of(facts["name"]), facts["version"])
        switched = self.server.ask("PATCH", path, shapes.SWITCHED, body={"isEnabled": on}).document
        return facts["address"], str(switched["disabledReason"])

    def secret_names(self) -> Collection[str]:
        """The names that no argument of a tool may have; always empty, because only the server knows and checks them."""
        return ()

    def get_ready(self, name: str) -> None:
        """Do nothing, because the server is ready."""

    @property
    def problems(self) -> list[ToolError]:
        """What the server could not load; empty if the token does not permit to read that."""
        try:
            found = self.server.ask("GET", "/crib/health", shapes.HEALTH).document
        except ToolError as problem:
            if problem.kind is Kind.AUTH:
                return []
            raise
        return [ToolError(Kind.VALIDATION, text) for text in found["problems"]]

    # --- models --------------------------------------------------------------------------------------------------------

    def offered(
        self, mode: str | None = None, session: Session | None = None, names: Iterable[str] | None = None
    ) -> tuple[Tool, ...]:
        """The tools that a model is offered, in a mode or in any, as the server decides; with `names` only these."""
        wanted = None if names is None else tuple(dict.fromkeys(names))
        if wanted == ():
            return ()
        query = [("offered", "true"), *([] if mode is None else [("mode", mode)])]
        query += [("names", name) for name in wanted or ()]
        tools = self.server.list(TOOLS, query, "tools", shapes.LISTED_PAGE, _session_header(session))
        ordered = sorted(tools, key=lambda facts: facts["order"])
        return tuple(read_entry(facts, self.url).tool for facts in ordered)

    def prompt(self, mode: str, *, max_characters: int | None = None, max_tokens: int | None = None) -> Prompt:
        """The part of a system prompt that describes the tools of a mode, within a budget."""
        return write_prompt(self.offered(mode), mode, max_characters=max_characters, max_tokens=max_tokens)

    def export(self, provider: str, *, mode: str | None = None, strict: bool = False) -> list[Export]:
        """The tools in the format of a provider, each with a report of what that format cannot express."""
        return export_tools(self.offered(mode), read_provider(provider), strict=strict)

    def as_langchain(self, **options: Any) -> list[Any]:
        """The tools as LangChain tools; `options` are those of an Adapter: `tools`, `session`, `mode`, `confirm`."""
        return hand_over("langchain", self, options)

    def as_openai_agents(self, **options: Any) -> list[Any]:
        """The tools as tools of openai-agents; `options` as for `as_langchain`."""
        return hand_over("openai_agents", self, options)

    def as_pydantic_ai(self, **options: Any) -> list[Any]:
        """The tools as tools of pydantic-ai; `options` as for `as_langchain`."""
        return hand_over("pydantic_ai", self, options)

    def as_smolagents(self, **options: Any) -> list[Any]:
        """The tools as tools of smolagents; `options` as for `as_langchain`."""
        return hand_over("smolagents", self, options)

    # --- what else a crib has ------------------------------------------------------------------------------------------

    async def obtain(
        self,
        name: str,
        request: str | Path | Mapping[str, object] | None = None,
        *,
        experiment: str = "",
        seconds: float | None = None,
    ) -> Tool:
        """The tool of that name; if it does not exist, request it and wait until it is built."""
        obtainer = Obtainer(self.requests, self.find)
        return await obtainer.obtain(name, request, experiment=experiment, seconds=seconds)

    async def close(self) -> None:
        """Close the connections."""
        await self.server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.close_sync()
        self._plain.close()

    @named_for_warning
    async def _call(
        self, name: str | Call, arguments: Mapping[str, object] | None, more: Mapping[str, object]
    ) -> Result:
        try:
            call = _call_of(name, arguments, more)
            result = await self._send(call) if call.client is None else await self._send_heard(call, call.client)
        except ToolError as problem:
            return Result(error=problem)
        if isinstance(call.session, RemoteSession):
            call.session.hear(result)
        return result

    async def _send(self, call: Call) -> Result:
        request = write_call(call, "application/json")
        seconds = CALL_SECONDS if call.deadline is None else max(call.deadline - time.monotonic(), 0.0)
        sending = self.server.connection.send("POST", request.target, request.headers, request.body, seconds)
        return self._read_result(self.server.connection.read_answer(await self.server.loop.run(sending)))

    async def _send_heard(self, call: Call, link: ClientLink) -> Result:
        """Make a call and pass its events on to its client."""
        async with aclosing(self.server.loop.iterate(self._events(call))) as events:
            async for event in events:
                if isinstance(event, Result):
                    return event
                await _tell(link, event)
        raise ToolError(Kind.INTERNAL, "the call ended without a result")

    async def _events(self, call: Call) -> AsyncGenerator[StreamEvent, None]:
        """The events of a call, in the loop of the connections; a failure to reach the server is a Result, too."""
        deadline = time.monotonic() + CALL_SECONDS if call.deadline is None else call.deadline
        try:
            async with aclosing(read_call(self.server.connection, call, self._read_result, deadline)) as events:
                async for event in events:
                    yield event
        except ToolError as problem:
            yield Result(error=problem)

    def _find(self, name: str, session: Session | None = None) -> Facts | str:
        """The facts of the tool that a name means, or a hint at what may have been meant."""
        if not name:
            return ""
        answer = self.server.try_to_ask("GET", TOOLS, query=[("name", name)], headers=_session_header(session))
        if not answer.is_refusal:
            shapes.SHOWN_PAGE.check(answer.document, self.url)
            tools: list[Facts] = answer.document["tools"]
            return tools[0]
        problem = self.server.connection.problem_of(answer)
        if problem.kind is not Kind.NOT_FOUND or "suggestion" not in problem.details:
            raise problem
        return str(problem.details["suggestion"])

    def _read_result(self, answer: Answer) -> Result:
        document = answer.document
        # Only the result of a call has meta; without it, the server refused the request before any call.
        if answer.is_refusal and not document.get("meta"):
            return Result(error=_refused_by_server(self.server.connection.problem_of(answer)), refused=True)
        if document.get("ok") is True:
            shapes.SUCCESS.check(document, self.url)
            return read_success(document)
        shapes.FAILURE.check(document, self.url)
        return read_failure(document, refused=answer.is_refusal)


async def _tell(link: ClientLink, event: StreamEvent) -> None:
    if isinstance(event, Progress):
        link.progress(event.progress, event.total, event.message)
    elif isinstance(event, LogMessage):
        link.log(event.level, event.data, event.logger)
    elif isinstance(event, Chunk) and link.takes_chunks:
        await link.chunk(event.value)


def _call_of(name: str | Call, arguments: Mapping[str, object] | None, more: Mapping[str, object]) -> Call:
    if isinstance(name, Call):
        return name
    # A wrong type is refused like any other invalid argument, and not raised as a TypeError.
    meant: object = name
    given: object = {} if arguments is None else arguments
    if not isinstance(meant, str) or not isinstance(given, Mapping):
        message = 'a call is a name and its arguments; write: crib.call("name", {"city": "Oslo"})'
        raise ToolError(Kind.VALIDATION, message)
    return Call(name=meant, arguments={**given, **more}, caller="")


def _question_of(call: Call) -> dict[str, object]:
    """The body of `/crib/explain` for a call."""
    check_call(call)
    given = {
        "bundle": call.bundle,
        "version": call.version,
        "mode": call.mode,
        "confirmation": call.confirmation,
        "session": None if call.session is None else call.session.id,
    }
    return {"name": call.name, "args": call.arguments, **{key: text for key, text in given.items() if text is not None}}


def _session_header(session: Session | None) -> dict[str, str]:
    return {} if session is None else {SESSION_HEADER: session.id}


def _refused_by_server(problem: ToolError) -> ToolError:
    """Name the server as the gate of its own refusal, except for a path that does not exist."""
    if problem.kind is Kind.NOT_FOUND:
        return problem
    return problem.replace(details={"gate": "server", **problem.details})


def _facts(found: Facts) -> Facts:
    return {name: value for name, value in found.items() if name not in FOR_CLIENTS}
