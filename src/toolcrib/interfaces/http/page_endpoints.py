"""HTTP endpoints that are the same for every caller: OpenAPI document, docs page, metrics, liveness and readiness."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, cast

from toolcrib.core.sources import current_view
from toolcrib.interfaces.http.server_state import CONTENT_TYPE, OTHERS, UNKNOWN
from toolcrib.lib.documents import write_json
from toolcrib.model.call import Scope
from toolcrib.model.errors import Kind
from toolcrib.toolkit.http import Answer, answer_json
from toolcrib.toolkit.http.contract import SWITCH, Reply, closed
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable, describe_api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolcrib.interfaces.http.server_state import HttpHost, Service
    from toolcrib.toolkit.http import Request

    Json = Mapping[str, object]


STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid; }
h3 code { overflow-wrap: anywhere; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; }
pre { overflow-x: auto; padding: .8rem; border: 1px solid; border-radius: .3rem; }
"""
STYLE_HASH = f"sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}"

KINDS = {
    Kind.VALIDATION: "The request is invalid.",
    Kind.NOT_FOUND: "Not found.",
    Kind.INTERNAL: "An internal error; the log of the server has the reason.",
    Kind.MODE_RESTRICTED: "The tool may not be called in this mode.",
    Kind.BUDGET_EXCEEDED: "The session has no calls left.",
    Kind.CONFIRMATION_REQUIRED: "The call needs confirmation; send the token of its details with the same call.",
    Kind.SESSION_INACTIVE: "The session is over, or is not the caller's.",
    Kind.TRANSIENT: "A temporary failure; retry later.",
    Kind.PERMANENT: "A permanent failure; a retry does not help.",
    Kind.RATE_LIMIT: "Too many calls in a minute.",
    Kind.AUTH: "The caller is unknown, or lacks the permission.",
    Kind.CONFLICT: "It exists already, has changed, or is in use.",
    Kind.BLOCKED: "A rule refused it, or it is read-only.",
    Kind.DISABLED: "The tool or its bundle is disabled.",
    Kind.CAPABILITY_MISSING: "The tool needs a capability that is not granted.",
    Kind.TIMEOUT: "The time limit was reached; side effects may remain.",
    Kind.OUTPUT_INVALID: "The result does not match the output schema of the tool.",
    Kind.HOST_NOT_ALLOWED: "The tool may not reach this host, or the Host header is not a name of this server.",
    Kind.LIMIT_EXCEEDED: "A limit was exceeded.",
    Kind.EXECUTOR_NOT_FOUND: "The executor of the tool does not exist.",
    Kind.CIRCULAR_DEPENDENCY: "The executors of the tool form a cycle.",
    Kind.CHAIN_TOO_DEEP: "The executor chain or the nesting of calls is too deep.",
    Kind.LOOP_DETECTED: "The same call was made too often.",
    Kind.SANDBOX_UNAVAILABLE: "The sandbox cannot give the guarantees that the settings require.",
    Kind.OVERLOADED: "The server is overloaded.",
    Kind.CANCELLED: "The call was cancelled before it finished.",
}


def write_page(document: Json) -> str:
    """The page of an OpenAPI document."""
    info = _object(document["info"])
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{_text(info['title'])}</title>",
            f"<style>{STYLE}</style></head><body>",
            f"<h1>{_text(info['title'])} {_text(info['version'])}</h1>",
            *(f"<p>{_text(part)}</p>" for part in str(info["description"]).split("\n\n")),
            '<p>For machines: <a href="/openapi.json">/openapi.json</a></p>',
            *_write_operations(document),
            *_write_kinds(),
            "</body></html>",
        ]
    )


def _write_operations(document: Json) -> Iterator[str]:
    for tag in _objects(document["tags"]):
        yield f"<h2>{_text(tag['name'])}</h2><p>{_text(tag['description'])}</p>"
        for path, methods in _object(document["paths"]).items():
            for method, operation in _object(methods).items():
                if tag["name"] in cast("list[str]", _object(operation)["tags"]):
                    yield from _write_operation(document, path, method, _object(operation))


def _write_operation(document: Json, path: str, method: str, operation: Json) -> Iterator[str]:
    name = _text(operation["operationId"])
    yield f'<h3 id="{name}"><span class="method">{_text(method.upper())}</span> <code>{_text(path)}</code></h3>'
    yield f"<p>{_text(operation['summary'])} {_text(operation.get('description', ''))}</p>"
    if parameters := [_resolve(document, part) for part in _objects(operation.get("parameters", []))]:
        rows = (
            f"<tr><td><code>{_text(part['name'])}</code></td><td>{_text(part['in'])}</td>"
            f"<td>{_text(part['description'])}</td></tr>"
            for part in parameters
        )
        yield f"<table>{''.join(rows)}</table>"
    if body := operation.get("requestBody"):
        content = _object(_object(body)["content"])
        if "application/json" in content:
            example = _object(content["application/json"]).get("example", {})
            yield f"<p>Body:</p><pre>{_text(json.dumps(example, indent=2))}</pre>"
        else:
            yield f"<p>Body: {_text(', '.join(content))}. {_text(_object(body).get('description', ''))}</p>"
    rows = (
        f"<tr><td><code>{_text(status)}</code></td><td>{_text(_resolve(document, _object(found))['description'])}</td></tr>"
        for status, found in sorted(_object(operation["responses"]).items())
    )
    yield f"<table>{''.join(rows)}</table>"


def _write_kinds() -> Iterator[str]:
    yield "<h2>kinds of problems</h2>"
    for kind, meaning in KINDS.items():
        yield f'<p id="{_text(kind)}"><code>{_text(kind)}</code> {_text(meaning)}</p>'


def _resolve(document: Json, part: Json) -> Json:
    """Resolve a reference; anything else is returned unchanged."""
    reference = part.get("$ref")
    if not isinstance(reference, str):
        return part
    found = document
    for word in reference.removeprefix("#/").split("/"):
        found = _object(found[word])
    return found


def _object(value: object) -> Json:
    return cast("Json", value)


def _objects(value: object) -> list[Json]:
    return cast("list[Json]", value)


def _text(value: object) -> str:
    return escape(str(value))


HTML = b"text/html; charset=utf-8"
PAGE_POLICY = (
    f"default-src 'none'; style-src '{STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
).encode()


class PageEndpoints:
    """The OpenAPI document, the docs page, metrics, liveness and readiness."""

    def __init__(
        self,
        service: Service,
        tables: tuple[EndpointTable, ...],
        find: Callable[[str], object | None],
        *,
        needs_token: bool,
    ) -> None:
        self._service = service
        self._find = find
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
        text = self._service.metrics_text() if current_view() is None else self._service.metrics_text(self._is_shown)
        return Answer(body=text.encode(), content_type=CONTENT_TYPE.encode())

    async def alive(self, request: Request) -> Answer:
        """GET /healthz: liveness."""
        return answer_json({"alive": True})

    async def ready(self, request: Request) -> Answer:
        """GET /readyz: readiness; 503 until all tools were listed once, and while the server shuts down."""
        return answer_json({"ready": self._service.ready}, status=200 if self._service.ready else 503)

    def _is_shown(self, label: str) -> bool:
        return label in {OTHERS, UNKNOWN} or self._find(label) is not None

    @cached_property
    def _document(self) -> bytes:
        return write_json(describe_api(self._tables, needs_token=self._needs_token))

    @cached_property
    def _page(self) -> bytes:
        return write_page(describe_api(self._tables, needs_token=self._needs_token)).encode()


def _page_endpoints(host: HttpHost) -> PageEndpoints:
    return PageEndpoints(host.service, host.tables, host.crib.find, needs_token=host.needs_token)


PAGE_ENDPOINTS = EndpointTable(
    tag="overview",
    summary="All tools, stored results, and the health of the server.",
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
            summary="Read the OpenAPI document.",
            replies={200: Reply(description="The OpenAPI document.", schema="Document")},
        ),
        Endpoint(
            name="readDocs",
            method="GET",
            path="/docs",
            handler=PageEndpoints.docs,
            scope=Scope.READ,
            summary="Read the API documentation as a page.",
            replies={200: Reply(description="The page.", media_type="text/html")},
        ),
        Endpoint(
            name="readMetrics",
            method="GET",
            path="/metrics",
            handler=PageEndpoints.metrics,
            scope=Scope.READ,
            summary="Read the metrics, in the text format of Prometheus.",
            replies={200: Reply(description="The metrics.", media_type="text/plain")},
        ),
        Endpoint(
            name="readAlive",
            method="GET",
            path="/healthz",
            handler=PageEndpoints.alive,
            scope=None,
            summary="Check that the server is alive.",
            replies={200: Reply(description="It is alive.", schema="Alive")},
        ),
        Endpoint(
            name="readReady",
            method="GET",
            path="/readyz",
            handler=PageEndpoints.ready,
            scope=None,
            summary="Check that the server is ready for requests.",
            replies={
                200: Reply(description="It is ready.", schema="Ready"),
                503: Reply(description="It is still listing its tools, or shutting down.", schema="Ready"),
            },
        ),
    ),
)
endpoints = (PAGE_ENDPOINTS,)
