"""Files of the store: what was written is read back, what a person changed in them survives, what is broken says where."""

import json

import pytest

from toolcrib import Bundle, Kind, ToolError
from toolcrib.features.bundles.format import read_stored_tool
from toolcrib.lib.document_format import write_tool

TOOL_ID = "018faf50-b7b6-7a01-9a05-a22a6e0af103"
PLACE = "bundles/b/weather@v2.json"


@pytest.fixture
def bundle(bundle_id) -> Bundle:
    return Bundle(id=bundle_id, slug="reports")


@pytest.fixture
def stored(document, bundle_id):
    """A document as the store holds it, with these changes; `...` leaves a key out."""

    def make(**changes) -> dict:
        own = {"bundleID": bundle_id, "toolID": TOOL_ID, "slug": "weather", "version": "v2"}
        times = {"createdAt": "2024-05-14T13:44:00.123Z", "modifiedAt": "2024-06-01T09:17:10.000Z"}
        return document(**own | times | changes)

    return make


@pytest.fixture
def load(bundle):
    def load(data: bytes | dict):
        data = write_tool(data) if isinstance(data, dict) else data
        return read_stored_tool(data, bundle=bundle, place=PLACE)

    return load


@pytest.fixture
def broken(load):
    """What is said of a file that is broken."""

    def said(data: bytes | dict) -> str:
        with pytest.raises(ToolError) as caught:
            load(data)
        assert caught.value.kind is Kind.VALIDATION
        return caught.value.message

    return said


def test_what_was_written_is_read_back_to_the_letter(read, load):
    sent = read(tags=["a"], preProcessors=["trim"], unknown={"b": [1, 2.5, None]}, isBuiltIn=False)
    found = load(sent.document)
    assert found.document == sent.document
    assert found.tool.content_hash == sent.tool.content_hash
    assert found.tool.id == sent.tool.id


def test_a_stored_tool_knows_its_bundle_and_its_file(load, stored):
    tool = load(stored()).tool
    assert tool.address == "reports/weather@v2"
    assert tool.id == TOOL_ID
    assert tool.origin.place == PLACE


def test_files_are_indented_lines_that_end_in_one(stored):
    text = write_tool(stored(displayName="Größe")).decode()
    assert text.startswith('{\n  "schemaVersion": "toolcrib-1",\n')
    assert '"displayName": "Größe"' in text
    assert text.endswith("}\n")


@pytest.mark.spec("S1-17")
def test_comments_another_order_and_unknown_keys_survive_being_read(load, stored):
    written = stored(remark="see //wiki/Weather")
    lines = json.dumps(dict(reversed(written.items())), indent=1).splitlines()
    text = "// by hand\n" + "\n".join(f"{line} /* {number} */" for number, line in enumerate(lines))
    reading = load(text.encode())
    assert reading.document == written
    assert reading.tool.content_hash == load(written).tool.content_hash
    assert reading.warnings == (f"{PLACE}:2: remark: is kept and not read",) or "remark" in reading.warnings[0]


@pytest.mark.spec("S1-16")
def test_an_id_is_found_under_its_other_name_and_worked_out_where_there_is_none(load, stored):
    assert load(stored(toolID=..., id=TOOL_ID)).tool.id == TOOL_ID
    first, second = load(stored(toolID=...)), load(stored(toolID=..., displayName="Other"))
    assert first.tool.id == second.tool.id == first.document["toolID"]
    assert first.tool.id != load(stored(toolID=..., version="v3")).tool.id


@pytest.mark.spec("S1-25")
@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2024-05-14T13:44:00Z", "2024-05-14T13:44:00.000Z"),
        ("2024-05-14T15:44:00.1+02:00", "2024-05-14T13:44:00.100Z"),
        ("2024-05-14 13:44:00.123456789z", "2024-05-14T13:44:00.123Z"),
    ],
)
def test_times_of_every_writer_are_spelled_alike(load, stored, written, read):
    assert load(stored(createdAt=written)).document["createdAt"] == read


@pytest.mark.parametrize(
    "time",
    ["yesterday", "2024-05-14", "2024-05-14T13:44:00", "2024-13-14T13:44:00Z", "20240514T134400Z", 5, [1], {"a": 1}],
)
def test_a_time_that_is_none_is_told_with_its_line(broken, stored, time):
    message = broken(stored(modifiedAt=time))
    assert message.startswith(f"{PLACE}:")
    assert "modifiedAt: " in message
    assert "is not a time; write it like" in message


@pytest.mark.parametrize("name", ["slug", "version"])
def test_a_file_that_does_not_say_which_tool_it_is_is_broken(broken, stored, name):
    assert f"{PLACE}:1: {name} is missing" in broken(stored(**{name: ...}))
    assert f": {name}: must be text, not 5" in broken(stored(**{name: 5}))
    assert f': {name}: "a_b": use 1 to 64 letters' in broken(stored(**{name: "a_b"}))


def test_a_file_of_another_bundle_is_broken(broken, stored, bundle_id):
    assert f'bundleID: "{TOOL_ID}" differs from "{bundle_id}"' in broken(stored(bundleID=TOOL_ID))


def test_every_problem_is_told_at_its_line(broken, stored):
    data = json.dumps(stored(isEnabled=1, tags=["a", "b c"], impl={"urlTemplate": "ftp://x"}), indent=2)
    lines = ("/* one\ntwo */\n" + data).splitlines()
    where = {
        word: number for number, line in enumerate(lines, 1) for word in ("isEnabled", "b c", "ftp") if word in line
    }
    told = broken("\n".join(lines).encode()).splitlines()
    assert [line.split(": ")[0:2] for line in told] == [
        [f"{PLACE}:{where['isEnabled']}", "isEnabled"],
        [f"{PLACE}:{where['ftp']}", "impl.urlTemplate"],
        [f"{PLACE}:{where['b c']}", "tags[1]"],
    ]


def test_a_file_that_is_no_json_is_broken_at_its_line(broken):
    assert broken(b'{\n  "slug": weather\n}').startswith(f"{PLACE}:2:11: ")
    assert broken(b"{\n\n/* no end").startswith(f"{PLACE}:3:1: the comment has no end")
    assert broken(b"").startswith(f"{PLACE}:1:1: ")
    assert broken(b"\xff{}").startswith(f"{PLACE}:1:1: is not UTF-8")
    assert broken(b"\0" * 100).startswith(f"{PLACE}:1:1: ")
    assert broken(b"[1]") == f"{PLACE}:1: must be a JSON object, not [1]; write it between {{ and }}"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('"slug": "b"', "the key 'slug' stands twice in one object; remove one"),
        ('"a": NaN', "NaN is not a JSON value; write a finite number or null"),
        ('"a": 1e999', "the number 1e999 is too large; write a number below 1.8e308"),
    ],
)
def test_what_two_readers_could_read_differently_is_broken_at_its_line(broken, line, words):
    data = f'{{ // "slug": 1\n  "slug": "a",\n  {line}\n}}'
    assert broken(data.encode()) == f"{PLACE}:3: {words}"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("18446744073709551616", "an integer beyond 64 bit does not arrive unchanged"),
        ("-9223372036854775809", "an integer beyond 64 bit does not arrive unchanged"),
        ('"\\ud800"', "text with half of a surrogate pair"),
        ("[" * 70 + "]" * 70, "nested deeper than 64 levels"),
    ],
)
def test_what_could_not_be_written_again_is_broken(broken, stored, value, words):
    data = write_tool(stored(odd=0)).replace(b'"odd": 0', f'"odd": {value}'.encode())
    message = broken(data)
    assert message.startswith(f"{PLACE}:1: odd")
    assert words in message


def test_a_file_that_is_too_large_is_not_read(load):
    with pytest.raises(ToolError, match="the limit is 1000000") as caught:
        load(b" " * 1_000_001)
    assert caught.value.kind is Kind.LIMIT_EXCEEDED


def test_the_largest_document_that_is_taken_is_read_back(read, load):
    sent = read(extra="")
    room = 256_000 - len(write_tool(sent.document))
    largest = read(extra="x" * room, toolID=sent.tool.id)
    assert len(write_tool(largest.document)) == 256_000
    times = {"createdAt": "2024-05-14T13:44:00.123Z", "modifiedAt": "2024-06-01T09:17:10.000Z"}
    assert load(largest.document | times).tool.content_hash == largest.tool.content_hash
    with pytest.raises(ToolError, match="the limit is 256000"):
        read(extra="x" * (room + 1), toolID=sent.tool.id)


def test_a_file_that_claims_to_be_built_in_is_broken(broken, stored):
    assert "isBuiltIn: only what comes with Toolcrib is built in" in broken(stored(isBuiltIn=True))
