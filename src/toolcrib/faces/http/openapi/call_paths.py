"""The paths of calls by name, and of sessions."""

from __future__ import annotations

from toolcrib.faces.http.openapi.answers import answer
from toolcrib.faces.http.openapi.operations import operation

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
