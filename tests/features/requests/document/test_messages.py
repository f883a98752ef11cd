"""A request comes over a channel in one of three shapes, and one reader knows them all."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.document.writer import Message, read_message, readable_id

YAML = (
    "tool_request:\n  id: req_20240115_001\n  name: a_b\n  description: d\n  priority: low\n  requested_by: fullsend\n"
)
WANTED = {
    "name": "a_b",
    "description": "d",
    "inputs": [{"name": "x", "type": "string", "description": "d", "required": True}],
    "requirements": ["Quick: yes"],
}


def order(**changes) -> str:
    return json.dumps(
        {"prd": WANTED, "requested_by": "orchestrator", "priority": "HIGH", "request_id": "req_20240115_002", **changes}
    )


class TestTheDocumentItself:
    def test_the_text_is_kept_as_it_is(self):
        assert read_message(YAML) == Message(id="req_20240115_001", text=YAML)

    def test_json_is_yaml(self):
        text = json.dumps({"tool_request": {"id": "req_1", "description": "😀 / \\/"}})
        assert "\\ud83d" in text
        assert read_message(text) == Message(id="req_1", text=text)
        assert read_message(text.replace("req_1", "REQ_1")).id == ""
        assert read_message("{tool_request: {id: req_1}}").id == "req_1"

    @pytest.mark.parametrize(
        "text",
        ["tool_request:\n  id: REQ_1\n", "tool_request:\n  name: x\n", "tool_request: 5\n", "tool_request:\n  id: 5\n"],
    )
    def test_one_without_a_usable_id_has_none(self, text):
        assert read_message(text) == Message(id="", text=text)


class TestTheNote:
    def test_it_names_the_hash(self):
        note = {
            "type": "tool_requested",
            "request_id": "req_20240115_003",
            "tool_name": "a_b",
            "source": "fullsend",
            "timestamp": "2024-01-15T00:00:00Z",
            "spec_key": "tool_requests:req_20240115_003",
        }
        assert read_message(json.dumps(note)) == Message(
            id="req_20240115_003", text="", key="tool_requests:req_20240115_003"
        )

    def test_the_id_is_taken_from_the_key_where_it_is_absent(self):
        assert read_message('{"spec_key": "tool_requests:req_1"}') == Message(
            id="req_1", text="", key="tool_requests:req_1"
        )
        assert read_message('{"type": "tool_requested", "request_id": "req_1"}') == Message(id="req_1", text="", key="")

    @pytest.mark.parametrize(
        "note",
        [
            {"type": "tool_requested"},
            {"type": "tool_requested", "request_id": "1706812345"},
            {"spec_key": 5},
            {"spec_key": "a b:req_1"},
            {"spec_key": "a\n:req_1"},
            {"spec_key": "x" * 257 + ":req_1"},
            {"spec_key": "tool_requests:other"},
        ],
    )
    def test_one_that_names_nothing_is_refused(self, note):
        with pytest.raises(ToolError) as caught:
            read_message(json.dumps(note))
        assert caught.value.kind is Kind.VALIDATION


class TestTheOrderOfTheOriginalBuilder:
    def test_it_becomes_a_document_of_ours(self):
        message = read_message(order())
        assert (message.id, message.key) == ("req_20240115_002", "")
        assert message.text == (
            "tool_request:\n"
            "  id: req_20240115_002\n"
            "  name: a_b\n"
            "  description: d\n"
            "  priority: HIGH\n"
            "  requested_by: orchestrator\n"
            "  inputs:\n"
            "    - name: x\n"
            "      type: string\n"
            "      description: d\n"
            "      required: true\n"
            "  requirements:\n"
            '    - "Quick: yes"\n'
        )
        assert read_request(message.text).name == "a_b"

    @pytest.mark.parametrize(
        "prd",
        [
            {"prd": WANTED},
            {"prd": {"prd": WANTED}},
            {"tool_request": WANTED},
            {"tool_name": "a_b", **{key: value for key, value in WANTED.items() if key != "name"}},
        ],
    )
    def test_wrappers_and_the_other_name_are_understood(self, prd):
        assert read_message(order(prd=prd)).text == read_message(order()).text

    def test_what_the_wrapper_says_comes_first(self):
        prd = {**WANTED, "priority": "low", "id": "req_9", "requested_by": "x"}
        request = read_request(read_message(order(prd=prd)).text)
        assert (request.priority, request.requested_by) == ("high", "orchestrator")

    def test_one_without_a_number_has_none_yet(self):
        message = read_message(json.dumps({"prd": {**WANTED, "priority": "low"}, "requested_by": "x", "timestamp": 5}))
        assert message.id == ""
        request = read_request(message.text, numbered=False)
        assert (request.id, dict(request.extra)) == ("", {})

    def test_what_is_wrong_with_it_is_told_by_the_reader_of_the_text(self):
        message = read_message(order(prd={"name": "Bad", "inputs": {"x": "string"}}))
        assert message.id == "req_20240115_002"
        with pytest.raises(ToolError) as caught:
            read_request(message.text)
        assert len(caught.value.details["problems"]) == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "[]",
        "5",
        "null",
        '{"a": 1}',
        "{",
        "a: [",
        '{"prd": 5}',
        '{"prd": "x"}',
        "\0",
        "\ud800",
        "x" * 300_000,
    ],
)
def test_what_is_none_of_the_three_is_refused(text):
    with pytest.raises(ToolError) as caught:
        read_message(text)
    assert caught.value.kind is Kind.VALIDATION


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (YAML, "req_20240115_001"),
        (order(), "req_20240115_002"),
        ("tool_request:\n  id: req_1\n  name: [\n", "req_1"),
        ("tool_request:\n  id: 'req_1' # x\n  name: a: b\n", "req_1"),
        ("tool_request:\n\tid: req_1\n", "req_1"),
        ('{"request_id": "req_1", "prd": {', "req_1"),
        ('{"prd": {"name": "x"}, "request_id": "req_1"', "req_1"),
        ("tool_request:\n  id: req_1\n  id: req_2\n", "req_1"),
        ("tool_request:\n  id: req_1\n  x: " + "y" * 300_000, "req_1"),
        ("tool_request:\n  id: req_1/../x\n  name: [\n", ""),
        ("tool_request:\n  id: req_a b\n  name: x\n", ""),
        ("tool_request:\n  id: REQ_1\n  name: [\n", ""),
        ("tool_request:\n  id: req_" + "1" * 61 + "\n  name: [\n", ""),
        ("tool_request:\n  name: x\n", ""),
        ("hello", ""),
        ("", ""),
        ("\0", ""),
        ("[" * 100_000, ""),
        (" " * 300_000, ""),
        ('"id" ' * 60_000, ""),
    ],
)  # fmt: skip
def test_the_id_of_a_message_is_found_even_if_the_rest_is_wrong(text, found):
    assert readable_id(text) == found


@settings(max_examples=examples(200))
@given(st.text(max_size=80) | st.text(alphabet='{}[]":,prd idrequest_tol\n01', max_size=80))
def test_for_any_input_there_is_a_message_or_one_refusal(text):
    readable_id(text)
    try:
        found = read_message(text)
    except ToolError:
        return
    assert isinstance(found, Message)


@settings(max_examples=examples(150))
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["prd", "name", "tool_name", "inputs", "id", "request_id"]), inner, max_size=3),
        max_leaves=8,
    )
)  # fmt: skip
def test_for_any_order_there_is_a_message_or_one_refusal(value):
    try:
        text = read_message(json.dumps({"prd": value, "request_id": "req_1"})).text
    except ToolError:
        return
    assert readable_id(text) in {"req_1", ""}
