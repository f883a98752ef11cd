"""The vendors' own packages, imported once, and tools to export."""

import importlib
import warnings
from types import SimpleNamespace

import pytest

from sample_tools import host_tool
from toolcrib.lib.export_schemas import Provider

OBJECT = {"type": "object", "additionalProperties": False}
NODE = {
    **OBJECT,
    "properties": {"value": {"type": "number"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
    "required": ["value"],
}


def _of(schema, **more):
    return {**OBJECT, "properties": {"a": schema}, **more}


# One schema for each keyword, and the shapes that tools really have.
CORPUS = {
    "nothing": {**OBJECT, "properties": {}},
    "open": {"type": "object"},
    "open with a name": {"type": "object", "properties": {"a": {"type": "string"}}},
    "text": _of({"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a", "description": "A text."}),
    "date": _of({"type": "string", "format": "date"}),
    "address": _of({"type": "string", "format": "uri"}),
    "odd format": _of({"type": "string", "format": "json-pointer"}),
    "number": _of({"type": "number", "minimum": 0, "exclusiveMaximum": 7.5, "multipleOf": 0.5}),
    "integer": _of({"type": "integer", "exclusiveMinimum": 0, "maximum": 10, "default": 5}, required=["a"]),
    "old exclusive": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        **_of({"type": "number", "minimum": 1, "exclusiveMinimum": True}),
    },
    "boolean": _of({"type": "boolean", "default": False}),
    "null": _of({"type": "null"}),
    "null by default": _of({"type": ["string", "null"], "default": None}),
    "any": _of(True),
    "never": _of(False),
    "never but needed": _of(False, required=["a"]),
    "needed but undefined": _of({"type": "string"}, required=["a", "b"]),
    "untyped": _of({"minLength": 2, "description": "Untyped."}),
    "types": _of({"type": ["string", "integer", "null"], "minLength": 2, "minimum": 3}),
    "enum": _of({"enum": ["x", "y"]}),
    "mixed enum": _of({"enum": ["x", 1, 2.5, True, None]}),
    "complex enum": _of({"enum": [[1], {"b": 2}, "x"]}),
    "const": _of({"const": 3}),
    "list": _of({"type": "array", "minItems": 2, "maxItems": 3, "items": {"type": "string"}}),
    "plain list": _of({"type": "array"}),
    "set": _of({"type": "array", "uniqueItems": True, "items": {"type": "integer"}}),
    "empty list": _of({"type": "array", "items": False}),
    "tuple": _of({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}),
    "old tuple": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_of({"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "additionalItems": False}),
    },
    "contains": _of({"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 3}, "minContains": 2}),
    "map": _of({"type": "object", "additionalProperties": {"type": "integer"}}),
    "patterns": _of({**OBJECT, "patternProperties": {"^x": {"type": "integer"}}}),
    "names": _of({"type": "object", "propertyNames": {"maxLength": 2}}),
    "counted": _of({**OBJECT, "properties": {"b": {"type": "string"}}, "minProperties": 1, "maxProperties": 4}),
    "dependent": _of(
        {**OBJECT, "properties": {"b": {"type": "string"}, "c": {"type": "string"}}, "dependentRequired": {"b": ["c"]}}
    ),
    "dependent schema": _of({"type": "object", "dependentSchemas": {"b": {"required": ["c"]}}}),
    "if": _of({"type": "integer", "if": {"minimum": 5}, "then": {"multipleOf": 5}, "else": {"multipleOf": 2}}),
    "not": _of({"type": "string", "not": {"const": "x"}}),
    "anyOf": _of({"description": "Either.", "anyOf": [{"type": "string"}, {"type": "integer", "minimum": 1}]}),
    "anyOf beside more": _of({"type": "string", "maxLength": 3, "anyOf": [{"pattern": "^a"}, {"pattern": "b$"}]}),
    "oneOf": _of({"oneOf": [{"type": "integer", "multipleOf": 2}, {"type": "integer", "multipleOf": 3}]}),
    "exclusive oneOf": _of({"oneOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),
    "allOf": _of({"allOf": [{"type": "integer", "minimum": 1}, {"maximum": 9, "minimum": 0}]}),
    "impossible": _of({"allOf": [{"type": "integer"}, {"type": "string"}]}),
    "objects together": _of(
        {
            "allOf": [
                {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
                {"type": "object", "properties": {"c": {"type": "integer"}}},
            ],
            "unevaluatedProperties": False,
        }
    ),
    "unevaluated inside": _of(
        {
            "allOf": [
                {"type": "object", "properties": {"b": {"type": "string"}}, "unevaluatedProperties": False},
                {"properties": {"c": {"type": "integer"}}},
            ]
        }
    ),
    "patterns beside names": _of(
        {"allOf": [{**OBJECT, "patternProperties": {"^x": True}}, {"properties": {"b": {"type": "string"}}}]}
    ),
    "tuple with more": _of({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}}),
    "nested": _of({**OBJECT, "properties": {"b": {**OBJECT, "properties": {"c": {"type": ["string", "null"]}}}}}),
    "reference": {**_of({"$ref": "#/$defs/b", "description": "Mine."}), "$defs": {"b": {"type": "string"}}},
    "old reference": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_of({"$ref": "#/definitions/b", "minLength": 3}),
        "definitions": {"b": {"type": "string"}},
    },
    "anchor": {**_of({"$ref": "#it"}), "$defs": {"b": {"$anchor": "it", "type": "string"}}},
    "tree": {**_of({"$ref": "#/$defs/node"}), "$defs": {"node": NODE}},
    "described tree": {**_of({"$ref": "#/$defs/node", "description": "A tree."}), "$defs": {"node": NODE}},
    "itself": _of({"$ref": "#"}),
    "two trees": {
        **_of({"$ref": "#/$defs/x"}),
        "$defs": {
            "x": {**OBJECT, "properties": {"y": {"$ref": "#/$defs/y"}}},
            "y": {
                **OBJECT,
                "properties": {"x": {"$ref": "#/$defs/x"}, "z": {"type": "array", "items": {"$ref": "#/$defs/y"}}},
            },
        },
    },
    "root reference": {
        "type": "object",
        "$ref": "#/$defs/all",
        "$defs": {"all": _of({"type": "string"}, required=["a"])},
    },
    "root anyOf": _of({"type": "string"}, anyOf=[{"required": ["a"]}, {"minProperties": 0}]),
    "root oneOf of objects": {
        "type": "object",
        "oneOf": [
            {**OBJECT, "properties": {"k": {"const": "x"}, "b": {"type": "integer"}}, "required": ["k", "b"]},
            {**OBJECT, "properties": {"k": {"const": "y"}, "c": {"type": "string"}}, "required": ["k"]},
        ],
    },
    "root allOf": {
        "type": "object",
        "allOf": [
            {"properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]},
            {"properties": {"a": {"maximum": 5}, "b": {"type": "string"}}},
        ],
    },
    "root allOf of dependencies": {
        **OBJECT,
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "dependentRequired": {"a": ["b"]},
        "allOf": [{"dependentRequired": {"b": ["a"]}}],
    },
    "root anyOf without others": {
        "type": "object",
        "anyOf": [
            {"properties": {"a": {"type": "string"}}, "required": ["c"]},
            {"properties": {"b": {"type": "string"}}},
        ],
        "unevaluatedProperties": False,
    },
    "root never": {"type": "object", "allOf": [False]},
    "root not": {**_of({"type": "string"}), "not": {"required": ["a"]}},
    "root enum": {**_of({"type": "string"}), "enum": [{"a": "x"}, {}]},
    "told": _of(
        {
            "type": "string",
            "title": "T",
            "description": "D",
            "examples": ["x"],
            "deprecated": True,
            "contentEncoding": "base64",
            "$comment": "c",
            "x-note": 1,
        }
    ),
    "strange names": {
        **OBJECT,
        "properties": {"größe": {"type": "string"}, "a b": {"type": "integer"}},
        "required": ["größe"],
    },
}
WAYS = [
    (Provider.OPENAI, False),
    (Provider.OPENAI, True),
    (Provider.OPENAI_RESPONSES, False),
    (Provider.OPENAI_RESPONSES, True),
    (Provider.GEMINI, False),
    (Provider.ANTHROPIC, False),
    (Provider.ANTHROPIC, True),
    (Provider.MCP, False),
]


def pytest_generate_tests(metafunc):
    if "way" in metafunc.fixturenames:
        metafunc.parametrize("way", WAYS, ids=[f"{provider}{'-strict' * strict}" for provider, strict in WAYS])
    if "schema" in metafunc.fixturenames:
        metafunc.parametrize("schema", CORPUS.values(), ids=CORPUS)


@pytest.fixture
def corpus():
    return CORPUS


@pytest.fixture(scope="session")
def make_tool():
    def make(parameters, **facts):
        return host_tool(parameters=parameters, **{"description": "Does it.", **facts})

    return make


@pytest.fixture(scope="session")
def vendors():
    """What judges our exports: each vendor's own code, in its own words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their packages are not ours to mend
        return _import_vendors()


def _import_vendors():
    from pydantic import TypeAdapter

    genai = importlib.import_module("google.genai.types")
    return SimpleNamespace(
        strict=importlib.import_module("agents.strict_schema").ensure_strict_json_schema,
        chat=TypeAdapter(importlib.import_module("openai.types.chat").ChatCompletionToolParam),
        responses=TypeAdapter(importlib.import_module("openai.types.responses").FunctionToolParam),
        gemini=genai,
        transform=importlib.import_module("anthropic").transform_schema,
        anthropic=TypeAdapter(importlib.import_module("anthropic.types").ToolParam),
        mcp=[
            importlib.import_module(name).Tool
            for name in ("mcp_types", "mcp_types._v2025_11_25", "mcp_types._v2026_07_28")
        ],
    )
