"""Answers that many operations share, and their headers."""

from __future__ import annotations

from toolcrib.faces.http.problems import TITLES

REASONS = {
    400: "The path, the query, a header or the body is not what it should be; `detail` says what to write.",
    401: "No token, or one that does not hold.",
    403: "The token may not do this, the web page may not call, the thing is read-only, or a guard refused the call.",
    404: "There is nothing by this name.",
    405: "The method is not for this path; `Allow` names those that are.",
    409: "It exists already, is switched off, is being deleted, is not empty, or waits for a confirmation.",
    412: "It has changed since; `details.etag` is what it is now.",
    413: "Too large, or more than the limits allow.",
    415: "The body is no JSON, or does not say so.",
    421: "The server does not go by this name.",
    429: "Too many requests or calls; `Retry-After` says when to come again.",
    500: "The server failed; its log has the reason under the id of the request.",
    503: "A lock was not to be had in time, or the server is ending; come again.",
}
EVERYWHERE = (400, 401, 403, 421, 429, 500, 503)
BODIES = (413, 415)


def ref(kind: str, name: str) -> dict[str, object]:
    """A reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


def schema(name: str) -> dict[str, object]:
    """A reference to a schema."""
    return ref("schemas", name)


def answer(
    description: str,
    name: str | None = None,
    *,
    headers: tuple[str, ...] = (),
    links: dict[str, object] | None = None,
    example: object = None,
) -> dict[str, object]:
    """A successful answer, of a schema if it has a body."""
    shown = {header: ref("headers", header) for header in (*headers, "X-Request-Id")}
    found: dict[str, object] = {"description": description, "headers": shown}
    if name is not None:
        content: dict[str, object] = {"schema": schema(name)}
        found["content"] = {"application/json": content if example is None else {**content, "example": example}}
    return found if links is None else {**found, "links": links}


def problems(*statuses: int, of_call: bool = False) -> dict[str, object]:
    """The answers to what goes wrong."""
    prefix = "Call" if of_call else "Problem"
    return {str(status): ref("responses", f"{prefix}{status}") for status in sorted({*EVERYWHERE, *statuses})}


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


RESPONSES: dict[str, object] = {
    **{f"Problem{status}": _problem(status, "Problem") for status in REASONS},
    **{f"Call{status}": _problem(status, "CallProblem") for status in REASONS},
}


def _header(description: str, **shape: object) -> dict[str, object]:
    return {"description": description, "schema": {"type": "string", **shape}}


HEADERS: dict[str, object] = {
    "Allow": _header("The methods of the path."),
    "ETag": _header("Another one whenever it is changed.", pattern='^"[!#-~]+"$'),
    "Location": _header("Where the new thing is."),
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}},
    "WWW-Authenticate": _header("What kind of token is wanted."),
    "X-Request-Id": _header("How this request is named in logs and in the journal.", pattern="^[A-Za-z0-9._-]+$"),
}
