"""The paths that say what there is, and how the server is."""

from __future__ import annotations

from toolcrib.interfaces.http.endpoints import MAX_OFFSET, MAX_PIECE, PIECE
from toolcrib.toolkit.http.openapi_parts import answer, operation, ref, whole

# MERGED toolcrib.faces.http.openapi.call_paths

# The paths of calls by name, and of sessions.

CALL = {"name": "weather", "args": {"city": "Oslo"}}
SAME_SESSION = {"sessionID": "$response.body#/id"}
LINKS: dict[str, object] = {
    "read": {"operationId": "readSession", "parameters": SAME_SESSION},
    "turn": {"operationId": "nextTurn", "parameters": SAME_SESSION},
    "close": {"operationId": "closeSession", "parameters": SAME_SESSION},
}
KEPT = "Kept for an hour by the process that opened it, for the caller that opened it."

CALL_PATHS: dict[str, object] = {
    "/crib/call": {
        "post": operation(
            "callTool",
            "calls",
            "Call a tool by its name.",
            scope="invoke",
            refusals=(404, 409, 413),
            body="CallBody",
            example=CALL,
            of_call=True,
            answers={"200": answer("What the call came to.", "CallResult")},
        )
    },
    "/crib/explain": {
        "post": operation(
            "explainCall",
            "calls",
            "Ask what every guard would say to a call, without making it.",
            scope="invoke",
            refusals=(409,),
            body="CallBody",
            example=CALL,
            answers={"200": answer("Every guard's word, in the order of the call.", "Explanation")},
        )
    },
    "/crib/sessions": {
        "post": operation(
            "openSession",
            "calls",
            "Open a session, which calls can share.",
            scope="invoke",
            description=KEPT,
            body="SessionBody",
            example={"mode": "text", "maxCalls": 5},
            answers={"201": answer("The session.", "Session", headers=("Location",), links=LINKS)},
        )
    },
    "/crib/sessions/{sessionID}": {
        "get": operation(
            "readSession",
            "calls",
            "Read a session.",
            scope="invoke",
            parameters=("sessionID",),
            refusals=(404,),
            answers={"200": answer("The session.", "Session")},
        ),
        "delete": operation(
            "closeSession",
            "calls",
            "Close a session.",
            scope="invoke",
            parameters=("sessionID",),
            refusals=(404,),
            answers={"204": answer("It is closed.")},
        ),
    },
    "/crib/sessions/{sessionID}/turn": {
        "post": operation(
            "nextTurn",
            "calls",
            "Say that the user has spoken: the bounds of a turn begin anew.",
            scope="invoke",
            parameters=("sessionID",),
            refusals=(404,),
            body="Nothing",
            example={},
            answers={"200": answer("The session.", "Session")},
        )
    },
}


def _with(written: dict[str, object], *parameters: dict[str, object]) -> dict[str, object]:
    known = written["parameters"]
    return {**written, "parameters": [*(known if isinstance(known, list) else ()), *parameters]}


def _of_type(content_type: str, description: str) -> dict[str, object]:
    return {
        "description": description,
        "headers": {"X-Request-Id": ref("headers", "X-Request-Id")},
        "content": {content_type: {"schema": {"type": "string"}}},
    }


def _watch(name: str, summary: str, answers: dict[str, object]) -> dict[str, object]:
    """An operation that asks for no token."""
    return {
        "operationId": name,
        "tags": ["overview"],
        "summary": summary,
        "security": [{}],
        "responses": {
            **{str(status): ref("responses", f"Problem{status}") for status in (400, 403, 421, 500)},
            **answers,
        },
    }


OVERVIEW_PATHS: dict[str, object] = {
    "/crib/tools": {
        "get": operation(
            "describeTools",
            "overview",
            "List every tool there is, wherever it is written down, with all that is known of it.",
            scope="read",
            parameters=("name", "q", "question", "includeDisabled", "tags", "executors", "pageSize", "pageToken"),
            refusals=(404,),
            answers={"200": answer("A page of tools, in the order of their addresses.", "FactsPage")},
        )
    },
    "/crib/results/{handle}": {
        "get": _with(
            operation(
                "readResult",
                "overview",
                "Read a piece of a value that was too large to be handed over at once.",
                scope="invoke",
                description="Kept for an hour, for the caller that made the call.",
                parameters=("handle",),
                refusals=(404,),
                answers={"200": answer("The piece.", "Piece")},
            ),
            whole("offset", "Where the piece begins, in letters.", 0, MAX_OFFSET, 0),
            whole("length", "How many letters at most.", 1, MAX_PIECE, PIECE),
        )
    },
    "/crib/health": {
        "get": operation(
            "readHealth",
            "overview",
            "Read how the crib is, and what is spoken here.",
            scope="read",
            answers={"200": answer("How it is.", "Health")},
        )
    },
    "/openapi.json": {
        "get": operation(
            "readDescription",
            "overview",
            "Read this description.",
            scope="read",
            answers={"200": answer("This description.", "Document")},
        )
    },
    "/docs": {
        "get": operation(
            "readDocs",
            "overview",
            "Read this description as a page.",
            scope="read",
            answers={"200": _of_type("text/html", "The page.")},
        )
    },
    "/metrics": {
        "get": operation(
            "readMetrics",
            "overview",
            "Read what the server counts, in the text format of Prometheus.",
            scope="read",
            answers={"200": _of_type("text/plain", "The figures.")},
        )
    },
    "/healthz": {
        "get": _watch("readAlive", "Whether the server lives.", {"200": answer("It does.", "Alive")}),
    },
    "/readyz": {
        "get": _watch(
            "readReady",
            "Whether the server takes on work.",
            {"200": answer("It does.", "Ready"), "503": answer("It is ending.", "Ready")},
        ),
    },
}
