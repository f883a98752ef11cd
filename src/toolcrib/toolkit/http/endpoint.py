"""Endpoint, one HTTP operation; the table of a feature's endpoints; and the OpenAPI document derived from the tables."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolcrib.lib import __version__
from toolcrib.model.errors import Kind
from toolcrib.toolkit.http import Answer, Request
from toolcrib.toolkit.http.contract import ANYTHING, REQUEST_ID, SWITCH, TEXT, Body, Place, RawBody, closed, ref, schema
from toolcrib.toolkit.http.problems import PROBLEMS, TITLES

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Iterator

    from toolcrib.model.call import Scope
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.contract import Parameter, Reply


# A method of the class whose instance `EndpointTable.make` gives.
Handler = Callable[[Any, Request], Awaitable[Answer]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """One HTTP operation.

    `path` has its parameters in braces; `aliases` are further paths with their operation ids. `scope` is the scope that a
    token needs; None makes the endpoint public. `refusals` are its own error statuses, besides those of every endpoint. With
    `is_call`, its problem details also have the keys of a failed Result.
    """

    name: str
    method: str
    path: str
    handler: Handler
    scope: Scope | None
    summary: str
    replies: Mapping[int, Reply]
    description: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)
    query: tuple[Parameter, ...] = ()
    headers: tuple[Parameter, ...] = ()
    body: Body | RawBody | None = None
    refusals: tuple[int, ...] = ()
    is_call: bool = False

    @property
    def names(self) -> Mapping[str, str]:
        """The name of the operation at each of its paths."""
        return {self.path: self.name, **self.aliases}


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointTable:
    """The endpoints of a feature, under one tag of OpenAPI.

    `make` creates the object with their handlers from a `Host`. `described` is False for endpoints of another protocol, which
    OpenAPI leaves out. `places` are the path parameters, and `schemas` those that replies and bodies refer to.
    """

    tag: str
    summary: str
    make: Callable[[Any], object]
    endpoints: tuple[Endpoint, ...]
    places: tuple[Parameter, ...] = ()
    schemas: Mapping[str, object] = field(default_factory=dict)
    described: bool = True


@dataclass(frozen=True, kw_only=True)
class Host:
    """What the handlers of endpoints are created from.

    `seconds` is the timeout of a request; `ending` is set when the server shuts down, to end long responses.
    """

    crib: Any  # a Crib, whose module is in a higher layer; each feature types the part that it uses
    threads: Threads
    ending: asyncio.Event
    seconds: float


JSON = "application/json"
ZIP = "application/zip"
BYTES: dict[str, object] = {**TEXT, "format": "binary"}
REASONS = {
    400: "The path, the query, a header or the body is invalid; `detail` says what to write.",
    401: "No token, or an invalid one.",
    403: "The token lacks the scope, the web page is not allowed, the resource is read-only, or a guard refused the call.",
    404: "Not found.",
    405: "The path does not have this method; `Allow` lists its methods.",
    409: "It exists already, is disabled, is being deleted, is not empty, or needs confirmation.",
    412: "It has changed; `details.etag` is its current ETag.",
    413: "Too large, or over a limit.",
    415: "The body is not of the type that the operation takes, or its Content-Type does not say so.",
    421: "The server does not have this host name.",
    429: "Too many requests or calls; retry after `Retry-After`.",
    500: "The server failed; its log has the reason under the request id.",
    503: "A lock timed out, or the server is shutting down; retry.",
}
EVERYWHERE = (400, 401, 403, 421, 429, 500, 503)
# Error statuses of a public endpoint.
PUBLIC = (400, 403, 421, 500)
BODIES = (413, 415)
_FREE_WORD = re.compile(r"{(\w+)}")

PROBLEM_REQUIRED = ("type", "title", "status", "detail", "instance", "kind", "retryable")
PROBLEM_KEYS: dict[str, object] = {
    "type": {**TEXT, "format": "uri-reference", "description": "Where the kind is described."},
    "title": TEXT,
    "status": {"type": "integer", "minimum": 400, "maximum": 599},
    "detail": {**TEXT, "description": "What is wrong, where, and how to fix it."},
    "instance": {**TEXT, "description": "The id of the request."},
    "kind": {"enum": [str(kind) for kind in Kind]},
    "retryable": {**SWITCH, "description": "Whether a retry may succeed."},
    "details": ANYTHING,
    PROBLEMS: {"type": "array", "items": TEXT, "description": "Every problem, one per item."},
}


def paths_of(tables: Iterable[EndpointTable]) -> dict[str, object]:
    """Every path with its operations."""
    paths: dict[str, dict[str, object]] = {}
    for table in tables:
        for endpoint in table.endpoints:
            for path, name in endpoint.names.items():
                paths.setdefault(path, {})[endpoint.method.lower()] = _operation(table, endpoint, path, name)
    return dict(paths)


def components_of(tables: Iterable[EndpointTable]) -> dict[str, object]:
    """The schemas, parameters, responses and headers that operations refer to."""
    schemas: dict[str, object] = {"Problem": closed(PROBLEM_REQUIRED, **PROBLEM_KEYS)}
    parameters: dict[str, object] = {}
    for table in tables:
        schemas |= table.schemas
        for parameter in _parameters(table):
            parameters[parameter.key] = _parameter(parameter)
        bodies = [endpoint.body for endpoint in table.endpoints]
        schemas |= {body.name: body.schema for body in bodies if isinstance(body, Body)}
    problems = {
        f"{prefix}{status}": _problem(status, name)
        for prefix, name in (("Problem", "Problem"), ("Call", "CallProblem"))
        for status in REASONS
    }
    return {"schemas": schemas, "parameters": parameters, "responses": problems, "headers": HEADERS}


def _operation(table: EndpointTable, endpoint: Endpoint, path: str, name: str) -> dict[str, object]:
    """The OpenAPI operation of an endpoint at one of its paths."""
    places = {parameter.name: parameter for parameter in table.places}
    free = [places[word] for word in _FREE_WORD.findall(path)]
    taken = [*free, *endpoint.query, *endpoint.headers]
    found: dict[str, object] = {"operationId": name, "tags": [table.tag], "summary": endpoint.summary}
    if endpoint.scope is None:
        found["security"] = [{}]
        if taken:
            found["parameters"] = [_use(parameter) for parameter in taken]
    else:
        found["description"] = f"{endpoint.description} Needs the scope `{endpoint.scope}`.".lstrip()
        found["parameters"] = [_use(parameter) for parameter in (*taken, REQUEST_ID)]
    if endpoint.body is not None:
        found["requestBody"] = _body(endpoint.body)
    found["responses"] = {
        **{str(status): ref("responses", problem) for status, problem in _refusals(endpoint)},
        **{str(status): _reply(reply) for status, reply in endpoint.replies.items()},
    }
    return found


def _refusals(endpoint: Endpoint) -> Iterator[tuple[int, str]]:
    everywhere = PUBLIC if endpoint.scope is None else EVERYWHERE
    prefix = "Call" if endpoint.is_call else "Problem"
    for status in sorted({*everywhere, *endpoint.refusals, *(BODIES if endpoint.body else ())}):
        yield status, f"{prefix}{status}"


def _body(body: Body | RawBody) -> dict[str, object]:
    if isinstance(body, RawBody):
        archive = {body.media_type: {"schema": BYTES}}
        return {"required": True, "description": body.description, "content": archive}
    content: dict[str, object] = {JSON: {"schema": schema(body.name), "example": body.example}}
    if body.yaml_example:
        content["application/yaml"] = {"schema": TEXT, "example": body.yaml_example}
    return {"required": not body.optional, "content": content}


def _reply(reply: Reply) -> dict[str, object]:
    found: dict[str, object] = {
        "description": reply.description,
        "headers": {header: ref("headers", header) for header in (*reply.headers, "X-Request-Id")},
    }
    if reply.schema or reply.media_type:
        found["content"] = {
            **({JSON: {"schema": schema(reply.schema)}} if reply.schema else {}),
            **({reply.media_type: {"schema": BYTES if reply.media_type == ZIP else TEXT}} if reply.media_type else {}),
        }
    return found if reply.links is None else {**found, "links": reply.links}


def _parameters(table: EndpointTable) -> Iterator[Parameter]:
    yield REQUEST_ID
    yield from table.places
    for endpoint in table.endpoints:
        yield from endpoint.query
        yield from endpoint.headers


def _parameter(parameter: Parameter) -> dict[str, object]:
    found: dict[str, object] = {
        "name": parameter.name,
        "in": str(parameter.place),
        "description": parameter.description,
        "schema": parameter.schema,
    }
    if parameter.place is Place.PATH:
        found["required"] = True
    if parameter.schema["type"] == "array":
        found |= {"style": "form", "explode": False}
    return found if parameter.example is None else {**found, "example": parameter.example}


def _use(parameter: Parameter) -> dict[str, object]:
    return ref("parameters", parameter.key)


def _problem(status: int, name: str) -> dict[str, object]:
    headers = {"X-Request-Id": ref("headers", "X-Request-Id")}
    own = {401: "WWW-Authenticate", 405: "Allow", 429: "Retry-After", 503: "Retry-After"}.get(status)
    if own is not None:
        headers[own] = ref("headers", own)
    return {
        "description": f"{TITLES[status]}. {REASONS[status]}",
        "headers": headers,
        "content": {"application/problem+json": {"schema": schema(name)}},
    }


def _header(description: str, **shape: object) -> dict[str, object]:
    return {"description": description, "schema": {"type": "string", **shape}}


HEADERS: dict[str, object] = {
    "Allow": _header("The methods of the path."),
    "Content-Disposition": _header("The name to save it under."),
    "ETag": _header("Changes whenever the resource does.", pattern='^"[!#-~]+"$'),
    "Location": _header("The URL of the new resource."),
    "Retry-After": {"description": "Seconds to wait before a retry.", "schema": {"type": "integer", "minimum": 1}},
    "WWW-Authenticate": _header("The kind of token that is needed."),
    "X-Request-Id": _header("The id of this request in logs and in the journal.", pattern="^[A-Za-z0-9._-]+$"),
}


DESCRIPTION = """\
Tools for agents: bundles of stored tools, tools made of outbound HTTP requests, calls of every tool, and requests for tools
that do not exist yet. Errors are problem details (RFC 9457) with a `kind` and a cure.

A call that is refused before the tool runs has a status of 400 or above. Once the tool runs the status is 200, and `ok` says
whether it succeeded.

Bodies are JSON objects of at most 1 MB, nested at most 64 levels deep, without duplicate keys and without NaN. Unknown query
parameters are refused.
"""


def describe_api(tables: tuple[EndpointTable, ...], *, needs_token: bool) -> dict[str, object]:
    """The OpenAPI document of a server; with `needs_token` even clients on its own machine need a token."""
    tables = tuple(table for table in tables if table.described)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Toolcrib",
            "version": __version__,
            "summary": "A tool platform for AI agents.",
            "description": DESCRIPTION,
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}] if needs_token else [{"token": []}, {}],
        "tags": [{"name": name, "description": summary} for name, summary in _tags(tables)],
        "paths": paths_of(tables),
        "components": {
            **components_of(tables),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token made with `crib token create`, with the scopes read, invoke, manage, approve or confirm. A server that "
                    "listens on loopback only needs none.",
                }
            },
        },
    }


def _tags(tables: tuple[EndpointTable, ...]) -> Iterable[tuple[str, str]]:
    """Each tag once, with the summary of its first table."""
    summaries: dict[str, str] = {}
    for table in tables:
        summaries.setdefault(table.tag, table.summary)
    return summaries.items()
