"""Parameters and schemas: what arguments a tool takes, and what it gives back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib.features.scripts.schemas import merge_schemas
from toolcrib.lib.schema import check_parameters, compile_schema, fill_defaults

PARAMETERS = """
parameters:
  - name: service_name
    type: string
    required: true
    description: "Name of service to deploy"

  - name: replicas
    type: integer
    required: false
    default: 3
    description: "Number of replicas (1-10)"
    minimum: 1
    maximum: 10

  - name: timeout
    type: integer
    required: false
    default: 300
    description: "Timeout in seconds"
"""
SCHEMA = """
input_schema:
  type: object
  properties:
    service_name:
      type: string
      minLength: 3
      pattern: "^[a-z][a-z0-9-]*$"
    replicas:
      type: integer
      minimum: 1
      maximum: 10
  required:
    - service_name
  additionalProperties: false
"""


def accepts(tool, **arguments) -> bool:
    return compile_schema(tool.parameters).is_valid(arguments)


class TestParameters:
    @pytest.mark.spec("S3-16", "S3-19", "S3-21", "S3-22", "S3-26", "S3-20")
    def test_the_list_becomes_a_closed_schema(self, describe):
        tool = describe(PARAMETERS)
        assert tool.parameters == {
            "type": "object",
            "properties": {
                "service_name": {"type": "string", "description": "Name of service to deploy"},
                "replicas": {
                    "type": "integer", "description": "Number of replicas (1-10)", "minimum": 1, "maximum": 10, "default": 3,
                },
                "timeout": {"type": "integer", "description": "Timeout in seconds", "default": 300},
            },
            "required": ["service_name"],
            "additionalProperties": False,
        }  # fmt: skip
        assert not accepts(tool)
        assert not accepts(tool, service_name="a", replicas=0)
        assert not accepts(tool, service_name="a", replicas=11)
        assert not accepts(tool, service_name="a", other=1)
        assert fill_defaults(tool.parameters)({"service_name": "a"}) == {
            "service_name": "a",
            "replicas": 3,
            "timeout": 300,
        }

    def test_an_empty_list_takes_nothing(self, describe):
        tool = describe("parameters: []")
        assert accepts(tool)
        assert not accepts(tool, x=1)

    @pytest.mark.spec("S3-18", "S3-48")
    @pytest.mark.parametrize(
        ("written", "schema", "good", "bad"),
        [
            ("string", {"type": "string"}, "x", 1),
            ("integer", {"type": "integer"}, 1, 1.5),
            ("float", {"type": "number"}, 1.5, "1"),
            ("boolean", {"type": "boolean"}, True, 1),
            ("object", {"type": "object"}, {}, []),
            ("array", {"type": "array"}, [], {}),
            ("number", {"type": "number"}, 1, "1"),
            ('"null"', {"type": "null"}, None, 0),
            ('[string, "null"]', {"type": ["string", "null"]}, None, 1),
        ],
    )
    def test_a_type_is_one_of_json_schema(self, written, schema, good, bad, describe):
        tool = describe(f"parameters: [{{name: x, type: {written}, required: true, description: X}}]")
        assert tool.parameters["properties"]["x"] == {**schema, "description": "X"}
        assert accepts(tool, x=good)
        assert not accepts(tool, x=bad)
        assert not any("is understood as" in warning for warning in tool.warnings)

    @pytest.mark.spec("S3-18")
    @pytest.mark.parametrize(
        ("written", "schema"),
        [
            ("int", {"type": "integer"}), ("str", {"type": "string"}), ("bool", {"type": "boolean"}),
            ("list", {"type": "array"}), ("dict", {"type": "object"}), ("String", {"type": "string"}),
            ("list[str]", {"type": "array", "items": {"type": "string"}}), ("string | null", {"type": ["string", "null"]}),
        ],
    )  # fmt: skip
    def test_another_word_for_it_comes_with_a_warning(self, written, schema, describe):
        tool = describe(f'parameters:\n  - {{name: x, type: "{written}", required: true, enum: [1], description: X}}\n')
        assert tool.parameters["properties"]["x"] == {**schema, "description": "X", "enum": [1]}
        assert next(warning.partition(": ")[2] for warning in tool.warnings) == (
            f"parameters[0].type: {written!r} is understood as {schema}; "
            "write one of string, integer, float, boolean, object, array"
        )

    @pytest.mark.spec("S3-18", "S3-48", "S3-17")
    @pytest.mark.parametrize(
        "written", ["text", "float32", "1", "[]", "{}", "''", "[string, text]", "list[text]", "true"]
    )
    def test_an_unknown_type_is_refused(self, written, faults):
        (message,) = faults(f"parameters:\n  - name: x\n    type: {written}\n")
        assert message.startswith("12: parameters[0].type: ")
        assert message.endswith(" is unknown; write one of string, integer, float, boolean, object, array")

    @pytest.mark.spec("S3-17")
    @pytest.mark.parametrize(
        ("written", "message"),
        [
            ("type: string", "11: parameters[0]: has no name; write name: service_name"),
            ("name: x", '11: parameters[0]: has no type; write type: string, integer, float, boolean, object, array (null in quotes: "null")'),
            ("{name: x, type: null}", "11: parameters[0]: has no type; write"),
            ("x", "11: parameters[0]: must be a mapping with name and type, not text; write - name: …"),
            ("{name: '', type: string}", "11: parameters[0].name: '' cannot be the name of an argument; use up to 64 letters"),
            ("{name: '--x', type: string}", "11: parameters[0].name: '--x' cannot be the name of an argument"),
            ("{name: 'a b', type: string}", "11: parameters[0].name: 'a b' cannot be the name of an argument"),
            ("{name: 1, type: string}", "11: parameters[0].name: 1 cannot be the name of an argument"),
            ("{name: x, type: string, required: yes}", "11: parameters[0].required: must be true or false, not 'yes'"),
            ("{name: x, type: string, enum: []}", "11: parameters[0].enum: must be a list of at least one value; write the values or remove it"),
            ("{name: x, type: string, enum: a}", "11: parameters[0].enum: must be a list of at least one value"),
            ("{name: x, type: string, pattern: 'a['}", "11: parameters[0].pattern: 'a[' is not a regular expression: unterminated character set at position 1; correct it"),
            ("{name: x, type: array, items: {type: string, enum: []}}", "11: parameters[0].items.enum: must be a list of at least one value; write"),
            ("{name: x, type: string, pattern: '(?=a)'}", "11: parameters[0].pattern: pattern not supported (linear-time engine)"),
            ("{name: x, type: string, pattern: 1}", "11: parameters[0].pattern: "),
            ("{name: x, type: integer, minimum: low}", "11: parameters[0].minimum: "),
            ("{name: x, type: string, minLength: -1}", "11: parameters[0].minLength: "),
        ],
    )  # fmt: skip
    def test_one_that_cannot_be_understood_is_refused(self, written, message, faults):
        assert faults(f"parameters:\n  - {written}\n")[0].startswith(message)

    @pytest.mark.spec("S3-25", "S3-51")
    @pytest.mark.parametrize(
        ("written", "place"),
        [
            ("input_schema: {type: object, properties: {x: {enum: []}}}", "9: input_schema.properties.x.enum"),
            ("output_schema: {enum: []}", "9: output_schema.enum"),
            ("outputs: {type: string, enum: []}", "9: outputs.enum"),
            ("outputs:\n  x:\n    type: string\n    enum: []", "12: outputs.x.enum"),
        ],
    )
    def test_an_empty_choice_is_refused_at_any_depth(self, written, place, faults):
        assert faults(written, outputs=None) == [
            f"{place}: must be a list of at least one value; write the values or remove it"
        ]

    @pytest.mark.spec("S3-24", "S3-25", "S3-51")
    def test_every_one_of_them_is_told(self, faults):
        found = faults(
            "parameters:\n  - {name: a, type: x}\n  - {name: b, type: string, pattern: '['}\n  - {type: string}\n"
        )
        assert [message.partition(": ")[0] for message in found] == ["11", "12", "13"]

    @pytest.mark.spec("S3-16")
    @pytest.mark.parametrize("written", ["{x: {type: string}}", "x", "null", "1"])
    def test_they_are_a_list(self, written, faults):
        assert faults(f"parameters: {written}")[0].startswith("10: parameters: must be a list, not ")

    def test_a_name_stands_once(self, faults):
        twice = "parameters:\n  - {name: x, type: string}\n  - {name: x, type: string}\n"
        assert faults(twice) == ["12: parameters[1].name: 'x' stands twice; remove one"]

    @pytest.mark.spec("S3-23", "S3-24", "S3-25", "S3-22")
    @pytest.mark.parametrize(
        ("constraint", "good", "bad"),
        [
            ("minLength: 2", "ab", "a"), ("maxLength: 2", "ab", "abc"), ("pattern: '^a+$'", "aa", "ab"), ("enum: [a, b]", "b", "c"),
        ],
    )  # fmt: skip
    def test_a_constraint_is_enforced(self, constraint, good, bad, describe):
        tool = describe(f"parameters: [{{name: x, type: string, {constraint}}}]")
        assert accepts(tool, x=good)
        assert not accepts(tool, x=bad)

    def test_items_and_properties_are_read_with_the_same_words(self, describe):
        tool = describe("parameters: [{name: x, type: array, items: {type: object, properties: {y: {type: float}}}}]")
        assert accepts(tool, x=[{"y": 1.5}])
        assert not accepts(tool, x=[{"y": "1.5"}])

    @pytest.mark.spec("S3-20")
    def test_a_default_that_does_not_fit_comes_with_a_warning(self, warnings_of):
        found = warnings_of(
            "parameters:\n  - {name: x, type: integer, required: false, default: 0, minimum: 1, description: X}\n"
        )
        assert found == ["11: parameters[0].default: 0 does not fit the parameter itself; correct one of them"]

    @pytest.mark.spec("S3-20")
    def test_a_default_of_null_means_that_null_is_accepted(self, describe):
        tool = describe("parameters: [{name: x, type: string, required: false, default: null, maxLength: 3}]")
        assert accepts(tool, x=None)
        assert not accepts(tool, x="abcd")
        assert fill_defaults(tool.parameters)({}) == {"x": None}

    def test_what_binds_nothing_or_is_not_read_comes_with_a_warning(self, warnings_of):
        found = warnings_of(
            """
            parameters:
              - name: x
                type: string
                required: true
                description: X
                default: a
                minimum: 1
                min_length: 2
            """
        )
        assert found == [
            "18: parameters[0].min_length: is not read; write minLength",
            "17: parameters[0].minimum: binds nothing of type string; remove it",
            "14: parameters[0].required: has a default, so a call may omit it; write required: false",
        ]


class TestInputSchema:
    @pytest.mark.spec("S3-32")
    def test_governs_as_it_is_written(self, describe):
        tool = describe(SCHEMA)
        assert accepts(tool, service_name="abc", replicas=10)
        for wrong in ({}, {"service_name": "ab"}, {"service_name": "Abc"}, {"service_name": "abc", "replicas": 11}):
            assert not accepts(tool, **wrong)
        assert not accepts(tool, service_name="abc", other=1)

    def test_one_that_its_author_left_open_stays_open(self, describe):
        assert accepts(describe("input_schema: {type: object, properties: {}}"), other=1)

    @pytest.mark.spec("S3-32")
    @pytest.mark.parametrize(
        ("written", "message"),
        [
            ("[]", "10: input_schema: must be a JSON Schema, not a list; write type: object and its properties"),
            ("true", "10: input_schema: must be a JSON Schema, not a boolean"),
            ("{properties: {}}", '10: input_schema: the schema of the arguments must say "type": "object"; wrap it in properties'),
            ("{type: string}", '10: input_schema: the schema of the arguments must say "type": "object"'),
            ("{type: object, properties: {x: {type: float}}}", "10: input_schema.properties.x.type: type 'float' is unknown; write one of array"),
            ("{type: object, properties: {x: {pattern: '(?<=a)'}}}", "10: input_schema.properties.x.pattern: pattern not supported"),
            ("{type: object, properties: {x: {$ref: 'https://example.com/x'}}}", "10: input_schema.properties.x"),
            ("{type: object, $ref: '#'}", "10: input_schema: refers to itself without end"),
        ],
    )  # fmt: skip
    def test_that_is_wrong_or_unbounded_is_refused_at_its_line(self, written, message, faults):
        assert faults(f"input_schema: {written}")[0].startswith(message)


class TestBothOfThem:
    def test_arguments_satisfy_both(self, describe, warnings_of):
        tool = describe(PARAMETERS + SCHEMA)
        check_parameters(tool.parameters, "merged")
        assert accepts(tool, service_name="abc", replicas=3, timeout=1)
        assert not accepts(tool, service_name="ab")
        assert not accepts(tool, service_name="abc", other=1)
        assert tool.parameters["properties"]["service_name"] == {
            "type": "string",
            "minLength": 3,
            "pattern": "^[a-z][a-z0-9-]*$",
            "description": "Name of service to deploy",
        }
        assert fill_defaults(tool.parameters)({"service_name": "abc"})["replicas"] == 3
        assert warnings_of(PARAMETERS + SCHEMA) == [
            "11: parameters: timeout not in input_schema; declare the same names in both"
        ]

    def test_a_name_that_only_the_schema_has_is_accepted_with_a_warning(self, describe):
        tool = describe("parameters: []\ninput_schema: {type: object, properties: {x: {type: integer}}}")
        assert accepts(tool, x=1)
        assert not accepts(tool, x="1")
        assert not accepts(tool, y=1)
        assert "input_schema: x not in parameters; declare the same names in both" in tool.warnings[0]

    def test_of_two_defaults_that_of_the_parameters_counts(self, describe):
        tool = describe(
            "parameters: [{name: x, type: integer, default: 1}]\n"
            "input_schema: {type: object, properties: {x: {type: integer, default: 2, description: X}}}"
        )
        assert tool.parameters["properties"]["x"] == {"type": "integer", "default": 1, "description": "X"}

    def test_constraints_that_differ_hold_both(self, describe):
        tool = describe(
            "parameters: [{name: x, type: integer, minimum: 1, default: 5}]\n"
            "input_schema: {type: object, properties: {x: {type: number, minimum: 3}}, required: [x]}"
        )
        assert [accepts(tool, x=value) for value in (2, 3, 3.5)] == [False, True, False]
        assert fill_defaults(tool.parameters)({}) == {"x": 5}
        assert not accepts(tool)

    def test_words_that_look_at_each_other_are_kept_apart(self, describe):
        tool = describe(
            "parameters: [{name: x, type: object, properties: {a: {type: integer}}}]\n"
            "input_schema: {type: object, properties: {x: {type: object, additionalProperties: {type: string}}}}"
        )
        assert [accepts(tool, x=value) for value in ({"a": 1}, {"a": "1"}, {"b": "1"}, {})] == [
            False,
            False,
            True,
            True,
        ]

    @settings(max_examples=examples(200))
    @given(data=st.data())
    def test_together_they_accept_what_each_accepts(self, data):
        part = st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["integer", "string", "number"]),
                "minimum": st.integers(0, 3),
                "maximum": st.integers(2, 5),
                "maxLength": st.integers(0, 2),
                "enum": st.just([1, "a"]),
            },
        )
        schema = st.dictionaries(st.sampled_from("ab"), part)
        ours, theirs = data.draw(schema), data.draw(schema)
        listed = {"type": "object", "properties": ours, "required": [], "additionalProperties": False}
        given_schema = {"type": "object", "properties": theirs}
        merged = compile_schema(merge_schemas(listed, given_schema))
        value = data.draw(
            st.dictionaries(st.sampled_from("abc"), st.integers(0, 6) | st.sampled_from(["", "a", "abc"]))
        )
        wanted = all(
            (name in ours or name in theirs)
            and compile_schema(ours.get(name, {})).is_valid(entry)
            and compile_schema(theirs.get(name, {})).is_valid(entry)
            for name, entry in value.items()
        )
        assert merged.is_valid(value) == wanted


class TestOutputs:
    @pytest.mark.spec("S3-27", "S3-33")
    def test_the_outputs_are_the_schema_of_the_answer(self, describe):
        outputs = "{type: object, properties: {status: {type: string, enum: [success, failed]}}, required: [status]}"
        tool = describe(outputs=outputs)
        validator = compile_schema(tool.output_schema)
        assert validator.is_valid({"status": "success"})
        assert not validator.is_valid({"status": "lost"})

    @pytest.mark.spec("S3-27", "S3-33")
    def test_an_output_schema_counts_before_them(self, describe):
        tool = describe("output_schema: {type: integer}", outputs="{type: string}")
        assert tool.output_schema == {"type": "integer"}
        assert tool.metadata["outputs"] == {"type": "string"}

    @pytest.mark.parametrize(
        ("written", "schema"),
        [
            ("{a: string, b: {type: float, description: B}}", {"type": "object", "properties": {"a": {"type": "string"}, "b": {"description": "B", "type": "number"}}, "required": []}),
            ("[{name: a, type: string, required: true}]", {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            ("{type: {type: string}}", {"type": "object", "properties": {"type": {"type": "string"}}, "required": []}),
            ("{type: list, items: {type: int}}", {"items": {"type": "integer"}, "type": "array"}),
            ("{anyOf: [{type: string}]}", {"anyOf": [{"type": "string"}]}),
            ("{}", {"type": "object", "properties": {}, "required": []}),
        ],
    )  # fmt: skip
    def test_they_are_a_schema_or_names_of_parts(self, written, schema, describe):
        assert describe(outputs=written).output_schema == schema

    @pytest.mark.spec("S3-33")
    @pytest.mark.parametrize(
        ("written", "message"),
        [
            ("outputs: text", "9: outputs: must be a schema, or a mapping of names, not text; write type: object"),
            ("outputs: {a: strong}", "9: outputs.a.type: 'strong' is unknown; write one of string"),
            ("outputs: {type: object, properties: {a: {type: strong}}}", "9: outputs.properties.a.type: 'strong' is unknown"),
            ("outputs: {type: string, pattern: '['}", "9: outputs.pattern: '[' is not a regular expression"),
            ("output_schema: 1", "9: output_schema: must be a JSON Schema, not a number"),
            ("output_schema: {type: float}", "9: output_schema.type: type 'float' is unknown"),
        ],
    )  # fmt: skip
    def test_what_is_no_schema_is_refused(self, written, message, faults):
        assert faults(written, outputs=None)[0].startswith(message)
