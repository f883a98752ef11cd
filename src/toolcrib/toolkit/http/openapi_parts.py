"""Parameters of paths, queries and headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.requests.endpoints import LISTED, MAX_NUMBER, MAX_WAIT_SECONDS, NUMBER
from toolcrib.features.requests.tracker import MAX_LISTED as MAX_LISTED_REQUESTS
from toolcrib.model.toolrequest import Status
from toolcrib.toolkit.http.problems import TITLES
from toolcrib.toolkit.http.request_data import MAX_LISTED, MAX_PAGE, MAX_TEXT, MAX_TOKEN

if TYPE_CHECKING:
    from collections.abc import Mapping


# MERGED toolcrib.faces.http.openapi.shapes

# What schemas are made of.

TEXT: dict[str, object] = {"type": "string"}
SWITCH: dict[str, object] = {"type": "boolean"}
ANYTHING: dict[str, object] = {"type": "object", "additionalProperties": True}
WHOLE: dict[str, object] = {"type": "integer", "minimum": 0}
OPTIONAL_TIME: dict[str, object] = {"type": ["string", "null"], "format": "date-time"}
OPTIONAL_TEXT: dict[str, object] = {"type": ["string", "null"]}
OPTIONAL_WHOLE: dict[str, object] = {"type": ["integer", "null"], "minimum": 1, "maximum": 2**31 - 1}


def closed(required: tuple[str, ...] = (), **properties: object) -> dict[str, object]:
    """An object that has no other keys than these."""
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


def open_to_more(required: tuple[str, ...] = (), **properties: object) -> dict[str, object]:
    """An object that may have further keys."""
    return {**closed(required, **properties), "additionalProperties": True}


# MERGED toolcrib.faces.http.openapi.answers

# Answers that many operations share, and their headers.

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

UUID7 = "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$"
SLUG = r"^[\p{L}\p{Nd}-]{1,64}$"
# Of at most 64 letters, and not of dots alone.
VERSION = r"^\.*[\p{L}\p{Nd}-][\p{L}\p{Nd}.-]*$"
ETAGS = r'^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$'
BUNDLE_ID = "018faf50-b7b6-7a01-9a05-a22a6e0af101"


def parameter(
    name: str, place: str, description: str, schema: dict[str, object], *, example: object = None, **more: object
) -> dict[str, object]:
    """One parameter."""
    found: dict[str, object] = {"name": name, "in": place, "description": description, "schema": schema, **more}
    if place == "path":
        found["required"] = True
    return found if example is None else {**found, "example": example}


def switch(name: str, description: str) -> dict[str, object]:
    """A parameter that is on or off; off where it is absent."""
    return parameter(name, "query", description, {"type": "boolean", "default": False})


def whole(name: str, description: str, least: int, most: int | None, default: int | None = None) -> dict[str, object]:
    """A parameter that is a whole number."""
    schema: dict[str, object] = {"type": "integer", "minimum": least}
    schema |= {} if most is None else {"maximum": most}
    schema |= {} if default is None else {"default": default}
    return parameter(name, "query", description, schema)


def words(name: str, description: str, items: dict[str, object]) -> dict[str, object]:
    """A parameter that is a list, written with commas or repeated."""
    schema: dict[str, object] = {"type": "array", "items": items, "minItems": 1, "maxItems": MAX_LISTED}
    return parameter(name, "query", f"{description} With commas, or repeated.", schema, style="form", explode=False)


PARAMETERS: dict[str, object] = {
    "bundleID": parameter(
        "bundleID",
        "path",
        "The id of the bundle: a UUID of version 7.",
        {"type": "string", "pattern": UUID7},
        example=BUNDLE_ID,
    ),
    "toolSlug": parameter(
        "toolSlug",
        "path",
        "1 to 64 Unicode letters, digits and dashes; upper and lower case differ.",
        {"type": "string", "pattern": SLUG},
        example="weather",
    ),
    "version": parameter(
        "version",
        "path",
        "An opaque label: 1 to 64 Unicode letters, digits, dashes and dots, but not dots alone.",
        {"type": "string", "pattern": VERSION, "maxLength": 64},
        example="v2",
    ),
    "sessionID": parameter(
        "sessionID",
        "path",
        "The id that the session was opened with.",
        {"type": "string", "minLength": 1, "maxLength": 64},
        example="5f0c1d2e3b4a59687786a5b4",
    ),
    "handle": parameter(
        "handle",
        "path",
        "The handle in `meta.kept` of the result.",
        {"type": "string", "pattern": "^[0-9a-f]+$", "maxLength": 64},
        example="0000000068f0a1c3d4e5f60718293a4b5c6d7e8f90a1b2c3",
    ),
    "toolRequestID": parameter(
        "requestID",
        "path",
        "The id of the request for a tool.",
        {"type": "string", "minLength": 1, "maxLength": 200},
        example="req_20240115_001",
    ),
    "bundleIDs": words("bundleIDs", "Only these bundles.", {"type": "string", "pattern": UUID7}),
    "tags": words("tags", "Only tools that have all of these tags.", {"type": "string", "pattern": "^[^,]+$"}),
    "includeDisabled": switch("includeDisabled", "Also what is switched off."),
    "executors": switch("executors", "What executes tools, in place of the tools."),
    "pageSize": whole("pageSize", "How many at most.", 1, MAX_PAGE),
    "recommendedPageSize": whole("recommendedPageSize", "How many, about; never more than 256.", 1, 10**15 - 1),
    "sameAsRecommendedPageSize": whole("pageSize", "Another word for recommendedPageSize.", 1, 10**15 - 1),
    "pageToken": parameter(
        "pageToken",
        "query",
        "`nextPageToken` of the page before, with the other parameters as they were.",
        {"type": "string", "maxLength": MAX_TOKEN},
    ),
    "q": parameter(
        "q", "query", "What was typed.", {"type": "string", "pattern": r"\S", "maxLength": MAX_TEXT}, example="wea"
    ),
    "question": parameter(
        "question",
        "query",
        "A question in plain words, in place of `q`.",
        {"type": "string", "pattern": r"\S", "maxLength": MAX_TEXT},
    ),
    "name": parameter(
        "name",
        "query",
        "Only the tool that this name, slug or address means.",
        {"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
    ),
    "requestStatus": parameter(
        "status", "query", "Only requests of this status.", {"type": "string", "enum": [str(word) for word in Status]}
    ),
    "limit": whole("limit", "How many of the newest at most.", 1, MAX_LISTED_REQUESTS, LISTED),
    "strict": switch("strict", "Refuse what is only readable with warnings."),
    "after": whole("after", "Only what happened behind the event of this number.", 0, MAX_NUMBER, 0),
    "wait": whole(
        "wait", "How many seconds to wait for something to tell, if there is nothing.", 0, MAX_WAIT_SECONDS, 0
    ),
    "lastEventID": parameter(
        "Last-Event-ID",
        "header",
        "The id of the last event that was heard: those behind it are told.",
        {"type": "string", "pattern": f"^{NUMBER.pattern}$"},
    ),
    "ifMatch": parameter(
        "If-Match", "header", "Change it only if this is still its ETag.", {"type": "string", "pattern": ETAGS}
    ),
    "ifNoneMatch": parameter(
        "If-None-Match", "header", "Answer 304 if this is still its ETag.", {"type": "string", "pattern": ETAGS}
    ),
    "onlyNew": parameter(
        "If-None-Match", "header", "Make it only if it is not there yet.", {"type": "string", "enum": ["*"]}
    ),
    "requestID": parameter(
        "X-Request-Id",
        "header",
        "How to name this request in answers, logs and the journal: up to 64 ASCII letters, digits, '.', '_' and '-'. "
        "For any other text an id is made.",
        {"type": "string"},
    ),
}


def use(*names: str) -> list[dict[str, object]]:
    """References to parameters."""
    return [{"$ref": f"#/components/parameters/{name}"} for name in names]


# MERGED toolcrib.faces.http.openapi.operations

# How one operation is written down.


def operation(
    name: str,
    tag: str,
    summary: str,
    *,
    scope: str,
    answers: Mapping[str, object],
    parameters: tuple[str, ...] = (),
    refusals: tuple[int, ...] = (),
    body: str = "",
    example: object = None,
    yaml_example: str = "",
    needs_body: bool = True,
    of_call: bool = False,
    description: str = "",
) -> dict[str, object]:
    """An operation: what it takes, what it answers, and which scope its token needs."""
    found: dict[str, object] = {
        "operationId": name,
        "tags": [tag],
        "summary": summary,
        "description": f"{description} Needs the scope `{scope}`.".lstrip(),
        "parameters": use(*parameters, "requestID"),
        "responses": {**answers, **problems(*refusals, *(BODIES if body else ()), of_call=of_call)},
    }
    if body:
        content: dict[str, object] = {"schema": schema(body)}
        content |= {} if example is None else {"example": example}
        contents: dict[str, object] = {"application/json": content}
        if yaml_example:
            contents["application/yaml"] = {"schema": {"type": "string"}, "example": yaml_example}
        found["requestBody"] = {"required": needs_body, "content": contents}
    return found
