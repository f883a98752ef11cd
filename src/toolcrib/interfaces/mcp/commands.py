"""`crib mcp`: serve the tools of a project to an MCP client, and write the configuration of clients."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolcrib.client.connection import TOKEN_VARIABLE
from toolcrib.infra.files.durable import replace
from toolcrib.interfaces.mcp.bridge import bridge_server
from toolcrib.interfaces.mcp.client_config import McpClient, own_program, plan_change
from toolcrib.interfaces.mcp.stdio_command import serve_project
from toolcrib.toolkit.cli import Answer, ExitCode, WrongUseError, say
from toolcrib.toolkit.cli.group import answers, example, json_errors, pass_opener, project_option, url_option

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.toolkit.cli.group import Opener

# Nothing in it is secret, and others who work on the project may read it.
READABLE_FILE = 0o644


@click.group("mcp", invoke_without_command=True, epilog=example("crib mcp -C shop"))
@project_option
@url_option
@json_errors
@click.pass_context
def mcp(ctx: click.Context, url: str | None) -> int:
    """Serve the tools to an MCP client over stdio.

    The client starts this command and speaks to it over standard input and output. The same tools are served over HTTP at
    /mcp by: crib serve. With --url the tools are those of the server there. Standard output is the protocol, which is JSON.
    """
    if ctx.invoked_subcommand is not None:
        return ExitCode.DONE
    if url is None:
        return serve_project(ctx.obj)
    if ctx.obj.project is not None:
        raise WrongUseError("--url names a server, and --project a folder of this machine; leave one of them out")
    return bridge_server(url, os.environ.get(TOKEN_VARIABLE))


@mcp.command("install", epilog=example("crib mcp install claude-code --write"))
@click.argument("client", type=click.Choice([str(client) for client in McpClient]))
@click.option("--write", is_flag=True, help="Write the change; without it, it is only shown.")
@project_option
@answers("client", "file", "entry", "written")
@pass_opener
def install(opener: Opener[Crib], client: str, *, write: bool) -> Answer:
    """Add the project to the configuration of a client.

    What stands in the file stays there, letter for letter. An entry of the same name is left to you.
    """
    change = plan_change(McpClient(client), opener.folder.resolve(), Path.home(), program=own_program())
    if not change.entry:
        say(f"{change.path} has it already")
        return Answer({"client": client, "file": str(change.path), "entry": None, "written": False})
    if write:
        # A link stays one: the file behind it is written.
        path = change.path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, change.text.encode(), mode=READABLE_FILE, old=path.stat() if path.exists() else None)
    say(f"{'wrote to' if write else 'would add to'} {change.path}:")
    say(change.entry.rstrip())
    if not write:
        say("write it with --write")
    return Answer({"client": client, "file": str(change.path), "entry": change.entry, "written": write})
