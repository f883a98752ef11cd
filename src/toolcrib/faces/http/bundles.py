"""Bundles over HTTP: list, read, make or replace, switch, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.catalog.bundles import etag_of
from toolcrib.dialects.platform import bundle_to_wire
from toolcrib.faces.http.bodies import read_document
from toolcrib.faces.http.marks import etag_header, unchanged, wanted_mark
from toolcrib.faces.http.places import bundle_place, location_of_bundle
from toolcrib.faces.http.queries import MAX_PAGE, Query, refuse_query
from toolcrib.faces.http.switching import Switching
from toolcrib.faces.http.wire import answer_json

if TYPE_CHECKING:
    from toolcrib.catalog.bundles import Bundles
    from toolcrib.faces.http.threads import Threads
    from toolcrib.faces.http.wire import Answer, Header, Request
    from toolcrib.model.bundle import Bundle


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
        return unchanged(request, etag_of(bundle)) or _answer(bundle)

    async def put(self, request: Request) -> Answer:
        """PUT /tools/bundles/{bundleID}."""
        bundle_id = bundle_place(request)
        refuse_query(request)
        document = await read_document(request, self._body_bytes)
        mark = await self._mark(request, bundle_id)
        bundle, is_new = await self._threads.write(self._bundles.put_bundle, bundle_id, document, if_match=mark)
        if not is_new:
            return _answer(bundle)
        return _answer(bundle, status=201, headers=(location_of_bundle(bundle_id),))

    async def switch(self, request: Request) -> Answer:
        """PATCH /tools/bundles/{bundleID}."""
        bundle_id = bundle_place(request)
        refuse_query(request)
        enabled = await self._switching.read(request, bundle_id)
        mark = await self._mark(request, bundle_id)
        return _answer(await self._threads.write(self._bundles.switch_bundle, bundle_id, enabled, if_match=mark))

    async def delete(self, request: Request) -> Answer:
        """DELETE /tools/bundles/{bundleID}: what is answered is the bundle with the time of its deletion."""
        bundle_id = bundle_place(request)
        refuse_query(request)
        mark = await self._mark(request, bundle_id)
        return _answer(await self._threads.write(self._bundles.delete_bundle, bundle_id, if_match=mark))

    async def _mark(self, request: Request, bundle_id: str) -> str:
        if not (request.has(b"if-match") or request.has(b"if-none-match")):
            return ""
        return await self._threads.read(wanted_mark, request, lambda: etag_of(self._bundles.bundle(bundle_id)))


def _answer(bundle: Bundle, *, status: int = 200, headers: tuple[Header, ...] = ()) -> Answer:
    return answer_json(bundle_to_wire(bundle), status=status, headers=(etag_header(etag_of(bundle)), *headers))
