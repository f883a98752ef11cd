"""RemoteCrib: a crib behind a URL, asked over the HTTP API of its server."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import quote

from toolcrib.client import shapes
from toolcrib.client.connection import SECONDS, Connection, to_bytes
from toolcrib.client.remote_requests import RemoteApprovals, RemoteRequests
from toolcrib.client.remote_stream import read_call
from toolcrib.client.shapes import read_bundle, read_explanation, read_failure, read_success
from toolcrib.lib.names import slug_of
from toolcrib.model.call import Call
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Piece, Result

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from toolcrib.client.connection import Answer, Query
    from toolcrib.client.shapes import Shape
    from toolcrib.features.streams.events import StreamEvent
    from toolcrib.model.bundle import Bundle
    from toolcrib.model.result import Explanation
    from toolcrib.toolkit.tool_facts import Facts

T = TypeVar("T")

# A tool has limits of its own on the server; this is for a server that has stopped to answer.
CALL_SECONDS = 3_600.0
PAGE = 256
MAX_LISTED = 200_000
MAX_LISTED_BYTES = 256_000_000
PIECE_LETTERS = 1_000_000
MAX_LETTERS = 256_000_000
TOOLS = "/crib/tools"
BUNDLES = "/tools/bundles"
# Said for us, and no facts of a tool.
FOR_CLIENTS = frozenset({"order", "bundleID"})


class RemoteCrib:
    """The crib of a server: `with RemoteCrib("http://127.0.0.1:8700") as crib: result = crib.call_sync("name", city="Oslo")`.

    The URL is the permission to reach its host and port, and nothing else is reached. `token` is one of the server's; on
    its own machine it needs none. What tools may use is granted on the server alone.
    """

    # The server knows its callers by their tokens.
    caller = ""

    def __init__(self, url: str, *, token: str | None = None) -> None:
        self._connection = Connection(url, token)
        self._runner: asyncio.Runner | None = None
        self.url = self._connection.url
        self.bundles = RemoteBundles(self.ask, self.download)
        self.requests = RemoteRequests(self.ask)
        self.approvals = RemoteApprovals(self.ask)

    def list_tools(self, *, tags: Sequence[str] = (), executors: bool = False) -> list[Facts]:
        """The tools, or those with every one of the tags; or what executes them."""
        query = [*(("tags", tag) for tag in tags), *([("executors", "true")] if executors else [])]
        tools = self._all(TOOLS, query, "tools", shapes.LISTED_PAGE)
        return [_facts(tool) for tool in sorted(tools, key=lambda tool: tool["order"])]

    def show_tool(self, name: str) -> Facts | None:
        """All that is known of the tool that a name means."""
        found = self._find(name)
        return None if isinstance(found, str) else _facts(found)

    def suggest(self, name: str) -> str:
        """A hint at the name that was perhaps meant."""
        found = self._find(name)
        return found if isinstance(found, str) else ""

    def meant_by(self, name: str) -> str:
        """The address of the tool that a name means; empty if it means none, or one whose document is broken."""
        try:
            found = self._find(name)
        except ToolError as problem:
            if problem.kind is Kind.DISABLED:
                return ""
            raise
        return "" if isinstance(found, str) else str(found["address"])

    def parameters_of(self, name: str) -> Mapping[str, object]:
        """The schema of what a tool takes; empty if there is no such tool."""
        facts = self.show_tool(name)
        return {} if facts is None else facts["parameters"]

    def output_of(self, name: str) -> Mapping[str, object] | None:
        """The schema of what a tool gives; None if it promises nothing, or there is no such tool."""
        facts = self.show_tool(name)
        output = None if facts is None else facts.get("output")
        return output if isinstance(output, dict) else None

    def search_tools(self, text: str, *, is_question: bool, everything: bool, limit: int) -> tuple[list[Facts], bool]:
        """The tools that fit what was typed, or a question; and whether there are more."""
        query = [("question" if is_question else "q", text), ("includeDisabled", str(everything).lower())]
        page = self.ask("GET", TOOLS, shapes.FOUND_PAGE, query=[*query, ("pageSize", str(limit))]).document
        tools: list[Facts] = page["tools"]
        return tools, bool(page["nextPageToken"])

    def request_from_search(self, text: str) -> str:
        """Empty: a search over HTTP files no request."""
        return ""

    def list_bundles(self) -> list[Bundle]:
        """Every bundle, also disabled ones."""
        found = self._all(BUNDLES, [("includeDisabled", "true")], "bundles", shapes.BUNDLE_PAGE)
        return [read_bundle(document) for document in found]

    def stored_tool(self, bundle_id: str, slug: str, version: str) -> Mapping[str, object] | None:
        """The document of a version with what is known of it; None if there is none."""
        try:
            return self.ask("GET", place_of(bundle_id, slug, version), shapes.STORED).document
        except ToolError as problem:
            if problem.kind is Kind.NOT_FOUND:
                return None
            raise

    def secret_names(self) -> Sequence[str]:
        """What no argument of a tool may be called; only the server knows it, and says so when one is."""
        return ()

    def switch_tool(self, name: str, *, on: bool) -> tuple[str, str] | None:
        """Switch a tool; its address, and why it still cannot be called. None if there is no such tool."""
        facts = self._find(name)
        if isinstance(facts, str):
            return None
        path = place_of(facts["bundleID"], slug_of(facts["name"]), facts["version"])
        switched = self.ask("PATCH", path, shapes.SWITCHED, body={"isEnabled": on}).document
        return facts["address"], str(switched["disabledReason"])

    def call_sync(self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object) -> Result:
        """Make a call; also what went wrong on the way to the server is a result."""
        call = name if isinstance(name, Call) else Call(name=name, arguments={**(arguments or {}), **more})
        seconds = CALL_SECONDS if call.deadline is None else call.deadline - time.monotonic()
        try:
            answer = self._try("POST", "/crib/call", body=_body_of(call), seconds=max(seconds, 0.0))
            return self._read_result(answer)
        except ToolError as problem:
            return Result(error=problem)

    async def stream(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> AsyncGenerator[StreamEvent, None]:
        """Make a call and hear it while it runs, as `Crib.stream` does; to close the generator is to cancel the call."""
        call = name if isinstance(name, Call) else Call(name=name, arguments={**(arguments or {}), **more})
        deadline = time.monotonic() + CALL_SECONDS if call.deadline is None else call.deadline
        try:
            body = to_bytes(_body_of(call))
            async with aclosing(read_call(self._connection, body, self._read_result, deadline)) as events:
                async for event in events:
                    yield event
        except ToolError as problem:
            yield Result(error=problem)

    def stream_sync(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> Generator[StreamEvent, None, None]:
        """The same for code that is not async; the next event is read when it is asked for."""
        events = self.stream(name, arguments, **more)
        try:
            while (event := self._run(_next(events))) is not None:
                yield event
        finally:
            self._run(events.aclose())

    def explain(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> Explanation:
        """What every gate would say to a call, without making it."""
        call = name if isinstance(name, Call) else Call(name=name, arguments={**(arguments or {}), **more})
        return read_explanation(self.ask("POST", "/crib/explain", shapes.EXPLANATION, body=_body_of(call)).document)

    def read_result(self, handle: str, *, offset: int = 0, length: int = 100_000) -> Piece:
        """A piece of a value that was too large to be handed over at once, in as many requests as it takes."""
        texts: list[str] = []
        size, total, next_offset = 0, 0, offset if length > 0 else None
        path = f"/crib/results/{quote(handle, safe='')}"
        while next_offset is not None and size < length:
            query = [("offset", str(next_offset)), ("length", str(min(length - size, PIECE_LETTERS)))]
            piece = self.ask("GET", path, shapes.PIECE, query=query).document
            texts.append(piece["text"])
            size, total, next_offset = size + len(piece["text"]), piece["total"], piece["next"]
            if (next_offset is not None and not piece["text"]) or size > MAX_LETTERS:
                raise ToolError(Kind.LIMIT_EXCEEDED, f"{self.url}: the result does not end; read it in pieces")
        return Piece(text="".join(texts), offset=offset, total=total, next=next_offset)

    @property
    def problems(self) -> list[ToolError]:
        """What the server could not load; nothing where we may not know."""
        try:
            found = self.ask("GET", "/crib/health", shapes.HEALTH).document
        except ToolError as problem:
            if problem.kind is Kind.AUTH:
                return []
            raise
        return [ToolError(Kind.VALIDATION, text) for text in found["problems"]]

    def get_ready(self, name: str) -> None:
        """Nothing: the server is ready."""

    def ask(
        self,
        method: str,
        path: str,
        shape: Shape,
        *,
        query: Query = (),
        body: Mapping[str, object] | bytes | None = None,
        seconds: float = SECONDS,
    ) -> Answer:
        """Ask the server for an answer of that shape; raises ToolError where it refuses."""
        answer = self._try(method, path, query=query, body=body, seconds=seconds)
        if answer.is_refusal:
            raise self._connection.problem_of(answer)
        shape.check(answer.document, self.url)
        return answer

    def download(self, path: str) -> bytes:
        """An archive of the server; raises ToolError where it refuses."""
        found = self._run(self._connection.download(path))
        if isinstance(found, bytes):
            return found
        raise self._connection.problem_of(found)

    def close(self) -> None:
        """Let go of the connections."""
        if self._runner is not None:
            self._runner.run(self._connection.close())
            self._runner.close()
            self._runner = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _try(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Mapping[str, object] | bytes | None = None,
        seconds: float = SECONDS,
    ) -> Answer:
        return self._run(self._connection.ask(method, path, query=query, body=body, seconds=seconds))

    def _run(self, work: Coroutine[object, object, T]) -> T:
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(work)

    def _find(self, name: str) -> Facts | str:
        """The facts of the tool that a name means, or a hint at what was perhaps meant."""
        if not name:
            return ""
        answer = self._try("GET", TOOLS, query=[("name", name)])
        if not answer.is_refusal:
            shapes.SHOWN_PAGE.check(answer.document, self.url)
            tools: list[Facts] = answer.document["tools"]
            return tools[0]
        problem = self._connection.problem_of(answer)
        if problem.kind is not Kind.NOT_FOUND or "suggestion" not in problem.details:
            raise problem
        return str(problem.details["suggestion"])

    def _all(self, path: str, query: Query, key: str, shape: Shape) -> Iterator[Facts]:
        """What stands under the key on every page there is."""
        token, count, size = "", 0, 0
        while True:
            more = [("pageToken", token)] if token else []
            answer = self.ask("GET", path, shape, query=[*query, ("pageSize", str(PAGE)), *more])
            items: list[Facts] = answer.document[key]
            yield from items
            token, count, size = str(answer.document["nextPageToken"] or ""), count + len(items), size + answer.size
            if not token:
                return
            if not items or count > MAX_LISTED or size > MAX_LISTED_BYTES:
                raise ToolError(Kind.LIMIT_EXCEEDED, f"{self.url}: the list does not end; look for less at a time")

    def _read_result(self, answer: Answer) -> Result:
        document = answer.document
        # The result of a call has meta; a request that the server refused made no call.
        if answer.is_refusal and not document.get("meta"):
            return Result(error=_refused_by_server(self._connection.problem_of(answer)), refused=True)
        if document.get("ok") is True:
            shapes.SUCCESS.check(document, self.url)
            return read_success(document)
        shapes.FAILURE.check(document, self.url)
        return read_failure(document, refused=answer.is_refusal)


class Ask(Protocol):
    """Asks the server."""

    def __call__(
        self,
        method: str,
        path: str,
        shape: Shape,
        *,
        query: Query = (),
        body: Mapping[str, object] | bytes | None = None,
    ) -> Answer:
        """An answer of that shape; raises ToolError where the server refuses."""


class RemoteBundles:
    """Does with the bundles of a server what `Bundles` does with those of this machine."""

    def __init__(self, ask: Ask, download: Callable[[str], bytes]) -> None:
        self._ask = ask
        self._download = download

    def export_bundle(self, bundle_id: str) -> bytes:
        """One and all its tools as a ZIP archive."""
        return self._download(f"{place_of(bundle_id)}/archive")

    def import_bundle(self, bundle_id: str, data: bytes, *, slug: str = "", enable: bool = False) -> Bundle:
        """Store the bundle of an archive under this id, with all its tools or not at all."""
        query = [("enable", str(enable).lower()), *([("slug", slug)] if slug else [])]
        answer = self._ask("POST", f"{place_of(bundle_id)}/archive", shapes.BUNDLE_ANSWER, query=query, body=data)
        return read_bundle(answer.document)

    def bundle(self, bundle_id: str) -> Bundle:
        """One of them."""
        return read_bundle(self._send("GET", bundle_id).document)

    def put_bundle(self, bundle_id: str, document: Mapping[str, object]) -> tuple[Bundle, bool]:
        """Make or replace one; whether it is new."""
        answer = self._send("PUT", bundle_id, document)
        return read_bundle(answer.document), answer.is_new

    def switch_bundle(self, bundle_id: str, enabled: bool) -> Bundle:  # noqa: FBT001 - a switch is what it is about
        """Switch one on or off."""
        return read_bundle(self._send("PATCH", bundle_id, {"isEnabled": enabled}).document)

    def delete_bundle(self, bundle_id: str) -> Bundle:
        """Delete one that is empty."""
        return read_bundle(self._send("DELETE", bundle_id).document)

    def put_tool(self, bundle_id: str, slug: str, version: str, document: Mapping[str, object]) -> None:
        """Add a version of a tool."""
        self._ask("PUT", place_of(bundle_id, slug, version), shapes.SWITCHED, body=document)

    def delete_tool(self, bundle_id: str, slug: str, version: str) -> None:
        """Remove a version of a tool permanently."""
        self._ask("DELETE", place_of(bundle_id, slug, version), shapes.NOTHING)

    def _send(self, method: str, bundle_id: str, body: Mapping[str, object] | None = None) -> Answer:
        return self._ask(method, place_of(bundle_id), shapes.BUNDLE_ANSWER, body=body)


def place_of(bundle_id: str, slug: str = "", version: str = "") -> str:
    """The path of a bundle, or of a version of a tool in it."""
    bundle, tool, number = (quote(word, safe="") for word in (bundle_id, slug, version))
    return f"/tools/bundles/{bundle}/tools/{tool}/version/{number}" if slug else f"/tools/bundles/{bundle}"


async def _next(events: AsyncGenerator[StreamEvent, None]) -> StreamEvent | None:
    return await anext(events, None)


def _refused_by_server(problem: ToolError) -> ToolError:
    """A refusal of the server, which no gate of the call made; a path that is not there is none."""
    if problem.kind is Kind.NOT_FOUND:
        return problem
    details = {"gate": "server", **problem.details}
    return ToolError(problem.kind, problem.message, retryable=problem.retryable, details=details)


def _facts(found: Facts) -> Facts:
    return {name: value for name, value in found.items() if name not in FOR_CLIENTS}


def _body_of(call: Call) -> dict[str, object]:
    if call.grants is not None or call.session is not None or call.parent is not None:
        message = "grants and sessions are kept by the server; call without them"
        raise ToolError(Kind.VALIDATION, message)
    given = {
        "bundle": call.bundle,
        "version": call.version,
        "mode": call.mode,
        "confirmation": call.confirmation,
    }
    return {"name": call.name, "args": call.arguments, **{key: text for key, text in given.items() if text is not None}}
