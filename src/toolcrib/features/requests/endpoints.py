"""HTTP endpoints of requests for missing tools: the table, and the schemas of its bodies and answers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from toolcrib.features.requests.endpoint_handlers import LISTED, MAX_NUMBER, MAX_WAIT_SECONDS, NUMBER, RequestEndpoints
from toolcrib.features.requests.queues import HISTORY_EVENTS
from toolcrib.features.requests.tracker import MAX_LISTED
from toolcrib.infra.files.tool_folder import MAX_FILES
from toolcrib.model.call import Scope
from toolcrib.model.toolrequest import Priority, Status
from toolcrib.toolkit.http.contract import (
    ANYTHING,
    NOTHING_AT_ALL,
    OPTIONAL_TEXT,
    OPTIONAL_TIME,
    SWITCH,
    TEXT,
    TIME,
    WHOLE,
    Body,
    Reply,
    choice,
    closed,
    in_header,
    in_path,
    schema,
    switch,
    whole,
)
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable

if TYPE_CHECKING:
    from toolcrib.toolkit.http.endpoint import Host


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
    "owner": {**OPTIONAL_TEXT, "description": "The Builder that works on it."},
    "held": {**SWITCH, "description": "Whether it is left to a person, who delivers it."},
    "attempts": WHOLE,
    "requesters": {**WHOLE, "description": "How many requests ask for the same."},
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

REQUEST_BODY: dict[str, object] = {
    **closed(
        yaml={**TEXT, "description": "The request as YAML; without an id it gets the next number of the day."},
        request={**ANYTHING, "description": "Its fields, named as in YAML below `tool_request`."},
    ),
    "minProperties": 1,
    "maxProperties": 1,
}
DELIVERY_BODY: dict[str, object] = closed(
    files={**FILES, "description": "Files of text by their paths from the folder of the package."},
    binary={**FILES, "description": "Other files likewise, as base64."},
)
CANCEL_BODY: dict[str, object] = closed(reason=OPTIONAL_TEXT)
ALLOWANCE_BODY: dict[str, object] = closed(
    capabilities={**WORDS, "description": "What its tool may use besides what the request names."},
    hosts={**WORDS, "description": "Where its tool may connect besides."},
    answers={
        "type": "array",
        "maxItems": 64,
        "items": schema("RecordedAnswer"),
        "description": "What web servers answer while it is proved.",
    },
    unproved={**SWITCH, "description": "Whether it may go live although nothing recorded proves its network."},
)

SCHEMAS: dict[str, object] = {
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
WRITTEN_REQUEST = """\
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

REQUEST = "/requests/{requestID}"
NOW = Reply(description="The request as it is now.", schema="ToolRequest")
# Endpoints of one request: those that read it, and those that change it.
reading = partial(Endpoint, method="GET", scope=Scope.READ, refusals=(404,))
changing = partial(Endpoint, method="POST", scope=Scope.MANAGE, refusals=(404, 409), replies={200: NOW})


def _request_endpoints(host: Host) -> RequestEndpoints:
    crib = host.crib
    return RequestEndpoints(crib.requests, host.threads, seconds=host.seconds, ending=host.ending)


REQUEST_ENDPOINTS = EndpointTable(
    tag="requests",
    summary="Tools that do not exist yet: ask for one, follow it, deliver it.",
    make=_request_endpoints,
    places=(
        in_path(
            "requestID",
            "The id of the request for a tool.",
            {**TEXT, "minLength": 1, "maxLength": 200},
            example="req_20240115_001",
            key="toolRequestID",
        ),
    ),
    schemas=SCHEMAS,
    endpoints=(
        Endpoint(
            name="listRequests",
            method="GET",
            path="/requests",
            handler=RequestEndpoints.list,
            scope=Scope.READ,
            summary="List the requests for tools.",
            description="In the order in which they were filed; of many the newest, as far as one answer can hold them.",
            query=(
                choice("status", "Only requests of this status.", tuple(map(str, Status)), key="requestStatus"),
                whole("limit", "How many of the newest at most.", 1, MAX_LISTED, LISTED),
            ),
            replies={200: Reply(description="The requests.", schema="ToolRequestList")},
        ),
        Endpoint(
            name="fileRequest",
            method="POST",
            path="/requests",
            handler=RequestEndpoints.file,
            scope=Scope.INVOKE,
            summary="Ask for a tool that does not exist yet.",
            description="As YAML, or as JSON that holds the YAML or its fields. Without an id it gets the next number of "
            "the day. The same id and text again is no second request, and what is asked for already is built once: both "
            "answer 200. What is wrong is listed in `problems`, with the first line in `details`.",
            query=(switch("strict", "Refuse what is only readable with warnings."),),
            body=Body(
                name="RequestBody", schema=REQUEST_BODY, example={"request": FIELDS}, yaml_example=WRITTEN_REQUEST
            ),
            refusals=(409,),
            replies={
                200: Reply(description="It is asked for already.", schema="SubmittedRequest"),
                201: Reply(
                    description="The new request.", schema="SubmittedRequest", headers=("Location",), links=LINKS
                ),
            },
        ),
        reading(
            name="readRequest",
            path=REQUEST,
            handler=RequestEndpoints.read,
            summary="Read a request, and what happened to it.",
            replies={200: Reply(description="The request.", schema="ToolRequestWithHistory")},
        ),
        reading(
            name="readHistory",
            path=f"{REQUEST}/history",
            handler=RequestEndpoints.history,
            summary="Read what happened to a request, or wait for it.",
            description=f"The latest {HISTORY_EVENTS} events are kept; a gap after the last number received means that events "
            "were missed.",
            query=(
                whole("after", "Only events after the one of this number.", 0, MAX_NUMBER, 0),
                whole(
                    "wait",
                    "How many seconds to wait for an event, if there is none.",
                    0,
                    MAX_WAIT_SECONDS,
                    0,
                ),
            ),
            replies={200: Reply(description="The status of the request, and the events.", schema="RequestHistory")},
        ),
        reading(
            name="followRequest",
            path=f"{REQUEST}/events",
            handler=RequestEndpoints.events,
            summary="Follow a request as server-sent events, until it is over.",
            description="Resume a stream that broke off with `Last-Event-ID`; close it after `end`.",
            headers=(
                in_header(
                    "Last-Event-ID",
                    "The id of the last event received; the stream continues after it.",
                    key="lastEventID",
                    pattern=f"^{NUMBER.pattern}$",
                ),
            ),
            replies={
                200: Reply(
                    description="`step` for each event, with its number as id, and `end` with the request when it is over.",
                    media_type="text/event-stream",
                )
            },
        ),
        changing(
            name="deliverTool",
            path=f"{REQUEST}/deliver",
            handler=RequestEndpoints.deliver,
            summary="Deliver the package that was made for a request; the gate proves it, and it is published.",
            description="What the gate refuses answers 400 with its complaints in `details`, and the request waits as "
            "before; likewise when the client does not wait for the end.",
            body=Body(name="Delivery", schema=DELIVERY_BODY, example=DELIVERY),
            replies={200: Reply(description="The request, which is ready.", schema="ToolRequest")},
        ),
        changing(
            name="cancelRequest",
            path=f"{REQUEST}/cancel",
            handler=RequestEndpoints.cancel,
            summary="Cancel a request; a Builder that works on it stops.",
            body=Body(name="CancelBody", schema=CANCEL_BODY, example={"reason": "found another way"}, optional=True),
        ),
        changing(
            name="retryRequest",
            path=f"{REQUEST}/retry",
            handler=RequestEndpoints.retry,
            summary="Have a request built again that failed or was cancelled.",
            body=NOTHING_AT_ALL,
        ),
        changing(
            name="allowRequest",
            method="PUT",
            path=f"{REQUEST}/allowance",
            handler=RequestEndpoints.allow,
            summary="Add what only the operator can: capabilities, hosts, recorded answers.",
            description="What was added before is replaced.",
            body=Body(name="Allowance", schema=ALLOWANCE_BODY, example=ALLOWANCE, open_keys=True),
        ),
        Endpoint(
            name="listExperiments",
            method="GET",
            path="/experiments",
            handler=RequestEndpoints.experiments,
            scope=Scope.READ,
            summary="List everything that waits or waited for a tool.",
            replies={200: Reply(description="The experiments.", schema="ExperimentList")},
        ),
    ),
)
endpoints = (REQUEST_ENDPOINTS,)
