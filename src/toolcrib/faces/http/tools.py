"""Tools over HTTP: list, search, read, make, switch, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.catalog.bundles import etag_of
from toolcrib.dialects.platform import found_to_wire, tool_to_wire
from toolcrib.faces.http.bodies import read_document
from toolcrib.faces.http.marks import etag_header, unchanged, wanted_mark
from toolcrib.faces.http.places import bundle_place, location_of_tool, tool_place
from toolcrib.faces.http.queries import MAX_PAGE, Query, refuse_query
from toolcrib.faces.http.switching import Switching
from toolcrib.faces.http.wire import Answer, answer_json
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.catalog.bundles import Bundles
    from toolcrib.faces.http.places import ToolPlace
    from toolcrib.faces.http.threads import Threads
    from toolcrib.faces.http.wire import Header, Request
    from toolcrib.model.bundle import Found, Kept, Page

LIST_QUERY = ("tags", "includeDisabled", "recommendedPageSize", "pageSize", "pageToken")


class ToolDesk:
    """Answers what is asked about tools."""

    def __init__(
        self, bundles: Bundles, wish_from_search: Callable[[str], str], threads: Threads, body_bytes: int
    ) -> None:
        self._bundles = bundles
        self._wish_from_search = wish_from_search
        self._threads = threads
        self._body_bytes = body_bytes
        self._switching = Switching(bundles, threads, body_bytes)

    async def list(self, request: Request) -> Answer:
        """GET /tools and GET /tools/tools."""
        query = Query(request, known=(*LIST_QUERY, "bundleIDs"), lists=("tags", "bundleIDs"))
        return await self._list(query, query.bundle_ids())

    async def list_one(self, request: Request) -> Answer:
        """GET /tools/bundles/{bundleID}/tools: those of one bundle, which must be there."""
        bundle_id = bundle_place(request)
        query = Query(request, known=LIST_QUERY, lists=("tags",))
        await self._threads.read(self._bundles.bundle, bundle_id)
        return await self._list(query, (bundle_id,))

    async def search(self, request: Request) -> Answer:
        """GET /tools/search and GET /tools/tools/search: what was typed, or a question in plain words."""
        query = Query(request, known=("q", "question", "includeDisabled", "pageSize", "pageToken"))
        search, text = self._way_to_search(query)
        page: Page[Found] = await self._threads.read(
            search,
            text,
            include_disabled=query.switch("includeDisabled"),
            page_size=query.number("pageSize", least=1, most=MAX_PAGE),
            page_token=query.token(),
        )
        shown = [found_to_wire(found) for found in page.items]
        answer = {"tools": shown, "nextPageToken": page.next_token or None}
        if not shown and not query.token() and (request_id := await self._threads.write(self._wish_from_search, text)):
            answer["requestID"] = request_id
        return answer_json(answer)

    async def read(self, request: Request) -> Answer:
        """GET one version of a tool."""
        place = tool_place(request)
        refuse_query(request)
        kept = await self._threads.read(self._bundles.tool, *place)
        return unchanged(request, etag_of(kept)) or _answer(kept)

    async def put(self, request: Request) -> Answer:
        """PUT one version of a tool, which must not be there yet."""
        place = tool_place(request, as_name=False)
        refuse_query(request)
        document = await read_document(request, self._body_bytes)
        mark = await self._mark(request, place)
        kept = await self._threads.write(lambda: self._bundles.put_tool(*place, document, if_match=mark))
        return _answer(kept, status=201, headers=(location_of_tool(place),))

    async def switch(self, request: Request) -> Answer:
        """PATCH the switch of one version of a tool."""
        place = tool_place(request)
        refuse_query(request)
        enabled = await self._switching.read(request, place.bundle_id)
        mark = await self._mark(request, place)
        return _answer(await self._threads.write(lambda: self._bundles.switch_tool(*place, enabled, if_match=mark)))

    async def delete(self, request: Request) -> Answer:
        """DELETE one version of a tool, for good."""
        place = tool_place(request)
        refuse_query(request)
        mark = await self._mark(request, place)
        await self._threads.write(lambda: self._bundles.delete_tool(*place, if_match=mark))
        return Answer(status=204)

    async def _list(self, query: Query, bundle_ids: tuple[str, ...] | None) -> Answer:
        page = await self._threads.read(
            self._bundles.list_tools,
            tags=query.words("tags"),
            bundle_ids=bundle_ids,
            include_disabled=query.switch("includeDisabled"),
            page_size=_recommended_size(query),
            page_token=query.token(),
        )
        shown = [tool_to_wire(kept) for kept in page.items]
        return answer_json({"tools": shown, "nextPageToken": page.next_token or None})

    def _way_to_search(self, query: Query) -> tuple[Callable[..., Page[Found]], str]:
        if query.has("q") == query.has("question"):
            message = "query: write either q, what was typed, or question, a question in plain words"
            raise ToolError(Kind.VALIDATION, message)
        if query.has("q"):
            return self._bundles.search, query.text("q")
        return self._bundles.ask, query.text("question")

    async def _mark(self, request: Request, place: ToolPlace) -> str:
        if not (request.has(b"if-match") or request.has(b"if-none-match")):
            return ""
        return await self._threads.read(wanted_mark, request, lambda: etag_of(self._bundles.tool(*place)))


def _recommended_size(query: Query) -> int | None:
    """How many to show, about, under either of its two names."""
    if query.has("recommendedPageSize") and query.has("pageSize"):
        message = "query: recommendedPageSize and pageSize mean the same here; write one of them"
        raise ToolError(Kind.VALIDATION, message)
    return query.number("pageSize" if query.has("pageSize") else "recommendedPageSize", least=1)


def _answer(kept: Kept, *, status: int = 200, headers: tuple[Header, ...] = ()) -> Answer:
    return answer_json(tool_to_wire(kept), status=status, headers=(etag_header(etag_of(kept)), *headers))
