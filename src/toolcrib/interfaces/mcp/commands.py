"""`crib mcp`: serve the tools of a project to an MCP client, and write the configuration of clients."""

from __future__ import annotations

import click

from toolcrib.interfaces.mcp.stdio_command import serve_project
from toolcrib.toolkit.cli.group import project_option


@click.group("mcp", invoke_without_command=True)
@project_option
@click.pass_context
def mcp(ctx: click.Context) -> int:
    """Serve the tools to an MCP client over stdio.

    The client starts this command and speaks to it over standard input and output. The same tools are served over HTTP at
    /mcp by: crib serve.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    return serve_project(ctx.obj)
