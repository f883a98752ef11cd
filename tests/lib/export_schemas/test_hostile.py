"""Schemas made to break an exporter: huge, deep, unfolding without end, with unexpected letters."""

import json
import re

import pytest

from toolcrib import Kind, ToolError
from toolcrib.lib.export_schemas import Provider
from toolcrib.lib.export_schemas.definitions import export_tool
from toolcrib.lib.export_schemas.writer import MAX_FORMS, MAX_UNFOLDED

RESTRICTED = [(Provider.OPENAI, True), (Provider.ANTHROPIC, True), (Provider.GEMINI, False)]
restricted = pytest.mark.parametrize(("provider", "strict"), RESTRICTED)


def count(value):
    if isinstance(value, dict):
        return 1 + sum(map(count, value.values()))
    return sum(map(count, value)) if isinstance(value, list) else 0


def closed(properties, **more):
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def test_two_thousand_subschemas_are_exported_whole(way, make_tool):
    provider, strict = way
    schema = closed({f"p{number}": {"type": "string", "minLength": 1} for number in range(1_999)})
    export = export_tool(make_tool(schema), provider, strict=strict)
    assert len(export.parameters["properties"]) == 1_999


@restricted
def test_references_that_double_at_every_step_are_cut_with_a_loss(provider, strict, make_tool):
    steps = {
        f"s{n}": closed({"a": {"$ref": f"#/$defs/s{n + 1}"}, "b": {"$ref": f"#/$defs/s{n + 1}"}}) for n in range(30)
    }
    schema = closed({"x": {"$ref": "#/$defs/s0"}}, **{"$defs": {**steps, "s30": {"type": "string"}}})
    tool = make_tool(schema)
    if strict and provider is Provider.OPENAI:
        with pytest.raises(ToolError, match="OpenAI's strict mode takes no more than 10 levels") as refusal:
            export_tool(tool, provider, strict=True)
        assert refusal.value.kind is Kind.LIMIT_EXCEEDED
        return
    export = export_tool(tool, provider, strict=strict)
    assert count(export.parameters) < 3 * MAX_FORMS
    assert {loss.keyword for loss in export.losses} == {"$ref"}


@restricted
def test_a_schema_that_contains_itself_many_times_ends(provider, strict, make_tool):
    names = "abcdefgh"
    node = closed({name: {"type": "array", "items": {"$ref": "#/$defs/n"}, "description": name} for name in names})
    export = export_tool(
        make_tool(closed({"x": {"$ref": "#/$defs/n"}}, **{"$defs": {"n": node}})), provider, strict=strict
    )
    assert count(export.parameters) < 3 * MAX_FORMS
    assert [
        loss.keyword for loss in export.losses if loss.keyword != "additionalProperties"
    ] or "$defs" in export.parameters


@restricted
def test_choices_that_multiply_are_bounded(provider, strict, make_tool):
    pairs = [{"anyOf": [{"minLength": n}, {"maxLength": n}]} for n in range(1, 20)]
    export = export_tool(make_tool(closed({"x": {"type": "string", "allOf": pairs}})), provider, strict=strict)
    assert count(export.parameters) < 3 * MAX_FORMS
    assert "anyOf" in {loss.keyword for loss in export.losses}


@restricted
def test_what_would_unfold_without_measure_is_refused_in_words(provider, strict, make_tool):
    wide = closed(
        {f"p{number}": {"type": "string"} for number in range(300)}, anyOf=[{"minProperties": n} for n in range(300)]
    )
    with pytest.raises(
        ToolError, match=f"^sample: parameters: unfold to more than {MAX_UNFOLDED:,} subschemas"
    ) as refusal:
        export_tool(make_tool(closed({"x": wide})), provider, strict=strict)
    assert refusal.value.kind is Kind.LIMIT_EXCEEDED


def test_endless_nesting_is_refused_in_words(way, make_tool):
    provider, strict = way
    schema = {"type": "string"}
    for _ in range(5_000):
        schema = closed({"a": schema})
    with pytest.raises(ToolError, match=r"^sample: parameters: (nested )?deeper than 128 (levels|subschemas); flatten"):
        export_tool(make_tool(schema), provider, strict=strict)


def test_strict_mode_refuses_more_than_the_provider_takes(make_tool):
    deep = {"type": "string"}
    for _ in range(10):
        deep = closed({"a": deep})
    assert export_tool(make_tool(deep), Provider.OPENAI, strict=True).losses == ()
    for schema in (closed({"a": deep}), closed({"a": {"enum": [str(number) for number in range(1_001)]}})):
        with pytest.raises(ToolError, match="export the tool without it") as refusal:
            export_tool(make_tool(schema), Provider.OPENAI, strict=True)
        assert refusal.value.kind is Kind.LIMIT_EXCEEDED
        assert export_tool(make_tool(schema), Provider.OPENAI).losses == ()


def test_a_chain_of_references_without_end_is_no_schema_at_all(make_tool):
    schema = closed({"a": {"$ref": "#/$defs/x"}}, **{"$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}}})
    for provider, strict in RESTRICTED:
        assert "a" in export_tool(make_tool(schema), provider, strict=strict).parameters["properties"]


@pytest.mark.parametrize("reference", ["#/$defs/gone", "#gone", "https://example.com/x", 7])
@restricted
def test_a_reference_that_leads_nowhere_is_refused_with_its_place(provider, strict, reference, make_tool):
    with pytest.raises(ToolError, match=r"^sample: parameters: #/properties/a.*\$defs") as refusal:
        export_tool(make_tool(closed({"a": {"$ref": reference}})), provider, strict=strict)
    assert refusal.value.kind is Kind.VALIDATION


def test_hidden_characters_are_written_out_for_a_provider(way, make_tool):
    provider, strict = way
    text = "a\x00b\x1b[31mc\ud800d\ne\u202e"
    schema = closed({"description": {"type": "string", "description": text, "default": "\x01"}}, description=text)
    tool = make_tool(schema, description=text, display_name=text)
    definition = export_tool(tool, provider, strict=strict).definition
    written = json.dumps(definition, ensure_ascii=False).encode()
    assert b"\\u0000" not in written
    assert b"\\u001b" not in written
    assert rb"a\\x00b\\x1b[31mc\\ud800d\ne\\u202e" in written
    assert re.search(rb"(?<!\\)\\u0001", written) is None


def test_hidden_characters_in_names_values_and_comments_are_written_out_too(way, make_tool):
    provider, strict = way
    hidden = "\u200b\U000e0041"
    inner = closed({f"n{hidden}": {"type": "integer"}}) | {"$comment": hidden}
    value = {"type": "string", "enum": [f"v{hidden}", "w"], "default": "w", "examples": [hidden]}
    tool = make_tool(closed({f"a{hidden}": value, "b": inner}), output_schema=closed({f"o{hidden}": {"const": hidden}}))
    written = json.dumps(export_tool(tool, provider, strict=strict).definition, ensure_ascii=False)
    assert set(hidden).isdisjoint(written)
    assert r"v\\u200b" in written


def test_names_and_values_with_hidden_characters_are_led_back(way, make_tool):
    provider, strict = way
    hidden = "\u200b\U000e0041"
    inner = closed({f"n{hidden}": {"type": "string", "enum": [f"v{hidden}", "w"]}, f"o{hidden}": {"type": "integer"}})
    export = export_tool(make_tool(closed({f"a{hidden}": inner})), provider, strict=strict)
    [name] = export.parameters["properties"]
    sent = {name: {r"n\u200b\U000e0041": r"v\u200b\U000e0041"}}
    if export.absent:
        sent[name][r"o\u200b\U000e0041"] = None
    assert export.restore(sent) == {f"a{hidden}": {f"n{hidden}": f"v{hidden}"}}


def test_keywords_of_the_wrong_form_do_not_break_an_export(way, make_tool):
    provider, strict = way
    wrong = {
        "minimum": "1",
        "type": 7,
        "enum": "x",
        "anyOf": {},
        "required": "a",
        "items": 3,
        "title": 4,
        "properties": [],
    }
    export = export_tool(make_tool(closed({"a": wrong, "b": None, "c": 5})), provider, strict=strict)
    assert json.dumps(export.definition)
