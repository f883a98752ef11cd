"""A caller that is refused for now is told when to try again: in words and as a number, on every interface."""

from __future__ import annotations

import json
import math

import pytest
from tests.interfaces.mcp.conftest import OLD, McpClient

from app_lifespan import local_app
from toolcrib import Crib, Kind, ToolError, tool
from toolcrib.features.exports.providers import tell
from toolcrib.interfaces.mcp.messages import failed, overloaded, write_error
from toolcrib.toolkit.http.problems import Refusal, headers_of, problem_of

WORDS = "try again in 60 s"


@tool(calls_per_minute=1)
def rare() -> int:
    """Be rare."""
    return 1


@tool
def busy() -> int:
    """Be busy upstream."""
    raise ToolError(Kind.RATE_LIMIT, "the server is busy", retryable=True, details={"retryAfter": 7.2})


@pytest.fixture
async def crib():
    made = Crib(tools=[rare, busy], builtins={"enabled": False})
    yield made
    await made.close()


@pytest.mark.spec("S1-95")
async def test_over_both_wires_of_mcp_a_refusal_says_when_to_try_again(crib):
    client = McpClient(local_app(crib))
    assert (await client.call("rare")).result["structuredContent"] == 1
    for asking in (client, await client.open(OLD)):
        refused = (await asking.call("rare")).result
        told, typed = refused["content"][0]["text"], refused["_meta"]["toolcrib/error"]
        assert (refused["isError"], typed["type"], typed["retryable"]) == (True, "RATE_LIMIT", True)
        assert 0 < typed["details"]["retryAfter"] <= 60
        assert told.count("try again") == 1
        assert told.startswith("RATE_LIMIT: rare may be called 1 times a minute; try again in ")
        upstream = (await asking.call("busy")).result
        assert upstream["content"][0]["text"] == "RATE_LIMIT: the server is busy; try again in 8 s"
        assert upstream["_meta"]["toolcrib/error"]["details"]["retryAfter"] == 7.2


@pytest.mark.spec("S1-95")
async def test_a_model_behind_an_adapter_and_a_terminal_are_told_in_words(crib):
    await crib.call("rare")
    refused = await crib.call("rare")
    assert WORDS in json.loads(tell(refused))["message"]
    assert WORDS in refused.error.message


@pytest.mark.parametrize("wait", [math.nan, math.inf, -5, 10**400, "soon", True, None], ids=lambda wait: repr(wait)[:8])
def test_a_wait_that_is_none_neither_breaks_the_answer_nor_is_believed(wait):
    error = ToolError(Kind.RATE_LIMIT, "busy", retryable=True, details={"retryAfter": wait})
    seconds = error.retry_after
    assert seconds is None or 0 <= seconds <= 10**9
    ((name, value),) = headers_of(error)
    assert name == b"retry-after"
    assert 1 <= int(value) <= 10**9
    assert json.loads(write_error(1, failed(error)))["error"]["data"]["type"] == "RATE_LIMIT"


def test_the_refusal_of_a_request_says_the_same_in_its_header_and_its_body():
    refusal = Refusal(429, Kind.RATE_LIMIT, "too many requests", details={"retryAfter": 12})
    assert headers_of(refusal) == ((b"retry-after", b"12"),)
    problem = problem_of(refusal, "1")
    assert (problem["retryable"], problem["details"]) == (True, {"retryAfter": 12})


def test_a_request_of_the_protocol_that_finds_no_place_says_when_to_try_again():
    error = json.loads(write_error(1, overloaded("full")))["error"]
    assert error["data"] == {"type": "OVERLOADED", "retryable": True, "details": {"retryAfter": 1}}
