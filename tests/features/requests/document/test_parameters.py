"""Inputs and outputs of a request become the schemas of the tool."""

import pytest

from toolcrib.features.requests.document import read_request
from toolcrib.lib.schema import compile_schema, fill_defaults

FIVE = "string, integer, boolean, list, object"


@pytest.fixture
def argument(compose):
    """The schema of one input, without its description."""

    def argument(**entry):
        text = compose(inputs=[{"name": "a", "description": "d", **entry}])
        schema = dict(read_request(text).parameters["properties"]["a"])
        assert schema.pop("description") == "d"
        return schema

    return argument


@pytest.fixture
def output(compose):
    """The schema of one output."""

    def output(**entry):
        return read_request(compose(outputs=[{"name": "a", **entry}])).output_schema["properties"]["a"]

    return output


@pytest.fixture
def of_input(compose):
    """A document with one input."""

    def of_input(**entry):
        entry = {"name": "a", "type": "string", "description": "d", **entry}
        return compose(inputs=[{name: value for name, value in entry.items() if value is not ...}])

    return of_input


@pytest.fixture
def of_output(compose):
    """A document with one output."""

    def of_output(**entry):
        entry = {"name": "a", "type": "string", **entry}
        return compose(outputs=[{name: value for name, value in entry.items() if value is not ...}])

    return of_output


class TestInputs:
    @pytest.mark.spec("S0-14", "S0-16", "S0-17", "S0-18", "S0-19")
    def test_they_become_the_schema_of_the_arguments(self, compose):
        inputs = [
            {"name": "repo", "type": "string", "description": "owner/repo", "required": True},
            {"name": "limit", "type": "integer", "description": "how many", "default": 100},
            {"name": "deep", "type": "boolean", "description": "look deeper", "required": False, "default": True},
            {"name": "tags", "type": "list", "description": "tags"},
            {"name": "options", "type": "object", "description": "options"},
        ]
        request = read_request(compose(inputs=inputs), strict=True)
        assert request.parameters == {
            "type": "object",
            "properties": {
                "repo": {"type": "string", "description": "owner/repo"},
                "limit": {"type": "integer", "description": "how many", "default": 100},
                "deep": {"type": "boolean", "description": "look deeper", "default": True},
                "tags": {"type": "array", "description": "tags"},
                "options": {"type": "object", "description": "options"},
            },
            "required": ["repo"],
            "additionalProperties": False,
        }
        assert [(given.name, given.required) for given in request.inputs][:2] == [("repo", True), ("limit", False)]

    @pytest.mark.spec("S0-19")
    def test_a_default_is_used_where_the_argument_is_left_out(self, compose):
        inputs = [
            {"name": "limit", "type": "integer", "description": "d", "default": 100},
            {"name": "include_email", "type": "boolean", "description": "d", "default": True},
        ]
        fill = fill_defaults(read_request(compose(inputs=inputs)).parameters)
        assert fill({}) == {"limit": 100, "include_email": True}
        assert fill({"limit": 5}) == {"limit": 5, "include_email": True}

    @pytest.mark.spec("S0-15")
    def test_a_name_is_required_and_stands_once(self, compose, problems, of_input):
        assert problems(of_input(name=...)) == ["inputs[0].name: is missing; write name: repo"]
        twice = [{"name": "a", "type": "string", "description": "d"}] * 2
        assert problems(compose(inputs=twice)) == ["inputs[1].name: 'a' stands twice; remove one"]

    @pytest.mark.parametrize("name", ["class", "None", "a-b", "9a", "a b", "ä", "ﬁ", "", "a" * 65, "a.b", "*a"])
    def test_a_name_has_to_work_as_a_keyword_of_a_call(self, problems, of_input, name):
        assert problems(of_input(name=name))[0].startswith("inputs[0].name: ")

    @pytest.mark.parametrize("name", ["a", "A", "_a", "match", "type", "self", "a" * 64, "__a__"])
    def test_what_python_accepts_is_fine(self, warnings, of_input, name):
        assert warnings(of_input(name=name)) == []

    @pytest.mark.spec("S0-16")
    @pytest.mark.parametrize(
        "kind",
        ["date", "strng", "string | nil", "| null", "null |", "list[", "list[date]", "", "str ing", 5, ["string"]],
    )
    def test_an_unknown_type_is_refused_with_the_five(self, problems, of_input, kind):
        (problem,) = problems(of_input(type=kind))
        assert problem.startswith("inputs[0].type: the type ")
        assert problem.endswith(f" is unknown; write one of {FIVE}, or TYPE | null in quotes")

    @pytest.mark.spec("S0-16")
    @pytest.mark.parametrize("kind", [..., None])
    def test_an_absent_type_is_refused(self, problems, of_input, kind):
        (problem,) = problems(of_input(type=kind))
        assert problem.endswith(f"has no type; write type: and one of {FIVE}")

    @pytest.mark.spec("S0-17")
    def test_an_absent_description_is_refused(self, problems, of_input):
        assert problems(of_input(description=...)) == [
            "inputs[0].description: is missing; write description: what it is for"
        ]
        assert problems(of_input(description=" "))[0].startswith("inputs[0].description: must not be empty")

    @pytest.mark.spec("S0-18")
    @pytest.mark.parametrize("value", ["yes", 1, "true", []])
    def test_whether_it_is_required_is_true_or_false(self, problems, of_input, value):
        assert problems(of_input(required=value))[0].startswith("inputs[0].required: must be true or false, not ")

    @pytest.mark.spec("S0-19")
    @pytest.mark.parametrize(
        ("kind", "value"), [("integer", "100"), ("integer", True), ("boolean", 1), ("list", {}), ("string", 5)]
    )
    def test_a_default_of_another_type_comes_with_a_warning_and_is_not_filled_in(
        self, warnings, argument, of_input, kind, value
    ):
        assert [said.partition(" ")[0] for said in warnings(of_input(type=kind, default=value))] == [
            "inputs[0].default:"
        ]
        assert "default" not in argument(type=kind, default=value)

    def test_a_default_of_null_lets_null_in(self, warnings, argument, of_input):
        assert argument(type="string", default=None) == {"type": ["string", "null"], "default": None}
        assert warnings(of_input(default=None)) == [
            "inputs[0].default: null is not of the type of the input; correct one of them"
        ]

    def test_required_and_a_default_contradict_each_other(self, warnings, of_input):
        assert warnings(of_input(required=True, default="x")) == [
            "inputs[0].required: has a default, so it may be left out; remove one of them"
        ]

    @pytest.mark.parametrize(
        ("marks", "required"),
        [({"optional": True}, False), ({"optional": False}, True), ({"optional": False, "required": False}, False)],
    )
    def test_optional_is_understood(self, compose, warnings, of_input, marks, required):
        text = of_input(**marks)
        assert read_request(text).inputs[0].required is required
        assert warnings(text) == [
            "inputs[0].optional: is read, but the format has only name, type, description, required, default"
        ]

    def test_required_and_optional_at_once_are_refused(self, problems, of_input):
        said = ["inputs[0].required: is true although the input is optional; remove one of them"]
        assert problems(of_input(required=True, optional=True)) == said
        assert problems(of_input(required=True, type="string (optional)")) == said

    def test_samples_are_taken(self, warnings, of_input):
        text = of_input(example="x", examples=["y", 5])
        assert read_request(text).inputs[0].samples == ("x", "y")
        assert [said.partition(": ")[0] for said in warnings(text)] == [
            "inputs[0].example", "inputs[0].examples", "inputs[0].examples[1]",
        ]  # fmt: skip

    @pytest.mark.parametrize("entry", ["text", 5, None, ["a"]])
    def test_an_item_that_is_no_mapping_is_refused(self, compose, problems, entry):
        assert problems(compose(inputs=[entry]))[0].startswith("inputs[0]: must be a mapping, not ")
        assert problems(compose(outputs=[entry]))[0].startswith("outputs[0]: must be a mapping, not ")

    def test_there_are_at_most_sixty_four(self, compose, problems):
        entries = [{"name": f"a{n}", "type": "string", "description": "d"} for n in range(65)]
        assert len(read_request(compose(inputs=entries[:64])).inputs) == 64
        assert problems(compose(inputs=entries)) == ["inputs: has 65 items, the limit is 64; leave some out"]


@pytest.mark.spec("S0-16")
@pytest.mark.parametrize(
    ("written", "schema", "own"),
    [
        ("string", {"type": "string"}, True),
        ("integer", {"type": "integer"}, True),
        ("boolean", {"type": "boolean"}, True),
        ("list", {"type": "array"}, True),
        ("object", {"type": "object"}, True),
        ("str", {"type": "string"}, False),
        ("int", {"type": "integer"}, False),
        ("bool", {"type": "boolean"}, False),
        ("float", {"type": "number"}, False),
        ("number", {"type": "number"}, False),
        ("dict", {"type": "object"}, False),
        ("array", {"type": "array"}, False),
        ("null", {"type": "null"}, False),
        ("String", {"type": "string"}, False),
        ("datetime", {"type": "string"}, False),
        ("list[str]", {"type": "array", "items": {"type": "string"}}, False),
        ("list[string]", {"type": "array", "items": {"type": "string"}}, False),
        ("list[dict]", {"type": "array", "items": {"type": "object"}}, False),
        ("list[list[int]]", {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}, False),
        ("string | integer", {"type": ["string", "integer"]}, False),
        ("string (optional)", {"type": "string"}, False),
    ],
)
def test_other_words_for_types_are_understood_with_a_warning(argument, warnings, of_input, written, schema, own):
    assert argument(type=written) == schema
    said = warnings(of_input(type=written))
    assert len(said) == (0 if own else 1)
    assert all(words.startswith("inputs[0].type: ") for words in said)


@pytest.mark.spec("S0-24")
@pytest.mark.parametrize("written", ["string | null", "string|null", "list | null"])
def test_null_on_an_input_comes_with_a_warning_and_is_refused_in_strict_reading(argument, warnings, of_input, written):
    assert argument(type=written)["type"] in (["string", "null"], ["array", "null"])
    (said,) = warnings(of_input(type=written))
    assert said.startswith("inputs[0].type: null is for outputs; write type: ")


@pytest.mark.spec("S0-20")
@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("string", ["", "x"], [5, None, ["x"], True]),
        ("integer", [0, -5, 2**40], [3.5, True, "5", None]),
        ("boolean", [True, False], ["true", 1, 0, None]),
        ("list", [[], [1, "x"]], ["x", {}, 5, None]),
        ("object", [{}, {"a": 1}], ["x", [], 5, None]),
    ],
)
def test_values_of_each_type_pass_and_others_do_not(compose, kind, good, bad):
    inputs = [{"name": "a", "type": kind, "description": "d"}]
    validator = compile_schema(read_request(compose(inputs=inputs)).parameters)
    assert [validator.is_valid({"a": value}) for value in good] == [True] * len(good)
    assert [validator.is_valid({"a": value}) for value in bad] == [False] * len(bad)
    assert not validator.is_valid({"b": good[0]})


class TestOutputs:
    @pytest.mark.spec("S0-21", "S0-42")
    def test_they_become_one_closed_schema_in_which_every_output_is_required(self, compose):
        outputs = [{"name": "total", "type": "integer"}, {"name": "limited", "type": "boolean"}]
        request = read_request(compose(outputs=outputs), strict=True)
        assert request.output_schema == {
            "type": "object",
            "properties": {"total": {"type": "integer"}, "limited": {"type": "boolean"}},
            "required": ["total", "limited"],
            "additionalProperties": False,
        }
        validator = compile_schema(request.output_schema)
        assert validator.is_valid({"total": 1, "limited": False})
        assert not validator.is_valid({"total": 1})
        assert not validator.is_valid({"total": 1, "limited": False, "more": 1})

    @pytest.mark.spec("S0-21")
    def test_name_and_type_are_required_and_the_type_is_one_of_the_five(self, problems, of_output):
        assert problems(of_output(name=...)) == ["outputs[0].name: is missing; write name: users"]
        assert problems(of_output(type=...)) == [f"outputs[0]: has no type; write type: and one of {FIVE}"]
        assert problems(of_output(type="date")) == [
            f'outputs[0].type: the type "date" is unknown; write one of {FIVE}, or TYPE | null in quotes'
        ]

    def test_a_name_stands_once_and_is_one_word(self, compose, problems, of_output):
        twice = [{"name": "a", "type": "string"}] * 2
        assert problems(compose(outputs=twice)) == ["outputs[1].name: 'a' stands twice; remove one"]
        assert problems(of_output(name="a b"))[0].startswith('outputs[0].name: "a b" cannot be the name of an output')

    @pytest.mark.spec("S0-22")
    def test_the_schema_of_a_list_describes_each_element(self, output):
        assert output(type="list", schema={"name": "string", "score": "integer"}) == {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "score": {"type": "integer"}},
                "required": ["name", "score"],
            },
        }

    @pytest.mark.spec("S0-22")
    def test_the_schema_of_an_object_describes_its_fields(self, output):
        assert output(type="object", schema={"name": "string"}) == {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        }

    @pytest.mark.spec("S0-22")
    @pytest.mark.parametrize("kind", ["list", "object", "list[dict]", "dict", "list | null"])
    def test_a_list_or_object_without_a_schema_comes_with_a_warning_and_holds_anything(
        self, compose, warnings, of_output, kind
    ):
        said = "outputs[0]: says nothing about what is in it, so anything may be; write schema: and its fields"
        assert said in warnings(of_output(type=kind))
        validator = compile_schema(read_request(of_output(type="list")).output_schema)
        assert validator.is_valid({"a": [1, "x", {}]})

    @pytest.mark.spec("S0-22")
    @pytest.mark.parametrize(
        "kind", ["string", "integer", "boolean", "string | null", "list[string]", "string | integer"]
    )
    def test_a_schema_on_a_scalar_is_refused(self, problems, of_output, kind):
        (problem,) = problems(of_output(type=kind, schema={"x": "string"}))
        assert problem.startswith("outputs[0].schema: is for a list or an object, not for ")

    @pytest.mark.parametrize("schema", ["string", [], ["a", "b"], 5, {}])
    def test_a_schema_that_says_nothing_is_refused(self, problems, of_output, schema):
        assert problems(of_output(type="object", schema=schema))[0].startswith("outputs[0].schema: ")

    def test_elements_may_be_scalars(self, output, warnings, of_output):
        assert output(type="list", schema="string") == {"type": "array", "items": {"type": "string"}}
        assert output(type="list", schema={"type": "string"}) == {"type": "array", "items": {"type": "string"}}
        assert warnings(of_output(type="list", schema={"type": "string"})) == []

    @pytest.mark.spec("S0-23")
    @pytest.mark.parametrize(
        ("entry", "good", "bad"),
        [
            ({"type": "string | null"}, ["x", None], [5]),
            ({"type": "integer | null"}, [1, None], ["x", 1.5]),
            ({"type": "string"}, ["x"], [None]),
            ({"type": "list | null", "schema": {"b": "string | null"}}, [None, [{"b": None}], [{"b": "x"}]], [[{"b": 1}], [{}], [None]]),
            ({"type": "object | null", "schema": {"b": "string"}}, [None, {"b": "x"}], [{"b": None}, {}]),
            ({"type": "list[str] | null"}, [None, ["x"]], [[None], "x"]),
            ({"type": "object", "schema": {"b": {"type": "list | null", "schema": {"c": "boolean | null"}}}},
             [{"b": None}, {"b": [{"c": None}, {"c": True}]}], [{"b": [{"c": "x"}]}]),
        ],
    )  # fmt: skip
    def test_null_fits_where_the_type_says_so_and_nowhere_else(self, of_output, entry, good, bad):
        validator = compile_schema(read_request(of_output(**entry)).output_schema)
        assert [validator.is_valid({"a": value}) for value in good] == [True] * len(good)
        assert [validator.is_valid({"a": value}) for value in bad] == [False] * len(bad)

    @pytest.mark.spec("S0-23")
    def test_nil_is_no_null(self, problems, of_output):
        assert problems(of_output(type="string | nil"))[0].startswith(
            'outputs[0].type: the type "string | nil" is unknown'
        )
        assert problems(of_output(type="list", schema={"b": "string | nil"}))[0].startswith(
            "outputs[0].schema.b: the type"
        )

    def test_what_is_optional_may_be_null(self, output, warnings, of_output):
        assert output(type="string (optional)") == {"type": ["string", "null"]}
        assert output(type="string", optional=True) == {"type": ["string", "null"]}
        assert warnings(of_output(type="string (optional)")) == [
            'outputs[0]: is optional, which is understood as null; write "string | null"'
        ]

    def test_a_description_is_taken(self, output, warnings, of_output):
        assert output(type="string", description="d") == {"type": "string", "description": "d"}
        assert warnings(of_output(description="d")) == [
            "outputs[0].description: is read, but the format has only name, type, schema"
        ]

    def test_an_empty_list_of_outputs_says_nothing(self, compose, warnings):
        assert read_request(compose(outputs=[])).output_schema is None
        assert warnings(compose(outputs=[])) == [
            "outputs: is empty, so the answer may be anything; write what the tool gives back"
        ]


class TestNestedFields:
    def test_a_field_may_be_called_type(self, output, warnings, of_output):
        round_of_funding = {"type": "string", "amount": "integer | null"}
        company = {"name": "string", "last_round": {"type": "object", "schema": round_of_funding}}
        schema = output(type="object", schema=company)
        assert schema["properties"]["last_round"] == {
            "type": "object",
            "properties": {"type": {"type": "string"}, "amount": {"type": ["integer", "null"]}},
            "required": ["amount", "type"],
        }
        assert warnings(of_output(type="object", schema=company)) == []

    @pytest.mark.parametrize(
        ("entry", "schema"),
        [
            ({"type": "string"}, {"type": "string"}),
            ({"type": "string", "description": "Its name"}, {"type": "string", "description": "Its name"}),
            ({"type": "list", "schema": {"b": "string"}},
             {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}}),
            # A field beside it makes `type` a field as well.
            ({"type": "string", "description": "string"},
             {"type": "object", "properties": {"type": {"type": "string"}, "description": {"type": "string"}}, "required": ["description", "type"]}),
            ({"city": "string"}, {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
            ({"schema": "string", "table": "string"},
             {"type": "object", "properties": {"schema": {"type": "string"}, "table": {"type": "string"}}, "required": ["schema", "table"]}),
            ("string | null", {"type": ["string", "null"]}),
        ],
    )  # fmt: skip
    def test_a_mapping_is_a_definition_or_names_fields(self, output, warnings, of_output, entry, schema):
        assert output(type="object", schema={"x": entry})["properties"]["x"] == schema
        assert warnings(of_output(type="object", schema={"x": entry})) == []

    @pytest.mark.parametrize(
        ("entry", "schema", "words"),
        [
            (["string"], {"type": "array", "items": {"type": "string"}}, "is understood as a list of what stands in it"),
            ({"schema": {"b": "string"}}, {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
             "has no type and is understood as object"),
            ({"type": "string", "optional": True}, {"type": ["string", "null"]}, "is optional, which is understood as null"),
            ({"type": "string", "required": True}, {"type": "string"}, "is not read in a schema"),
            ({"type": "list"}, {"type": "array"}, "says nothing about what is in it"),
            ("int", {"type": "integer"}, 'the type "int" is understood as integer'),
        ],
    )  # fmt: skip
    def test_what_is_unusual_is_understood_with_a_warning(self, output, warnings, of_output, entry, schema, words):
        assert output(type="object", schema={"x": entry})["properties"]["x"] == schema
        (said,) = warnings(of_output(type="object", schema={"x": entry}))
        assert said.startswith("outputs[0].schema.x")
        assert words in said

    def test_json_schema_in_place_of_fields_comes_with_a_warning(self, warnings, of_output):
        pasted = {"type": "object", "properties": {"x": {"type": "string"}}}
        assert "outputs[0].schema: looks like JSON Schema" in warnings(of_output(type="object", schema=pasted))[0]
        items = {"type": "array", "items": {"x": "string"}}
        assert "outputs[0].schema: looks like JSON Schema" in warnings(of_output(type="list", schema=items))[0]

    @pytest.mark.parametrize(
        "entry",
        [
            None,
            5,
            "date",
            [],
            ["a", "b"],
            {},
            {"type": "date"},
            {"a": 5},
            {"type": "string", "schema": {"a": "string"}},
        ],
    )
    def test_what_says_no_type_is_refused(self, problems, of_output, entry):
        (problem,) = problems(of_output(type="object", schema={"x": entry}))
        assert problem.startswith("outputs[0].schema.x")

    def test_names_and_numbers_of_fields_are_bounded(self, problems, of_output):
        assert "cannot be the name of a field" in problems(of_output(type="object", schema={"x" * 65: "string"}))[0]
        assert "cannot be the name of a field" in problems(of_output(type="object", schema={"": "string"}))[0]
        assert "cannot be the name of a field" in problems(of_output(type="object", schema={"a\u202e": "string"}))[0]
        many = {f"f{n}": "string" for n in range(257)}
        assert problems(of_output(type="object", schema=many)) == [
            "outputs[0].schema: has 257 fields; write 1 to 256 of them: name: type"
        ]

    def test_a_schema_past_all_bounds_is_refused_as_a_whole(self, compose, problems):
        fields = {f"f{n}": "string" for n in range(200)}
        outputs = [{"name": f"o{n}", "type": "object", "schema": fields} for n in range(20)]
        (problem,) = problems(compose(outputs=outputs))
        assert problem.startswith("outputs: ")
        assert "64,000 bytes" in problem or "subschemas" in problem
