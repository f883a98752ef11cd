"""The paths of requests for tools that do not exist yet."""

from __future__ import annotations

from toolcrib.faces.http.openapi.answers import answer, ref
from toolcrib.faces.http.openapi.operations import operation
from toolcrib.queues.documents import HISTORY_EVENTS

FIELDS = {
    "name": "word_counter",
    "description": "Count the words of a text",
    "inputs": [{"name": "text", "type": "string", "description": "What to count in", "required": True}],
    "outputs": [{"name": "words", "type": "integer"}],
    "examples": [{"input": {"text": "one two"}, "output": {"words": 2}}],
}
WISH = """\
tool_request:
  name: word_counter
  description: Count the words of a text
  priority: medium
  requested_by: fullsend
  inputs:
    - name: text
      type: string
      description: What to count in
      required: true
  outputs:
    - name: words
      type: integer
"""
DELIVERY = {"files": {"word_counter.py": "def word_counter(text):\n    return {'words': len(text.split())}\n"}}
ALLOWANCE = {"capabilities": ["net.http"], "hosts": ["api.example.com"], "unproved": False}
SAME_REQUEST = {"requestID": "$response.body#/id"}
LINKS: dict[str, object] = {
    "read": {"operationId": "readRequest", "parameters": SAME_REQUEST},
    "cancel": {"operationId": "cancelRequest", "parameters": SAME_REQUEST},
}
PLACE = ("toolRequestID",)


EVENT_STREAM: dict[str, object] = {
    "description": "`step` for each event, with its number as id, and `end` with the request when it is over.",
    "headers": {"X-Request-Id": ref("headers", "X-Request-Id")},
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}

REQUEST_PATHS: dict[str, object] = {
    "/requests": {
        "get": operation(
            "listRequests",
            "requests",
            "List the requests for tools.",
            scope="read",
            description="In the order in which they were filed; of many the newest, as far as one answer can hold them.",
            parameters=("requestStatus", "limit"),
            answers={"200": answer("The requests.", "ToolRequestList")},
        ),
        "post": operation(
            "fileRequest",
            "requests",
            "Ask for a tool that does not exist yet.",
            scope="invoke",
            description="As YAML, or as JSON that holds the YAML or its fields. Without an id it gets the next number of "
            "the day. The same id and text again is no second request, and what is asked for already is built once: both "
            "answer 200. What is wrong is listed in `problems`, with the first line in `details`.",
            parameters=("strict",),
            refusals=(409,),
            body="RequestBody",
            example={"request": FIELDS},
            yaml_example=WISH,
            answers={
                "200": answer("It is asked for already.", "SubmittedRequest"),
                "201": answer("The new request.", "SubmittedRequest", headers=("Location",), links=LINKS),
            },
        ),
    },
    "/requests/{requestID}": {
        "get": operation(
            "readRequest",
            "requests",
            "Read a request, and what happened to it.",
            scope="read",
            parameters=PLACE,
            refusals=(404,),
            answers={"200": answer("The request.", "ToolRequestWithHistory")},
        )
    },
    "/requests/{requestID}/history": {
        "get": operation(
            "readHistory",
            "requests",
            "Read what happened to a request, or wait for it.",
            scope="read",
            description=f"The latest {HISTORY_EVENTS} events are kept; a number that follows the last one heard with a gap says that "
            "some were missed.",
            parameters=(*PLACE, "after", "wait"),
            refusals=(404,),
            answers={"200": answer("How far it has come, and the events.", "RequestHistory")},
        )
    },
    "/requests/{requestID}/events": {
        "get": operation(
            "followRequest",
            "requests",
            "Follow a request as server-sent events, until it is over.",
            scope="read",
            description="A stream that breaks off is taken up again with `Last-Event-ID`; after `end` close it.",
            parameters=(*PLACE, "lastEventID"),
            refusals=(404,),
            answers={"200": EVENT_STREAM},
        )
    },
    "/requests/{requestID}/deliver": {
        "post": operation(
            "deliverTool",
            "requests",
            "Have proved and published what was made for a request.",
            scope="manage",
            description="What the gate refuses answers 400 with its complaints in `details`, and the request waits as "
            "before; likewise when the client does not wait for the end.",
            parameters=PLACE,
            refusals=(404, 409),
            body="Delivery",
            example=DELIVERY,
            answers={"200": answer("The request, which is ready.", "ToolRequest")},
        )
    },
    "/requests/{requestID}/cancel": {
        "post": operation(
            "cancelRequest",
            "requests",
            "Say that nobody wants the tool any more; whoever builds it stops.",
            scope="manage",
            parameters=PLACE,
            refusals=(404, 409),
            body="CancelBody",
            needs_body=False,
            example={"reason": "found another way"},
            answers={"200": answer("The request as it is now.", "ToolRequest")},
        )
    },
    "/requests/{requestID}/retry": {
        "post": operation(
            "retryRequest",
            "requests",
            "Have a request built again that failed or was cancelled.",
            scope="manage",
            parameters=PLACE,
            refusals=(404, 409),
            body="Nothing",
            needs_body=False,
            example={},
            answers={"200": answer("The request as it is now.", "ToolRequest")},
        )
    },
    "/requests/{requestID}/allowance": {
        "put": operation(
            "allowRequest",
            "requests",
            "Add what only the operator can: capabilities, hosts, recorded answers.",
            scope="manage",
            description="What was added before is replaced.",
            parameters=PLACE,
            refusals=(404, 409),
            body="Allowance",
            example=ALLOWANCE,
            answers={"200": answer("The request as it is now.", "ToolRequest")},
        )
    },
    "/experiments": {
        "get": operation(
            "listExperiments",
            "requests",
            "List everything that waits or waited for a tool.",
            scope="read",
            answers={"200": answer("The experiments.", "ExperimentList")},
        )
    },
}
