"""The shape of a definition for each provider, names, examples, and the way of arguments back."""

import json
import re

import pytest

from toolcrib import Kind, ToolError
from toolcrib.lib.export_schemas import Loss, Provider
from toolcrib.lib.export_schemas.definitions import export_tool, export_tools, to_openai

SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to look for.", "minLength": 2, "maxLength": 200},
        "top_k": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
        "filters": {
            "type": "object",
            "properties": {"kind": {"type": "string", "enum": ["page", "post"]}, "since": {"type": ["string", "null"]}},
            "additionalProperties": False,
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}
PROVIDER_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")


@pytest.fixture
def search(make_tool):
    return make_tool(SEARCH, name="kb_search", description="Looks it up.")


@pytest.mark.spec("S2-51")
def test_openai_takes_the_parameters_as_they_are(search):
    export = export_tool(search, Provider.OPENAI)
    function = {"name": "kb_search", "description": "Looks it up.", "parameters": SEARCH}
    assert export.definition == {"type": "function", "function": function} == to_openai(search)
    assert export.parameters == SEARCH
    assert export.losses == ()
    flat = {"type": "function", **function, "strict": False}
    assert export_tool(search, Provider.OPENAI_RESPONSES).definition == flat


@pytest.mark.spec("S2-52")
def test_gemini_takes_its_own_type_names_at_every_level(search):
    export = export_tool(search, Provider.GEMINI)
    assert export.definition == {
        "name": "kb_search",
        "description": "Looks it up.",
        "parameters": {
            "type": "OBJECT",
            "properties": {
                "query": {"type": "STRING", "minLength": 2, "maxLength": 200, "description": "What to look for."},
                "top_k": {"type": "INTEGER", "minimum": 1, "maximum": 10, "default": 5},
                "filters": {
                    "type": "OBJECT",
                    "properties": {
                        "kind": {"type": "STRING", "enum": ["page", "post"]},
                        "since": {"type": "STRING", "nullable": True},
                    },
                },
            },
            "required": ["query"],
        },
    }
    assert export.losses == ()


def test_strict_mode_requires_everything_and_says_what_it_does_not_enforce(search):
    export = export_tool(search, Provider.OPENAI, strict=True)
    assert export.definition["function"]["strict"] is True
    assert export.parameters["required"] == ["query", "top_k", "filters"]
    assert export.parameters["properties"] == {
        "query": {"type": "string", "description": "What to look for. (at least 2 letters; at most 200 letters)"},
        "top_k": {"type": ["integer", "null"], "minimum": 1, "maximum": 10, "description": "Default: 5"},
        "filters": {
            "type": ["object", "null"],
            "properties": {
                "kind": {"type": ["string", "null"], "enum": ["page", "post", None]},
                "since": {"type": ["string", "null"]},
            },
            "required": ["kind", "since"],
            "additionalProperties": False,
        },
    }
    text = "OpenAI's strict mode does not take it, so the description says: "
    assert export.losses == (
        Loss(path="#/properties/query", keyword="minLength", text=f"{text}at least 2 letters"),
        Loss(path="#/properties/query", keyword="maxLength", text=f"{text}at most 200 letters"),
        Loss(path="#/properties/top_k", keyword="default", text=f"{text}default: 5"),
    )


def test_null_for_what_was_left_out_is_taken_away_and_null_that_the_tool_takes_stays(search):
    export = export_tool(search, Provider.OPENAI, strict=True)
    sent = {"query": "x", "top_k": None, "filters": {"kind": None, "since": None}}
    assert export.restore(sent) == {"query": "x", "filters": {"since": None}}
    assert sent == {"query": "x", "top_k": None, "filters": {"kind": None, "since": None}}
    # What is required is never taken away; the tool's own schema refuses it.
    assert export.restore({"query": None, "top_k": 3, "filters": None}) == {"query": None, "top_k": 3}


def test_nulls_are_found_in_lists_in_branches_and_in_what_contains_itself(make_tool):
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        "required": ["name"],
        "additionalProperties": False,
    }
    round_ = {"kind": {"const": "round"}, "size": {"type": "number"}}
    square = {"kind": {"const": "square"}, "size": {"type": ["number", "null"]}}
    shapes = [
        {"type": "object", "properties": properties, "required": ["kind"], "additionalProperties": False}
        for properties in (round_, square)
    ]
    schema = {
        "type": "object",
        "properties": {
            "tree": {"$ref": "#/$defs/node"},
            "shapes": {"type": "array", "items": {"anyOf": shapes}},
        },
        "additionalProperties": False,
        "$defs": {"node": node},
    }
    export = export_tool(make_tool(schema), Provider.OPENAI, strict=True)
    assert "$defs" in export.parameters
    leaf = {"name": "leaf", "kids": None}
    drawn = [{"kind": "round", "size": None}, {"kind": "square", "size": None}]
    sent = {"tree": {"name": "top", "kids": [leaf, {"name": "mid", "kids": [leaf]}]}, "shapes": drawn}
    tree = {"name": "top", "kids": [{"name": "leaf"}, {"name": "mid", "kids": [{"name": "leaf"}]}]}
    assert export.restore(sent) == {"tree": tree, "shapes": [{"kind": "round"}, {"kind": "square", "size": None}]}


def test_without_strict_mode_nothing_is_taken_away(search):
    for provider in Provider:
        assert export_tool(search, provider).restore({"query": "x", "top_k": None}) == {"query": "x", "top_k": None}


@pytest.mark.parametrize("provider", [Provider.GEMINI, Provider.MCP])
def test_a_provider_without_strict_mode_is_not_asked_for_it(search, provider):
    with pytest.raises(ToolError, match=f"^{provider} has no strict mode; export without it$"):
        export_tool(search, provider, strict=True)


def test_anthropic_takes_the_parameters_and_the_examples(search, make_tool):
    definition = {"name": "kb_search", "description": "Looks it up.", "input_schema": SEARCH}
    assert export_tool(search, Provider.ANTHROPIC).definition == definition
    examples = ({"query": "cats"}, {"query": "x"}, {"query": "dogs", "top_k": 2})
    shown = export_tool(make_tool(SEARCH, examples=examples), Provider.ANTHROPIC)
    assert shown.definition["input_examples"] == [{"query": "cats"}, {"query": "dogs", "top_k": 2}]
    assert [str(loss) for loss in shown.losses] == [
        "#: examples: 1 of them are not shown to the model; they do not fit"
    ]
    strict = export_tool(search, Provider.ANTHROPIC, strict=True)
    assert strict.definition["strict"] is True
    assert strict.parameters["required"] == ["query"]


def test_examples_are_shown_where_there_is_a_place_for_them(make_tool):
    one = make_tool(SEARCH, examples=({"query": "cats"},))
    two = make_tool(SEARCH, examples=({"query": "cats"}, {"query": "dogs"}))
    assert export_tool(one, Provider.GEMINI).parameters["example"] == {"query": "cats"}
    assert export_tool(one, Provider.GEMINI).losses == ()
    texts = {provider: [str(loss) for loss in export_tool(two, provider).losses] for provider in Provider}
    hidden = ["#: examples: they are not shown to the model; the provider has no place for them"]
    assert texts == {
        Provider.OPENAI: hidden,
        Provider.OPENAI_RESPONSES: hidden,
        Provider.GEMINI: ["#: examples: only the first is shown to the model; the format has one"],
        Provider.ANTHROPIC: [],
        Provider.MCP: hidden,
    }


def test_a_function_without_arguments_has_no_parameters_for_gemini(make_tool):
    tool = make_tool({"type": "object", "properties": {}, "additionalProperties": False}, examples=({},))
    export = export_tool(tool, Provider.GEMINI)
    assert export.definition == {"name": "sample", "description": "Does it."}
    assert [loss.keyword for loss in export.losses] == ["examples"]


@pytest.mark.parametrize(
    ("facts", "hints"),
    [
        ({}, None),
        ({"idempotent": True}, {"idempotentHint": True}),
        (
            {"side_effects": "none", "idempotent": True},
            {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
        ),
        (
            {"side_effects": "read_only", "requires": frozenset({"net.http"}), "display_name": "Look"},
            {
                "title": "Look",
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": False,
                "openWorldHint": True,
            },
        ),
        (
            {"side_effects": "writes"},
            {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False},
        ),
    ],
)
def test_mcp_hints_say_what_the_tool_declares_and_guess_nothing(make_tool, facts, hints):
    assert export_tool(make_tool(SEARCH, **facts), Provider.MCP).definition.get("annotations") == hints


def test_mcp_takes_title_and_results_that_are_objects(make_tool):
    output = {"type": "object", "properties": {"hits": {"type": "array"}}}
    tool = make_tool(SEARCH, display_name="Look", output_schema=output)
    assert export_tool(tool, Provider.MCP).definition == {
        "name": "sample",
        "title": "Look",
        "description": "Does it.",
        "inputSchema": SEARCH,
        "outputSchema": output,
        "annotations": {"title": "Look"},
    }
    export = export_tool(make_tool(SEARCH, output_schema={"type": "array"}), Provider.MCP)
    assert "outputSchema" not in export.definition
    assert [loss.keyword for loss in export.losses] == ["outputSchema"]


@pytest.mark.parametrize("name", ["kb_search", "größe", "7up", "検索", "a" * 64, "ü" * 64])
def test_names_fit_every_provider_and_lead_back_to_the_tool(make_tool, name):
    tool = make_tool(SEARCH, name=name)
    for provider in Provider:
        (export,) = export_tools([tool], provider)
        assert PROVIDER_NAME.fullmatch(export.name)
        assert export.name in json.dumps(export.definition)
        assert export.tool is tool


def test_two_tools_of_one_name_are_refused_by_both_names(make_tool):
    from toolcrib.lib.names import function_name

    alike = [make_tool(SEARCH, name="größe"), make_tool(SEARCH, name=function_name("größe"))]
    with pytest.raises(ToolError, match="'_gr__e_d353a267' and 'größe' would both be offered") as refusal:
        export_tools(alike, Provider.OPENAI)
    assert refusal.value.kind is Kind.CONFLICT
    twins = [make_tool(SEARCH, bundle="one"), make_tool(SEARCH, bundle="two")]
    with pytest.raises(ToolError, match=r"^one/sample@1\.0\.0 and two/sample@1\.0\.0 would both be offered") as refusal:
        export_tools(twins, Provider.OPENAI)
    assert refusal.value.kind is Kind.CONFLICT


def test_arguments_whose_names_a_provider_does_not_take_are_renamed_and_led_back(make_tool):
    schema = {
        "type": "object",
        "properties": {"größe": {"type": "string", "description": "Size."}, "a-b": {"type": "integer"}},
        "required": ["größe"],
        "additionalProperties": False,
    }
    tool = make_tool(schema, examples=({"größe": "L"},))
    gemini = export_tool(tool, Provider.GEMINI)
    size, dashed = gemini.parameters["properties"]
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}", name) for name in (size, dashed))
    assert gemini.parameters["required"] == [size]
    assert gemini.parameters["properties"][size]["description"] == "Size. (named größe)"
    assert gemini.parameters["example"] == {size: "L"}
    assert gemini.restore({size: "L", dashed: 1}) == {"größe": "L", "a-b": 1}
    assert [loss.path for loss in gemini.losses] == ["#/properties/größe", "#/properties/a-b"]
    anthropic = export_tool(tool, Provider.ANTHROPIC)
    assert list(anthropic.parameters["properties"]) == [size, "a-b"]
    assert anthropic.definition["input_examples"] == [{size: "L"}]
    assert anthropic.restore({size: "L"}) == {"größe": "L"}
    assert export_tool(tool, Provider.OPENAI).parameters == schema
    clash = {**schema, "properties": {"größe": True, size: True}}
    with pytest.raises(ToolError, match="two names are alike in the spelling of Anthropic") as refusal:
        export_tool(make_tool(clash), Provider.ANTHROPIC)
    assert refusal.value.kind is Kind.CONFLICT


def test_choices_at_the_root_become_one_object_that_says_them(make_tool):
    by_id = {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
        "additionalProperties": False,
    }
    by_name = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    }
    tool = make_tool({"type": "object", "anyOf": [by_id, by_name]})
    export = export_tool(tool, Provider.ANTHROPIC)
    assert export.parameters["properties"] == {"id": {"type": "integer"}, "name": {"type": "string"}}
    assert export.parameters["required"] == []
    assert export.parameters["additionalProperties"] is False
    assert '"required": ["name"]' in export.parameters["description"]
    assert [(loss.path, loss.keyword) for loss in export.losses] == [("#", "anyOf")]
    assert export_tool(tool, Provider.MCP).parameters == tool.parameters


def test_what_is_closed_around_choices_is_named_when_they_are_united(make_tool, corpus):
    losses = export_tool(make_tool(corpus["root anyOf without others"]), Provider.OPENAI).losses
    assert [(loss.path, loss.keyword) for loss in losses] == [("#", "anyOf"), ("#", "unevaluatedProperties")]


def test_a_reference_into_the_choices_at_the_root_is_refused_with_the_cure(make_tool):
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    tool = make_tool({"type": "object", "anyOf": [inner], "properties": {"b": {"$ref": "#/anyOf/0/properties/a"}}})
    with pytest.raises(
        ToolError, match=r"^sample: parameters: '#/anyOf/0/properties/a' leads into the choices .* \$defs$"
    ):
        export_tool(tool, Provider.OPENAI)
    strict = export_tool(tool, Provider.OPENAI, strict=True)
    assert strict.parameters["properties"]["b"] == {"type": ["string", "null"]}


def test_losses_point_to_where_it_stands_in_the_tool(make_tool):
    schema = {
        "type": "object",
        "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"a/b": {"maxLength": 3}}}],
        "$defs": {"base": {"properties": {"a/b": {"type": "string", "minLength": 1}}, "additionalProperties": False}},
    }
    losses = export_tool(make_tool(schema), Provider.OPENAI, strict=True).losses
    assert [(loss.path, loss.keyword) for loss in losses] == [
        ("#/$defs/base/properties/a~1b", "minLength"),
        ("#/allOf/1/properties/a~1b", "maxLength"),
    ]


def test_whole_numbers_keep_open_bounds_where_only_closed_ones_can_be_said(make_tool):
    whole = {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9.5, "minimum": 0}
    part = {"type": "number", "exclusiveMinimum": 0}
    schema = {"type": "object", "properties": {"a": whole, "b": part}, "additionalProperties": False}
    export = export_tool(make_tool(schema), Provider.GEMINI)
    assert export.parameters["properties"]["a"] == {"type": "INTEGER", "minimum": 1, "maximum": 9}
    assert export.parameters["properties"]["b"] == {"type": "NUMBER", "description": "More than 0"}
    assert [(loss.path, loss.keyword) for loss in export.losses] == [("#/properties/b", "exclusiveMinimum")]


def test_what_speaks_to_readers_goes_into_the_description_and_the_unknown_is_named(make_tool, corpus):
    export = export_tool(make_tool(corpus["told"]), Provider.GEMINI)
    said = 'D (for example "x"; deprecated; encoded as base64)'
    assert export.parameters["properties"]["a"] == {"type": "STRING", "title": "T", "description": said}
    assert [str(loss) for loss in export.losses] == ["#/properties/a: x-note: Gemini does not know it; it is left out"]


def test_what_may_be_added_to_an_object_is_said(make_tool, corpus):
    export = export_tool(make_tool(corpus["map"]), Provider.OPENAI, strict=True)
    assert export.parameters["properties"]["a"]["description"] == 'Further properties: {"type": "integer"}'
    assert [(loss.path, loss.keyword) for loss in export.losses] == [("#/properties/a", "additionalProperties")]


def test_a_default_stays_where_it_is_taken_and_is_said_where_not(make_tool):
    optional = {"type": ["string", "null"], "default": "x"}
    either = {"anyOf": [{"type": "string"}, {"type": "integer"}], "default": 3}
    nothing = {"type": ["string", "null"], "default": None}
    schema = {
        "type": "object",
        "properties": {"a": optional, "b": either, "c": nothing},
        "additionalProperties": False,
    }
    export = export_tool(make_tool(schema), Provider.GEMINI)
    assert export.parameters["properties"] == {
        "a": {"type": "STRING", "nullable": True, "default": "x"},
        "b": {"anyOf": [{"type": kind, "description": "Default: 3"} for kind in ("STRING", "INTEGER")]},
        "c": {"type": "STRING", "nullable": True, "description": "Default: null"},
    }
    assert [(loss.path, loss.keyword) for loss in export.losses] == [("#/properties/b", "default")]
