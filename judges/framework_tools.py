"""Hand our tools to each framework and have the framework itself call them, without a model or a network."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from toolcrib import Crib, tool

FILE = '''"""Count."""


def count_letters(text: str, letter: str = "a") -> dict:
    """Count a letter in a text."""
    return {"letter": letter, "count": text.count(letter)}
'''


@tool
def divide(dividend: int, divisor: int) -> float:
    """Divide two numbers."""
    if divisor == 0:
        message = "the divisor is zero"
        raise ValueError(message)
    return dividend / divisor


@tool(confirm=True)
def wipe(path: str) -> str:
    """Wipe a path."""
    return f"{path} is gone"


NAMES = ["count_letters", "divide", "wipe"]


def expect(holds: object, *said: object) -> None:
    """End the judge with what was seen instead, if something does not hold."""
    if not holds:
        raise SystemExit(f"not as expected: {said}")


def judge_langchain(crib: Crib) -> None:
    """Tool messages carry text, artifact and status; definitions are those of OpenAI."""
    from langchain_core.utils.function_calling import convert_to_openai_tool

    tools = {each.name: each for each in crib.as_langchain(tools=NAMES)}
    written = convert_to_openai_tool(tools["divide"])["function"]
    expect(written["parameters"]["required"] == ["dividend", "divisor"], written)
    good = tools["count_letters"].invoke(call("count_letters", text="banana"))
    expect((good.status, json.loads(good.content), good.artifact) == ("success", COUNTED, COUNTED), good)
    bad = tools["divide"].invoke(call("divide", dividend=1, divisor="two"))
    expect(bad.status == "error", bad)
    expect("divisor" in bad.content, bad)
    refused = tools["wipe"].invoke(call("wipe", path="/"))
    expect(refused.status == "error", refused)
    expect("CONFIRMATION_REQUIRED" in refused.content, refused)


async def judge_langchain_async(crib: Crib) -> None:
    """The same from a loop."""
    tools = {each.name: each for each in crib.as_langchain(tools=NAMES)}
    good = await tools["count_letters"].ainvoke(call("count_letters", text="banana"))
    expect(json.loads(good.content) == COUNTED, good)


def call(name: str, **arguments: object) -> dict[str, object]:
    """A call as a model of LangChain asks for it."""
    return {"name": name, "args": arguments, "id": "1", "type": "tool_call"}


async def judge_openai_agents(crib: Crib) -> None:
    """The tools have the schema as it is, and answer the JSON of a model with text."""
    from agents.tool_context import ToolContext

    tools = {each.name: each for each in crib.as_openai_agents(tools=NAMES)}
    expect(tools["divide"].params_json_schema["required"] == ["dividend", "divisor"])

    async def ask(name: str, arguments: str) -> str:
        context: Any = ToolContext(context=None, tool_name=name, tool_call_id="1", tool_arguments=arguments)
        return str(await tools[name].on_invoke_tool(context, arguments))

    expect(json.loads(await ask("count_letters", '{"text": "banana"}')) == COUNTED)
    expect("divisor" in await ask("divide", '{"dividend": 1, "divisor": "two"}'))
    expect("VALIDATION" in await ask("divide", "{"))
    expect("CONFIRMATION_REQUIRED" in await ask("wipe", '{"path": "/"}'))


async def judge_pydantic_ai(crib: Crib) -> None:
    """An agent calls every tool, is told of wrong arguments as a retry, and of a refusal as a failure."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    seen: list[str] = []
    asked = [
        ("count_letters", {"text": "banana"}),
        ("divide", {"dividend": 1, "divisor": "two"}),
        ("divide", {"dividend": 1, "divisor": 2}),
        ("wipe", {"path": "/"}),
    ]

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        expect({each.name for each in info.function_tools} == set(NAMES))
        seen.extend(str(getattr(part, "content", "")) for part in messages[-1].parts)
        if not asked:
            return ModelResponse(parts=[TextPart("done")])
        name, arguments = asked.pop(0)
        return ModelResponse(parts=[ToolCallPart(name, arguments)])

    agent = Agent(FunctionModel(model), tools=crib.as_pydantic_ai(tools=NAMES))
    done = await agent.run("go")
    expect(done.output == "done")
    expect(str(COUNTED) in seen[1] or json.dumps(COUNTED) in seen[1], seen)
    expect("divisor" in seen[2], seen)
    expect(seen[3] == "0.5", seen)
    expect("CONFIRMATION_REQUIRED" in seen[4], seen)


def judge_smolagents(crib: Crib) -> None:
    """Tools are called by name or by position, as the code of an agent does; a failure is raised."""
    tools = {each.name: each for each in crib.as_smolagents(tools=NAMES)}
    expect(tools["count_letters"].inputs["letter"]["nullable"] is True)
    expect(tools["count_letters"]("banana") == COUNTED)
    expect(tools["count_letters"](text="banana", letter="b") == {"letter": "b", "count": 1})
    for name, arguments, word in (
        ("divide", {"dividend": 1, "divisor": "two"}, "divisor"),
        ("wipe", {"path": "/"}, "CONFIRMATION_REQUIRED"),
    ):
        try:
            tools[name](**arguments)
            said = ""
        except RuntimeError as problem:
            said = str(problem)
        expect(word in said, name, said)


COUNTED = {"letter": "a", "count": 3}


async def judge_async(project: Path) -> None:
    """What frameworks call from their own loop."""
    async with Crib(project, tools=[divide, wipe]) as crib:
        await judge_langchain_async(crib)
        await judge_openai_agents(crib)
        await judge_pydantic_ai(crib)


def main() -> None:
    """Judge each framework with a file, a function of the host, and a tool that needs confirmation."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "tools").mkdir()
        (project / "tools" / "count_letters.py").write_text(FILE, "utf-8")
        with Crib(project, tools=[divide, wipe]) as crib:
            judge_langchain(crib)
            judge_smolagents(crib)
        asyncio.run(judge_async(project))
    print("four frameworks called our tools, and were told of what failed")


if __name__ == "__main__":
    main()
