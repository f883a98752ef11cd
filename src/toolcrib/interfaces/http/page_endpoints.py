"""HTTP endpoints that are the same for every caller: the description of the API, metrics, and health for watchers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.interfaces.http.api_document import describe_api
from toolcrib.interfaces.http.docs_page import STYLE_HASH, write_page
from toolcrib.interfaces.http.server_state import CONTENT_TYPE
from toolcrib.model.access import Scope
from toolcrib.toolkit.http.contract import SWITCH, Reply, closed
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable
from toolcrib.toolkit.http.messages import Answer, answer_json, to_bytes

if TYPE_CHECKING:
    from toolcrib.interfaces.http.host import HttpHost
    from toolcrib.interfaces.http.server_state import Service
    from toolcrib.toolkit.http.messages import Request

HTML = b"text/html; charset=utf-8"
PAGE_POLICY = (
    f"default-src 'none'; style-src '{STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
).encode()


class PageEndpoints:
    """The description of the API, the page made of it, figures, and whether the server is well."""

    def __init__(self, service: Service, tables: tuple[EndpointTable, ...], *, needs_token: bool) -> None:
        self._service = service
        self._tables = tables
        self._needs_token = needs_token

    async def openapi(self, request: Request) -> Answer:
        """GET /openapi.json."""
        return Answer(body=self._document)

    async def docs(self, request: Request) -> Answer:
        """GET /docs."""
        return Answer(body=self._page, content_type=HTML, policy=PAGE_POLICY)

    async def metrics(self, request: Request) -> Answer:
        """GET /metrics."""
        return Answer(body=self._service.metrics_text().encode(), content_type=CONTENT_TYPE.encode())

    async def alive(self, request: Request) -> Answer:
        """GET /healthz: any answer says that the server lives."""
        return answer_json({"alive": True})

    async def ready(self, request: Request) -> Answer:
        """GET /readyz: whether the server takes on work."""
        return answer_json({"ready": self._service.ready}, status=200 if self._service.ready else 503)

    @cached_property
    def _document(self) -> bytes:
        return to_bytes(describe_api(self._tables, needs_token=self._needs_token))

    @cached_property
    def _page(self) -> bytes:
        return write_page(describe_api(self._tables, needs_token=self._needs_token)).encode()


def _page_endpoints(host: HttpHost) -> PageEndpoints:
    return PageEndpoints(host.service, host.tables, needs_token=host.needs_token)


PAGE_ENDPOINTS = EndpointTable(
    tag="overview",
    summary="What there is, results that were kept aside, and how the server is.",
    make=_page_endpoints,
    schemas={
        "Alive": closed(("alive",), alive={"const": True}),
        "Ready": closed(("ready",), ready=SWITCH),
        "Document": {"type": "object", "required": ["openapi", "paths"]},
    },
    endpoints=(
        Endpoint(
            name="readDescription",
            method="GET",
            path="/openapi.json",
            handler=PageEndpoints.openapi,
            scope=Scope.READ,
            summary="Read this description.",
            replies={200: Reply(description="This description.", schema="Document")},
        ),
        Endpoint(
            name="readDocs",
            method="GET",
            path="/docs",
            handler=PageEndpoints.docs,
            scope=Scope.READ,
            summary="Read this description as a page.",
            replies={200: Reply(description="The page.", media_type="text/html")},
        ),
        Endpoint(
            name="readMetrics",
            method="GET",
            path="/metrics",
            handler=PageEndpoints.metrics,
            scope=Scope.READ,
            summary="Read what the server counts, in the text format of Prometheus.",
            replies={200: Reply(description="The figures.", media_type="text/plain")},
        ),
        Endpoint(
            name="readAlive",
            method="GET",
            path="/healthz",
            handler=PageEndpoints.alive,
            scope=None,
            summary="Whether the server lives.",
            replies={200: Reply(description="It does.", schema="Alive")},
        ),
        Endpoint(
            name="readReady",
            method="GET",
            path="/readyz",
            handler=PageEndpoints.ready,
            scope=None,
            summary="Whether the server takes on work.",
            replies={
                200: Reply(description="It does.", schema="Ready"),
                503: Reply(description="It is ending.", schema="Ready"),
            },
        ),
    ),
)
