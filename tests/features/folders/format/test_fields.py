"""The ten fields that every tool has, those that it may have, and what is said when one is missing or wrong."""

import json
from pathlib import Path

import pytest

from toolcrib import Limits
from toolcrib.model.tool import Handler, Origin

REQUIRED = {
    "toolId": '"my_tool"', "version": '"1.0.0"', "description": '"What the tool does"', "category": '"retrieval"',
    "sideEffects": '"read_only"', "idempotent": "true", "requiresConfirmation": "false",
    "allowedModes": '["text", "voice"]', "latencyBudgetMs": "1000",
    "parameters": '{"type": "object", "additionalProperties": false, "properties": {}}',
}  # fmt: skip


def test_a_complete_folder_is_a_tool_with_everything_that_it_says(read, fields, doc):
    more = {
        "requires": ["net.http"], "hosts": ["example.com"], "outputSchema": {"type": "object"}, "timeoutMs": 9000,
        "tags": ["words"], "displayName": "My Tool", "$schema": "https://example.com/tool.json", "$comment": "ours",
    }  # fmt: skip
    reading = read(schema={**fields, **more})
    tool = reading.tool
    assert reading.problems == reading.warnings == ()
    assert (tool.name, tool.slug, tool.version) == ("my_tool", "my-tool", "1.2.3")
    assert (tool.description, tool.summary, tool.documentation) == ("Look a word up.", "Look a word up.", doc())
    assert (tool.behaviour, tool.side_effects) == ("retrieval", "read_only")
    assert (tool.idempotent, tool.requires_confirmation, tool.modes) == (True, False, {"text", "voice"})
    assert tool.limits == Limits(timeout_ms=9000, latency_budget_ms=500)
    assert tool.parameters == fields["parameters"]
    assert tool.output_schema == {"type": "object"}
    assert (tool.requires, tool.tags, tool.display_name) == ({"net.http"}, ("words",), "My Tool")
    assert tool.examples == ({"word": "crib"},)
    assert (tool.source_type, tool.category, tool.kind) == ("folder", "", "handler")
    assert tool.origin == Origin(place="tools/my-tool/schema.json")
    assert isinstance(tool.run, Handler)
    assert (tool.run.root, tool.run.folder, tool.run.language) == (Path("tools"), "my-tool", "javascript")
    assert (tool.run.path, tool.run.hosts) == ("my-tool/handler.js", ("example.com",))


@pytest.mark.spec("S2-05", "S2-66", "S2-49")
@pytest.mark.parametrize("name", REQUIRED)
def test_each_field_that_is_missing_is_named_with_a_line_to_copy(name, faults, fields):
    del fields[name]
    assert faults(schema=fields) == [f'schema.json:1: Missing required field: {name}; write "{name}": {REQUIRED[name]}']


@pytest.mark.spec("S2-05")
def test_all_fields_that_are_missing_are_told_at_once(faults):
    told = faults(schema={})
    assert [line.split(";")[0] for line in told] == [
        f"schema.json:1: Missing required field: {name}" for name in REQUIRED
    ]


def test_problems_of_all_four_files_are_told_in_one_run(read):
    reading = read(schema="{}", summary="x" * 300, doc="# Nothing", js="let a = 1;")
    assert reading.tool is None
    assert len(reading.problems) == 10 + 1 + 7 + 1
    assert all(
        line.startswith("tools/my-tool/") and line.split(":")[1].isdecimal() and ";" in line
        for line in reading.problems
    )


@pytest.mark.spec("S2-06", "S2-66", "S2-49")
@pytest.mark.parametrize("written", ["my-tool", "mytool", "My_tool", "", 5, None, ["my_tool"]])
def test_a_tool_is_named_like_its_folder(written, faults, fields):
    assert faults(schema={**fields, "toolId": written}) == [
        (
            f"schema.json:2: toolId doesn't match directory: {json.dumps(written)}; "
            'write "toolId": "my_tool", or rename the folder'
        )
    ]


@pytest.mark.spec("S2-06")
@pytest.mark.parametrize(
    ("folder", "name"), [("my-tool", "my_tool"), ("a-b-c", "a_b_c"), ("x_y", "x_y"), ("größe", "größe")]
)
def test_dashes_of_the_folder_are_underscores_of_the_tool(folder, name, read, fields):
    assert read(folder, schema={**fields, "toolId": name}).tool.name == name


@pytest.mark.parametrize("folder", ["my tool", "a.b", "x" * 65, "a\nb", "a\udcffb"])
def test_a_folder_that_cannot_name_a_tool_is_refused_on_one_printable_line(folder, read, fields):
    reading = read(folder, schema={**fields, "toolId": folder.encode("utf-8", "replace").decode()})
    assert reading.tool is None
    assert [line for line in reading.problems if "cannot name a tool; rename it" in line]
    assert all(line.isprintable() for line in reading.problems)


@pytest.mark.spec("S2-07")
@pytest.mark.parametrize(
    "version", ["1.0", "v1.0.0", "1.0.0-rc1", "1.0.0\n", "1.0.٣", " 1.0.0", "", 1, None, "1.0." + "0" * 70]
)
def test_a_version_is_major_minor_patch(version, faults, fields):
    (told,) = faults(schema={**fields, "version": version})
    assert told.startswith("schema.json:3: version: ")
    assert told.endswith(' is not major.minor.patch; write "version": "1.0.0"')


@pytest.mark.parametrize("description", ["", "  \n", None, 5, ["text"]])
def test_a_description_says_something(description, faults, fields):
    (told,) = faults(schema={**fields, "description": description})
    assert told == (
        f'schema.json:4: description: {json.dumps(description)} says nothing; write "description": "What the tool does"'
    )


WORDS = {"category": (5, "retrieval, action, utility"), "sideEffects": (6, "none, read_only, writes")}


@pytest.mark.spec("S2-09", "S2-10", "S2-49")
@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("value", ["other", "Retrieval", "", None, 1, True, ["none"], {"none": 1}])
def test_a_word_outside_its_list_is_refused_with_the_list(name, value, faults, fields):
    line, words = WORDS[name]
    assert faults(schema={**fields, name: value}) == [
        f"schema.json:{line}: {name}: {json.dumps(value)} is unknown; write one of {words}"
    ]


@pytest.mark.spec("S2-09")
@pytest.mark.parametrize("category", ["retrieval", "action", "utility"])
def test_the_three_categories_are_taken(category, read, fields):
    assert read(schema={**fields, "category": category}).tool.behaviour == category


@pytest.mark.spec("S2-10")
@pytest.mark.parametrize("effects", ["none", "read_only", "writes"])
def test_the_three_side_effects_are_taken(effects, read, fields):
    assert read(schema={**fields, "category": "action", "sideEffects": effects}).tool.side_effects == effects


@pytest.mark.spec("S2-11")
@pytest.mark.parametrize(("name", "line"), [("idempotent", 7), ("requiresConfirmation", 8)])
@pytest.mark.parametrize("value", ["true", 1, 0, None, []])
def test_a_switch_is_a_boolean(name, line, value, faults, fields):
    assert faults(schema={**fields, name: value}) == [
        f"schema.json:{line}: {name}: {json.dumps(value)} is not a boolean; write true or false"
    ]


@pytest.mark.spec("S2-13", "S2-49")
@pytest.mark.parametrize("modes", [[], "text", None, {}, 1, True])
def test_the_modes_are_a_list_of_at_least_one(modes, faults, fields):
    assert faults(schema={**fields, "allowedModes": modes}) == [
        (
            f"schema.json:9: allowedModes: {json.dumps(modes)} must be a list of at least one mode; "
            'write "allowedModes": ["text", "voice"]'
        )
    ]


@pytest.mark.spec("S2-13")
@pytest.mark.parametrize("mode", ["sms", "Text", "", None, 1, ["text"]])
def test_an_unknown_mode_is_refused(mode, faults, fields):
    (told,) = faults(schema={**fields, "allowedModes": ["text", mode]})
    assert told.endswith(f": allowedModes: {json.dumps(mode)} is unknown; write one of text, voice")
    assert not isinstance(mode, str) or told.startswith("schema.json:11: ")


@pytest.mark.parametrize("modes", [["text"], ["voice"], ["text", "voice"]])
def test_every_choice_of_modes_is_taken(modes, read, fields):
    assert read(schema={**fields, "allowedModes": modes}).tool.modes == set(modes)


@pytest.mark.spec("S2-14")
@pytest.mark.parametrize("budget", [0, -1, -0.5, True, "800", None, []])
def test_a_latency_budget_is_a_number_above_zero(budget, faults, fields):
    assert faults(schema={**fields, "latencyBudgetMs": budget}) == [
        (
            f"schema.json:13: latencyBudgetMs: {json.dumps(budget)} must be a number of milliseconds greater than 0; "
            'write "latencyBudgetMs": 1000'
        )
    ]


def test_a_budget_with_a_fraction_is_rounded_up(read, fields):
    assert read(schema={**fields, "latencyBudgetMs": 0.25}).tool.limits.latency_budget_ms == 1


@pytest.mark.spec("S2-23")
def test_the_template_of_the_document_is_no_tool(faults, fixture_text, fields):
    told = faults(schema=fixture_text("schema_template.json").replace("tool_name", "my_tool"))
    assert told == [
        'schema.json:6: category: "retrieval | action | utility" is unknown; write one of retrieval, action, utility',
        'schema.json:7: sideEffects: "none | read_only | writes" is unknown; write one of none, read_only, writes',
    ]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("requires", "net.http", "is not a list"),
        ("requires", ["network"], '"network" is not in dotted notation; write it like fs.write'),
        ("requires", [5], "5 is not text"),
        ("hosts", ["http://example.com/x"], "host pattern 'http://example.com/x' is refused"),
        ("hosts", {}, "is not a list"),
        ("outputSchema", {"type": "float"}, "Invalid JSON Schema: outputSchema.type: type 'float' is unknown"),
        ("outputSchema", [], "Invalid JSON Schema: outputSchema: [] is not a schema"),
        ("timeoutMs", 0, "0 must be a whole number of milliseconds from 1"),
        ("timeoutMs", True, "true must be a whole number"),
        ("timeoutMs", 1.5, "1.5 must be a whole number"),
        ("tags", ["a", ""], '"" is not text'),
        ("displayName", " ", '" " is not a name'),
        ("displayName", 5, "5 is not a name"),
    ],
)
def test_an_optional_field_that_is_wrong_is_refused_at_its_line(name, value, words, faults, fields):
    text = json.dumps({name: value, **fields}, separators=(",\n", ":"))
    (told,) = faults(schema=text)
    assert words in told
    line = next(number for number, row in enumerate(text.split("\n"), 1) if f'"{name}"' in row)
    assert line <= int(told.split(":")[1]) <= line + 1


def test_no_hosts_at_all_is_not_the_same_as_none_named(read, fields):
    assert read(schema=fields).tool.run.hosts is None
    assert read(schema={**fields, "hosts": []}).tool.run.hosts == ()


def test_a_field_that_is_not_read_is_named_with_what_was_meant(warnings_of, fields):
    assert warnings_of(schema={"sideEffect": "none", "x": 1, **fields}) == [
        'schema.json:2: "sideEffect" is not read; write sideEffects',
        'schema.json:3: "x" is not read; remove it',
    ]


@pytest.mark.parametrize("text", ["[]", "null", '"text"', "5", "true"])
def test_a_schema_file_is_an_object(text, faults):
    assert faults(schema=text) == [
        f"schema.json:1: must be a JSON object, not {text}; write the fields of the tool between braces"
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "schema.json:1: expecting value; correct the JSON there"),
        ('{\n  "a": 1\n  "b": 2}', "schema.json:3: expecting ',' delimiter; correct the JSON there"),
        ('{\n  "a": NaN\n}', "schema.json:2: NaN is not a JSON value; write a finite number or null"),
        ('{"NaN": "NaN, -Infinity \\" NaN",\n"b": [\n1, -Infinity]}', "schema.json:3: -Infinity is not a JSON value; write a finite number or null"),
        ('{"a": 1,\n"b": 1e999}', "schema.json:2: the number 1e999 is too large; write a number below 1.8e308"),
        (f'{{"a": {"9" * 400},\n"b": {"9" * 5000}}}', "schema.json:2: an integer of 5000 digits is too long; write a shorter one"),
        ('{"a": {"x": 1,\n"x": 2},\n"b": NaN}', "schema.json:2: the key 'x' stands twice in one object; remove one"),
        ('{"a": 1,\n"b": NaN,\n"a": 2}', "schema.json:2: NaN is not a JSON value; write a finite number or null"),
        ('{\n "a": 1,\n "b": {"c": [{"d": 1},\n{"d": 1,\n"d": 2}]}\n}', "schema.json:5: the key 'd' stands twice in one object; remove one"),
        ('{"toolId": "a",\n"toolId": "b"} x', "schema.json:1: the key 'toolId' stands twice in one object; remove one"),
        ('{"toolId": "a",\n"toolId": "b"}', "schema.json:2: the key 'toolId' stands twice in one object; remove one"),
        ("[" * 100 + "]" * 100, "schema.json:1: [0][0][0][0][0][0][0][0]…: nested deeper than 64 levels; make it flatter"),
        ("[" * 100_000, "schema.json:1: nested deeper than 64 levels; make it flatter"),
        (b"{\n\xff}", "schema.json:2: is not UTF-8; save the document as UTF-8"),
        (b'{"a": "\\ud800"}', "schema.json:1: a: text with half of a surrogate pair cannot be written to disk; write the whole character"),
        (b"{\x00}", "schema.json:1: expecting property name enclosed in double quotes; correct the JSON there"),
        (b" " * 300_000, "schema.json:1: has 300000 bytes, the limit is 256000; make it smaller"),
    ],
)  # fmt: skip
def test_what_two_readers_could_read_differently_is_refused_with_its_line(text, told, faults):
    assert faults(schema=text) == [told]


def test_a_byte_order_mark_and_the_line_ends_of_windows_are_fine(read, fields, doc):
    windows = {
        "schema": json.dumps(fields, indent=1), "summary": "Look a\nword up.\n", "doc": doc(), "js": "export const execute = 1;\n",
    }  # fmt: skip
    reading = read(**{name: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() for name, text in windows.items()})
    assert reading.problems == reading.warnings == ()
    assert reading.tool.summary == "Look a\nword up."
    assert reading.tool.documentation == doc()


def test_lines_are_counted_alike_with_the_line_ends_of_windows(faults, fields):
    text = json.dumps({**fields, "category": "x"}, indent=1).replace("\n", "\r\n").encode()
    (told,) = faults(schema=text)
    assert told.startswith("schema.json:5: category")


def test_where_a_folder_lies_changes_nothing_about_its_tool(fields, tmp_path, read):
    from toolcrib.features.folders.format import read_tool

    run = read(schema=fields).tool.run
    there = read_tool(tmp_path / "elsewhere", "my-tool", run.files, {"_core/a.js": b""}, registry="1.0.1").tool
    assert (there.run.registry, there.run.shared) == ("1.0.1", {"_core/a.js": b""})
    assert there.content_hash != read(schema=fields).tool.content_hash
    same = read_tool(tmp_path, "my-tool", run.files, {"_core/b.js": b""}).tool
    assert same.content_hash == read(schema=fields).tool.content_hash
