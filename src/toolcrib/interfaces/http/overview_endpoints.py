"""HTTP endpoints that list tools with all their facts, read stored results, and report the health of the crib."""

from __future__ import annotations

import asyncio
import logging
from contextvars import Context
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.core.sources import current_view
from toolcrib.features.bundles.endpoints import INDEX_SECONDS
from toolcrib.features.requests.endpoint_handlers import QueueThreads
from toolcrib.features.requests.settings import QueueSettings
from toolcrib.lib import __version__
from toolcrib.lib.document_format import SCHEMA_VERSION
from toolcrib.model.call import Scope
from toolcrib.model.errors import LIST_THE_TOOLS, Kind, Reader, ToolError
from toolcrib.model.tool import MODES, Entry
from toolcrib.toolkit.http import answer_json
from toolcrib.toolkit.http.contract import (
    INCLUDE_DISABLED,
    INDEXING,
    OPTIONAL_TEXT,
    PAGE_SIZE,
    PAGE_TOKEN,
    QUESTION,
    SESSION_HEADER,
    SWITCH,
    TAGS,
    TEXT,
    TYPED,
    WHOLE,
    Reply,
    choice,
    closed,
    in_path,
    open_to_more,
    page,
    switch,
    text,
    whole,
    words,
)
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable
from toolcrib.toolkit.tool_facts import all_facts_of, facts_of, found_facts, listed

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.interfaces.http.server_state import HttpHost, ProblemFinder, Service, SessionStore
    from toolcrib.model.session import Session
    from toolcrib.toolkit.http import Answer, Request
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.contract import Query
    from toolcrib.toolkit.tool_facts import Facts

logger = logging.getLogger("toolcrib.http")

PAGE = 100
# Greater than the position of any tool.
UNBUILT_ORDER = 1_000_000_000
PIECE = 100_000
MAX_PIECE = 1_000_000
MAX_OFFSET = 2**40
# The health of this server is reported without waiting long for the queue's server.
QUEUE_SECONDS = 2


class _Place(NamedTuple):
    """Where a page of tools begins: after an address, or after a position among the stored ones."""

    stored: bool = False
    after: str = ""
    position: int = 0

    @classmethod
    def of(cls, told: object) -> _Place:
        """The position in a page token; without one, the beginning."""
        if not isinstance(told, list):
            return cls()
        stored, after, number = told
        return cls(stored=bool(stored), after=str(after), position=int(number))


class OverviewEndpoints:
    """What a remote command line needs besides bundles and calls."""

    def __init__(
        self, crib: Crib, threads: Threads, service: Service, problems: ProblemFinder, sessions: SessionStore
    ) -> None:
        self._crib = crib
        self._sessions = sessions
        self._problems = problems
        self._threads = threads
        self._queue = QueueThreads(threads)
        self._asked: asyncio.Task[str] | None = None
        self._service = service
        self._cursors = crib.bundles.cursors

    async def tools(self, request: Request) -> Answer:
        """GET /crib/tools: every tool, the one that a name means, those that match a search, or those that models are offered."""
        session_id = request.header(SESSION_HEADER.name.lower().encode())
        session = self._sessions.find(session_id, request.caller).session if session_id else None
        return answer_json(await self._threads.read(self._list, request.query, session, request.reader))

    async def result(self, request: Request) -> Answer:
        """GET /crib/results/{handle}: a piece of a stored result."""
        piece = await self._threads.read(
            self._crib.read_result,
            request.path_params["handle"],
            caller=request.caller,
            offset=request.query.number("offset") or 0,
            length=request.query.number("length") or PIECE,
        )
        return answer_json({"text": piece.text, "offset": piece.offset, "total": piece.total, "next": piece.next})

    async def health(self, request: Request) -> Answer:
        """GET /crib/health: readiness, versions and problems."""
        # Problems name files and tools, so a caller that sees only some of them is told of none.
        problems = await self._problems.read() if current_view() is None else []
        return answer_json(
            {
                "ready": self._service.ready,
                "version": __version__,
                "schemaVersion": SCHEMA_VERSION,
                "problems": problems or [],
                "queue": await self._queue_problem() if self._crib.settings.table(QueueSettings).url else None,
                **({"indexing": True} if problems is None else {}),
            }
        )

    async def _queue_problem(self) -> str | None:
        """What is wrong with the queue's server; concurrent requests share one query."""
        if self._asked is None or self._asked.done():
            # Its answer is for every caller, not limited to what the first one may see.
            self._asked = asyncio.create_task(self._ask_queue(), context=Context())
        done, _ = await asyncio.wait({self._asked}, timeout=QUEUE_SECONDS)
        return (
            self._asked.result() or None if done else f"the queue of requests did not answer within {QUEUE_SECONDS} s"
        )

    async def _ask_queue(self) -> str:
        try:
            await self._queue.read(self._crib.requests.list, limit=1)
        except ToolError as problem:
            return problem.message
        except Exception:
            # The HTTP request may be over, so the failure is logged.
            logger.exception("the queue of requests could not be reached")
            return "the queue of requests could not be reached; the log has the reason"
        return ""

    def _list(self, query: Query, session: Session | None, reader: Reader) -> dict[str, object]:
        token, size = query.text("pageToken"), query.number("pageSize") or PAGE
        tags, executors = query.words("tags"), query.switch("executors")
        if query.has("name"):
            if token:
                raise ToolError(Kind.VALIDATION, "query: pageToken: a name finds one tool; leave the token out")
            return {"tools": [self._find(query.text("name"), session, reader)], "nextPageToken": None}
        if query.switch("offered"):
            return self._offered(query, session, reader)
        if query.has("mode") or query.has("names"):
            raise ToolError(Kind.VALIDATION, "query: mode and names are for offered tools; write offered=true too")
        if query.has("q") or query.has("question"):
            return self._search(query)
        asked = ["facts", sorted(set(tags)), executors]
        place = _Place.of(self._cursors.read(asked, token) if token else None)
        tools, following, is_complete = self._page(place, size, tags=tags, executors=executors, reader=reader)
        answer: dict[str, object] = {
            "tools": tools,
            "nextPageToken": self._cursors.write(asked, following) if following else None,
        }
        return answer if is_complete else {**answer, "indexing": True}

    def _page(
        self, place: _Place, size: int, *, tags: tuple[str, ...], executors: bool, reader: Reader
    ) -> tuple[list[Facts], _Place | None, bool]:
        """First the tools of files, functions and folders by their addresses, then those of bundles as their index has them.

        A page opens only the documents of the stored tools that are on it. `order` is the position in the list as it is shown,
        by precedence of names; folders that are not built come last there.
        """
        tools: list[Facts] = []
        if not place.stored:
            known = listed(self._crib, tags=tags, executors=executors, stored=False, reader=reader)
            rest = sorted(
                (address, order, facts) for order, (address, facts) in enumerate(known) if address > place.after
            )
            for _, order, facts in rest[:size]:
                shown = facts()
                tools.append({**shown, "order": order if shown.get("built", True) else UNBUILT_ORDER + order})
            if len(rest) > size:
                return tools, _Place(stored=False, after=rest[size - 1][0]), True
            place = _Place(stored=True, position=len(known))
        if executors:
            return tools, None, True
        stored, is_complete = self._crib.bundles.list_stored(tags=tags, after=place.after, patience=INDEX_SECONDS)
        room = size - len(tools)
        found = [*islice(stored, room + 1)]
        tools += [
            {**facts_of(self._crib, entry, reader), "order": place.position + number}
            for number, (_, entry) in enumerate(found[:room])
        ]
        if len(found) <= room:
            return tools, None, is_complete
        after = found[room - 1][0] if room else place.after
        return tools, _Place(stored=True, after=after, position=place.position + room), is_complete

    def _offered(self, query: Query, session: Session | None, reader: Reader) -> dict[str, object]:
        """A page of the tools that models are offered, by their addresses; `order` is their position in the list."""
        mode, names = query.text("mode") or None, query.words("names") if query.has("names") else None
        asked = ["offered", mode, names and [*names], session.id if session else ""]
        token, size = query.text("pageToken"), query.number("pageSize") or PAGE
        after = str(self._cursors.read(asked, token)) if token else ""
        tools = enumerate(self._crib.offered(mode, session, names))
        rest = sorted((tool.address, order, tool) for order, tool in tools if tool.address > after)
        shown = [{**facts_of(self._crib, Entry(tool=tool), reader), "order": order} for _, order, tool in rest[:size]]
        is_last = len(rest) <= size
        return {"tools": shown, "nextPageToken": None if is_last else self._cursors.write(asked, rest[size - 1][0])}

    def _find(self, name: str, session: Session | None, reader: Reader) -> Facts:
        if not name:
            raise ToolError(Kind.VALIDATION, "query: name: is empty; write the name of a tool, or leave it out")
        try:
            entry = self._crib.require(name, session)
        except ToolError as problem:
            hint = "" if problem.cure == LIST_THE_TOOLS else problem.cure.client
            raise problem.replace(details={**problem.details, "suggestion": hint}) from None
        return {
            **all_facts_of(self._crib, entry, reader),
            "bundleID": self._crib.bundles.bundle_id_of(entry.tool),
        }

    def _search(self, query: Query) -> dict[str, object]:
        if query.has("q") and query.has("question"):
            message = "query: write either q, the typed text, or question, a question in plain language"
            raise ToolError(Kind.VALIDATION, message)
        name = "q" if query.has("q") else "question"
        text = query.text(name)
        if not text.strip():
            raise ToolError(Kind.VALIDATION, f"query: {name}: is empty; write what to search for")
        look = self._crib.bundles.search if name == "q" else self._crib.bundles.ask
        page = look(
            text,
            include_disabled=query.switch("includeDisabled"),
            page_size=query.number("pageSize"),
            page_token=query.text("pageToken"),
            patience=INDEX_SECONDS,
        )
        tools = [found_facts(found) for found in page.items]
        answer: dict[str, object] = {"tools": tools, "nextPageToken": page.next_token or None}
        return {**answer, "indexing": True} if page.indexing else answer


def _overview_endpoints(host: HttpHost) -> OverviewEndpoints:
    return OverviewEndpoints(host.crib, host.threads, host.service, host.problems, host.sessions)


OVERVIEW_ENDPOINTS = EndpointTable(
    tag="overview",
    summary="All tools, stored results, and the health of the server.",
    make=_overview_endpoints,
    places=(
        in_path(
            "handle",
            "The handle in `meta.kept` of the result.",
            {**TEXT, "pattern": "^[0-9a-f]+$", "maxLength": 64},
            example="0000000068f0a1c3d4e5f60718293a4b5c6d7e8f90a1b2c3",
        ),
    ),
    schemas={
        "FactsPage": page("tools", "Facts", indexing=INDEXING),
        "Facts": open_to_more(
            ("name", "address", "enabled"), name=TEXT, address=TEXT, enabled=SWITCH, description=TEXT
        ),
        "Piece": closed(
            ("text", "offset", "total", "next"),
            text=TEXT,
            offset=WHOLE,
            total=WHOLE,
            next={"type": ["integer", "null"], "description": "Where the next piece begins; null at the end."},
        ),
        "Health": closed(
            ("ready", "version", "schemaVersion", "problems", "queue"),
            ready=SWITCH,
            version=TEXT,
            schemaVersion=TEXT,
            problems={"type": "array", "items": TEXT, "description": "What could not be loaded."},
            queue={**OPTIONAL_TEXT, "description": "Why the server of `queue.url` keeps no requests."},
            indexing={**INDEXING, "description": "Problems are still being looked for; absent otherwise."},
        ),
    },
    endpoints=(
        Endpoint(
            name="describeTools",
            method="GET",
            path="/crib/tools",
            handler=OverviewEndpoints.tools,
            scope=Scope.READ,
            summary="List every tool from every source, with all its facts.",
            description="First the tools of files, functions and folders by address, then those of bundles, bundle by bundle.",
            query=(
                text("name", "Only the tool with this name, slug or address.", minLength=1),
                TYPED,
                QUESTION,
                INCLUDE_DISABLED,
                TAGS,
                switch("executors", "List what executes tools instead of the tools."),
                switch("offered", "Only the tools that a model may be told of, without examples that fail."),
                choice("mode", "Of the offered tools those of this mode.", tuple(sorted(MODES)), key="offeredMode"),
                words("names", "Of the offered tools only these, by name or address.", {**TEXT, "pattern": "^[^,]+$"}),
                PAGE_SIZE,
                PAGE_TOKEN,
            ),
            headers=(SESSION_HEADER,),
            refusals=(404,),
            replies={200: Reply(description="A page of tools.", schema="FactsPage")},
        ),
        Endpoint(
            name="readResult",
            method="GET",
            path="/crib/results/{handle}",
            handler=OverviewEndpoints.result,
            scope=Scope.INVOKE,
            summary="Read a piece of a stored result, which was too large to return at once.",
            description="Stored for an hour, for the caller that made the call.",
            query=(
                whole("offset", "Where the piece begins, in characters.", 0, MAX_OFFSET, 0),
                whole("length", "Maximum number of characters.", 1, MAX_PIECE, PIECE),
            ),
            refusals=(404,),
            replies={200: Reply(description="The piece.", schema="Piece")},
        ),
        Endpoint(
            name="readHealth",
            method="GET",
            path="/crib/health",
            handler=OverviewEndpoints.health,
            scope=Scope.READ,
            summary="Read the health of the server, its versions and its problems.",
            replies={200: Reply(description="The health.", schema="Health")},
        ),
    ),
)
endpoints = (OVERVIEW_ENDPOINTS,)
