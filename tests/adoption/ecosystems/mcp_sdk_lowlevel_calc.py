import asyncio

import mcp.types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

server = Server("calc")


@server.list_tools()
async def handle_list_tools() -> list[types.Tool]:
    return [
        types.Tool(
            name="add",
            description="Add two numbers",
            inputSchema={
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
        ),
        types.Tool(
            name="negate",
            description="Negate a number",
            inputSchema={"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
        ),
    ]


@server.call_tool()
async def handle_call_tool(name: str, arguments: dict | None) -> list[types.TextContent]:
    if name == "add":
        return [types.TextContent(type="text", text=str(arguments["a"] + arguments["b"]))]
    if name == "negate":
        return [types.TextContent(type="text", text=str(-arguments["x"]))]
    raise ValueError(f"Unknown tool: {name}")


async def main():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
