"""Messages that are none: which error they get, under which id, and whether an answer is due."""

import json

import pytest

from toolcrib import Kind, ToolError
from toolcrib.interfaces.mcp.messages import Code, UnreadableError, failed, overloaded, read_message, write_error

LIMIT = 10_000


def refusal(raw):
    with pytest.raises(UnreadableError) as caught:
        read_message(raw if isinstance(raw, bytes) else json.dumps(raw).encode(), LIMIT)
    error = caught.value
    return error.code, error.message, error.id, error.is_response


def message(**members):
    return {"jsonrpc": "2.0", **members}


@pytest.mark.parametrize(
    ("sent", "code", "words", "request_id", "is_response"),
    [
        (b'{"a": 1, "a": 2}', Code.PARSE, "message: the key 'a' stands twice", None, False),
        (b"x" * (LIMIT + 1), Code.PARSE, f"message: has {LIMIT + 1} bytes", None, False),
        ([message(id=1, method="ping")], Code.INVALID_REQUEST, "send one message at a time", None, False),
        ("ping", Code.INVALID_REQUEST, "a message is a JSON object", None, False),
        ({"id": 7, "method": "ping"}, Code.INVALID_REQUEST, 'says "jsonrpc": "2.0"', 7, False),
        (message(id="a", method=""), Code.INVALID_REQUEST, "a method is a text", "a", False),
        (message(id=7, method="ping", params=[]), Code.INVALID_PARAMS, "params: must be an object", 7, False),
        (message(id=7, method="x", params={"_meta": 1}), Code.INVALID_PARAMS, "params._meta: must be", 7, False),
        (message(id=7, method="x", result={}), Code.INVALID_REQUEST, "neither a result nor an error", 7, False),
        (message(id=7, result={}, error={}), Code.INVALID_REQUEST, "a result or an error", 7, False),
        (message(id=7, result=[]), Code.INVALID_REQUEST, "result: must be an object", 7, True),
        (message(id=1.5, result={}), Code.INVALID_REQUEST, "an id is a text", None, True),
        (message(id=1.5, method="x"), Code.INVALID_REQUEST, "an id is a text", None, False),
    ],
)
def test_what_is_no_message_is_refused_under_its_id(sent, code, words, request_id, is_response):
    found = refusal(sent)
    assert found[0] is code
    assert words in found[1]
    assert found[2:] == (request_id, is_response)


def test_a_message_of_very_many_keys_is_refused_under_its_id():
    params = {"arguments": dict.fromkeys(map(str, range(10_001)))}
    raw = json.dumps(message(id=7, method="tools/call", params=params)).encode()
    with pytest.raises(UnreadableError, match="the objects of a message have more than 10000 keys") as caught:
        read_message(raw, len(raw))
    assert (caught.value.code, caught.value.id) == (Code.INVALID_REQUEST, 7)


@pytest.mark.parametrize("error", [{}, {"message": 5}, "broken", None])
def test_an_error_of_the_client_without_a_message_is_one_all_the_same(error):
    found = read_message(json.dumps(message(id=7, error=error)).encode(), LIMIT)
    assert (found.id, found.result, found.error) == (7, None, "an error without a message")


def test_a_request_that_finds_no_place_is_told_when_to_come_again():
    error = overloaded("all places are taken", status=429)
    assert (error.status, error.retry_after) == (429, 1)
    assert json.loads(write_error(7, error)) == message(
        id=7,
        error={
            "code": -32603,
            "message": "all places are taken",
            "data": {"type": "OVERLOADED", "retryable": True, "details": {"retryAfter": 1}},
        },
    )


def test_a_failure_that_nothing_is_known_about_says_what_it_is():
    error = failed(ToolError(Kind.PERMANENT, "the disk is full"))
    assert (error.code, error.status, error.retry_after, error.data) == (Code.INTERNAL, 0, None, {"type": "PERMANENT"})
