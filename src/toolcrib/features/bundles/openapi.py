"""The paths of tools in bundles."""

from __future__ import annotations

from toolcrib.toolkit.http.openapi_parts import SLUG, UUID7, VERSION, answer, operation, schema

# MERGED toolcrib.faces.http.openapi.tool_schemas

# The shape of the document of a tool, as it is written.

TEXT: dict[str, object] = {"type": "string"}
TEMPLATES: dict[str, object] = {"type": "object", "maxProperties": 100, "additionalProperties": TEXT}
SECONDS: dict[str, object] = {"type": "number", "minimum": 0, "maximum": 3_600}

# What is accepted as it was read, and not taken over.
COMPUTED = ("bundleSlug", "effectiveEnabled", "disabledReason", "source", "createdAt", "modifiedAt", "toggledAt")
COMPUTED_TOO = ("softDeletedAt", "callCount", "lastCalledAt", "warnings", "match", "score")

REQUEST: dict[str, object] = {
    "method": {"enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], "default": "GET"},
    "urlTemplate": {
        **TEXT,
        "pattern": "^https?://",
        "description": "With `${name}` for arguments and secrets, not in scheme, host or port.",
    },
    "query": TEMPLATES,
    "headers": TEMPLATES,
    "bodyTemplate": TEXT,
    "successCodes": {
        "type": "array",
        "maxItems": 100,
        "items": {"type": "integer", "minimum": 100, "maximum": 599},
        "description": "Which statuses are a success; none named means any from 200 to 299.",
    },
    "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 3_600_000, "default": 10_000},
    "responseEncoding": {"enum": ["json", "text"], "default": "json"},
    "extractExpr": {**TEXT, "description": "A JSONPath, or a regular expression; absent takes the whole body."},
    "errorMode": {"enum": ["fail", "empty"], "default": "fail"},
    "retry": schema("Retry"),
}

TOOL_SCHEMAS: dict[str, object] = {
    "ToolBody": {
        "type": "object",
        "required": ["schemaVersion", "displayName", "type", "isEnabled", "argSchema", "outputSchema", "impl"],
        "properties": {
            "schemaVersion": {**TEXT, "pattern": r"\S", "description": "Any text; ours is toolcrib-1."},
            "displayName": {**TEXT, "minLength": 1, "maxLength": 256, "pattern": r"\S"},
            "description": {**TEXT, "description": "What the tool does; models choose it by that."},
            "type": {"enum": ["go", "http"]},
            "isEnabled": {"type": "boolean"},
            "isBuiltIn": {"const": False},
            "argSchema": {"type": "object", "description": "The JSON Schema of the arguments, which are an object."},
            "outputSchema": {"type": "object", "description": "The JSON Schema of the value; {} promises nothing."},
            "impl": {"type": "object"},
            "tags": {
                "type": "array",
                "maxItems": 50,
                "uniqueItems": True,
                "items": {**TEXT, "pattern": "^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$"},
            },
            "preProcessors": {"type": "array", "maxItems": 100, "description": "Kept, and not carried out."},
            "bundleID": {**TEXT, "pattern": UUID7, "description": "As in the path, or absent."},
            "slug": {**TEXT, "pattern": SLUG, "description": "As in the path, or absent."},
            "version": {**TEXT, "pattern": VERSION, "maxLength": 64, "description": "As in the path, or absent."},
            "toolID": {**TEXT, "pattern": UUID7, "description": "Made by the server where it is absent."},
            "id": {**TEXT, "pattern": UUID7, "description": "Another name for toolID."},
            **{name: {"description": "Worked out by the server."} for name in (*COMPUTED, *COMPUTED_TOO)},
        },
        "oneOf": [
            {"properties": {"type": {"const": "go"}, "impl": schema("FunctionImpl")}},
            {"properties": {"type": {"const": "http"}, "impl": schema("HttpImpl")}},
        ],
        "additionalProperties": True,
    },
    "FunctionImpl": {
        "type": "object",
        "required": ["goFunc"],
        "properties": {
            "goFunc": {**TEXT, "pattern": r"\S", "description": "The key of a function of the host program."},
            "model": {**TEXT, "pattern": r"\S", "description": "A model that the tool cannot do without."},
            **dict.fromkeys((*REQUEST, "calls"), False),
        },
        "additionalProperties": True,
    },
    "HttpImpl": {
        "type": "object",
        "properties": {"model": {**TEXT, "pattern": r"\S"}, "goFunc": False},
        "oneOf": [
            {"required": ["urlTemplate"], "properties": {**REQUEST, "calls": False}},
            {
                "required": ["calls"],
                "properties": {
                    **dict.fromkeys(REQUEST, False),
                    "calls": {"type": "array", "minItems": 1, "maxItems": 16, "items": schema("HttpCall")},
                },
            },
        ],
        "additionalProperties": True,
    },
    "HttpCall": {
        "type": "object",
        "required": ["name", "urlTemplate"],
        "properties": {
            "name": {**TEXT, "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"},
            **REQUEST,
            **dict.fromkeys(("goFunc", "calls"), False),
        },
        "additionalProperties": True,
    },
    "Retry": {
        "type": "object",
        "required": ["max_attempts"],
        "properties": {
            "max_attempts": {"type": "integer", "minimum": 1, "maximum": 100},
            "backoff_type": {"enum": ["exponential", "linear", "constant"], "default": "exponential"},
            "initial_delay": SECONDS,
            "max_delay": SECONDS,
            "backoff_multiplier": {"type": "number", "minimum": 0, "maximum": 100},
        },
        "additionalProperties": True,
    },
}

WEATHER_TOOL = {
    "schemaVersion": "toolcrib-1",
    "displayName": "Weather report",
    "description": "Fetch the current weather of a city.",
    "type": "http",
    "isEnabled": True,
    "argSchema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "outputSchema": {"type": "string"},
    "impl": {
        "method": "GET",
        "urlTemplate": "https://weather.example/v1/current.json?q=${city}",
        "headers": {"User-Agent": "MyApp/${version}"},
        "successCodes": [200],
        "timeoutMs": 10_000,
        "responseEncoding": "json",
        "extractExpr": "$.current.condition.text",
        "errorMode": "fail",
    },
    "tags": ["weather"],
}
SAME_TOOL = {
    "bundleID": "$request.path.bundleID",
    "toolSlug": "$request.path.toolSlug",
    "version": "$request.path.version",
}
LINKS: dict[str, object] = {
    name: {"operationId": operation_id, "parameters": SAME_TOOL}
    for name, operation_id in {
        "read": "readTool",
        "switch": "switchTool",
        "delete": "deleteTool",
        "invoke": "invokeTool",
    }.items()
}
PLACE = ("bundleID", "toolSlug", "version")
LIST_QUERY = ("tags", "includeDisabled", "recommendedPageSize", "sameAsRecommendedPageSize", "pageToken")
INVOKE = {"args": {"city": "Oslo"}}


def _list(name: str) -> dict[str, object]:
    return {
        "get": operation(
            name,
            "tools",
            "List the tools of all bundles.",
            scope="read",
            description="In the order of their ids. The size of a page is a recommendation.",
            parameters=("bundleIDs", *LIST_QUERY),
            answers={"200": answer("A page of tools.", "ToolPage")},
        )
    }


def _search(name: str) -> dict[str, object]:
    return {
        "get": operation(
            name,
            "tools",
            "Search the tools of all bundles.",
            scope="read",
            description="By what was typed: beginnings of words before whole words before words that are nearly right, "
            "and of these the newest first. Or by a question in plain words, the most relevant first. One of the two.",
            parameters=("q", "question", "includeDisabled", "pageSize", "pageToken"),
            answers={"200": answer("A page of tools, each with why it was found.", "FoundPage")},
        )
    }


def invoke(name: str) -> dict[str, object]:
    """The operation that calls a tool by its place."""
    return operation(
        name,
        "calls",
        "Call a tool.",
        scope="invoke",
        description="Arguments are checked against `argSchema` before anything runs, the value against `outputSchema`. "
        "No body means no arguments.",
        parameters=PLACE,
        refusals=(404, 409, 413),
        body="InvokeBody",
        needs_body=False,
        example=INVOKE,
        of_call=True,
        answers={"200": answer("What the call came to.", "CallResult")},
    )


TOOL_PATHS: dict[str, object] = {
    "/tools/bundles/{bundleID}/tools": {
        "get": operation(
            "listToolsOfBundle",
            "tools",
            "List the tools of one bundle.",
            scope="read",
            description="In the order of their ids. The size of a page is a recommendation.",
            parameters=("bundleID", *LIST_QUERY),
            refusals=(404,),
            answers={"200": answer("A page of tools.", "ToolPage")},
        )
    },
    "/tools/bundles/{bundleID}/tools/{toolSlug}/version/{version}": {
        "get": operation(
            "readTool",
            "tools",
            "Read a tool.",
            scope="read",
            parameters=(*PLACE, "ifNoneMatch"),
            refusals=(404,),
            answers={
                "200": answer("The tool.", "Tool", headers=("ETag",)),
                "304": answer("It is as the client knows it.", headers=("ETag",)),
            },
        ),
        "put": operation(
            "putTool",
            "tools",
            "Make a version of a tool.",
            scope="manage",
            description="A version that exists is never changed: write another one, or delete it first. The body may "
            "hold comments, `//` and `/* */`.",
            parameters=(*PLACE, "ifMatch", "onlyNew"),
            refusals=(404, 409, 412),
            body="ToolBody",
            example=WEATHER_TOOL,
            answers={"201": answer("The new tool.", "Tool", headers=("ETag", "Location"), links=LINKS)},
        ),
        "patch": operation(
            "switchTool",
            "tools",
            "Switch a tool on or off.",
            scope="manage",
            parameters=(*PLACE, "ifMatch"),
            refusals=(404, 409, 412),
            body="Switch",
            example={"isEnabled": False},
            answers={"200": answer("The tool as it is now.", "Tool", headers=("ETag",))},
        ),
        "delete": operation(
            "deleteTool",
            "tools",
            "Delete a tool for good.",
            scope="manage",
            parameters=(*PLACE, "ifMatch"),
            refusals=(404, 409, 412),
            answers={"204": answer("It is gone.")},
        ),
        "post": invoke("invokeToolHere"),
    },
    "/tools/bundles/{bundleID}/tools/{toolSlug}/version/{version}/invoke": {"post": invoke("invokeTool")},
    "/tools": _list("listTools"),
    "/tools/tools": _list("listToolsToo"),
    "/tools/search": _search("searchTools"),
    "/tools/tools/search": _search("searchToolsToo"),
}
