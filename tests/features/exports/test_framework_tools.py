"""Tools in the hands of other frameworks; judges/framework_tools.py tries all of them with their real packages."""

from __future__ import annotations

import json
import sys

import pytest

from toolcrib import Crib, ToolError, tool


@tool
def divide(dividend: int, divisor: int) -> float:
    """Divide two numbers."""
    return dividend / divisor


@tool(confirm=True)
def wipe(path: str) -> str:
    """Wipe a path."""
    return f"{path} is gone"


async def ask(handed, name, **arguments):
    # Takes two seconds to import, which every worker would pay for when tests are collected.
    from agents.tool_context import ToolContext

    (made,) = [each for each in handed if each.name == name]
    text = json.dumps(arguments)
    context = ToolContext(context=None, tool_name=name, tool_call_id="1", tool_arguments=text)
    return await made.on_invoke_tool(context, text)


async def test_an_agent_of_openai_calls_our_tools_through_the_pipeline():
    async with Crib(tools=[divide, wipe]) as crib:
        handed = crib.as_openai_agents(tools=["divide", "wipe"])
        assert [each.name for each in handed] == ["divide", "wipe"]
        assert handed[0].params_json_schema["required"] == ["dividend", "divisor"]
        assert await ask(handed, "divide", dividend=1, divisor=2) == "0.5"
        wrong = json.loads(await ask(handed, "divide", dividend=1, divisor="two"))
        assert (wrong["type"], "divisor" in wrong["message"]) == ("VALIDATION", True)


async def test_a_tool_that_needs_confirmation_runs_only_after_a_person_said_so():
    asked = []

    def confirm(call, error):
        asked.append(call.name)
        return len(asked) > 1

    async with Crib(tools=[wipe]) as crib:
        alone = crib.as_openai_agents(tools=["wipe"])
        assert json.loads(await ask(alone, "wipe", path="/"))["type"] == "CONFIRMATION_REQUIRED"
        handed = crib.as_openai_agents(tools=["wipe"], confirm=confirm)
        assert json.loads(await ask(handed, "wipe", path="/"))["type"] == "CONFIRMATION_REQUIRED"
        assert await ask(handed, "wipe", path="/") == "/ is gone"
    assert asked == ["wipe", "wipe"]


@pytest.mark.parametrize(
    ("hand_over", "package", "extra"),
    [
        ("as_langchain", "langchain_core", "toolcrib[langchain]"),
        ("as_openai_agents", "agents", "toolcrib[openai-agents]"),
        ("as_pydantic_ai", "pydantic_ai", "toolcrib[pydantic-ai]"),
        ("as_smolagents", "smolagents", "toolcrib[smolagents]"),
    ],
)
def test_a_framework_that_is_not_installed_is_named_with_its_extra(hand_over, package, extra, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    with Crib(tools=[divide]) as crib, pytest.raises(ToolError, match="is not installed") as caught:
        getattr(crib, hand_over)()
    assert caught.value.message == f"the package {package} is not installed; install it: pip install '{extra}'"
