"""Parameters of paths, queries and headers."""

from __future__ import annotations

from toolcrib.crib.requests import MAX_LISTED as MAX_LISTED_REQUESTS
from toolcrib.faces.http.queries import MAX_LISTED, MAX_PAGE, MAX_TEXT, MAX_TOKEN
from toolcrib.faces.http.requests import LISTED, MAX_NUMBER, MAX_WAIT_SECONDS, NUMBER
from toolcrib.model.toolrequest import Status

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
