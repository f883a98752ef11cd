"""The shape of the document of a tool, as it is written."""

from __future__ import annotations

from toolcrib.faces.http.openapi.answers import schema
from toolcrib.faces.http.openapi.parameters import SLUG, UUID7, VERSION

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
