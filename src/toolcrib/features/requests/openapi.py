"""The schemas and examples of requests for missing tools, for their endpoints."""

from __future__ import annotations

from toolcrib.infra.files.tool_folder import MAX_FILES
from toolcrib.model.toolrequest import Priority, Status
from toolcrib.toolkit.http.contract import (
    ANYTHING,
    OPTIONAL_TEXT,
    OPTIONAL_TIME,
    SWITCH,
    TEXT,
    TIME,
    WHOLE,
    closed,
    schema,
)

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
