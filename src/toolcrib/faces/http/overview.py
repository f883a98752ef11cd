"""What there is, for a client that knows nothing yet: tools with all their facts, kept results, and how the crib is."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from toolcrib import __version__
from toolcrib.crib.facts import all_facts_of, found_facts, listed
from toolcrib.dialects.platform import SCHEMA_VERSION
from toolcrib.faces.http.queries import MAX_PAGE, Query, refuse_query
from toolcrib.faces.http.wire import answer_json
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.crib.facts import Facts
    from toolcrib.faces.http.asking import Asking
    from toolcrib.faces.http.service import Service
    from toolcrib.faces.http.threads import Threads
    from toolcrib.faces.http.wire import Answer, Request

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
