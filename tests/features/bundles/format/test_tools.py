"""The document of a tool, key by key: what is taken, what is refused and in which words, what its author is told."""

import pytest

from toolcrib import Kind, RetryPolicy, ToolError
from toolcrib.features.bundles.format import read_tool
from toolcrib.lib.names import is_uuid7

OTHER_BUNDLE = "018faf50-b7b6-7a01-9a05-a22a6e0af102"
VERSION_4 = "9b2b6f1c-8d0e-4c3a-9f0e-6d6f1f0a1b2c"


def test_a_right_document_gives_a_tool_without_a_word(read):
    reading = read()
    assert reading.warnings == ()
    assert reading.tool.address == "/weather@v2"
    assert reading.tool.kind == "http"
    assert reading.tool.output_schema == {"type": "string"}
    assert reading.tool.source_type == "http"


def test_everything_that_is_wrong_is_told_at_once(problems):
    told = problems(displayName="", isEnabled="yes", type="rust", tags="a", schemaVersion=...)
    assert [line.partition(":")[0].split(" ")[0] for line in told] == [
        "schemaVersion",
        "isEnabled",
        "displayName",
        "type",
        "tags",
    ]


@pytest.mark.spec("S1-02")
@pytest.mark.parametrize("kind", ["python", "composite", "GO", "", None, 1, ["go"], {}])
def test_another_type_than_go_http_or_sql_is_refused_by_naming_all(problems, kind):
    [problem] = problems(type=kind)
    assert problem.startswith("type: ")
    assert problem.endswith('is unknown; write "go", "http" or "sql"')


@pytest.mark.spec("S1-105")
@pytest.mark.parametrize(
    "name", ["argSchema", "outputSchema", "impl", "type", "isEnabled", "displayName", "schemaVersion"]
)
def test_a_key_that_is_missing_is_named(problems, name):
    [problem] = problems(**{name: ...})
    assert problem.startswith(f'{name} is missing; write "{name}": ')


@pytest.mark.spec("S1-15")
@pytest.mark.parametrize("bundle_id", ["", "b1", VERSION_4, "018faf50-b7b6-7a01-9a05", " " * 36])
def test_a_bundle_whose_id_is_no_uuid_of_version_7_is_refused(problems, bundle_id):
    [problem] = problems(to_bundle=bundle_id)
    assert problem.startswith("bundleID: ")
    assert "not a UUID of version 7" in problem


@pytest.mark.spec("S1-15", "S1-100")
@pytest.mark.parametrize("written", [OTHER_BUNDLE, VERSION_4, "", None, 7])
def test_a_document_for_another_bundle_is_refused(problems, written):
    [problem] = problems(bundleID=written)
    assert problem.startswith("bundleID: ")
    assert "018faf50-b7b6-7a01-9a05-a22a6e0af101" in problem


@pytest.mark.spec("S1-100")
@pytest.mark.parametrize(("name", "other"), [("slug", "Weather"), ("version", "v3"), ("slug", ""), ("version", 2)])
def test_a_document_with_another_slug_or_version_than_its_path_is_refused(problems, name, other):
    [problem] = problems(**{name: other})
    assert problem.startswith(f"{name}: ")
    assert problem.endswith("its address; write that, or leave it out")


@pytest.mark.spec("S1-100")
def test_what_the_path_says_is_stored_whether_the_document_says_it_too_or_not(read, bundle_id):
    absent, equal = read(), read(bundleID=bundle_id.upper(), slug="weather", version="v2")
    for reading in (absent, equal):
        assert reading.document["bundleID"] == bundle_id
        assert reading.document["slug"] == "weather"
        assert reading.document["version"] == "v2"


@pytest.mark.spec("S1-16")
def test_an_id_is_taken_under_either_name_or_made(read, bundle_id):
    assert read(toolID=OTHER_BUNDLE.upper()).tool.id == OTHER_BUNDLE
    by_its_short_name = read(id=OTHER_BUNDLE)
    assert by_its_short_name.document["toolID"] == OTHER_BUNDLE
    assert "id" not in by_its_short_name.document
    assert is_uuid7(read().document["toolID"])


@pytest.mark.spec("S1-16")
@pytest.mark.parametrize("name", ["toolID", "id"])
@pytest.mark.parametrize("id_", [VERSION_4, "t1", "", None, 1, []])
def test_an_id_that_is_no_uuid_of_version_7_is_refused(problems, name, id_):
    [problem] = problems(**{name: id_})
    assert problem.startswith(f"{name}: ")
    assert "not a UUID of version 7" in problem


def test_two_ids_are_one_too_many(problems, bundle_id):
    assert problems(toolID=OTHER_BUNDLE, id=bundle_id) == ["id: differs from toolID; remove one of the two"]


@pytest.mark.spec("S1-18")
def test_any_version_of_the_format_is_kept_and_one_that_is_not_ours_is_told(read):
    reading = read(schemaVersion="2025-07-01")
    assert reading.document["schemaVersion"] == "2025-07-01"
    assert reading.warnings == ('schemaVersion: "2025-07-01" is not known here and was read as "toolcrib-1"',)
    [warning] = read(schemaVersion="toolcrib-2").warnings
    assert "a later version of Toolcrib" in warning


@pytest.mark.spec("S1-18", "S1-19")
@pytest.mark.parametrize("name", ["schemaVersion", "displayName"])
@pytest.mark.parametrize("value", ["", " \n", None, 5, []])
def test_an_empty_name_or_version_of_the_format_is_refused(problems, name, value):
    [problem] = problems(**{name: value})
    assert problem.startswith(f"{name}: must ")


@pytest.mark.spec("S1-19")
def test_texts_are_kept_to_the_letter(read):
    texts = {"displayName": "  Wetter für Köln ☀ ", "description": "Zeile 1\n\tZeile 2 // kein Kommentar"}
    reading = read(**texts)
    assert texts.items() <= reading.document.items()
    assert (reading.tool.display_name, reading.tool.description) == tuple(texts.values())


@pytest.mark.parametrize("description", [..., "", "  "])
def test_a_tool_that_nothing_describes_is_taken_with_a_warning(read, description):
    [warning] = read(description=description).warnings
    assert warning.startswith("description: is empty; ")


@pytest.mark.spec("S1-20")
@pytest.mark.parametrize("value", ["true", 1, 0, None, [], {}])
def test_a_switch_that_is_no_boolean_is_refused(problems, value):
    [problem] = problems(isEnabled=value)
    assert problem.startswith("isEnabled: must be true or false, not ")


@pytest.mark.spec("S1-21")
@pytest.mark.parametrize(
    ("value", "words"), [(True, "only what comes with Toolcrib"), ("false", "must be true or false")]
)
def test_a_built_in_cannot_be_written(problems, value, words):
    [problem] = problems(isBuiltIn=value)
    assert problem.startswith("isBuiltIn: ")
    assert words in problem


@pytest.mark.spec("S1-22", "S1-23")
@pytest.mark.parametrize("name", ["argSchema", "outputSchema"])
@pytest.mark.parametrize(
    ("schema", "where", "words"),
    [
        ({"type": "object", "properties": {"a": {"type": "strng"}}}, ".properties.a.type", "is unknown; write one of"),
        ({"type": "object", "required": "city"}, ".required", ""),
        ({"type": "object", "properties": {"a": {"$ref": "https://example.com/s"}}}, ".properties.a.$ref", ""),
        ({"type": "object", "$ref": "#"}, "", "refers to itself without end"),
        ("object", "", "must be an object"),
        (True, "", "must be an object"),
        (None, "", "must be an object"),
        ([], "", "must be an object"),
        ({"type": "object", "properties": {"a": {"pattern": "(?=x)"}}}, ".properties.a.pattern", ""),
        ({"type": "object", "description": "x" * 70_000}, "", "larger than 64,000 bytes"),
    ],
)
def test_a_schema_that_is_none_is_refused_at_its_place(problems, name, schema, where, words):
    [problem] = problems(**{name: schema})
    assert problem.startswith(f"{name}{where}")
    assert words in problem


def test_every_problem_of_a_schema_is_told(problems):
    properties = {"a": {"type": "x"}, "b": {"minLength": "2"}}
    told = problems(argSchema={"type": "object", "properties": properties})
    assert {line.split(": ")[0] for line in told} == {
        "argSchema.properties.a.type",
        "argSchema.properties.b.minLength",
    }


def test_arguments_are_an_object_whether_the_schema_says_so_or_not(read, problems):
    reading = read(argSchema={"properties": {"city": {"type": "string"}}})
    assert reading.tool.parameters == {"type": "object", "properties": {"city": {"type": "string"}}}
    assert reading.document["argSchema"] == {"properties": {"city": {"type": "string"}}}
    assert reading.warnings[0].startswith("argSchema: does not say that the arguments are an object")
    [problem] = problems(argSchema={"type": "string"})
    assert problem == 'argSchema: the arguments are an object, not "string"; write "type": "object"'


@pytest.mark.spec("S1-39")
def test_an_argument_that_is_named_like_a_secret_is_refused(problems, read):
    told = problems(secrets={"city", "API_KEY"})
    assert told == ["argSchema.properties.city: is the name of a secret; choose another name for the argument"]
    assert read(secrets={"API_KEY"}).warnings == ()


@pytest.mark.spec("S1-25")
def test_times_and_all_else_that_the_platform_works_out_are_taken_and_left_out(read):
    worked_out = {
        "createdAt": "yesterday",
        "modifiedAt": 5,
        "toggledAt": None,
        "softDeletedAt": "x",
        "effectiveEnabled": True,
        "disabledReason": "",
        "source": "store",
        "bundleSlug": "reports",
        "callCount": 3,
        "lastCalledAt": None,
        "warnings": [],
        "match": "prefix",
        "score": 1.5,
        "digest": "x",
        "isBuiltIn": False,
    }
    reading = read(**worked_out)
    assert reading.warnings == ()
    assert set(worked_out) & set(reading.document) == {"isBuiltIn"}


def test_an_unknown_key_is_kept_and_told(read):
    reading = read(llmCallable=True, descripton="x")
    assert reading.document["llmCallable"] is True
    assert reading.warnings == (
        "llmCallable: is kept and not read",
        "descripton: is not read; did you mean description?",
    )


def test_thousands_of_unknown_keys_are_told_in_a_few_lines(read):
    reading = read(**{f"key{number}": number for number in range(5_000)})
    assert len(reading.warnings) == 101
    assert reading.warnings[-1] == "and 4900 more of this kind"


@pytest.mark.spec("S1-52")
def test_tags_are_words_that_stand_there_once(read, problems):
    assert read(tags=["weather", "_a", "B-2", "x" * 64]).tool.tags == ("weather", "_a", "B-2", "x" * 64)
    for tag in ("", "a b", "1a", "-a", "ä", "a\n", "x" * 65, 5, None):
        [problem] = problems(tags=[tag])
        assert problem.startswith("tags[0]: ")
        assert "is not a tag; use up to 64 ASCII letters" in problem
    assert problems(tags=["a", "b", "a"]) == ['tags[2]: "a" is repeated; remove one']
    assert problems(tags=[f"t{number}" for number in range(51)]) == [
        "tags: has 51 items, the limit is 50; leave some out"
    ]


@pytest.mark.spec("S1-53")
def test_pre_processors_are_kept_in_order_and_are_part_of_the_tool(read):
    steps = [{"name": "trim"}, "lower", {"name": "trim", "only": ["city"]}]
    reading = read(preProcessors=steps)
    assert reading.document["preProcessors"] == steps
    [warning] = reading.warnings
    assert warning.startswith("preProcessors: are stored but not executed")
    hashes = {read(preProcessors=order).tool.content_hash for order in ([], steps, steps[::-1])}
    assert len(hashes) == 3
    assert read(preProcessors=[]).tool.content_hash == read().tool.content_hash


@pytest.mark.spec("S1-53")
def test_pre_processors_that_are_no_list_are_refused(problems):
    assert problems(preProcessors={}) == ["preProcessors: must be a list, not {}; write it between [ and ]"]


@pytest.mark.spec("S1-24")
@pytest.mark.parametrize(
    ("kind", "impl", "words"),
    [
        ("go", {"urlTemplate": "https://x.example"}, 'impl.urlTemplate: is for tools of type "http"; remove it'),
        ("go", {"goFunc": "f", "method": "GET"}, 'impl.method: is for tools of type "http"; remove it'),
        ("go", {"goFunc": "f", "calls": []}, 'impl.calls: is for tools of type "http"; remove it'),
        ("http", {"goFunc": "f"}, 'impl.goFunc: is for tools of type "go"; remove it'),
        (
            "http",
            {"goFunc": "f", "urlTemplate": "https://x.example"},
            'impl.goFunc: is for tools of type "go"; remove it',
        ),
    ],
)
def test_an_implementation_of_the_other_type_is_refused(problems, kind, impl, words):
    assert words in problems(type=kind, impl=impl)


@pytest.mark.parametrize("impl", [None, [], "f", 1])
def test_an_implementation_that_is_no_object_is_refused(problems, impl):
    [problem] = problems(impl=impl)
    assert problem.startswith("impl: must be an object, not ")


@pytest.mark.spec("S1-26")
def test_a_function_is_named_by_any_key(read, problems):
    tool = read(type="go", impl={"goFunc": "Räder & Co/f(x)", "model": "m-1"}).tool
    assert (tool.kind, tool.run.key, tool.run.model) == ("function", "Räder & Co/f(x)", "m-1")
    assert tool.limits.timeout_ms is None
    assert tool.side_effects is None
    assert tool.requires == frozenset()
    assert problems(type="go", impl={"goFunc": ""}) == ["impl.goFunc: must not be empty; write what it is"]
    [problem] = problems(type="go", impl={"goFunc": 5})
    assert problem.startswith("impl.goFunc: must be text")
    [problem] = problems(type="go", impl={})
    assert problem.startswith("impl: goFunc is missing; ")
    assert problems(type="go", impl={"goFunc": "f", "model": " "}) == [
        "impl.model: must not be empty; write what it is"
    ]


@pytest.mark.parametrize(
    ("methods", "effects", "idempotent"),
    [
        (["GET"], "read_only", True),
        (["GET", "HEAD"], "read_only", True),
        (["PUT"], "writes", True),
        (["GET", "DELETE"], "writes", True),
        (["POST"], "writes", False),
        (["GET", "PATCH"], "writes", False),
    ],
)
def test_methods_say_what_a_call_may_change_and_whether_it_may_be_repeated(read, methods, effects, idempotent):
    calls = [
        {"name": f"call{index}", "method": method, "urlTemplate": "https://x.example"}
        for index, method in enumerate(methods)
    ]
    tool = read(impl={"calls": calls}).tool
    assert (tool.side_effects, tool.idempotent) == (effects, idempotent)
    # The requests repeat themselves: a call that was repeated as a whole would be repeated twice over.
    assert tool.limits.retry == RetryPolicy()


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1: 2}, {1}, "\ud800", 2**64, b"x", ("a",), {"a": object()}]
)
def test_what_does_not_come_out_of_json_as_it_went_in_is_refused(document, bundle_id, value):
    with pytest.raises(ToolError, match="extra") as caught:
        read_tool(document(extra=value), bundle_id=bundle_id, slug="weather", version="v2")
    assert caught.value.kind is Kind.VALIDATION


def test_nesting_without_end_is_refused(document, bundle_id):
    value: list = []
    for _ in range(100):
        value = [value]
    with pytest.raises(ToolError, match="nested deeper than 64 levels"):
        read_tool(document(extra=value), bundle_id=bundle_id, slug="weather", version="v2")


def test_a_document_that_would_be_too_large_to_store_is_refused(document, bundle_id):
    for extra in ("x" * 256_000, [[[[1]]]] * 20_000):
        with pytest.raises(ToolError, match="bytes as it is stored, the limit is 256000") as caught:
            read_tool(document(extra=extra), bundle_id=bundle_id, slug="weather", version="v2")
        assert caught.value.kind is Kind.LIMIT_EXCEEDED


def test_the_document_that_was_sent_stays_as_it_was(document, bundle_id):
    sent, copy = document(createdAt="x"), document(createdAt="x")
    read_tool(sent, bundle_id=bundle_id, slug="weather", version="v2")
    assert sent == copy
