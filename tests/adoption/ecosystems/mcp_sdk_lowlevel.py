# /// script
# dependencies = ["mcp<2"]
# ///
import asyncio

import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

server = Server("checksums")


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    return [
        types.Tool(
            name="luhn",
            description="Check a number with the Luhn algorithm",
            inputSchema={
                "type": "object",
                "properties": {"number": {"type": "string", "pattern": "^[0-9]+$"}},
                "required": ["number"],
            },
        )
    ]


@server.call_tool()
async def call_tool(name: str, arguments: dict) -> list[types.TextContent]:
    if name != "luhn":
        raise ValueError(f"Unknown tool: {name}")
    digits = [int(d) for d in reversed(arguments["number"])]
    total = sum(d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in enumerate(digits))
    return [types.TextContent(type="text", text="valid" if total % 10 == 0 else "invalid")]


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
