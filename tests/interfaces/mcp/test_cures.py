"""What errors tell a client to do is something that a client can do: it searches, reads a definition, or asks the operator."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.adoption.test_cures import messages_of, named_commands

import toolcrib
from toolcrib import Kind, ToolError, tool
from toolcrib.interfaces.mcp.cures import address, for_client

ASKED = ("ask the operator", "the operator runs: ", "watch_request")


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(requires=["net.http"])
def reach(url: str) -> str:
    """Reach an address."""
    return url


@tool(confirm=True)
def pay(amount: int) -> str:
    """Pay."""
    return str(amount)


@tool
def broken() -> str:
    """Fail."""
    raise ToolError(Kind.EXECUTOR_NOT_FOUND, "broken needs a package; run: crib prepare broken")


CASES = {
    "add": ("its definition says what it takes", "read its parameters with describe_tool"),
    "reach": ("ask the operator: grant it with --grant net.http",) * 2,
    "pay": ("ask the operator to approve it, then make the same call again; the operator runs: crib approvals",) * 2,
    "broken": ("broken needs a package; ask the operator: run: crib prepare broken",) * 2,
    "off": ("ask the operator: ",) * 2,
    "nothing_like_it": ("use one that is listed", "find one with search_tools"),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("is_searched", [False, True])
async def test_a_refusal_says_what_a_client_can_do(client_of, tmp_path, monkeypatch, name, is_searched):
    off = tool(name="off")(lambda: "off")
    client = client_of(
        *(add, reach, pay, broken, off),
        project=tmp_path,
        catalog={"disabled": ["off"]},
        mcp={"list_limit": 1 if is_searched else 100},
    )
    monkeypatch.setitem(client.crib.settings["approvals"].__dict__, "wait_seconds", 0)
    arguments = {"reach": {"url": "x"}, "pay": {"amount": 1}}.get(name, {})
    for each in (client, await client.open()):
        reply = (await each.call(name, arguments)).last
        said = reply["error"]["message"] if "error" in reply else reply["result"]["content"][0]["text"]
        assert CASES[name][is_searched] in said
        # The same call from the command line is told of commands.
        result = await client.crib.call(name, **arguments)
        assert result.error is not None
        assert "operator" not in result.error.message
        if "result" in reply:
            typed = reply["result"]["_meta"]["toolcrib/error"]
            assert typed["message"] in said
            assert "crib show" not in str(typed)


def test_every_command_that_a_message_names_is_put_to_the_operator():
    for path in sorted((Path(toolcrib.__file__).parent / "core").rglob("*.py")):
        for _, text in messages_of(path):
            if named_commands(text):
                said = address(text, is_searched=False, is_cure=True)
                assert not named_commands(said) or any(word in said for word in ASKED), f"{path}: {said}"


def test_an_error_without_a_command_stays_as_it_is():
    error = ToolError(Kind.TIMEOUT, "it took too long; the crib was closed", retryable=True, details={"cure": "wait"})
    assert for_client(error, is_searched=True) is error


def test_nothing_else_of_an_error_is_changed():
    error = ToolError(
        Kind.TRANSIENT, "x; run: crib build", retryable=True, partial_side_effects=True, details={"a": 1}, value=5
    )
    told = for_client(error, is_searched=False)
    assert told.message == "x; ask the operator: run: crib build"
    assert (told.retryable, told.partial_side_effects, told.details, told.value) == (True, True, {"a": 1}, 5)
