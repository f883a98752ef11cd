"""HTTP endpoints of bundles and of the tools in them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING
from urllib.parse import quote

from toolcrib.features.bundles.definition import bundle_to_wire, found_to_wire, tool_to_wire
from toolcrib.features.bundles.openapi import (
    BUNDLE_BODY,
    BUNDLE_LINKS,
    SCHEMAS,
    TOOL_BODY,
    TOOL_LINKS,
    WEATHER_BUNDLE,
    WEATHER_TOOL,
)
from toolcrib.features.bundles.stored_documents import ETAG_DIGITS, etag_of
from toolcrib.model.call import Scope
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MAX_NAME
from toolcrib.toolkit.http import Answer, answer_json, answer_page, only_keys, read_body, read_raw
from toolcrib.toolkit.http.contract import (
    INCLUDE_DISABLED,
    PAGE_SIZE,
    PAGE_TOKEN,
    QUESTION,
    SWITCH,
    TAGS,
    TEXT,
    TYPED,
    Body,
    RawBody,
    Reply,
    closed,
    switch,
    text,
    whole,
    words,
)
from toolcrib.toolkit.http.endpoint import ZIP, Endpoint, EndpointTable
from toolcrib.toolkit.http.etags import IF_MATCH, IF_NONE_MATCH, ONLY_NEW, etag_header, unchanged, wanted_etag
from toolcrib.toolkit.http.places import (
    BUNDLE,
    BUNDLE_PLACE,
    BUNDLES,
    TOOL,
    TOOL_PLACE,
    UUID7,
    bundle_place,
    location_of_bundle,
    location_of_tool,
    tool_place,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.features.bundles.facade import Bundles
    from toolcrib.model.bundle import Bundle, Found, Kept, Page
    from toolcrib.toolkit.http import Header, Request
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.contract import Query
    from toolcrib.toolkit.http.endpoint import Host
    from toolcrib.toolkit.http.places import ToolPlace


SWITCH_KEYS = frozenset({"isEnabled"})
# How long a listing waits for an index that is not complete.
INDEX_SECONDS = 0.3


class BundleEndpoints:
    """List, read, write, enable, disable, delete, export and import bundles."""

    def __init__(self, bundles: Bundles, threads: Threads, archive_bytes: int) -> None:
        self._bundles = bundles
        self._archive_bytes = archive_bytes
        self._threads = threads
        self._switches = _Switches(bundles, threads)

    async def list(self, request: Request) -> Answer:
        """GET /tools/bundles."""
        query = request.query
        page = await self._threads.read(
            self._bundles.list_bundles,
            ids=_bundle_ids(query),
            include_disabled=query.switch("includeDisabled"),
            page_size=query.number("pageSize"),
            page_token=query.text("pageToken"),
        )
        return answer_page("bundles", [bundle_to_wire(bundle) for bundle in page.items], page)

    async def read(self, request: Request) -> Answer:
        """GET /tools/bundles/{bundleID}."""
        bundle_id = bundle_place(request)
        bundle = await self._threads.read(self._bundles.bundle, bundle_id)
        return unchanged(request, etag_of(bundle)) or _answer_bundle(bundle)

    async def put(self, request: Request) -> Answer:
        """PUT /tools/bundles/{bundleID}."""
        bundle_id = bundle_place(request)
        document = await read_body(request)
        etag = await self._etag(request, bundle_id)
        bundle, is_new = await self._threads.write(self._bundles.put_bundle, bundle_id, document, if_match=etag)
        if not is_new:
            return _answer_bundle(bundle)
        return _answer_bundle(bundle, status=201, headers=(location_of_bundle(bundle_id),))

    async def switch(self, request: Request) -> Answer:
        """PATCH /tools/bundles/{bundleID}: enable or disable."""
        bundle_id = bundle_place(request)
        enabled = await self._switches.read(request)
        etag = await self._etag(request, bundle_id)
        return _answer_bundle(await self._threads.write(self._bundles.switch_bundle, bundle_id, enabled, if_match=etag))

    async def delete(self, request: Request) -> Answer:
        """DELETE /tools/bundles/{bundleID}: responds with the bundle and the time of its deletion."""
        bundle_id = bundle_place(request)
        etag = await self._etag(request, bundle_id)
        return _answer_bundle(await self._threads.write(self._bundles.delete_bundle, bundle_id, if_match=etag))

    async def list_functions(self, request: Request) -> Answer:
        """GET /ui/functions."""
        found = self._bundles.functions()
        return answer_json({"functions": [{"key": key, "description": text} for key, text in found.items()]})

    async def export(self, request: Request) -> Answer:
        """GET /tools/bundles/{bundleID}/archive: the bundle with its tools as a ZIP archive."""
        bundle_id = bundle_place(request)
        bundle = await self._threads.read(self._bundles.bundle, bundle_id)
        data = await self._threads.read(self._bundles.export_bundle, bundle_id)
        etag = f'"{hashlib.sha256(data).hexdigest()[:ETAG_DIGITS]}"'
        name = f"attachment; filename=\"bundle.zip\"; filename*=UTF-8''{quote(bundle.slug, safe='')}.zip"
        headers = (etag_header(etag), (b"content-disposition", name.encode()))
        return unchanged(request, etag) or Answer(body=data, content_type=ZIP.encode(), headers=headers)

    async def import_archive(self, request: Request) -> Answer:
        """POST /tools/bundles/{bundleID}/archive: store the bundle of an archive, with all its tools or not at all."""
        bundle_id = bundle_place(request)
        data = await read_raw(request, self._archive_bytes, "bundles.archive_bytes")
        bundle = await self._threads.write(
            self._bundles.import_bundle,
            bundle_id,
            data,
            slug=request.query.text("slug"),
            enable=request.query.switch("enable"),
        )
        return _answer_bundle(bundle, status=201, headers=(location_of_bundle(bundle_id),))

    async def _etag(self, request: Request, bundle_id: str) -> str:
        if not (request.has(b"if-match") or request.has(b"if-none-match")):
            return ""
        return await self._threads.read(wanted_etag, request, lambda: etag_of(self._bundles.bundle(bundle_id)))


def _answer_bundle(bundle: Bundle, *, status: int = 200, headers: tuple[Header, ...] = ()) -> Answer:
    return answer_json(bundle_to_wire(bundle), status=status, headers=(etag_header(etag_of(bundle)), *headers))


class ToolEndpoints:
    """List, search, read, write, enable, disable and delete tools in bundles."""

    def __init__(self, bundles: Bundles, threads: Threads) -> None:
        self._bundles = bundles
        self._threads = threads
        self._switches = _Switches(bundles, threads)

    async def list(self, request: Request) -> Answer:
        """GET /tools and GET /tools/tools."""
        return await self._list(request.query, _bundle_ids(request.query))

    async def list_one(self, request: Request) -> Answer:
        """GET /tools/bundles/{bundleID}/tools: the tools of one bundle, which must exist."""
        bundle_id = bundle_place(request)
        await self._threads.read(self._bundles.bundle, bundle_id)
        return await self._list(request.query, (bundle_id,))

    async def search(self, request: Request) -> Answer:
        """GET /tools/search and GET /tools/tools/search: by typed text, or by a question in plain language."""
        query = request.query
        search, text = self._search_of(query)
        page: Page[Found] = await self._threads.read(
            search,
            text,
            include_disabled=query.switch("includeDisabled"),
            page_size=query.number("pageSize"),
            page_token=query.text("pageToken"),
            patience=INDEX_SECONDS,
        )
        shown = [found_to_wire(found) for found in page.items]
        return answer_page("tools", shown, page)

    async def read(self, request: Request) -> Answer:
        """GET one version of a tool."""
        place = tool_place(request)
        kept = await self._threads.read(self._bundles.tool, *place)
        return unchanged(request, etag_of(kept)) or _answer_tool(kept)

    async def put(self, request: Request) -> Answer:
        """PUT one version of a tool, which must not exist yet."""
        place = tool_place(request, as_name=False)
        document = await read_body(request)
        etag = await self._etag(request, place)
        kept = await self._threads.write(lambda: self._bundles.put_tool(*place, document, if_match=etag))
        return _answer_tool(kept, status=201, headers=(location_of_tool(place),))

    async def switch(self, request: Request) -> Answer:
        """PATCH one version of a tool: enable or disable."""
        place = tool_place(request)
        enabled = await self._switches.read(request)
        await self._threads.write(lambda: self._bundles.refuse_file(*place))
        etag = await self._etag(request, place)
        return _answer_tool(
            await self._threads.write(lambda: self._bundles.switch_tool(*place, enabled, if_match=etag))
        )

    async def delete(self, request: Request) -> Answer:
        """DELETE one version of a tool, for good."""
        place = tool_place(request)
        etag = await self._etag(request, place)
        await self._threads.write(lambda: self._bundles.delete_tool(*place, if_match=etag))
        return Answer(status=204)

    async def _list(self, query: Query, bundle_ids: tuple[str, ...] | None) -> Answer:
        page = await self._threads.read(
            self._bundles.list_tools,
            tags=query.words("tags"),
            bundle_ids=bundle_ids,
            include_disabled=query.switch("includeDisabled"),
            page_size=_recommended_size(query),
            page_token=query.text("pageToken"),
            patience=INDEX_SECONDS,
        )
        return answer_page("tools", [tool_to_wire(kept) for kept in page.items], page)

    def _search_of(self, query: Query) -> tuple[Callable[..., Page[Found]], str]:
        if query.has("q") == query.has("question"):
            message = "query: write either q, the typed text, or question, a question in plain language"
            raise ToolError(Kind.VALIDATION, message)
        if query.has("q"):
            return self._bundles.search, query.text("q")
        return self._bundles.ask, query.text("question")

    async def _etag(self, request: Request, place: ToolPlace) -> str:
        if not (request.has(b"if-match") or request.has(b"if-none-match")):
            return ""
        return await self._threads.read(wanted_etag, request, lambda: etag_of(self._bundles.tool(*place)))


def _bundle_ids(query: Query) -> tuple[str, ...] | None:
    """The ids of bundles; None means all."""
    return query.words("bundleIDs") if query.has("bundleIDs") else None


def _recommended_size(query: Query) -> int | None:
    """The recommended page size, under either of its two names."""
    if query.has("recommendedPageSize") and query.has("pageSize"):
        message = "query: recommendedPageSize and pageSize mean the same here; write one of them"
        raise ToolError(Kind.VALIDATION, message)
    return query.number("pageSize" if query.has("pageSize") else "recommendedPageSize")


def _answer_tool(kept: Kept, *, status: int = 200, headers: tuple[Header, ...] = ()) -> Answer:
    return answer_json(tool_to_wire(kept), status=status, headers=(etag_header(etag_of(kept)), *headers))


class _Switches:
    """Parse the body of a PATCH, which can only change `isEnabled`."""

    def __init__(self, bundles: Bundles, threads: Threads) -> None:
        self._bundles = bundles
        self._threads = threads

    async def read(self, request: Request) -> bool:
        """The value of `isEnabled`; the error for other keys says if the bundle is read-only."""
        body = await read_body(request)
        if not body.keys() <= SWITCH_KEYS:
            await self._threads.read(self._refuse_read_only, bundle_place(request))
        value = only_keys(body, SWITCH_KEYS).get("isEnabled")
        if isinstance(value, bool):
            return value
        raise ToolError(Kind.VALIDATION, "body: isEnabled: write true or false")

    def _refuse_read_only(self, bundle_id: str) -> None:
        bundle = self._bundles.bundle(bundle_id)
        if bundle.read_only:
            message = f"the bundle {bundle.slug} is read-only here; only isEnabled of it and its tools can be changed"
            raise ToolError(Kind.BLOCKED, message)


SWITCH_BODY = Body(
    # The handler checks further keys itself.
    name="Switch",
    schema=closed(("isEnabled",), isEnabled=SWITCH),
    example={"isEnabled": False},
    open_keys=True,
)
BUNDLE_IDS = words("bundleIDs", "Only these bundles.", {**TEXT, "pattern": UUID7})
LIST_QUERY = (
    TAGS,
    INCLUDE_DISABLED,
    whole("recommendedPageSize", "Recommended page size; at most 256.", 1),
    whole("pageSize", "An alias of recommendedPageSize.", 1, key="sameAsRecommendedPageSize"),
    PAGE_TOKEN,
)
BY_ID = "In the order of their ids. The page size is a recommendation."
COMMENTS = "The body may contain comments, `//` and `/* */`."
BUNDLE_NOW = Reply(description="The bundle.", schema="Bundle", headers=("ETag",), links=BUNDLE_LINKS)
UNCHANGED = Reply(description="Not modified.", headers=("ETag",))


def _bundle_endpoints(host: Host) -> BundleEndpoints:
    limit = host.crib.settings["bundles"].archive_bytes
    return BundleEndpoints(host.crib.bundles, host.threads, limit)


def _tool_endpoints(host: Host) -> ToolEndpoints:
    return ToolEndpoints(host.crib.bundles, host.threads)


BUNDLE_ENDPOINTS = EndpointTable(
    tag="bundles",
    summary="Groups of tools that are enabled and disabled together.",
    make=_bundle_endpoints,
    places=(BUNDLE_PLACE,),
    schemas=SCHEMAS,
    endpoints=(
        Endpoint(
            name="listBundles",
            method="GET",
            path=BUNDLES,
            handler=BundleEndpoints.list,
            scope=Scope.READ,
            summary="List bundles.",
            description="In the order of their ids, without deleted bundles.",
            query=(BUNDLE_IDS, INCLUDE_DISABLED, PAGE_SIZE, PAGE_TOKEN),
            replies={200: Reply(description="A page of bundles.", schema="BundlePage")},
        ),
        Endpoint(
            name="readBundle",
            method="GET",
            path=BUNDLE,
            handler=BundleEndpoints.read,
            scope=Scope.READ,
            summary="Read a bundle.",
            headers=(IF_NONE_MATCH,),
            refusals=(404,),
            replies={200: Reply(description="The bundle.", schema="Bundle", headers=("ETag",)), 304: UNCHANGED},
        ),
        Endpoint(
            name="putBundle",
            method="PUT",
            path=BUNDLE,
            handler=BundleEndpoints.put,
            scope=Scope.MANAGE,
            summary="Create or replace a bundle.",
            description=f"Its tools stay as they are. A deleted bundle is restored. {COMMENTS}",
            headers=(IF_MATCH, ONLY_NEW),
            body=Body(name="BundleBody", schema=BUNDLE_BODY, example=WEATHER_BUNDLE, comments=True, open_keys=True),
            refusals=(409, 412),
            replies={
                200: BUNDLE_NOW,
                201: Reply(
                    description="The new bundle.", schema="Bundle", headers=("ETag", "Location"), links=BUNDLE_LINKS
                ),
            },
        ),
        Endpoint(
            name="switchBundle",
            method="PATCH",
            path=BUNDLE,
            handler=BundleEndpoints.switch,
            scope=Scope.MANAGE,
            summary="Enable or disable a bundle and with it all its tools.",
            headers=(IF_MATCH,),
            body=SWITCH_BODY,
            refusals=(404, 409, 412),
            replies={200: BUNDLE_NOW},
        ),
        Endpoint(
            name="deleteBundle",
            method="DELETE",
            path=BUNDLE,
            handler=BundleEndpoints.delete,
            scope=Scope.MANAGE,
            summary="Delete an empty bundle.",
            description="For two days a PUT restores it.",
            headers=(IF_MATCH,),
            refusals=(404, 409, 412),
            replies={
                200: Reply(description="The bundle, with the time of its deletion.", schema="Bundle", headers=("ETag",))
            },
        ),
        Endpoint(
            name="exportBundle",
            method="GET",
            path=f"{BUNDLE}/archive",
            handler=BundleEndpoints.export,
            scope=Scope.READ,
            summary="Export a bundle with its tools as a ZIP archive.",
            description="It holds the documents and a list of their hashes, and no secrets. The same content gives the same bytes.",
            headers=(IF_NONE_MATCH,),
            refusals=(404, 409, 413),
            replies={
                200: Reply(description="The archive.", media_type=ZIP, headers=("ETag", "Content-Disposition")),
                304: UNCHANGED,
            },
        ),
        Endpoint(
            name="importBundle",
            method="POST",
            path=f"{BUNDLE}/archive",
            handler=BundleEndpoints.import_archive,
            scope=Scope.MANAGE,
            summary="Import the bundle of an archive under this id.",
            description="With all its tools or not at all. It is disabled until it is enabled, and each tool keeps its own switch. "
            "An existing bundle is a conflict, unless it is deleted and empty.",
            query=(
                switch("enable", "Enable the bundle at once."),
                text("slug", "Another slug than that of the archive.", most=MAX_NAME),
            ),
            body=RawBody(
                media_type=ZIP, description="The archive as it was exported; its size has a limit of its own."
            ),
            refusals=(409,),
            replies={
                201: Reply(
                    description="The new bundle.", schema="Bundle", headers=("ETag", "Location"), links=BUNDLE_LINKS
                ),
            },
        ),
    ),
)

TOOL_ENDPOINTS = EndpointTable(
    tag="tools",
    summary="Tools in bundles: write, read, enable, disable, delete, list, search.",
    make=_tool_endpoints,
    places=TOOL_PLACE,
    endpoints=(
        Endpoint(
            name="listToolsOfBundle",
            method="GET",
            path=f"{BUNDLE}/tools",
            handler=ToolEndpoints.list_one,
            scope=Scope.READ,
            summary="List the tools of one bundle.",
            description=BY_ID,
            query=LIST_QUERY,
            refusals=(404,),
            replies={200: Reply(description="A page of tools.", schema="ToolPage")},
        ),
        Endpoint(
            name="readTool",
            method="GET",
            path=TOOL,
            handler=ToolEndpoints.read,
            scope=Scope.READ,
            summary="Read a tool.",
            headers=(IF_NONE_MATCH,),
            refusals=(404,),
            replies={200: Reply(description="The tool.", schema="Tool", headers=("ETag",)), 304: UNCHANGED},
        ),
        Endpoint(
            name="putTool",
            method="PUT",
            path=TOOL,
            handler=ToolEndpoints.put,
            scope=Scope.MANAGE,
            summary="Create a version of a tool.",
            description=f"An existing version is never changed: write another one, or delete it first. {COMMENTS}",
            headers=(IF_MATCH, ONLY_NEW),
            body=Body(name="ToolBody", schema=TOOL_BODY, example=WEATHER_TOOL, comments=True, open_keys=True),
            refusals=(404, 409, 412),
            replies={
                201: Reply(description="The new tool.", schema="Tool", headers=("ETag", "Location"), links=TOOL_LINKS)
            },
        ),
        Endpoint(
            name="switchTool",
            method="PATCH",
            path=TOOL,
            handler=ToolEndpoints.switch,
            scope=Scope.MANAGE,
            summary="Enable or disable a tool.",
            headers=(IF_MATCH,),
            body=SWITCH_BODY,
            refusals=(404, 409, 412),
            replies={200: Reply(description="The tool.", schema="Tool", headers=("ETag",))},
        ),
        Endpoint(
            name="deleteTool",
            method="DELETE",
            path=TOOL,
            handler=ToolEndpoints.delete,
            scope=Scope.MANAGE,
            summary="Delete a tool for good.",
            headers=(IF_MATCH,),
            refusals=(404, 409, 412),
            replies={204: Reply(description="Deleted.")},
        ),
        # The paths in the platform's document are relative to /tools, or may already begin with it; both are accepted.
        Endpoint(
            name="listTools",
            method="GET",
            path="/tools",
            aliases={"/tools/tools": "listToolsToo"},
            handler=ToolEndpoints.list,
            scope=Scope.READ,
            summary="List the tools of all bundles.",
            description=BY_ID,
            query=(BUNDLE_IDS, *LIST_QUERY),
            replies={200: Reply(description="A page of tools.", schema="ToolPage")},
        ),
        Endpoint(
            name="searchTools",
            method="GET",
            path="/tools/search",
            aliases={"/tools/tools/search": "searchToolsToo"},
            handler=ToolEndpoints.search,
            scope=Scope.READ,
            summary="Search the tools of all bundles.",
            description="By typed text: prefix matches before whole words before fuzzy matches, the newest first in each group; where fewer than a page match, "
            "they are followed by those that answer it as a question (`match` is `relevance`). "
            "Or by a question in plain language alone, the most relevant first. Send one of the two.",
            query=(TYPED, QUESTION, INCLUDE_DISABLED, PAGE_SIZE, PAGE_TOKEN),
            replies={200: Reply(description="A page of tools, each with how it matched.", schema="FoundPage")},
        ),
    ),
)
FUNCTION_ENDPOINTS = EndpointTable(
    tag="functions",
    summary="Functions of the host program that tools name by key.",
    make=_bundle_endpoints,
    described=False,
    endpoints=(
        Endpoint(
            name="listFunctions",
            method="GET",
            path="/ui/functions",
            handler=BundleEndpoints.list_functions,
            scope=Scope.MANAGE,
            summary="List the functions that a new tool can name.",
            replies={200: Reply(description="Their keys and descriptions.")},
        ),
    ),
)
endpoints = (BUNDLE_ENDPOINTS, TOOL_ENDPOINTS, FUNCTION_ENDPOINTS)
