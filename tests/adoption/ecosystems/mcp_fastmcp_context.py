# /// script
# dependencies = ["mcp<2"]
# ///
from mcp.server.fastmcp import Context, FastMCP

mcp = FastMCP("Demo", instructions="A demo")


@mcp.tool()
async def long_task(files: list[str], ctx: Context) -> str:
    """Process multiple files"""
    for i, file in enumerate(files):
        await ctx.report_progress(i, len(files))
    return f"Processed {len(files)}"


@mcp.resource("greeting://{name}")
def get_greeting(name: str) -> str:
    """Greeting"""
    return f"Hello, {name}!"
