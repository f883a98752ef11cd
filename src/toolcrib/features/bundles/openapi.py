"""JSON schemas and examples of bundles and stored tools, for their endpoints."""

from __future__ import annotations

from toolcrib.features.bundles.definition import MAX_DISPLAY_NAME, MAX_TAGS, TAG
from toolcrib.features.bundles.fields import ToolType
from toolcrib.features.bundles.format import MAX_DESCRIPTION
from toolcrib.features.http_tools.description import (
    CALL_NAME,
    DOCUMENT_KEYS,
    MAX_CALLS,
    MAX_DELAY_SECONDS,
    MAX_MULTIPLIER,
    MAX_TIMEOUT_MS,
    STATUSES,
    TIMEOUT_MS,
)
from toolcrib.features.http_tools.pages import MAX_FIRST, MAX_PAGES, MAX_SIZE, PAGES, SHOWN, Carrier, PaginationKind
from toolcrib.features.http_tools.response_cache import MAX_SECONDS
from toolcrib.features.sql_tools.database import MAX_DATABASE
from toolcrib.features.sql_tools.description import (
    MAX_BYTES,
    MAX_BYTES_DEFAULT,
    MAX_ROWS,
    MAX_ROWS_DEFAULT,
)
from toolcrib.features.sql_tools.description import MAX_TIMEOUT_MS as MAX_STATEMENT_MS
from toolcrib.features.sql_tools.description import TIMEOUT_MS as STATEMENT_MS
from toolcrib.features.sql_tools.statement import MAX_STATEMENT
from toolcrib.infra.search import Tier
from toolcrib.lib.document_fields import MAX_ITEMS
from toolcrib.lib.http_auth.declaration import READERS
from toolcrib.model.bundle import Owner
from toolcrib.model.tool import (
    MAX_ATTEMPTS,
    MAX_CALLS_KEY,
    MAX_CALLS_PER_MINUTE,
    MAX_NAME,
    Backoff,
    Encoding,
    ErrorMode,
    Method,
    Rows,
)
from toolcrib.toolkit.http.contract import (
    ANYTHING,
    INDEXING,
    ONLY_FALSE,
    OPTIONAL_TIME,
    SWITCH,
    TEXT,
    WHOLE,
    closed,
    open_to_more,
    page,
    schema,
)
from toolcrib.toolkit.http.places import SLUG, UUID7, VERSION

TEMPLATES: dict[str, object] = {"type": "object", "maxProperties": MAX_ITEMS, "additionalProperties": TEXT}
SECONDS: dict[str, object] = {"type": "number", "minimum": 0, "maximum": MAX_DELAY_SECONDS}

# Computed keys: accepted and ignored.
COMPUTED = ("bundleSlug", "effectiveEnabled", "disabledReason", "source", "createdAt", "modifiedAt", "toggledAt")
COMPUTED_TOO = ("softDeletedAt", "callCount", "lastCalledAt", "warnings", "match", "score")

# A key that the kind of tool does not have; generators of clients do not read `false` as a schema.
NEVER: dict[str, object] = {"not": {}}
RATE: dict[str, object] = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_CALLS_PER_MINUTE,
    "description": "How often the tool may be called within any 60 seconds, by all processes together; here or in `impl`.",
}
REQUEST: dict[str, object] = {
    "method": {"enum": [*Method], "default": Method.GET},
    "urlTemplate": {
        **TEXT,
        "pattern": "^https?://",
        "description": "With `${name}` for arguments and secrets, but not in scheme, host or port.",
    },
    "query": TEMPLATES,
    "headers": TEMPLATES,
    "bodyTemplate": TEXT,
    "successCodes": {
        "type": "array",
        "maxItems": MAX_ITEMS,
        "items": {"type": "integer", "minimum": STATUSES.start, "maximum": STATUSES.stop - 1},
        "description": "The statuses of success; by default 200 to 299.",
    },
    "timeoutMs": {"type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_MS, "default": TIMEOUT_MS},
    "responseEncoding": {"enum": [*DOCUMENT_KEYS.encodings], "default": Encoding.JSON},
    "extractExpr": {**TEXT, "description": "A JSONPath or a regular expression; by default the whole body."},
    "errorMode": {"enum": [*ErrorMode], "default": ErrorMode.FAIL},
    "retry": schema("Retry"),
    "auth": {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": [*READERS]}},
        "description": "The credentials that the request is sent with; secrets stand in it by name, `${secret:NAME}`.",
    },
    "pagination": schema("Pagination"),
    "cache": schema("Cache"),
}

BUNDLE_BODY: dict[str, object] = closed(
    ("slug", "displayName", "isEnabled"),
    slug={**TEXT, "pattern": SLUG},
    displayName={**TEXT, "minLength": 1, "maxLength": MAX_DISPLAY_NAME, "pattern": r"\S"},
    description={**TEXT, "maxLength": MAX_DESCRIPTION},
    isEnabled=SWITCH,
    bundleID={**TEXT, "pattern": UUID7, "description": "As in the path, or absent."},
    isBuiltIn=ONLY_FALSE,
    **{
        name: {"description": "Accepted and ignored."}
        for name in ("source", "schemaVersion", "createdAt", "modifiedAt", "toggledAt", "softDeletedAt")
    },
)

TOOL_BODY: dict[str, object] = {
    "type": "object",
    "required": ["schemaVersion", "displayName", "type", "isEnabled", "argSchema", "outputSchema", "impl"],
    "properties": {
        "schemaVersion": {**TEXT, "pattern": r"\S", "description": "Any string; the current one is toolcrib-1."},
        "displayName": {**TEXT, "minLength": 1, "maxLength": MAX_DISPLAY_NAME, "pattern": r"\S"},
        "description": {**TEXT, "description": "What the tool does; models choose tools by it."},
        "type": {"enum": [*ToolType]},
        "isEnabled": {"type": "boolean"},
        "isBuiltIn": ONLY_FALSE,
        "argSchema": {"type": "object", "description": "The JSON Schema of the arguments, which are an object."},
        "outputSchema": {"type": "object", "description": "The JSON Schema of the value; {} allows any."},
        "impl": {"type": "object"},
        MAX_CALLS_KEY: RATE,
        "tags": {
            "type": "array",
            "maxItems": MAX_TAGS,
            "uniqueItems": True,
            "items": {**TEXT, "pattern": f"^{TAG.pattern}$", "maxLength": MAX_NAME},
        },
        # One that cannot be shown is warned of and left out.
        "icons": {
            "description": "A list of pictures for MCP clients: src (https or data:image/), mimeType, sizes, theme."
        },
        "preProcessors": {"type": "array", "maxItems": MAX_ITEMS, "description": "Stored, but not executed."},
        "bundleID": {**TEXT, "pattern": UUID7, "description": "As in the path, or absent."},
        "slug": {**TEXT, "pattern": SLUG, "description": "As in the path, or absent."},
        "version": {**TEXT, "pattern": VERSION, "maxLength": MAX_NAME, "description": "As in the path, or absent."},
        "toolID": {**TEXT, "pattern": UUID7, "description": "Generated if it is absent."},
        "id": {**TEXT, "pattern": UUID7, "description": "An alias of toolID."},
        **{name: {"description": "Computed by the server; ignored."} for name in (*COMPUTED, *COMPUTED_TOO)},
    },
    "oneOf": [
        {"properties": {"type": {"const": ToolType.GO}, "impl": schema("FunctionImpl")}},
        {"properties": {"type": {"const": ToolType.HTTP}, "impl": schema("HttpImpl")}},
        {"properties": {"type": {"const": ToolType.SQL}, "impl": schema("SqlImpl")}},
    ],
    "additionalProperties": True,
}

SCHEMAS: dict[str, object] = {
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
        source={"enum": [*Owner]},
        createdAt=OPTIONAL_TIME,
        modifiedAt=OPTIONAL_TIME,
        toggledAt=OPTIONAL_TIME,
        softDeletedAt=OPTIONAL_TIME,
    ),
    "BundlePage": page("bundles", "Bundle"),
    "ToolPage": page("tools", "Tool", indexing=INDEXING),
    "FoundPage": page("tools", "FoundTool", indexing=INDEXING),
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
        type={"enum": [*ToolType]},
        isEnabled={**SWITCH, "description": "Whether the tool itself is enabled."},
        isBuiltIn=SWITCH,
        effectiveEnabled={**SWITCH, "description": "Whether a call can use it."},
        disabledReason={**TEXT, "description": "Why a call cannot use it; empty if it can."},
        source={**TEXT, "description": "Its owner, or the format of its file."},
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
                    "match": {"enum": [*Tier]},
                    "score": {"type": "number"},
                },
            },
        ]
    },
    "FunctionImpl": {
        "type": "object",
        "required": ["goFunc"],
        "properties": {
            "goFunc": {**TEXT, "pattern": r"\S", "description": "The key of a function of the host program."},
            "model": {**TEXT, "pattern": r"\S", "description": "A model that the tool needs."},
            MAX_CALLS_KEY: RATE,
            **dict.fromkeys((*REQUEST, "calls"), NEVER),
        },
        "additionalProperties": True,
    },
    "HttpImpl": {
        "type": "object",
        "properties": {
            "model": {**TEXT, "pattern": r"\S"},
            "hosts": {"type": "array", "maxItems": MAX_ITEMS, "items": TEXT},
            "goFunc": NEVER,
            MAX_CALLS_KEY: RATE,
        },
        "oneOf": [schema("HttpSingleCall"), schema("HttpSeveralCalls")],
        "additionalProperties": True,
    },
    "HttpSingleCall": {
        "type": "object",
        "required": ["urlTemplate"],
        "properties": {**REQUEST, "calls": NEVER},
        "additionalProperties": True,
    },
    "HttpSeveralCalls": {
        "type": "object",
        "required": ["calls"],
        "properties": {
            **dict.fromkeys(REQUEST, NEVER),
            "calls": {"type": "array", "minItems": 1, "maxItems": MAX_CALLS, "items": schema("HttpCall")},
        },
        "additionalProperties": True,
    },
    "SqlImpl": {
        "type": "object",
        "required": ["database", "statement"],
        "properties": {
            "database": {
                **TEXT,
                "minLength": 1,
                "maxLength": MAX_DATABASE,
                "description": "A path in the workspace (SQLite), or a URL of PostgreSQL such as ${secret:SHOP}.",
            },
            "statement": {
                **TEXT,
                "minLength": 1,
                "maxLength": MAX_STATEMENT,
                "description": "One statement; :name is the argument of that name.",
            },
            "choices": {
                "type": "object",
                "additionalProperties": {"type": "object", "minProperties": 1, "additionalProperties": TEXT},
                "description": "Arguments whose value selects a piece of the statement.",
            },
            "write": {**SWITCH, "description": "Whether the statement may change the database."},
            "confirm": {
                **SWITCH,
                "description": "Whether a call that writes waits for confirmation; it does by default.",
            },
            "returns": {"enum": [*Rows], "default": Rows.ROWS},
            "maxRows": {"type": "integer", "minimum": 1, "maximum": MAX_ROWS, "default": MAX_ROWS_DEFAULT},
            "maxBytes": {"type": "integer", "minimum": 1, "maximum": MAX_BYTES, "default": MAX_BYTES_DEFAULT},
            "timeoutMs": {"type": "integer", "minimum": 1, "maximum": MAX_STATEMENT_MS, "default": STATEMENT_MS},
            "hosts": {"type": "array", "maxItems": MAX_ITEMS, "items": TEXT},
            MAX_CALLS_KEY: RATE,
            **dict.fromkeys((*sorted({*REQUEST, "calls", "goFunc"} - {"timeoutMs"}),), NEVER),
        },
        "additionalProperties": True,
    },
    "HttpCall": {
        "type": "object",
        "required": ["name", "urlTemplate"],
        "properties": {
            "name": {**TEXT, "pattern": f"^{CALL_NAME.pattern}$", "maxLength": MAX_NAME},
            **REQUEST,
            **dict.fromkeys(("goFunc", "calls"), NEVER),
        },
        "additionalProperties": True,
    },
    "Cache": {
        "type": "object",
        "required": ["seconds"],
        "properties": {"seconds": {"type": "integer", "minimum": 0, "maximum": MAX_SECONDS}},
        "additionalProperties": False,
    },
    "Pagination": {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"enum": [*PaginationKind]},
            "parameter": {
                **TEXT,
                "minLength": 1,
                "maxLength": SHOWN,
                "description": "What carries cursor, page or offset.",
            },
            "in": {"enum": [*Carrier], "default": Carrier.QUERY},
            "next": {**TEXT, "description": "A JSONPath to the cursor or the URL of the next page."},
            "items": {**TEXT, "description": "A JSONPath to the items of a page; by default the page itself."},
            "first": {"type": "integer", "minimum": 0, "maximum": MAX_FIRST},
            "size": {"type": "integer", "minimum": 0, "maximum": MAX_SIZE},
            "pages": {"type": "integer", "minimum": 1, "maximum": MAX_PAGES, "default": PAGES},
            "truncate": {"type": "boolean", "default": False},
        },
        "additionalProperties": False,
    },
    "Retry": {
        "type": "object",
        "required": ["max_attempts"],
        "properties": {
            "max_attempts": {"type": "integer", "minimum": 1, "maximum": MAX_ATTEMPTS},
            "backoff_type": {"enum": [*Backoff], "default": Backoff.EXPONENTIAL},
            "initial_delay": SECONDS,
            "max_delay": SECONDS,
            "backoff_multiplier": {"type": "number", "minimum": 0, "maximum": MAX_MULTIPLIER},
        },
        "additionalProperties": True,
    },
}

WEATHER_BUNDLE = {
    "slug": "weather",
    "displayName": "Weather",
    "isEnabled": True,
    "description": "What the sky is up to.",
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
TOOL_LINKS: dict[str, object] = {
    name: {"operationId": operation_id, "parameters": SAME_TOOL}
    for name, operation_id in {
        "read": "readTool",
        "switch": "switchTool",
        "delete": "deleteTool",
        "invoke": "invokeTool",
    }.items()
}
SAME_BUNDLE = {"bundleID": "$request.path.bundleID"}
BUNDLE_LINKS: dict[str, object] = {
    "read": {"operationId": "readBundle", "parameters": SAME_BUNDLE},
    "switch": {"operationId": "switchBundle", "parameters": SAME_BUNDLE},
    "delete": {"operationId": "deleteBundle", "parameters": SAME_BUNDLE},
    "putTool": {"operationId": "putTool", "parameters": SAME_BUNDLE},
}
