"""The paths of requests for tools that do not exist yet."""

from __future__ import annotations

from toolcrib.features.requests.queues.records import HISTORY_EVENTS
from toolcrib.infra.files.tool_folder import MAX_FILES
from toolcrib.model.toolrequest import Priority, Status
from toolcrib.toolkit.http.openapi_parts import (
    ANYTHING,
    OPTIONAL_TEXT,
    OPTIONAL_TIME,
    SWITCH,
    TEXT,
    WHOLE,
    answer,
    closed,
    operation,
    ref,
    schema,
)

# MERGED toolcrib.faces.http.openapi.request_schemas

# The shapes of requests for tools, and of what is sent about them.

TIME: dict[str, object] = {**TEXT, "format": "date-time"}
TEXTS: dict[str, object] = {"type": "array", "items": TEXT}
STATUS: dict[str, object] = {"enum": [str(status) for status in Status]}
EVENTS: dict[str, object] = {"type": "array", "items": schema("RequestEvent")}
WORDS: dict[str, object] = {"type": "array", "maxItems": 64, "items": {**TEXT, "minLength": 1, "maxLength": 200}}
FILES: dict[str, object] = {"type": "object", "maxProperties": MAX_FILES, "additionalProperties": TEXT}

FILED_KEYS: dict[str, object] = {
    "id": TEXT,
    "name": TEXT,
    "status": STATUS,
    "priority": {"enum": [str(priority) for priority in Priority]},
    "experiment": {**OPTIONAL_TEXT, "description": "What is blocked until the tool is there."},
    "tool": {**OPTIONAL_TEXT, "description": "The address of what was built."},
    "error": OPTIONAL_TEXT,
    "mergedInto": {**OPTIONAL_TEXT, "description": "The request that is built in its place, as it asks for the same."},
    "owner": {**OPTIONAL_TEXT, "description": "Who builds it."},
    "held": {**SWITCH, "description": "Whether it is left to a person, who delivers it."},
    "attempts": WHOLE,
    "wishes": {**WHOLE, "description": "How many ask for the same."},
    "allowance": {
        **closed(
            ("capabilities", "hosts", "answers", "unproved"),
            capabilities=TEXTS,
            hosts=TEXTS,
            answers={**WHOLE, "description": "How many recorded answers there are."},
            unproved=SWITCH,
        ),
        "description": "What the operator adds to it.",
    },
    "createdAt": TIME,
    "updatedAt": TIME,
    "yaml": {**TEXT, "description": "The request as it was written."},
}

REQUEST_SCHEMAS: dict[str, object] = {
    "RequestBody": {
        **closed(
            yaml={**TEXT, "description": "The request as YAML; without an id it gets the next number of the day."},
            request={**ANYTHING, "description": "Its fields, named as in YAML below `tool_request`."},
        ),
        "minProperties": 1,
        "maxProperties": 1,
    },
    "ToolRequest": closed(tuple(FILED_KEYS), **FILED_KEYS),
    "ToolRequestWithHistory": closed((*FILED_KEYS, "history"), **FILED_KEYS, history=EVENTS),
    "SubmittedRequest": closed(
        (*FILED_KEYS, "warnings", "merged"),
        **FILED_KEYS,
        warnings=TEXTS,
        merged={**SWITCH, "description": "Whether the same is asked for already; it is built once."},
    ),
    "ToolRequestList": closed(("requests",), requests={"type": "array", "items": schema("ToolRequest")}),
    "RequestEvent": closed(
        ("number", "at", "step", "text"),
        number={"type": "integer", "minimum": 1, "description": "Counts from 1."},
        at=TIME,
        step={**TEXT, "description": "What happened, in a word: filed, building, progress, published, ready, …"},
        text=TEXT,
    ),
    "RequestHistory": closed(("status", "history"), status=STATUS, history=EVENTS),
    "Delivery": closed(
        files={**FILES, "description": "Files of text by their paths from the folder of the package."},
        binary={**FILES, "description": "Other files likewise, as base64."},
    ),
    "CancelBody": closed(reason=OPTIONAL_TEXT),
    "Allowance": closed(
        capabilities={**WORDS, "description": "What its tool may use besides what the request names."},
        hosts={**WORDS, "description": "Where its tool may connect besides."},
        answers={
            "type": "array",
            "maxItems": 64,
            "items": schema("RecordedAnswer"),
            "description": "What web servers answer while it is proved.",
        },
        unproved={**SWITCH, "description": "Whether it may go live although nothing recorded proves its network."},
    ),
    "RecordedAnswer": closed(
        ("url",),
        url={**TEXT, "minLength": 1, "description": "The address; its query only where that matters."},
        method={**TEXT, "default": "GET"},
        status={"type": "integer", "minimum": 200, "maximum": 599, "default": 200},
        headers={"type": "object", "maxProperties": 64},
        body={"description": "A text, or a value that is sent as JSON."},
    ),
    "ExperimentList": closed(("experiments",), experiments={"type": "array", "items": schema("Experiment")}),
    "Experiment": closed(
        ("id", "status", "waitsFor", "requests", "releasedAt"),
        id=TEXT,
        status={"enum": ["ready", "blocked"]},
        waitsFor={**TEXTS, "description": "The tools that are still missing."},
        requests={**TEXTS, "description": "Every request that it was named in."},
        releasedAt=OPTIONAL_TIME,
    ),
}

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
