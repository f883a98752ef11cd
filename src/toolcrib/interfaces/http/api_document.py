"""The shapes of what is sent and answered."""

from __future__ import annotations

from toolcrib.features.bundles.endpoints import BUNDLE_PATHS
from toolcrib.features.bundles.openapi import TOOL_PATHS, TOOL_SCHEMAS
from toolcrib.features.requests.openapi import REQUEST_PATHS, REQUEST_SCHEMAS
from toolcrib.interfaces.http.api_paths import CALL_PATHS, OVERVIEW_PATHS
from toolcrib.lib.version import __version__
from toolcrib.model.errors import Kind
from toolcrib.model.session import MODES
from toolcrib.toolkit.http.openapi_parts import (
    ANYTHING,
    HEADERS,
    OPTIONAL_TEXT,
    OPTIONAL_TIME,
    OPTIONAL_WHOLE,
    PARAMETERS,
    RESPONSES,
    SLUG,
    SWITCH,
    TEXT,
    UUID7,
    VERSION,
    WHOLE,
    closed,
    open_to_more,
    schema,
)
from toolcrib.toolkit.http.problems import PROBLEMS

ASKED_FOR: dict[str, object] = {
    **TEXT,
    "description": "The request for the tool that was searched for in vain, where such requests are filed.",
}


def page(key: str, item: str, **more: object) -> dict[str, object]:
    """Some of many, and the token that asks for the next ones."""
    token = {**OPTIONAL_TEXT, "description": "Asks for the next page; null behind the last."}
    items = {"type": "array", "items": schema(item)}
    return closed((key, "nextPageToken"), **{key: items, "nextPageToken": token}, **more)


PROBLEM_KEYS: dict[str, object] = {
    "type": {**TEXT, "format": "uri-reference", "description": "Where the kind is described."},
    "title": TEXT,
    "status": {"type": "integer", "minimum": 400, "maximum": 599},
    "detail": {**TEXT, "description": "What is wrong, where, and what to do about it."},
    "instance": {**TEXT, "description": "The id of the request."},
    "kind": {"enum": [str(kind) for kind in Kind]},
    "retryable": {**SWITCH, "description": "Whether the same may work later."},
    "details": ANYTHING,
    PROBLEMS: {"type": "array", "items": TEXT, "description": "Everything that is wrong, one by one."},
}
PROBLEM_REQUIRED = ("type", "title", "status", "detail", "instance", "kind", "retryable")

RESULT_KEYS: dict[str, object] = {
    "intents": {"type": "array", "items": schema("Intent"), "description": "What the tool asks the host to do next."},
    "meta": {**ANYTHING, "description": "callId, tool, version, durationMs, and what else is known of the call."},
}
CALL_KEYS: dict[str, object] = {
    "args": {**ANYTHING, "description": "The arguments, as `argSchema` of the tool says; absent means none."},
    "confirmation": {**OPTIONAL_TEXT, "description": "The token of `error.details.confirmation` of the same call."},
    "mode": {"type": ["string", "null"], "description": "The mode of the call, else that of its session."},
    "session": {**OPTIONAL_TEXT, "description": "The id of a session that the caller opened."},
}

SCHEMAS: dict[str, object] = {
    "BundleBody": closed(
        ("slug", "displayName", "isEnabled"),
        slug={**TEXT, "pattern": SLUG},
        displayName={**TEXT, "minLength": 1, "maxLength": 256, "pattern": r"\S"},
        description={**TEXT, "maxLength": 10_000},
        isEnabled=SWITCH,
        bundleID={**TEXT, "pattern": UUID7, "description": "As in the path, or absent."},
        isBuiltIn={"const": False},
        **{
            name: {"description": "Accepted as it was read, and not taken over."}
            for name in ("source", "schemaVersion", "createdAt", "modifiedAt", "toggledAt", "softDeletedAt")
        },
    ),
    "Bundle": closed(
        (
            *("schemaVersion", "bundleID", "slug", "displayName", "description", "isEnabled", "isBuiltIn", "source"),
            *("createdAt", "modifiedAt", "toggledAt", "softDeletedAt"),
        ),
        schemaVersion=TEXT,
        bundleID={**TEXT, "pattern": UUID7},
        slug=TEXT,
        displayName=TEXT,
        description=TEXT,
        isEnabled=SWITCH,
        isBuiltIn=SWITCH,
        source={"enum": ["store", "files", "host", "builtin"]},
        createdAt=OPTIONAL_TIME,
        modifiedAt=OPTIONAL_TIME,
        toggledAt=OPTIONAL_TIME,
        softDeletedAt=OPTIONAL_TIME,
    ),
    "Switch": closed(("isEnabled",), isEnabled=SWITCH),
    "BundlePage": page("bundles", "Bundle"),
    "ToolPage": page("tools", "Tool"),
    "FoundPage": page("tools", "FoundTool", requestID=ASKED_FOR),
    "FactsPage": page("tools", "Facts", requestID=ASKED_FOR),
    **TOOL_SCHEMAS,
    **REQUEST_SCHEMAS,
    "Tool": open_to_more(
        (
            *("schemaVersion", "bundleID", "bundleSlug", "toolID", "slug", "version", "isEnabled", "isBuiltIn"),
            *("source", "effectiveEnabled", "disabledReason", "createdAt", "modifiedAt", "toggledAt"),
            *("callCount", "lastCalledAt", "warnings"),
        ),
        schemaVersion=TEXT,
        bundleID={**TEXT, "pattern": UUID7},
        bundleSlug=TEXT,
        toolID={**TEXT, "pattern": UUID7},
        slug={**TEXT, "pattern": SLUG},
        version={**TEXT, "pattern": VERSION},
        displayName=TEXT,
        description=TEXT,
        type={"enum": ["go", "http"]},
        isEnabled={**SWITCH, "description": "Its own switch."},
        isBuiltIn=SWITCH,
        effectiveEnabled={**SWITCH, "description": "Whether a call would find it switched on."},
        disabledReason={**TEXT, "description": "Why it would not; empty if it would."},
        source={**TEXT, "description": "Who keeps it, or the kind of file it is written down in."},
        argSchema=ANYTHING,
        outputSchema=ANYTHING,
        impl=ANYTHING,
        tags={"type": "array", "items": TEXT},
        createdAt=OPTIONAL_TIME,
        modifiedAt=OPTIONAL_TIME,
        toggledAt=OPTIONAL_TIME,
        callCount=WHOLE,
        lastCalledAt=OPTIONAL_TIME,
        warnings={"type": "array", "items": TEXT},
    ),
    "FoundTool": {
        "allOf": [
            schema("Tool"),
            {
                "type": "object",
                "required": ["match", "score"],
                "properties": {
                    "match": {"enum": ["prefix", "word", "fuzzy", "relevance"]},
                    "score": {"type": "number"},
                },
            },
        ]
    },
    "InvokeBody": closed((), **CALL_KEYS),
    "CallBody": closed(
        ("name",),
        name={**TEXT, "minLength": 1, "maxLength": 1_000, "description": "A name, a slug, or bundle/name@version."},
        bundle={**OPTIONAL_TEXT, "description": "The slug or id of its bundle."},
        version=OPTIONAL_TEXT,
        **CALL_KEYS,
    ),
    "Intent": open_to_more(("type",), type=TEXT),
    "Error": closed(
        ("type", "message", "retryable", "partialSideEffects", "details"),
        type={"enum": [str(kind) for kind in Kind]},
        message=TEXT,
        retryable=SWITCH,
        partialSideEffects={**SWITCH, "description": "Whether something may have been changed."},
        details={**ANYTHING, "description": "What else is known; `partialValue` is what the tool had achieved."},
    ),
    "CallResult": {
        "oneOf": [
            closed(("ok", "value", "intents", "meta"), ok={"const": True}, value={}, **RESULT_KEYS),
            closed(("ok", "error", "intents", "meta"), ok={"const": False}, error=schema("Error"), **RESULT_KEYS),
        ]
    },
    "Problem": closed(PROBLEM_REQUIRED, **PROBLEM_KEYS),
    "CallProblem": closed(
        (*PROBLEM_REQUIRED, "ok", "error", "intents", "meta"),
        ok={"const": False},
        error=schema("Error"),
        **PROBLEM_KEYS,
        **RESULT_KEYS,
    ),
    "Explanation": closed(
        ("tool", "allowed", "findings"),
        tool=TEXT,
        allowed=SWITCH,
        findings={"type": "array", "items": schema("Finding")},
    ),
    "Finding": closed(
        ("gate", "decision"),
        gate=TEXT,
        decision={"enum": ["allow", "confirm", "deny", "not reached"]},
        reason=TEXT,
        rule=TEXT,
        where=TEXT,
        cure=TEXT,
        kind={"enum": [str(kind) for kind in Kind]},
        details=ANYTHING,
    ),
    "SessionBody": closed(
        (),
        mode={"enum": [*sorted(MODES), None]},
        maxCalls={**OPTIONAL_WHOLE, "description": "How many calls in all; no more than the operator allows."},
        maxTurnCalls=OPTIONAL_WHOLE,
        maxTurnRetrievals=OPTIONAL_WHOLE,
        maxRepeats=OPTIONAL_WHOLE,
    ),
    "Session": closed(
        ("id", "mode", "calls", "maxCalls", "expiresAt"),
        id=TEXT,
        mode={"enum": sorted(MODES)},
        calls=WHOLE,
        maxCalls={"type": ["integer", "null"], "minimum": 0},
        expiresAt={**TEXT, "format": "date-time"},
    ),
    "Nothing": closed(()),
    "Facts": open_to_more(("name", "address", "enabled"), name=TEXT, address=TEXT, enabled=SWITCH, description=TEXT),
    "Piece": closed(
        ("text", "offset", "total", "next"),
        text=TEXT,
        offset=WHOLE,
        total=WHOLE,
        next={"type": ["integer", "null"], "description": "Where the next piece begins; null at the end."},
    ),
    "Health": closed(
        ("ready", "version", "schemaVersion", "problems", "queue"),
        ready=SWITCH,
        version=TEXT,
        schemaVersion=TEXT,
        problems={"type": "array", "items": TEXT, "description": "What could not be loaded."},
        queue={**OPTIONAL_TEXT, "description": "Why the server of `queue_url` keeps no requests."},
    ),
    "Alive": closed(("alive",), alive={"const": True}),
    "Ready": closed(("ready",), ready=SWITCH),
    "Document": {"type": "object", "required": ["openapi", "paths"]},
}


# MERGED toolcrib.faces.http.openapi.document

# The whole description, put together.

DESCRIPTION = """\
Tools for agents: bundles of tools that many programs share, tools made of outbound HTTP calls, and calls of every tool
there is; and a tool that is missing can be asked for. What goes wrong is told as problem details (RFC 9457) with a `kind` and a cure.

A call that was refused before anything ran answers with a status from 400 on. From the moment a tool runs the status is
200 and `ok` says whether it did what was asked.

Bodies are JSON objects of at most 1 MB, nested no deeper than 64 levels, without equal keys and without NaN. Unknown query
parameters are refused.
"""

TAGS = [
    {"name": "bundles", "description": "Containers of tools, each with one switch."},
    {"name": "tools", "description": "Tools in bundles: write, read, switch, delete, list, search."},
    {"name": "calls", "description": "Calls of tools, by place or by name, and sessions that calls share."},
    {"name": "requests", "description": "Tools that do not exist yet: ask for one, follow it, deliver it."},
    {"name": "overview", "description": "What there is, results that were kept aside, and how the server is."},
]


def describe_api(*, needs_token: bool) -> dict[str, object]:
    """The OpenAPI document of a server that asks everybody for a token, or not those on its own machine."""
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
        "tags": TAGS,
        "paths": {**BUNDLE_PATHS, **TOOL_PATHS, **CALL_PATHS, **REQUEST_PATHS, **OVERVIEW_PATHS},
        "components": {
            "schemas": SCHEMAS,
            "parameters": PARAMETERS,
            "responses": RESPONSES,
            "headers": HEADERS,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token made with `crib token create`, good for read, invoke or manage. A server that "
                    "listens on its own machine alone asks for none.",
                }
            },
        },
    }
