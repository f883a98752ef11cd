"""Runs inside the peers' environment: the same `add` through each framework's own way of calling a tool, and through ours."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time

ROUNDS = 9


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: the first number
        b: the second number
    """
    return a + b


async def add_async(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def toolcrib(function):
    from toolcrib import Crib

    crib = Crib(tools=[function])
    return lambda: crib.call(function.__name__, a=1, b=2)


async def openai_agents(function):
    from agents import function_tool
    from agents.tool_context import ToolContext

    tool = function_tool(function)
    text = json.dumps({"a": 1, "b": 2})
    context = ToolContext(context=None, tool_name=tool.name, tool_call_id="1", tool_arguments=text)
    return lambda: tool.on_invoke_tool(context, text)


async def pydantic_ai(function):
    from pydantic_ai import RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.toolsets import FunctionToolset
    from pydantic_ai.usage import RunUsage

    context = RunContext(deps=None, model=TestModel(), usage=RunUsage(), run_step=1)
    manager = await ToolManager(FunctionToolset([function])).for_run_step(context)
    part = ToolCallPart(tool_name=function.__name__, args={"a": 1, "b": 2})
    return lambda: manager.handle_call(part)


async def fastmcp(function):
    from fastmcp.tools import Tool

    tool = Tool.from_function(function)
    return lambda: tool.run({"a": 1, "b": 2})


async def langchain(function):
    from langchain_core.tools import tool

    made = tool(function)
    return lambda: made.ainvoke({"a": 1, "b": 2})


PEERS = {
    "toolcrib": (toolcrib, 2_000),
    "openai-agents on_invoke_tool": (openai_agents, 1_000),
    "pydantic-ai ToolManager": (pydantic_ai, 300),
    "FastMCP tool.run": (fastmcp, 200),
    "LangChain ainvoke": (langchain, 100),
}


async def main() -> dict[str, object]:
    works, problems = {}, {}
    for function in (add, add_async):
        for name, (make, calls) in PEERS.items():
            label = name if function is add else f"{name}, async"
            try:
                work = await make(function)
                await work()
            except Exception as problem:
                problems[label] = repr(problem)
            else:
                works[label] = (work, calls)
    figures = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, (work, calls) in works.items():
            started = time.perf_counter()
            for _ in range(calls):
                await work()
            figures[name].append((time.perf_counter() - started) / calls)
    return {"seconds": {name: statistics.median(times) for name, times in figures.items()}, "problems": problems}


if __name__ == "__main__":
    json.dump(asyncio.run(main()), sys.stdout)
