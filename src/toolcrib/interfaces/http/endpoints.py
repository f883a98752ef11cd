"""What there is, for a client that knows nothing yet: tools with all their facts, kept results, and how the crib is."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from toolcrib.core.describe import all_facts_of, found_facts, listed
from toolcrib.interfaces.http.server_state import UNKNOWN
from toolcrib.lib.document_format import SCHEMA_VERSION
from toolcrib.lib.presentation import to_platform
from toolcrib.lib.version import __version__
from toolcrib.model.call import Call
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.session import MODES
from toolcrib.model.verdict import Decision
from toolcrib.toolkit.http.messages import PROBLEM, Answer, answer_json, to_bytes, until_gone
from toolcrib.toolkit.http.problems import headers_of, problem_of, status_of
from toolcrib.toolkit.http.request_data import (
    MAX_PAGE,
    Query,
    arguments_of,
    read_any_keys,
    read_keys,
    refuse_query,
    text_of,
    tool_place,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.core.describe import Facts
    from toolcrib.crib import Crib
    from toolcrib.features.requests.endpoints import Asking
    from toolcrib.interfaces.http.server_state import Service
    from toolcrib.model.result import Result
    from toolcrib.model.session import Session
    from toolcrib.model.verdict import Finding
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.messages import Request
    from toolcrib.toolkit.http.request_data import ToolPlace


# MERGED toolcrib.faces.http.sessions

# Sessions over HTTP: conversations without a connection, each kept for an hour for the caller that opened it.

SECONDS = 3_600
MOST = 10_000
MOST_OF_A_CALLER = 1_000
BOUNDS = ("maxCalls", "maxTurnCalls", "maxTurnRetrievals", "maxRepeats")
KEYS = frozenset({"mode", *BOUNDS})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Open:
    """A session, whose it is, and until when it is kept."""

    session: Session
    caller: str
    ends: float


class SessionDesk:
    """Opens sessions, finds them for their callers, and forgets them after an hour."""

    def __init__(self, crib: Crib, body_bytes: int, clock: Callable[[], float] = time.time) -> None:
        self._crib = crib
        self._body_bytes = body_bytes
        self._clock = clock
        # The first to end stands first, because all are kept for equally long.
        self._open: dict[str, _Open] = {}

    def find(self, session_id: str, caller: str) -> Session:
        """The session of that id; nobody else's can be told from none."""
        return self._find(session_id, caller).session

    async def open(self, request: Request) -> Answer:
        """POST /crib/sessions."""
        refuse_query(request)
        body = await read_keys(request, self._body_bytes, KEYS)
        mode = text_of(body, "mode") or "text"
        if mode not in MODES:
            raise ToolError(Kind.VALIDATION, f"body: mode: write {' or '.join(sorted(MODES))}, not {mode[:80]!r}")
        calls, turn_calls, retrievals, repeats = (_bound(body, key) for key in BOUNDS)
        most = self._crib.settings.max_steps
        if calls is not None and calls > most:
            raise ToolError(
                Kind.VALIDATION, f"body: maxCalls: at most {most}; {self._crib.settings.where('max_steps')}"
            )
        self._make_room(request.caller)
        session = self._crib.session(
            mode=mode,
            max_calls=calls,
            max_turn_calls=turn_calls,
            max_turn_retrievals=retrievals,
            max_repeats=repeats,
        )
        opened = _Open(session=session, caller=request.caller, ends=self._clock() + SECONDS)
        self._open[session.id] = opened
        location = (b"location", f"/crib/sessions/{session.id}".encode())
        return answer_json(_show_sessions(opened), status=201, headers=(location,))

    async def read(self, request: Request) -> Answer:
        """GET /crib/sessions/{sessionID}."""
        refuse_query(request)
        return answer_json(_show_sessions(self._find(request.words[0], request.caller)))

    async def next_turn(self, request: Request) -> Answer:
        """POST /crib/sessions/{sessionID}/turn: the user has spoken."""
        refuse_query(request)
        await read_keys(request, self._body_bytes, frozenset())
        opened = self._find(request.words[0], request.caller)
        opened.session.next_turn()
        return answer_json(_show_sessions(opened))

    async def close(self, request: Request) -> Answer:
        """DELETE /crib/sessions/{sessionID}."""
        refuse_query(request)
        opened = self._find(request.words[0], request.caller)
        opened.session.close()
        del self._open[opened.session.id]
        return Answer(status=204)

    def _find(self, session_id: str, caller: str) -> _Open:
        self._forget_old()
        opened = self._open.get(session_id)
        if opened is None or opened.caller != caller:
            message = f"no session goes by {session_id[:80]!r}; open one with POST /crib/sessions"
            raise ToolError(Kind.NOT_FOUND, message)
        return opened

    def _forget_old(self) -> None:
        now = self._clock()
        while self._open:
            first = next(iter(self._open.values()))
            if first.ends > now:
                return
            first.session.close()
            del self._open[first.session.id]

    def _make_room(self, caller: str) -> None:
        self._forget_old()
        own = sum(opened.caller == caller for opened in self._open.values())
        if own >= MOST_OF_A_CALLER or len(self._open) >= MOST:
            message = f"{own} sessions of yours are open, of {len(self._open)} in all; close one with DELETE"
            raise ToolError(Kind.OVERLOADED, message, retryable=True, details={"retryAfter": 60})


def _bound(body: dict[str, object], key: str) -> int | None:
    value = body.get(key)
    if value is None or (type(value) is int and 1 <= value < 2**31):
        return value
    raise ToolError(Kind.VALIDATION, f"body: {key}: write a whole number from 1 on")


def _show_sessions(opened: _Open) -> dict[str, object]:
    session = opened.session
    return {
        "id": session.id,
        "mode": session.mode,
        "calls": session.calls,
        "maxCalls": session.max_calls,
        "expiresAt": datetime.fromtimestamp(opened.ends, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }


# MERGED toolcrib.faces.http.invoking

# Calls over HTTP: a tool by its place or by its name, and what every gate would say to it.

INVOKE_KEYS = frozenset({"args", "confirmation", "mode", "session"})
CALL_KEYS = INVOKE_KEYS | {"name", "bundle", "version"}
MAX_NAME = 1_000


class CallDesk:
    """Makes the calls that are asked for."""

    def __init__(self, crib: Crib, sessions: SessionDesk, service: Service, body_bytes: int) -> None:
        self._crib = crib
        self._service = service
        self._sessions = sessions
        self._body_bytes = body_bytes

    async def invoke(self, request: Request) -> Answer:
        """POST …/version/{version}/invoke, and the same without the last word."""
        place = tool_place(request)
        refuse_query(request)
        body = await read_any_keys(request, self._body_bytes, INVOKE_KEYS)
        result = await self._perform(request, self._make(request, body, place.slug, place.bundle_id, place.version))
        return self._answer(request, _at_place(result, place))

    async def call(self, request: Request) -> Answer:
        """POST /crib/call."""
        return self._answer(request, await self._perform(request, await self._named(request)))

    async def explain(self, request: Request) -> Answer:
        """POST /crib/explain."""
        explanation = self._crib.explain(await self._named(request))
        return answer_json({**explanation.to_json(), "findings": [_show(found) for found in explanation.findings]})

    async def _named(self, request: Request) -> Call:
        refuse_query(request)
        body = await read_keys(request, self._body_bytes, CALL_KEYS)
        name = text_of(body, "name")
        if not name or len(name) > MAX_NAME:
            raise ToolError(Kind.VALIDATION, "body: name: write the name of the tool")
        return self._make(request, body, name, text_of(body, "bundle"), text_of(body, "version"))

    def _make(
        self, request: Request, body: dict[str, object], name: str, bundle: str | None, version: str | None
    ) -> Call:
        session_id = text_of(body, "session")
        return Call(
            name=name,
            arguments=arguments_of(body),
            caller=request.caller,
            bundle=bundle,
            version=version,
            session=None if session_id is None else self._session(session_id, request.caller),
            mode=text_of(body, "mode"),
            confirmation=text_of(body, "confirmation"),
            id=request.call_id,
        )

    def _session(self, session_id: str, caller: str) -> Session:
        try:
            return self._sessions.find(session_id, caller)
        except ToolError as problem:
            raise ToolError(Kind.SESSION_INACTIVE, problem.message) from problem

    async def _perform(self, request: Request, call: Call) -> Result:
        async with self._service.admission:
            result = await until_gone(request, self._crib.call(call))
        error = result.error
        # What callers make up does not become a name that is counted.
        tool = call.name if _is_found(result) else UNKNOWN
        self._service.metrics.note_call(tool, "ok" if error is None else str(error.kind))
        return result

    def _answer(self, request: Request, result: Result) -> Answer:
        error = result.error
        if error is None or not result.refused:
            return answer_json(to_platform(result))
        # A refusal is told as problem details, which are a failed result as well.
        document = {**problem_of(error, request.id), **to_platform(result)}
        return Answer(status=status_of(error), body=to_bytes(document), content_type=PROBLEM, headers=headers_of(error))


def _is_found(result: Result) -> bool:
    return "version" in result.meta


def _at_place(result: Result, place: ToolPlace) -> Result:
    """The result; where there is no such tool, in the words of a place and not of a name."""
    error = result.error
    if error is None or error.kind is not Kind.NOT_FOUND or _is_found(result):
        return result
    message = f"there is no tool {place.slug}@{place.version} in the bundle {place.bundle_id}"
    return replace(result, error=ToolError(Kind.NOT_FOUND, message, details=error.details))


def _show(finding: Finding) -> dict[str, object]:
    """What a gate says, and of a refusal also what it would be called."""
    shown = finding.to_json()
    verdict = finding.verdict
    if verdict is None or verdict.decision is Decision.ALLOW:
        return shown
    return {**shown, "kind": str(verdict.kind), "details": dict(verdict.details)}


logger = logging.getLogger("toolcrib.http")

PAGE = 100
PIECE = 100_000
MAX_PIECE = 1_000_000
MAX_OFFSET = 2**40
# Whoever asks for the health of a server does not wait for that of another.
QUEUE_SECONDS = 2
TOOLS_QUERY = ("name", "q", "question", "includeDisabled", "tags", "executors", "pageSize", "pageToken")


class OverviewDesk:
    """Answers what a remote command line asks besides bundles and calls."""

    def __init__(self, crib: Crib, threads: Threads, asking: Asking, service: Service) -> None:
        self._crib = crib
        self._threads = threads
        self._asking = asking
        self._asked: asyncio.Task[str] | None = None
        self._service = service
        self._cursors = crib.bundles.cursors

    async def tools(self, request: Request) -> Answer:
        """GET /crib/tools: every tool in the order of their addresses, the one that a name means, or those that fit a search."""
        query = Query(request, known=TOOLS_QUERY, lists=("tags",))
        return answer_json(await self._threads.read(self._list, query))

    async def result(self, request: Request) -> Answer:
        """GET /crib/results/{handle}: a piece of a value that was too large to be handed over at once."""
        query = Query(request, known=("offset", "length"))
        piece = await self._threads.read(
            self._crib.read_result,
            request.words[0],
            caller=request.caller,
            offset=query.number("offset", least=0, most=MAX_OFFSET) or 0,
            length=query.number("length", least=1, most=MAX_PIECE) or PIECE,
        )
        return answer_json({"text": piece.text, "offset": piece.offset, "total": piece.total, "next": piece.next})

    async def health(self, request: Request) -> Answer:
        """GET /crib/health: whether there is anything to worry about, and what is spoken here."""
        refuse_query(request)
        problems = await self._threads.read(lambda: self._crib.problems)
        return answer_json(
            {
                "ready": self._service.ready,
                "version": __version__,
                "schemaVersion": SCHEMA_VERSION,
                "problems": [problem.message for problem in problems],
                "queue": await self._queue_problem() if self._crib.settings.queue_url else None,
            }
        )

    async def _queue_problem(self) -> str | None:
        """What is wrong with the server that keeps requests; it is asked once, however many want to know."""
        if self._asked is None or self._asked.done():
            self._asked = asyncio.ensure_future(self._ask_queue())
        done, _ = await asyncio.wait({self._asked}, timeout=QUEUE_SECONDS)
        return self._asked.result() or None if done else f"the queue of requests does not answer in {QUEUE_SECONDS} s"

    async def _ask_queue(self) -> str:
        try:
            await self._asking.read(self._crib.requests.list, limit=1)
        except ToolError as problem:
            return problem.message
        except Exception:
            # Nobody may be left who would hear of it.
            logger.exception("the queue of requests could not be asked")
            return "the queue of requests could not be asked; the log has the reason"
        return ""

    def _list(self, query: Query) -> dict[str, object]:
        # All are read before any is used: what is wrong is told, also where it would make no difference.
        token, size = query.token(), query.number("pageSize", least=1, most=MAX_PAGE) or PAGE
        tags, executors, _ = query.words("tags"), query.switch("executors"), query.switch("includeDisabled")
        if query.has("name"):
            if token:
                raise ToolError(Kind.VALIDATION, "query: pageToken: a name means one tool; leave the token out")
            return {"tools": [self._find(query.text("name"))], "nextPageToken": None}
        if query.has("q") or query.has("question"):
            return self._search(query)
        asked = ["facts", sorted(set(tags)), executors]
        after = str(self._cursors.read(asked, token)) if token else ""
        tools = listed(self._crib, tags=tags, executors=executors)
        rest = sorted((address, order, facts) for order, (address, facts) in enumerate(tools) if address > after)
        page = rest[:size]
        return {
            # Pages follow the addresses; `order` is the place in the list as it is shown, where what comes first is meant.
            "tools": [{**facts(), "order": order} for _, order, facts in page],
            "nextPageToken": self._cursors.write(asked, page[-1][0]) if len(rest) > size else None,
        }

    def _find(self, name: str) -> Facts:
        if not name:
            raise ToolError(Kind.VALIDATION, "query: name: is empty; write the name of a tool, or leave it out")
        entry = self._crib.find(name)
        if entry is None:
            hint = self._crib.suggest(name)
            message = f"Tool {name[:200]!r} not found; {hint or 'list the tools with GET /crib/tools'}"
            raise ToolError(Kind.NOT_FOUND, message, details={"suggestion": hint})
        return {**all_facts_of(self._crib, entry), "bundleID": self._crib.bundles.bundle_id_of(entry.tool)}

    def _search(self, query: Query) -> dict[str, object]:
        if query.has("q") and query.has("question"):
            message = "query: write either q, what was typed, or question, a question in plain words"
            raise ToolError(Kind.VALIDATION, message)
        name = "q" if query.has("q") else "question"
        text = query.text(name)
        if not text.strip():
            raise ToolError(Kind.VALIDATION, f"query: {name}: is empty; write what to search for")
        look = self._crib.bundles.search if name == "q" else self._crib.bundles.ask
        page = look(
            text,
            include_disabled=query.switch("includeDisabled"),
            page_size=query.number("pageSize", least=1, most=MAX_PAGE),
            page_token=query.token(),
        )
        tools = [found_facts(found) for found in page.items]
        answer: dict[str, object] = {"tools": tools, "nextPageToken": page.next_token or None}
        if not tools and not query.token() and (request_id := self._crib.wish_from_search(text)):
            answer["requestID"] = request_id
        return answer
