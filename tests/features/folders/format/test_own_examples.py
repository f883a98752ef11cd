"""The document's own folders: each loads unchanged, and says what the document says."""

import json

import pytest

from toolcrib.features.folders.documentation import Absent, doc_examples, failure_modes
from toolcrib.features.folders.format import read_tool
from toolcrib.lib.schema import compile_schema


def test_the_search_of_the_knowledge_base_loads(read_fixture):
    reading = read_fixture("kb-search")
    tool = reading.tool
    assert reading.problems == reading.warnings == ()
    assert (tool.name, tool.behaviour, tool.limits.latency_budget_ms) == ("kb_search", "retrieval", 800)
    assert tool.examples == ({"query": "return order", "top_k": 1}, {"query": "zeppelin"})
    assert tool.parameters["properties"]["top_k"] == {
        "type": "number",
        "description": "Number of results (voice: max 3, text: max 10)",
        "minimum": 1,
        "maximum": 10,
        "default": 5,
    }


def test_the_calendar_loads_with_warnings_and_cannot_be_called(read_fixture):
    reading = read_fixture("calendar-create-event")
    tool = reading.tool
    place = "tools/calendar-create-event/schema.json"
    assert reading.problems == ()
    assert reading.warnings[:4] == (
        (
            f"{place}:14: parameters.required[2]: required but undefined: end_time; "
            "define it under properties, or every call is refused"
        ),
        f"{place}:16: parameters.properties.title: has no description; write what it means",
        f"{place}:20: parameters.properties.start_time: has no description; write what it means",
        f"{place}:24: parameters.properties.attendees: has no description; write what it means",
    )
    assert reading.warnings[4].startswith(
        "tools/calendar-create-event/doc.md:27: Example 1: A Meeting: the schema refuses"
    )
    assert len(reading.warnings) == 5
    assert (tool.requires_confirmation, tool.modes, tool.idempotent) == (True, {"text"}, False)
    assert tool.examples == ()


def test_a_copy_of_the_calendar_that_defines_the_end_takes_what_its_document_shows(read_fixture):
    run = read_fixture("calendar-create-event").tool.run
    path = "calendar-create-event/schema.json"
    schema = json.loads(run.files[path])
    schema["parameters"]["properties"]["end_time"] = {"type": "string", "format": "date-time"}
    reading = read_tool(run.root, run.folder, {**run.files, path: json.dumps(schema).encode()}, {})
    assert not any("undefined" in warning or "refuses" in warning for warning in reading.warnings)
    (shown,) = doc_examples(reading.tool.documentation)
    validator = compile_schema(reading.tool.parameters)
    assert validator.is_valid(shown.arguments)
    assert not validator.is_valid({**shown.arguments, "attendees": []})
    assert not validator.is_valid({**shown.arguments, "attendees": ["nobody"]})


def test_the_timeout_loads_with_its_failure_modes(read_fixture):
    reading = read_fixture("ignore-user")
    tool = reading.tool
    assert reading.problems == reading.warnings == ()
    assert (tool.behaviour, tool.side_effects, tool.idempotent) == ("action", "writes", False)
    assert [mode.name for mode in failure_modes(tool.documentation)] == ["SESSION_INACTIVE", "VALIDATION", "TRANSIENT"]
    validator = compile_schema(tool.parameters)
    farewell = {"farewell_message": "Goodbye."}
    assert [validator.is_valid({"duration_seconds": n, **farewell}) for n in (29, 30, 86_400, 86_401)] == [
        False, True, True, False,
    ]  # fmt: skip
    assert [(found.title, found.expected, found.expected_error) for found in doc_examples(tool.documentation)] == [
        ("Example 1: Second Offense", Absent, ""),
        ("Example 2: Extreme Abuse", Absent, ""),
    ]


def test_the_handler_that_degrades_gracefully_loads(read_fixture):
    reading = read_fixture("page-title")
    assert reading.problems == reading.warnings == ()
    assert [found.expected_error for found in doc_examples(reading.tool.documentation)] == ["", "", "INTERNAL"]


@pytest.mark.parametrize("folder", ["kb-search", "calendar-create-event", "ignore-user", "page-title"])
def test_reading_twice_gives_the_same_tool(folder, read_fixture):
    assert read_fixture(folder).tool.content_hash == read_fixture(folder).tool.content_hash
