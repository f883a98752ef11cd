from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import Kind, ToolError
from toolcrib.lib.schema import (
    accepts,
    check_parameters,
    check_schema,
    compile_schema,
    fill_defaults,
    with_default,
)
from toolcrib.lib.schema_problems import explain_problems
from toolcrib.lib.schema_structure import any_of, is_json, object_schema, type_alias


def refusal(schema: object) -> str:
    with pytest.raises(ToolError) as caught:
        check_schema(schema, "tools/x.json")
    assert caught.value.kind is Kind.VALIDATION
    assert caught.value.message.startswith("tools/x.json: ")
    return caught.value.message.removeprefix("tools/x.json: ")


def explained(schema: dict[str, object], value: object) -> list[str]:
    check_schema(schema, "schema")
    return explain_problems(compile_schema(schema), value, schema)


def ladder(height: int, rung: str = "anyOf") -> dict[str, object]:
    rungs: dict[str, object] = {f"d{i}": {rung: [{"$ref": f"#/$defs/d{i + 1}"}] * 3} for i in range(height)}
    return {"$ref": "#/$defs/d0", "$defs": {**rungs, f"d{height}": {"type": "string"}}}


class TestWhichSchemasAreLetIn:
    @pytest.mark.parametrize("schema", [True, False, {}, {"type": "object"}, {"type": ["integer", "null"]}])
    def test_a_small_valid_schema_passes(self, schema):
        check_schema(schema, "schema")

    @pytest.mark.parametrize("schema", [None, 5, "object", [], [{}]])
    def test_what_is_no_object_is_refused(self, schema):
        assert refusal(schema).startswith("a schema is an object, not ")

    @pytest.mark.spec("S4-27")
    def test_the_place_of_a_wrong_type_is_named_with_the_types_there_are(self):
        message = refusal({"type": "object", "properties": {"user": {"properties": {"age": {"type": "int"}}}}})
        assert message == (
            "#/properties/user/properties/age/type: type 'int' is unknown; "
            "write one of array, boolean, integer, null, number, object, string"
        )

    def test_a_schema_that_breaks_its_metaschema_is_refused_with_its_pointer(self):
        assert refusal({"properties": {"a": {"minLength": -1}}}).startswith("#/properties/a/minLength: -1")

    def test_the_schema_of_arguments_must_be_an_object(self):
        with pytest.raises(ToolError, match='must say "type": "object"'):
            check_parameters({"type": "array"}, "schema")
        check_parameters({"type": "object"}, "schema")

    @pytest.mark.parametrize(
        "uri", ["http://example.com/s.json", "https://x/y", "file:///etc/passwd", "other.json", "//host/x", 7, ""]
    )
    @pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
    def test_a_reference_out_of_the_schema_is_refused(self, keyword, uri):
        message = refusal({"properties": {"a": {keyword: uri}}})
        assert message.startswith(f"#/properties/a/{keyword}: ")
        assert "is not local" in message

    def test_the_engine_itself_fetches_nothing(self):
        with pytest.raises(ToolError, match="is not fetched"):
            compile_schema({"$ref": "http://127.0.0.1:1/schema.json"})

    @pytest.mark.parametrize("reference", ["#/$defs/nothing", "#nowhere", "#/$defs/list/9", "#/$defs/list/99999999"])
    def test_a_reference_to_nothing_is_refused(self, reference):
        assert "leads to no schema" in refusal({"$ref": reference, "$defs": {"list": {"enum": [1]}}})

    def test_local_references_are_followed_however_they_are_written(self):
        schema = {
            "type": "array",
            "items": {"$ref": "#/$defs/a~1b%20c"},
            "contains": {"$ref": "#named"},
            "$defs": {"a/b c": {"type": "integer"}, "x": {"$anchor": "named", "minimum": 3}},
        }
        check_schema(schema, "schema")
        assert compile_schema(schema).is_valid([1, 3])
        assert not compile_schema(schema).is_valid([1])

    def test_an_id_below_the_top_is_refused_because_it_moves_references(self):
        assert "only the outermost schema may have an id" in refusal({"$defs": {"a": {"$id": "urn:x"}}})
        check_schema({"$id": "https://example.com/mine", "type": "object"}, "schema")

    def test_a_property_called_id_is_no_id(self):
        check_schema(object_schema({"$id": {"type": "string"}, "id": {"type": "string"}}), "schema")

    @pytest.mark.parametrize("pattern", [r"(a)\1", "(?=a)b", "(?<!a)b", "(?>a)", r"(?P<n>a)(?P=n)"])
    def test_a_pattern_that_needs_backtracking_is_refused(self, pattern):
        for schema in ({"pattern": pattern}, {"patternProperties": {pattern: {}}}):
            assert "pattern not supported (linear-time engine)" in refusal(schema)
            assert refusal(schema).endswith("; write it without look-around and back-references")

    def test_a_pattern_that_would_grow_too_large_is_refused(self):
        message = refusal({"pattern": "(?:a{1000}){1000}"})
        assert message.endswith("(linear-time engine): '(?:a{1000}){1000}'; write a simpler one")

    @pytest.mark.spec("S3-24")
    @pytest.mark.parametrize(
        ("pattern", "fault"),
        [
            ("(", "missing ), unterminated subpattern at position 0"),
            ("ab[c", "unterminated character set at position 2"),
            ("ab*)", "unbalanced parenthesis at position 3"),
            ("*a", "nothing to repeat at position 0"),
            ("[z-a]", "bad character range z-a at position 1"),
            ("(" * 20_000, ""),
        ],
    )
    def test_a_pattern_that_is_none_is_refused_with_the_place_of_the_fault(self, pattern, fault):
        for schema in ({"pattern": pattern}, {"patternProperties": {pattern: {}}}):
            assert f"{pattern!r:.80} is not a regular expression: {fault}" in refusal(schema)

    @pytest.mark.spec("S3-25", "S3-51")
    @pytest.mark.parametrize(
        ("schema", "place"),
        [
            ({"enum": []}, "#/enum"),
            ({"type": "array", "items": {"enum": []}}, "#/items/enum"),
            ({"properties": {"a": {"anyOf": [{}, {"enum": []}]}}}, "#/properties/a/anyOf/1/enum"),
            ({"$defs": {"a": {"enum": []}}}, "#/$defs/a/enum"),
        ],
    )
    def test_a_choice_of_nothing_is_refused(self, schema, place):
        assert refusal(schema) == f"{place}: must be a list of at least one value; write the values or remove it"

    def test_a_property_called_enum_is_no_choice(self):
        check_schema({"properties": {"enum": {"default": []}}, "const": {"enum": []}}, "schema")

    def test_a_pattern_that_hangs_other_engines_ends(self):
        validator = compile_schema({"type": "string", "pattern": "^(a+)+$"})
        assert not validator.is_valid("a" * 50_000 + "!")

    @pytest.mark.parametrize("rung", ["anyOf", "oneOf", "allOf"])
    def test_a_ladder_of_references_that_unfolds_without_bounds_is_refused(self, rung):
        assert refusal(ladder(18, rung)) == "unfolds to more than 2,000 subschemas; make it smaller"

    def test_a_short_ladder_passes(self):
        check_schema(ladder(5), "schema")

    def test_a_schema_that_shares_its_parts_in_memory_is_refused_before_it_is_written_out(self):
        schema: dict[str, object] = {"type": "string"}
        for _ in range(25):
            schema = {"anyOf": [schema, schema, schema]}
        assert "larger than 64,000 bytes" in refusal(schema)

    def test_a_schema_that_contains_itself_in_memory_is_refused(self):
        schema: dict[str, object] = {}
        schema["not"] = schema
        assert "nested deeper than 64 levels" in refusal(schema)

    def test_a_long_schema_is_refused(self):
        assert "larger than 64,000 bytes" in refusal({"description": "x" * 64_001})

    def test_a_deep_schema_is_refused(self):
        schema: dict[str, object] = {"type": "string"}
        for _ in range(33):
            schema = {"not": schema}
        assert "deeper than 32 subschemas" in refusal(schema)

    @pytest.mark.parametrize("starts", [(0,), (100, 0)])
    def test_a_long_chain_of_references_is_refused_from_every_start(self, starts):
        chain: dict[str, object] = {f"c{i}": {"$ref": f"#/$defs/c{i + 1}"} for i in range(200)}
        schema = {"allOf": [{"$ref": f"#/$defs/c{i}"} for i in starts], "$defs": {**chain, "c200": {}}}
        assert "unfolds deeper than 128 subschemas" in refusal(schema)

    @pytest.mark.parametrize(
        "schema",
        [
            {"$ref": "#"},
            {"allOf": [{"$ref": "#"}]},
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}},
            {"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {}]}}},
            {"$dynamicRef": "#a", "$dynamicAnchor": "a"},
            {
                # The circle is reached first through a property, which consumes input.
                "properties": {"x": {"$ref": "#/$defs/b"}},
                "allOf": [{"$ref": "#/$defs/b"}],
                "$defs": {"b": {"allOf": [{"$ref": "#"}]}},
            },
        ],
    )
    def test_a_circle_that_consumes_no_input_is_refused(self, schema):
        assert "refers to itself without end" in refusal(schema)

    def test_a_circle_through_a_property_passes(self):
        tree = {"$ref": "#/$defs/t", "$defs": {"t": object_schema({"left": {"$ref": "#/$defs/t"}})}}
        check_schema(tree, "schema")
        assert compile_schema(tree).is_valid({"left": {"left": {}}})
        assert not compile_schema(tree).is_valid({"left": {"right": {}}})

    def test_the_named_draft_is_obeyed(self):
        seven = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}
        check_schema(seven, "schema")
        assert not compile_schema(seven).is_valid([1])
        assert 'unknown "$schema"' in refusal({"$schema": "http://example.com/mine"})

    @pytest.mark.parametrize("schema", [{1: {}}, {"const": object()}, {"const": {1, 2}}, {"enum": [b"x"]}])
    def test_what_is_not_json_is_refused(self, schema):
        refusal(schema)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("#/$defs/a"),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        ["$ref", "$defs", "a", "anyOf", "not", "properties", "items", "type", "$id", "pattern"]
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=12,
        )
    )
    @settings(max_examples=examples(150))
    def test_any_content_of_a_file_passes_or_is_refused(self, schema):
        try:
            check_schema(schema, "file")
        except ToolError:
            return
        compile_schema(schema).is_valid({"a": [1, "x", None]})


FORMATS = {
    "email": ("ann@example.com", "ann@"),
    "date-time": ("2026-01-31T10:00:00Z", "2026-01-31 10:00"),
    "uri": ("https://example.com/a?b=c", "no scheme"),
    "uuid": ("3f2504e0-4f89-41d3-9a0c-0305e82c3301", "3f2504e0"),
    "ipv4": ("192.0.2.1", "192.0.2.256"),
    "ipv6": ("2001:db8::1", "2001::db8::1"),
}


class TestWhatIsWrongWithAValue:
    @pytest.mark.spec("S2-19")
    @pytest.mark.parametrize("name", FORMATS)
    def test_formats_are_asserted(self, name):
        schema = object_schema({"value": {"type": "string", "format": name}})
        good, bad = FORMATS[name]
        assert explained(schema, {"value": good}) == []
        assert explained(schema, {"value": bad}) == [f"value: {json.dumps(bad)} is not a valid {name}"]

    @pytest.mark.parametrize(
        ("rule", "value", "sentence"),
        [
            ({"minLength": 2}, "a", 'p: "a" is shorter than 2 characters'),
            ({"maxLength": 2}, "abc", 'p: "abc" is longer than 2 characters'),
            ({"minimum": 1}, 0, "p: 0 is less than the minimum of 1"),
            ({"maximum": 10}, 11, "p: 11 is greater than the maximum of 10"),
            ({"exclusiveMinimum": 1}, 1, "p: 1 is not greater than 1"),
            ({"exclusiveMaximum": 1}, 1, "p: 1 is not less than 1"),
            ({"multipleOf": 5}, 7, "p: 7 is not a multiple of 5"),
            ({"enum": ["a", "b", None]}, "c", 'p: "c" is not one of a, b, null'),
            ({"const": True}, False, "p: false is not true"),
            ({"pattern": "^x"}, "y", 'p: "y" does not match the pattern ^x'),
            ({"type": "integer"}, True, "p: true is not of type integer"),
            ({"type": "integer"}, 3.5, "p: 3.5 is not of type integer"),
            ({"type": "integer"}, "5", 'p: "5" is not of type integer'),
            ({"type": ["string", "null"]}, 5, "p: 5 is not of type string, null"),
            ({"minItems": 1}, [], "p: a list of 0 items has fewer than 1 items"),
            ({"maxItems": 1}, [1, 2], "p: a list of 2 items has more than 1 items"),
            ({"uniqueItems": True}, [1, 1], "p: a list of 2 items has items that are the same"),
            ({"minProperties": 1}, {}, "p: an object with 0 properties has fewer than 1 properties"),
            ({"maxProperties": 0}, {"a": 1}, "p: an object with 1 properties has more than 0 properties"),
            ({"not": {"type": "string"}}, "a", 'p: "a" does not fit the schema (not)'),
            (False, 1, "p is not allowed"),
            ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 5, "p: 5 is not string or null"),
            ({"oneOf": [{"minimum": 0}, {"maximum": 9}]}, 5, "p: 5 fits 2 of the alternatives, and only one may fit"),
            ({"if": {"type": "string"}, "then": {"minLength": 3}}, "a", 'p: "a" is shorter than 3 characters'),
            ({"items": {"type": "string"}}, ["a", 4], "p[1]: 4 is not of type string"),
            ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 4], "p[1] is not allowed"),
            (
                {"propertyNames": {"maxLength": 1}},
                {"ab": 1},
                "p.ab: the name is not one that is allowed",
            ),
            ({"additionalProperties": {"type": "integer"}}, {"k": "v"}, 'p.k: "v" is not of type integer'),
            ({"$ref": "#/$defs/name"}, 5, "p: 5 is not of type string"),
            ({"allOf": [{"$ref": "#/$defs/name"}, {"minLength": 2}]}, "a", 'p: "a" is shorter than 2 characters'),
        ],
    )
    def test_a_broken_rule_is_named_with_place_and_value(self, rule, value, sentence):
        schema = {"type": "object", "properties": {"p": rule}, "$defs": {"name": {"type": "string"}}}
        assert explained(schema, {"p": value}) == [sentence]

    def test_a_missing_property_is_named_with_its_type(self):
        schema = object_schema({"user": object_schema({"name": {"type": "string"}}, ["name"])}, ["user"])
        assert explained(schema, {}) == ["user is missing (object)"]
        assert explained(schema, {"user": {}}) == ["user.name is missing (string)"]

    def test_an_unknown_property_is_named_with_the_nearest_known_one(self):
        schema = object_schema({"query": {"type": "string"}, "top_k": {"type": "integer"}})
        assert explained(schema, {"qurey": "x"}) == ["qurey is unknown; did you mean query? (known: query, top_k)"]
        assert explained(schema, {"zzz": "x"}) == ["zzz is unknown (known: query, top_k)"]

    def test_a_property_that_a_pattern_names_is_known(self):
        schema = {"type": "object", "patternProperties": {"^x-": {}}, "additionalProperties": False}
        assert explained(schema, {"x-a": 1, "y": 2}) == ["y is unknown (known: none)"]

    def test_a_property_that_is_required_and_not_defined_shows_the_schema_to_be_unsatisfiable(self):
        schema = object_schema({"start": {"type": "string"}}, ["start", "end"])
        unsatisfiable = ["end is required but not defined: the schema cannot be satisfied"]
        assert explained(schema, {"start": "x"}) == unsatisfiable
        assert explained(schema, {"start": "x", "end": "y"}) == unsatisfiable

    def test_what_is_required_and_named_by_a_pattern_alone_can_be_given(self):
        schema = {**object_schema({}, ["x-end"]), "patternProperties": {"^x-": {"type": "string"}}}
        assert explained(schema, {}) == ["x-end is missing (any value)"]
        assert explained(schema, {"x-end": "y"}) == []

    def test_every_problem_is_told_up_to_ten(self):
        schema = object_schema({f"p{i}": {"type": "string"} for i in range(30)})
        assert explained(schema, {f"p{i}": i for i in range(3)}) == [
            f"p{i}: {i} is not of type string" for i in range(3)
        ]
        assert len(explained(schema, {f"p{i}": i for i in range(30)})) == 10

    def test_long_values_are_shortened(self):
        schema = object_schema({"p": {"type": "integer"}})
        (text,) = explained(schema, {"p": "x" * 10_000})
        assert len(text) < 140
        (text,) = explained(object_schema({"p": {"maximum": 1}}), {"p": 2**1_000})
        assert text == "p: a number of 1001 bits is greater than the maximum of 1"
        (text,) = explained(object_schema({}), {"k" * 10_000: 1})
        assert len(text) < 140

    def test_the_alternative_that_the_value_names_is_explained(self):
        schema = object_schema(
            {
                "shape": {
                    "anyOf": [
                        object_schema({"kind": {"const": "circle"}, "radius": {"type": "number"}}, ["kind", "radius"]),
                        object_schema({"kind": {"const": "square"}, "side": {"type": "number"}}, ["kind", "side"]),
                    ]
                }
            }
        )
        assert explained(schema, {"shape": {"kind": "square", "side": "x"}}) == [
            'shape.side: "x" is not of type number'
        ]

    def test_a_deep_value_under_a_recursive_schema_is_explained_at_once(self):
        def operation(name: str) -> dict[str, object]:
            term = {"$ref": "#/$defs/term"}
            return object_schema({"op": {"const": name}, "left": term, "right": term}, ["op", "left", "right"])

        schema = {
            "$ref": "#/$defs/term",
            "$defs": {"term": {"anyOf": [{"type": "number"}, operation("add"), operation("mul")]}},
        }
        value: object = "bad"
        for _ in range(40):
            value = {"left": value, "op": "mul", "right": 1}
        assert explained(schema, value) == [f'{"left." * 39}left: "bad" is not number or object']

    def test_arguments_that_are_no_object_are_explained(self):
        assert explained(object_schema({}), [1]) == ["a list of 1 items is not of type object"]
        assert explained(object_schema({"a": {"type": "string"}}), {"a": object()}) == [
            "not JSON: Unsupported type: 'object'"
        ]
        assert explained({"not": {}}, 1) == ["1 does not fit the schema (not)"]

    JSON = st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        max_leaves=6,
    )
    SCHEMAS = st.recursive(
        st.sampled_from(
            [True, False, {"type": "string"}, {"type": "integer"}, {"minimum": 0}, {"enum": [1, "a"]}, {"minLength": 1}]
        ),
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).flatmap(
                lambda parts: st.sampled_from([{key: parts} for key in ("anyOf", "oneOf", "allOf", "prefixItems")])
            ),
            inner.flatmap(
                lambda part: st.sampled_from(
                    [{key: part} for key in ("not", "items", "contains", "additionalProperties", "if", "propertyNames")]
                )
            ),
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
                lambda parts: {"properties": parts, "required": sorted(parts)[:1], "additionalProperties": False}
            ),
        ),
        max_leaves=8,
    )

    @given(SCHEMAS, JSON)
    @settings(max_examples=examples(300))
    def test_there_is_an_explanation_exactly_when_the_value_does_not_fit(self, schema, value):
        validator = compile_schema(schema)
        assert bool(explain_problems(validator, value, schema)) is not validator.is_valid(value)


class TestDefaults:
    def test_a_schema_without_defaults_needs_no_filling(self):
        assert fill_defaults(object_schema({"a": {"type": "string"}})) is None
        assert fill_defaults(True) is None
        assert fill_defaults({"properties": "nonsense"}) is None

    def test_what_was_left_out_is_filled_in_and_what_was_given_stays(self):
        fill = fill_defaults(object_schema({"a": {"default": 1}, "b": {"default": None}}))
        assert fill is not None
        given = {"a": 2}
        assert fill(given) == {"a": 2, "b": None}
        assert given == {"a": 2}

    def test_nested_objects_and_items_are_filled_in_without_changing_what_the_caller_holds(self):
        user = object_schema({"name": {}, "role": {"default": "guest"}})
        schema = {
            "type": "object",
            "properties": {"user": {"$ref": "#/$defs/user"}, "users": {"items": {"$ref": "#/$defs/user"}}},
            "$defs": {"user": user},
        }
        fill = fill_defaults(schema)
        assert fill is not None
        given = {"user": {"name": "ann"}, "users": [{"name": "bob"}, {"role": "admin"}, 7]}
        before = copy.deepcopy(given)
        assert fill(given) == {
            "user": {"name": "ann", "role": "guest"},
            "users": [{"name": "bob", "role": "guest"}, {"role": "admin"}, 7],
        }
        assert given == before

    def test_an_absent_object_stays_absent(self):
        fill = fill_defaults(object_schema({"user": object_schema({"role": {"default": "guest"}})}))
        assert fill is not None
        assert fill({}) == {}

    @pytest.mark.parametrize("deeper", [{}, {"inner": object_schema({"x": {"default": 1}})}])
    def test_a_default_that_can_change_is_copied_each_time(self, deeper):
        schema = object_schema({"tags": {"default": ["a"]}, **deeper})
        fill = fill_defaults(schema)
        assert fill is not None
        first = fill({})["tags"]
        assert isinstance(first, list)
        first.append("b")
        assert fill({})["tags"] == ["a"]
        assert schema["properties"]["tags"]["default"] == ["a"]  # type: ignore[index]

    def test_values_of_the_wrong_type_are_left_for_the_check(self):
        fill = fill_defaults(object_schema({"user": object_schema({"role": {"default": "guest"}})}))
        assert fill is not None
        assert fill({"user": [1]}) == {"user": [1]}

    def test_a_recursive_schema_is_filled_as_deep_as_the_value_goes(self):
        tree = {
            "$ref": "#/$defs/t",
            "$defs": {"t": object_schema({"n": {"default": 0}, "next": {"$ref": "#/$defs/t", "default": {}}})},
        }
        fill = fill_defaults(tree)
        assert fill is not None
        assert fill({"next": {"next": {}}}) == {"n": 0, "next": {"n": 0, "next": {"n": 0, "next": {}}}}

    def test_a_small_argument_cannot_become_a_huge_one(self):
        item = object_schema({"blob": {"default": [0] * 10_000}})
        fill = fill_defaults(object_schema({"items": {"items": item}}))
        assert fill is not None
        with pytest.raises(ToolError, match="would add more than 100,000 values") as caught:
            fill({"items": [{}] * 1_000})
        assert caught.value.kind is Kind.LIMIT_EXCEEDED

    def test_a_default_is_written_only_where_the_schema_accepts_it(self):
        assert with_default({"type": "integer"}, 3) == {"type": "integer", "default": 3}
        assert with_default({"type": "integer"}, "x") == {"type": "integer"}
        assert with_default({"type": "integer"}, True) == {"type": "integer"}
        assert with_default({"type": "number"}, 1) == {"type": "number", "default": 1}
        assert with_default({"type": "integer"}, None) == {"type": ["integer", "null"], "default": None}
        assert with_default({"enum": ["a"]}, "b") == {"enum": ["a"]}
        assert with_default({}, {"any": "thing"}) == {"default": {"any": "thing"}}

    def test_a_quick_answer_and_the_engine_agree(self):
        values = [None, True, 1, 1.0, 1.5, "x", [], {}]
        for name in ("string", "integer", "number", "boolean", "null", "array", "object"):
            for value in values:
                assert accepts({"type": name}, value) is compile_schema({"type": name}).is_valid(value), (name, value)


class TestSchemasInFewWords:
    def test_an_object_is_closed_unless_it_is_said_to_be_open(self):
        assert object_schema({"a": {}}, ["a"]) == {
            "type": "object",
            "properties": {"a": {}},
            "required": ["a"],
            "additionalProperties": False,
        }
        assert "additionalProperties" not in object_schema({}, closed=False)

    @pytest.mark.parametrize(
        ("text", "schema"),
        [
            ("list", {"type": "array"}),
            ("float", {"type": "number"}),
            ("int", {"type": "integer"}),
            ("str", {"type": "string"}),
            ("bool", {"type": "boolean"}),
            ("dict", {"type": "object"}),
            ("number", {"type": "number"}),
            ("null", {"type": "null"}),
            ("list[str]", {"type": "array", "items": {"type": "string"}}),
            ("list[int | null]", {"type": "array", "items": {"type": ["integer", "null"]}}),
            ("string | null", {"type": ["string", "null"]}),
            ("list[dict] | null", {"anyOf": [{"type": "array", "items": {"type": "object"}}, {"type": "null"}]}),
        ],
    )
    def test_the_type_names_that_people_write_are_understood(self, text, schema):
        assert type_alias(text) == schema
        check_schema(schema, text)

    @pytest.mark.parametrize(
        "text", ["", "date", "list[", "str[int]", "list[date]", "int |", "list]", "x" * 300, "list[" * 39 + "]" * 5]
    )
    def test_other_names_are_refused_with_the_known_ones(self, text):
        with pytest.raises(ToolError, match=r"type .*: longer|is unknown; write one of array, "):
            type_alias(text)

    def test_alternatives_are_written_as_shortly_as_they_can_be(self):
        assert any_of([{"type": "string"}, {"type": "string"}]) == {"type": "string"}
        assert any_of([{"type": "string"}, {}]) == {}

    @pytest.mark.parametrize("value", [None, True, 2**62, 1.5, "ü", [1, {"a": []}]])
    def test_what_a_schema_can_hold(self, value):
        assert is_json(value)
        json.dumps(value, allow_nan=False).encode()

    @pytest.mark.parametrize(
        "value", [2**64, float("nan"), float("inf"), "\ud800", {1: 2}, {"\ud800": 1}, (1,), {1}, object()]
    )
    def test_what_a_schema_cannot_hold(self, value):
        assert not is_json(value)
        assert not is_json([value])

    def test_a_schema_holds_nothing_that_is_nested_without_bounds(self):
        value: list[object] = []
        value.append(value)
        assert not is_json(value)
