"""Tools over HTTP: list, search, read, make, switch, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.bundles.definition import bundle_to_wire, found_to_wire, tool_to_wire
from toolcrib.features.bundles.stored_documents import etag_of
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.http.messages import Answer, answer_json, etag_header, unchanged, wanted_mark
from toolcrib.toolkit.http.openapi_parts import answer, operation
from toolcrib.toolkit.http.request_data import (
    MAX_PAGE,
    Query,
    bundle_place,
    location_of_bundle,
    location_of_tool,
    only_keys,
    read_document,
    read_object,
    refuse_query,
    tool_place,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.features.bundles.facade import Bundles
    from toolcrib.model.bundle import Bundle, Found, Kept, Page
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.messages import Header, Request
    from toolcrib.toolkit.http.request_data import ToolPlace


# MERGED toolcrib.faces.http.switching

# The switch of a bundle or a tool: the one thing that a PATCH can change, whoever owns it.

KNOWN = frozenset({"isEnabled"})


class Switching:
    """Reads what a PATCH says."""

    def __init__(self, bundles: Bundles, threads: Threads, body_bytes: int) -> None:
        self._bundles = bundles
        self._threads = threads
        self._body_bytes = body_bytes

    async def read(self, request: Request, bundle_id: str) -> bool:
        """Whether to switch on or off something of this bundle; whoever asks for more learns whether anybody could have it."""
        body = await read_object(request, self._body_bytes)
        if not body.keys() <= KNOWN:
            await self._threads.read(self._refuse_read_only, bundle_id)
        value = only_keys(body, KNOWN).get("isEnabled")
        if isinstance(value, bool):
            return value
        raise ToolError(Kind.VALIDATION, "body: isEnabled: write true or false")

    def _refuse_read_only(self, bundle_id: str) -> None:
        bundle = self._bundles.bundle(bundle_id)
        if bundle.read_only:
            message = f"the bundle {bundle.slug} is read-only here; of it and its tools only isEnabled can be changed"
            raise ToolError(Kind.BLOCKED, message)


# MERGED toolcrib.faces.http.bundles

# Bundles over HTTP: list, read, make or replace, switch, delete.


class BundleDesk:
    """Answers what is asked about bundles."""

    def __init__(self, bundles: Bundles, threads: Threads, body_bytes: int) -> None:
        self._bundles = bundles
        self._threads = threads
        self._body_bytes = body_bytes
        self._switching = Switching(bundles, threads, body_bytes)

    async def list(self, request: Request) -> Answer:
        """GET /tools/bundles."""
        query = Query(request, known=("bundleIDs", "includeDisabled", "pageSize", "pageToken"), lists=("bundleIDs",))
        page = await self._threads.read(
            self._bundles.list_bundles,
            ids=query.bundle_ids(),
            include_disabled=query.switch("includeDisabled"),
            page_size=query.number("pageSize", least=1, most=MAX_PAGE),
            page_token=query.token(),
        )
        shown = [bundle_to_wire(bundle) for bundle in page.items]
        return answer_json({"bundles": shown, "nextPageToken": page.next_token or None})

    async def read(self, request: Request) -> Answer:
        """GET /tools/bundles/{bundleID}."""
        bundle_id = bundle_place(request)
        refuse_query(request)
        bundle = await self._threads.read(self._bundles.bundle, bundle_id)
        return unchanged(request, etag_of(bundle)) or _answer_bundles(bundle)

    async def put(self, request: Request) -> Answer:
        """PUT /tools/bundles/{bundleID}."""
        bundle_id = bundle_place(request)
        refuse_query(request)
        document = await read_document(request, self._body_bytes)
        mark = await self._mark(request, bundle_id)
        bundle, is_new = await self._threads.write(self._bundles.put_bundle, bundle_id, document, if_match=mark)
        if not is_new:
            return _answer_bundles(bundle)
        return _answer_bundles(bundle, status=201, headers=(location_of_bundle(bundle_id),))

    async def switch(self, request: Request) -> Answer:
        """PATCH /tools/bundles/{bundleID}."""
        bundle_id = bundle_place(request)
        refuse_query(request)
        enabled = await self._switching.read(request, bundle_id)
        mark = await self._mark(request, bundle_id)
        return _answer_bundles(
            await self._threads.write(self._bundles.switch_bundle, bundle_id, enabled, if_match=mark)
        )

    async def delete(self, request: Request) -> Answer:
        """DELETE /tools/bundles/{bundleID}: what is answered is the bundle with the time of its deletion."""
        bundle_id = bundle_place(request)
        refuse_query(request)
        mark = await self._mark(request, bundle_id)
        return _answer_bundles(await self._threads.write(self._bundles.delete_bundle, bundle_id, if_match=mark))

    async def _mark(self, request: Request, bundle_id: str) -> str:
        if not (request.has(b"if-match") or request.has(b"if-none-match")):
            return ""
        return await self._threads.read(wanted_mark, request, lambda: etag_of(self._bundles.bundle(bundle_id)))


def _answer_bundles(bundle: Bundle, *, status: int = 200, headers: tuple[Header, ...] = ()) -> Answer:
    return answer_json(bundle_to_wire(bundle), status=status, headers=(etag_header(etag_of(bundle)), *headers))


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


# MERGED toolcrib.faces.http.openapi.bundle_paths

# The paths of bundles.

WEATHER_BUNDLE = {
    "slug": "weather",
    "displayName": "Weather",
    "isEnabled": True,
    "description": "What the sky is up to.",
}
SAME_BUNDLE = {"bundleID": "$request.path.bundleID"}
LINKS: dict[str, object] = {
    "read": {"operationId": "readBundle", "parameters": SAME_BUNDLE},
    "switch": {"operationId": "switchBundle", "parameters": SAME_BUNDLE},
    "delete": {"operationId": "deleteBundle", "parameters": SAME_BUNDLE},
    "putTool": {"operationId": "putTool", "parameters": SAME_BUNDLE},
}
WRITTEN = answer("The bundle as it is now.", "Bundle", headers=("ETag",), links=LINKS)

BUNDLE_PATHS: dict[str, object] = {
    "/tools/bundles": {
        "get": operation(
            "listBundles",
            "bundles",
            "List bundles.",
            scope="read",
            description="In the order of their ids. What is being deleted is not shown.",
            parameters=("bundleIDs", "includeDisabled", "pageSize", "pageToken"),
            answers={"200": answer("A page of bundles.", "BundlePage")},
        )
    },
    "/tools/bundles/{bundleID}": {
        "get": operation(
            "readBundle",
            "bundles",
            "Read a bundle.",
            scope="read",
            parameters=("bundleID", "ifNoneMatch"),
            refusals=(404,),
            answers={
                "200": answer("The bundle.", "Bundle", headers=("ETag",)),
                "304": answer("It is as the client knows it.", headers=("ETag",)),
            },
        ),
        "put": operation(
            "putBundle",
            "bundles",
            "Make a bundle, or replace what is said about it.",
            scope="manage",
            description="Its tools stay as they are. A bundle that is being deleted is kept again. The body may hold "
            "comments, `//` and `/* */`.",
            parameters=("bundleID", "ifMatch", "onlyNew"),
            refusals=(409, 412),
            body="BundleBody",
            example=WEATHER_BUNDLE,
            answers={
                "200": WRITTEN,
                "201": answer("The new bundle.", "Bundle", headers=("ETag", "Location"), links=LINKS),
            },
        ),
        "patch": operation(
            "switchBundle",
            "bundles",
            "Switch a bundle on or off, and with it all its tools.",
            scope="manage",
            parameters=("bundleID", "ifMatch"),
            refusals=(404, 409, 412),
            body="Switch",
            example={"isEnabled": False},
            answers={"200": WRITTEN},
        ),
        "delete": operation(
            "deleteBundle",
            "bundles",
            "Delete a bundle that holds no tools.",
            scope="manage",
            description="It can be had back for two days by putting it again.",
            parameters=("bundleID", "ifMatch"),
            refusals=(404, 409, 412),
            answers={"200": answer("The bundle, with the time of its deletion.", "Bundle", headers=("ETag",))},
        ),
    },
}
