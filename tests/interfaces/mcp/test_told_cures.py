"""What errors tell a client to do is something that a client can do: it searches, reads a definition, or asks the operator."""

from __future__ import annotations

import pytest

from toolcrib import Cure, Kind, ToolError, tool


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
    raise ToolError(Kind.EXECUTOR_NOT_FOUND, "broken needs a package", cure=Cure("run: crib prepare broken"))


CASES = {
    "add": ("its definition says what it takes", "read its parameters with describe_tool"),
    "reach": ("which is not granted; ask the operator to grant it",) * 2,
    "pay": ("ask the operator to approve it, then make the same call again; the operator runs: crib approvals",) * 2,
    "broken": ("broken needs a package; ask the operator",) * 2,
    "off": ("ask the operator to enable it",) * 2,
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
