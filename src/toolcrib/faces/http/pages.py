"""What people and watchers read: the description of the API, the page made of it, figures, and whether the server is well."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.faces.http.docs import STYLE_HASH, write_page
from toolcrib.faces.http.metrics import CONTENT_TYPE
from toolcrib.faces.http.openapi import describe_api
from toolcrib.faces.http.queries import refuse_query
from toolcrib.faces.http.wire import Answer, answer_json, to_bytes

if TYPE_CHECKING:
    from toolcrib.faces.http.service import Service
    from toolcrib.faces.http.wire import Request

HTML = b"text/html; charset=utf-8"
PAGE_POLICY = (
    f"default-src 'none'; style-src '{STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
).encode()


class PageDesk:
    """Answers what is the same for everybody."""

    def __init__(self, service: Service, *, needs_token: bool) -> None:
        self._service = service
        self._needs_token = needs_token

    async def openapi(self, request: Request) -> Answer:
        """GET /openapi.json."""
        refuse_query(request)
        return Answer(body=self._document)

    async def docs(self, request: Request) -> Answer:
        """GET /docs."""
        refuse_query(request)
        return Answer(body=self._page, content_type=HTML, policy=PAGE_POLICY)

    async def metrics(self, request: Request) -> Answer:
        """GET /metrics."""
        refuse_query(request)
        return Answer(body=self._service.metrics_text().encode(), content_type=CONTENT_TYPE.encode())

    async def alive(self, request: Request) -> Answer:
        """GET /healthz: whoever gets an answer knows."""
        refuse_query(request)
        return answer_json({"alive": True})

    async def ready(self, request: Request) -> Answer:
        """GET /readyz: whether more work is welcome."""
        refuse_query(request)
        return answer_json({"ready": self._service.ready}, status=200 if self._service.ready else 503)

    @cached_property
    def _document(self) -> bytes:
        return to_bytes(describe_api(needs_token=self._needs_token))

    @cached_property
    def _page(self) -> bytes:
        return write_page(describe_api(needs_token=self._needs_token)).encode()
