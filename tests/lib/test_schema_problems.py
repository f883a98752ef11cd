"""Everything that is wrong with a schema, told at once."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import ToolError
from toolcrib.lib.schema import check_schema
from toolcrib.lib.schema_problems import misfitting_choices, misfitting_defaults, schema_problems

TYPES = "array, boolean, integer, null, number, object, string"


def test_every_problem_is_told_with_its_place():
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "strin", "minimum": "a", "maxLength": -1, "pattern": "(?=a)"},
            "b": {"$ref": "#/none"},
            "c": {"$ref": "https://example.com/c"},
            "d": 5,
        },
        "patternProperties": {"(": {"enum": []}, "[": {}},
        "required": "text",
    }
    assert sorted(schema_problems(schema)) == sorted(
        [
            (("properties", "b", "$ref"), "'#/none' leads to no schema; add it under $defs"),
            (
                ("properties", "c", "$ref"),
                "'https://example.com/c' is not local; copy what it means under $defs and write #/$defs/NAME",
            ),
            (
                ("patternProperties", "(", "enum"),
                "must be a list of at least one value; write the values or remove it",
            ),
            (("properties", "d"), '5 is not of types "boolean", "object"'),
            (("required",), '"text" is not of type "array"'),
            (
                ("patternProperties", "("),
                "'(' is not a regular expression: missing ), unterminated subpattern at position 0; correct it",
            ),
            (
                ("patternProperties", "["),
                "'[' is not a regular expression: unterminated character set at position 0; correct it",
            ),
            (("properties", "a", "type"), f"type 'strin' is unknown; write one of {TYPES}"),
            (("properties", "a", "minimum"), '"a" is not of type "number"'),
            (("properties", "a", "maxLength"), "-1 is less than the minimum of 0"),
            (
                ("properties", "a", "pattern"),
                (
                    "pattern not supported (linear-time engine): '(?=a)'; "
                    "write it without look-around and back-references"
                ),
            ),
        ]
    )


def test_of_one_word_several_things_can_be_wrong():
    assert schema_problems({"required": ["a", "a", 4], "type": "float", "minLength": "x"}) == [
        (("required",), '["a","a",4] has non-unique elements'),
        (("required", "2"), '4 is not of type "string"'),
        (("type",), f"type 'float' is unknown; write one of {TYPES}"),
        (("minLength",), '"x" is not of type "integer"'),
    ]


def test_an_unknown_draft_is_told_beside_the_rest_and_nothing_is_fetched():
    unknown = 'unknown "$schema"; remove it or write "https://json-schema.org/draft/2020-12/schema"'
    assert schema_problems({"$schema": "http://127.0.0.1:9/draft", "minimum": "a"}) == [
        (("$schema",), unknown),
        (("minimum",), '"a" is not of type "number"'),
    ]


def test_an_older_draft_has_its_own_rules():
    draft = {"$schema": "http://json-schema.org/draft-04/schema#"}
    assert schema_problems({**draft, "minimum": 1, "exclusiveMinimum": True}) == []
    assert schema_problems({**draft, "minimum": 1, "exclusiveMinimum": True, "properties": {"a": True}}) == [
        (("properties", "a"), 'true is not of type "object"')
    ]


def test_what_is_wrong_deep_inside_is_not_told_of_what_is_around_it():
    schema = {"items": {"items": {"dependencies": {"a": {"minLength": "x"}}}}}
    for draft in ("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"):
        assert schema_problems({"$schema": draft, **schema}) == [
            (("items", "items", "dependencies", "a", "minLength"), '"x" is not of type "integer"')
        ]


def test_a_property_that_is_called_like_a_keyword_is_none():
    assert schema_problems({"properties": {"type": 5}}) == [
        (("properties", "type"), '5 is not of types "boolean", "object"')
    ]


@pytest.mark.parametrize("schema", [5, None, "object", []])
def test_what_is_no_schema_is_one_problem(schema):
    [(place, text)] = schema_problems(schema)
    assert place == ()
    assert text.startswith("a schema is an object, not ")


def test_of_a_schema_that_is_too_large_nothing_else_is_told():
    large = {f"p{number}": {"type": "x", "description": "y" * 60} for number in range(1_000)}
    assert schema_problems({"properties": large}) == [((), "larger than 64,000 bytes; shorten it")]


@pytest.mark.timeout(10)
def test_problems_of_a_deep_schema_are_told_soon():
    schema = {"type": "x"}
    for _ in range(27):
        schema = {"type": "x", "anyOf": [schema], "minLength": "x"}
    assert len(schema_problems(schema)) == 1 + 27 * 2


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(["string", "object", "#", "#/$defs/a", "(", "x"])
)
WORDS = st.sampled_from(
    [
        *("type", "enum", "const", "minimum", "maxLength", "pattern", "required", "$ref", "$anchor", "$id", "$schema"),
        *("properties", "patternProperties", "items", "prefixItems", "anyOf", "not", "$defs", "default", "format"),
    ]
)
SCHEMAS = st.recursive(
    VALUES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(WORDS, inner, max_size=4),
        st.dictionaries(st.sampled_from(["a", "b", "type"]), inner, max_size=3),
    ),
    max_leaves=12,
)


@example(schema={"type": None, "$schema": "#/$defs/a"})
@settings(max_examples=examples(300))
@given(schema=st.dictionaries(WORDS, SCHEMAS, max_size=4))
def test_a_schema_has_problems_exactly_if_it_is_not_let_in(schema):
    try:
        check_schema(schema, "schema")
    except ToolError:
        assert schema_problems(schema)
    else:
        assert schema_problems(schema) == []
        assert all(reasons for _, _, reasons in misfitting_defaults(schema))
        assert isinstance([*misfitting_choices(schema)], list)


def test_a_default_that_its_own_schema_refuses_is_found_through_references():
    schema = {
        "$defs": {"number": {"type": "number", "default": "none"}},
        "properties": {
            "a": {"$ref": "#/$defs/number", "default": "1"},
            "b": {"type": "string", "default": "fine"},
            "c": {"items": {"properties": {"d": {"type": "null", "default": 0}}}},
            "e": False,
        },
    }
    assert [(place, default) for place, default, _ in misfitting_defaults(schema)] == [
        (("properties", "c", "items", "properties", "d", "default"), 0),
        (("properties", "a", "default"), "1"),
        (("$defs", "number", "default"), "none"),
    ]


def test_a_choice_that_the_type_refuses_is_found():
    schema = {"properties": {"a": {"type": "string", "enum": ["x", 1, None]}, "b": {"type": "null", "const": 0}}}
    assert sorted(misfitting_choices(schema)) == [
        (("properties", "a", "enum", "1"), 1),
        (("properties", "a", "enum", "2"), None),
        (("properties", "b", "const"), 0),
    ]
