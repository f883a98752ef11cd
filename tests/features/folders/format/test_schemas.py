"""The schema of the arguments: what is refused as an invalid schema, and what its author should know."""

import json

import pytest

from toolcrib.lib.schema import compile_schema
from toolcrib.lib.schema_problems import explain_problems


@pytest.fixture
def with_parameters(fields):
    """The fields of a tool whose arguments are changed; a keyword of None is left out."""

    def with_parameters(**changes):
        parameters = {**fields["parameters"], **changes}
        return {**fields, "parameters": {name: value for name, value in parameters.items() if value is not None}}

    return with_parameters


def with_property(schema):
    return {"properties": {"word": {"description": "A word", **schema}}}


@pytest.mark.spec("S2-15", "S2-49", "S2-66")
@pytest.mark.parametrize("value", [None, True, {}, "false", 0])
def test_undeclared_arguments_are_shut_out(value, faults, with_parameters):
    told = faults(schema=with_parameters(additionalProperties=value))
    closed = 'Invalid JSON Schema: parameters: unknown arguments would pass; write "additionalProperties": false'
    assert closed in [line.split(": ", 1)[1] for line in told]


@pytest.mark.spec("S2-71")
@pytest.mark.parametrize("kind", [None, "array", "string", ["object"], ["object", "null"]])
def test_arguments_are_an_object(kind, faults, with_parameters):
    (told,) = faults(schema=with_parameters(type=kind))
    assert (
        told.split(": ", 1)[1] == 'Invalid JSON Schema: parameters: the arguments are an object; write "type": "object"'
    )


@pytest.mark.spec("S2-04", "S2-49")
@pytest.mark.parametrize("value", [None, [], "object", 5, True])
def test_parameters_that_are_no_schema_are_refused(value, faults, fields):
    assert faults(schema={**fields, "parameters": value}) == [
        f'schema.json:14: Invalid JSON Schema: parameters: {json.dumps(value)} is not a schema; write {{"type": "object"}}'
    ]


@pytest.mark.spec("S2-04")
@pytest.mark.parametrize(
    ("change", "at", "words"),
    [
        (with_property({"type": "float"}), "properties.word.type", "type 'float' is unknown; write one of array, "),
        (with_property({"minLength": -1}), "properties.word.minLength", "-1 is less than the minimum of 0; correct it"),
        (with_property({"enum": []}), "properties.word.enum", "must be a list of at least one value; write"),
        (with_property({"pattern": "(a"}), "properties.word.pattern", "'(a' is not a regular expression: "),
        (with_property({"$ref": "#/$defs/no"}), "properties.word.$ref", "'#/$defs/no' leads to no schema; add"),
        (with_property({"$ref": "https://a.b/c"}), "properties.word.$ref", "'https://a.b/c' is not local; copy"),
        ({"required": "word"}, "required", '"word" is not of type "array"; correct it'),
        ({"allOf": [{}, {"type": "x"}]}, "allOf[1].type", "type 'x' is unknown; write one of"),
        ({"$schema": "https://example.com/mine"}, "$schema", 'unknown "$schema"; remove it'),
        ({"not": {"$ref": "#"}}, "", "refers to itself without end"),
    ],
)
def test_what_is_wrong_with_a_schema_is_told_at_its_line(change, at, words, faults, with_parameters):
    schema = with_parameters(**change)
    (told,) = faults(schema=schema)
    place, _, text = told.partition(": ")
    path = f"parameters.{at}" if at else "parameters"
    assert text.startswith(f"Invalid JSON Schema: {path}: {words}")
    line = json.dumps(schema, indent=2).split("\n")[int(place.split(":")[1]) - 1]
    assert line.strip().startswith(f'"{path.rsplit(".", 1)[-1]}": ')


def test_a_number_in_a_list_does_not_confuse_a_property_with_such_a_name(faults, with_parameters):
    change = {"properties": {"0": {"description": "A", "type": "x"}}, "required": []}
    (told,) = faults(schema=with_parameters(**change))
    assert "parameters.properties.0.type: type 'x' is unknown" in told


@pytest.mark.spec("S2-04")
@pytest.mark.parametrize(
    ("change", "good", "bad"),
    [
        ({"$defs": {"w": {"type": "integer"}}, **with_property({"$ref": "#/$defs/w"})}, {"word": 1}, {"word": "a"}),
        (with_property({"type": "array", "prefixItems": [{"type": "integer"}]}), {"word": [1]}, {"word": ["a"]}),
        (
            {"dependentRequired": {"word": ["more"]}, "properties": {"word": {"description": "A"}, "more": {"description": "B"}}},
            {"word": 1, "more": 2},
            {"word": 1},
        ),
    ],
)  # fmt: skip
def test_the_words_of_the_newest_draft_count(change, good, bad, read, with_parameters):
    reading = read(schema=with_parameters(**change))
    assert reading.problems == ()
    validator = compile_schema(reading.tool.parameters)
    assert validator.is_valid(good)
    assert not validator.is_valid(bad)


def test_an_older_draft_counts_where_the_schema_names_it(warnings_of, read, with_parameters):
    change = {
        "dependencies": {"word": ["more"]},
        "properties": {"word": {"description": "A"}, "more": {"description": "B"}},
    }
    older = with_parameters(**change, **{"$schema": "http://json-schema.org/draft-07/schema#"})
    reading = read(schema=older)
    assert not compile_schema(reading.tool.parameters).is_valid({"word": 1})
    assert [line for line in reading.warnings if "keyword" in line] == []
    told = [line for line in warnings_of(schema=with_parameters(**change)) if "keyword" in line]
    assert told == ['schema.json:28: parameters: unknown keyword "dependencies"; remove it, since nothing checks it']


FORMATS = "email, date-time, uri, uuid, ipv4, ipv6"


@pytest.mark.spec("S2-20")
@pytest.mark.parametrize("written", ["date", "hostname", "e-mail", "regex", "phone", ""])
@pytest.mark.parametrize(
    ("change", "at"),
    [
        (lambda entry: {"properties": {"word": {"description": "A", **entry}}}, "properties.word"),
        (lambda entry: {"properties": {"word": {"items": {"anyOf": [True, entry]}}}}, "properties.word.items.anyOf[1]"),
        (lambda entry: {"$defs": {"unused": entry}}, "$defs.unused"),
    ],
)
def test_a_format_outside_the_list_is_refused_at_any_depth(written, change, at, faults, with_parameters):
    schema = with_parameters(**change({"format": written}))
    (told,) = faults(schema=schema)
    place, _, text = told.partition(": ")
    assert text == (
        f"Invalid JSON Schema: parameters.{at}.format: {json.dumps(written)} is not supported; write one of {FORMATS}"
    )
    assert '"format": ' in json.dumps(schema, indent=2).split("\n")[int(place.split(":")[1]) - 1]


def test_a_format_is_refused_beside_a_reference_that_leads_nowhere(faults, with_parameters):
    told = faults(schema=with_parameters(**with_property({"format": "date", "$ref": "#/gone"})))
    assert [line.split(": ")[2] for line in told] == [
        "parameters.properties.word.format",
        "parameters.properties.word.$ref",
    ]


def test_a_format_behind_a_reference_to_an_odd_place_is_refused(faults, with_parameters):
    change = {"x-mine": {"format": "date"}, **with_property({"$ref": "#/x-mine"})}
    assert [line.split(": ", 1)[1] for line in faults(schema=with_parameters(**change))] == [
        f'Invalid JSON Schema: parameters.x-mine.format: "date" is not supported; write one of {FORMATS}'
    ]


@pytest.mark.parametrize("written", FORMATS.split(", "))
def test_the_formats_of_the_list_are_taken(written, warnings_of, with_parameters, doc):
    schema = with_parameters(**with_property({"type": "string", "format": written}))
    assert warnings_of(schema=schema, doc=doc(Examples="None.")) == []


def test_a_property_that_is_called_format_is_none(warnings_of, with_parameters, doc):
    schema = with_parameters(properties={"format": {"description": "A", "enum": ["date"]}}, required=[])
    assert warnings_of(schema=schema, doc=doc(Examples="None.")) == []


def test_an_unknown_keyword_is_warned_of_with_what_was_meant(warnings_of, with_parameters, doc):
    change = with_property({"maxLenght": 5, "x-mine": 1, "default": {"nonsense": 1}, "examples": [{"nonsense": 1}]})
    assert warnings_of(schema=with_parameters(**change)) == [
        'schema.json:23: parameters.properties.word: unknown keyword "maxLenght"; write maxLength',
        'schema.json:24: parameters.properties.word: unknown keyword "x-mine"; remove it, since nothing checks it',
    ]


def test_a_property_without_description_is_warned_of(warnings_of, with_parameters, doc):
    inner = {"type": "object", "properties": {"deep": {"type": "string"}}}
    properties = {
        "word": {"type": "string"},
        "more": {"description": "A", **inner},
        "any": True,
        "at": {"$ref": "#/$defs/a"},
    }
    schema = with_parameters(properties=properties, **{"$defs": {"a": {"description": "B"}}})
    assert warnings_of(schema=schema) == [
        "schema.json:21: parameters.properties.word: has no description; write what it means",
        "schema.json:28: parameters.properties.more.properties.deep: has no description; write what it means",
    ]


def test_what_is_required_and_not_defined_is_warned_of_at_its_line(warnings_of, with_parameters, doc):
    schema = with_parameters(required=["word", "end", "x-1"], patternProperties={"^x-": {}})
    assert warnings_of(schema=schema, doc=doc(Examples="None.")) == [
        (
            "schema.json:19: parameters.required[1]: required but undefined: end; "
            "define it under properties, or every call is refused"
        )
    ]


def test_what_an_open_object_requires_need_not_be_defined(warnings_of, with_parameters, doc):
    schema = with_parameters(**with_property({"type": "object", "required": ["free"]}))
    assert warnings_of(schema=schema, doc=doc(Examples="None.")) == []


def test_every_call_of_a_schema_that_cannot_be_satisfied_is_answered_so(read, with_parameters, doc):
    tool = read(schema=with_parameters(required=["word", "end"]), doc=doc(Examples="None.")).tool
    for arguments in ({}, {"word": "a"}, {"word": "a", "end": "b"}, {"end": "b"}):
        told = explain_problems(compile_schema(tool.parameters), arguments, tool.parameters)
        assert told[-1 if "word" not in arguments else 0] == (
            "end is required but not defined: the schema cannot be satisfied"
        )


def test_several_things_that_are_wrong_with_a_schema_are_told_together(faults, with_parameters):
    change = {"type": "array", "additionalProperties": None, **with_property({"format": "date", "type": "float"})}
    told = faults(schema=with_parameters(**change))
    assert len(told) == 4
    assert all("Invalid JSON Schema" in line for line in told)


@pytest.mark.parametrize(
    "parameters",
    [
        {"properties": 5}, {"properties": []}, {"required": [5]}, {"required": {}}, {"patternProperties": 5}, {"allOf": {}},
        {"$defs": []}, {"properties": {"a": 5}}, {"properties": {"a": None}}, {"items": 5}, {"format": 5}, {"$ref": 5},
        {"$ref": "#/properties/a~"}, {"$anchor": []}, {"$schema": 5}, {"enum": 5}, {"if": [], "then": 0},
    ],
)  # fmt: skip
def test_no_shape_of_a_schema_breaks_its_reader(parameters, faults, with_parameters):
    told = faults(schema=with_parameters(**parameters))
    assert all("Invalid JSON Schema" in line for line in told)


def test_a_schema_past_the_bounds_is_refused(faults, with_parameters):
    large = {f"p{index}": {"description": "x" * 60} for index in range(1000)}
    (told,) = faults(schema=with_parameters(properties=large, required=[]))
    assert told == "schema.json:14: Invalid JSON Schema: parameters: larger than 64,000 bytes; shorten it"
    deep = {"description": "end"}
    for _ in range(25):
        deep = {"description": "A", "items": deep, "type": "array"}
    assert faults(schema=with_parameters(properties={"word": {"description": "A", "items": {"anyOf": [deep] * 100}}}))


@pytest.mark.timeout(120)
def test_thousands_of_unknown_words_are_told_without_much_guessing(warnings_of, with_parameters, fields):
    strange = {f"maxLengt{index}": 0 for index in range(3000)}
    told = warnings_of(schema={**with_parameters(**strange), **strange})
    assert len(told) == 6000
    assert sum(line.endswith("; write maxLength") for line in told) == 20


def test_limits_are_never_read_out_of_descriptions(read, with_parameters, fields):
    entry = {"type": "integer", "description": "voice: max 3, text: max 10", "minimum": 1, "maximum": 10, "default": 5}
    schema = with_parameters(properties={**fields["parameters"]["properties"], "top_k": entry})
    assert read(schema=schema).tool.parameters == schema["parameters"]


@pytest.mark.spec("S2-04")
def test_everything_that_is_wrong_with_both_schemas_is_told_with_its_own_line(faults, with_parameters):
    wrong = {"type": "strin", "minimum": "a", "maxLength": -1, "format": "foo", "pattern": "(?=a)"}
    schema = {
        **with_parameters(**with_property(wrong), required="text"),
        "outputSchema": {"type": "float", "minLength": "x", "$ref": "#/$defs/none", "items": {"enum": []}},
    }
    told = dict(line.split(": ")[0::2][:2] for line in faults(schema=schema))
    lines = json.dumps(schema, indent=2).split("\n")
    assert [lines[int(place.removeprefix("schema.json:")) - 1].split('"')[1] for place in told] == [
        *("required", "type", "minimum", "maxLength", "format", "pattern"),
        *("type", "minLength", "$ref", "enum"),
    ]
    assert [*told.values()] == [
        "parameters.required",
        *(f"parameters.properties.word.{name}" for name in wrong),
        *("outputSchema.type", "outputSchema.minLength", "outputSchema.$ref", "outputSchema.items.enum"),
    ]


@pytest.mark.spec("S2-04")
@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "string", "default": 5}, "the default 5 is not of type string"),
        ({"type": "string", "default": None}, "the default null is not of type string"),
        ({"type": "string", "maxLength": 2, "default": "abc"}, 'the default "abc" is longer than 2 characters'),
        ({"$ref": "#/$defs/number", "default": "1"}, 'the default "1" is not of type number'),
        ({"enum": ["a", "b"], "default": "c"}, 'the default "c" is not one of a, b'),
        (
            {"type": "object", "required": ["a"], "default": {"b": 1}},
            'the default {"b": 1} is refused (a is missing (any value))',
        ),
    ],
)
def test_a_default_that_its_own_schema_refuses_fails_the_build_and_not_every_call(
    schema, told, faults, with_parameters, fields
):
    properties = {**fields["parameters"]["properties"], "more": {"description": "A", **schema}}
    changed = with_parameters(properties=properties, **{"$defs": {"number": {"type": "number"}}})
    (problem,) = faults(schema=changed)
    place, _, text = problem.partition(": ")
    assert text == (
        f"Invalid JSON Schema: parameters.properties.more.default: {told}; write one that fits, or remove it"
    )
    assert '"default": ' in json.dumps(changed, indent=2).split("\n")[int(place.split(":")[1]) - 1]


def test_a_default_is_checked_at_any_depth_and_one_that_fits_is_fine(read, faults, with_parameters):
    inner = {"type": "object", "properties": {"deep": {"type": "integer", "description": "A", "default": 1}}}
    change = with_property({"type": "array", "items": {"description": "A", **inner}, "default": []})
    assert read(schema=with_parameters(**change)).problems == ()
    inner["properties"]["deep"]["default"] = "1"
    (told,) = faults(schema=with_parameters(**change))
    assert "parameters.properties.word.items.properties.deep.default: the default" in told


def test_a_choice_that_the_type_beside_it_refuses_is_warned_of_at_its_line(warnings_of, with_parameters, doc):
    change = {
        "properties": {
            "word": {"description": "A", "type": "string", "enum": ["a", 1]},
            "more": {"description": "B", "type": ["integer", "null"], "const": "x"},
            "fine": {"description": "C", "type": ["integer", "null"], "enum": [1, 2.0, None]},
        }
    }
    cure = "is not of the type beside it, so it is never taken; correct one of the two"
    told = warnings_of(schema=with_parameters(**change), doc=doc(Examples="None."))
    assert [line.split(": ", 1)[1] for line in told] == [
        f"parameters.properties.word.enum[1]: 1 {cure}",
        f'parameters.properties.more.const: "x" {cure}',
    ]
