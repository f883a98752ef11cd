"""`crib serve`: run the HTTP server of a project, and print what to try first."""

from __future__ import annotations

import asyncio
import logging
import shlex
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from toolcrib.client.connection import TOKEN_VARIABLE
from toolcrib.features.access.sign_in import LINK_SECONDS, noted_server, sign_in_link
from toolcrib.features.bundles.endpoints import INDEX_SECONDS
from toolcrib.infra.plain_code import run_async
from toolcrib.interfaces.http.exchange import log_to
from toolcrib.interfaces.http.server import is_loopback, new_loop
from toolcrib.interfaces.http.server import serve as serve_http
from toolcrib.interfaces.http.server_state import ProblemFinder
from toolcrib.interfaces.http.settings import ServerSettings
from toolcrib.lib import __version__
from toolcrib.model.errors import ToolError
from toolcrib.toolkit.cli import Answer, ExitCode, count, say, say_answer, visible
from toolcrib.toolkit.cli.group import answers, example, pass_opener, project_option
from toolcrib.toolkit.cli.progress import working
from toolcrib.toolkit.tool_facts import shadow_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolcrib.crib import Crib
    from toolcrib.model.bundle import Kept, Page
    from toolcrib.model.tool import Tool
    from toolcrib.toolkit.cli.group import Opener

SHOWN_TOOLS = 200
SHOWN_BUNDLES = 256
# The sweep of deleted bundles runs at the start, a minute later, and then every hour.
SECOND_LOOK_SECONDS = 60
LOOK_SECONDS = 3_600

logger = logging.getLogger("toolcrib.catalog")


@click.command("serve", epilog=example("crib serve --port 8765"))
@click.option("--host", metavar="ADDRESS", help="The address to listen on; without it the setting server.host.")
@click.option("--port", type=click.IntRange(0, 65535), help="The port; 0 takes a free one. Without it server.port.")
@project_option
@answers("url", "version", "root")
@pass_opener
def serve(opener: Opener[Crib], host: str | None, port: int | None) -> int:
    """Serve the tools over HTTP.

    On loopback no token is needed; on any other address every client needs one: crib token create. With --json standard output
    has one line, as soon as the server listens.
    """
    with working("reading the tools"):
        crib = opener.open_local()
    return serve_crib(crib, host, port)


def serve_crib(crib: Crib, host: str | None, port: int | None) -> ExitCode:
    """Serve until a signal ends the server."""
    crib.check_settings()
    with log_to(sys.stderr, crib.secrets.hide):
        return ExitCode(run_async(run_server(crib, host, port), new_loop))


async def run_server(crib: Crib, host: str | None, port: int | None) -> int:
    """Serve the crib, remove deleted bundles in the background, and close the crib at the end."""
    settings = crib.settings.table(ServerSettings)
    address = settings.host if host is None else host
    number = settings.port if port is None else port

    problems = ProblemFinder(lambda: crib.problems)
    noted = ExitStack()
    tasks: list[asyncio.Task[None]] = []

    def greet(url: str) -> None:
        root = crib.settings.root
        noted.enter_context(noted_server(crib.settings.data, _reached_at(url, address)))
        say(f"Toolcrib {__version__} serves {root or 'the tools of the user'} on {url}")
        facts = {"url": url, "version": __version__, "root": None if root is None else str(root)}
        # A program that started the server reads one line.
        say_answer(Answer(facts), on_a_line=True)
        # A program that reads from a pipe waits for the address.
        sys.stdout.flush()
        tasks.append(asyncio.create_task(_suggest(crib, problems, url, address)))

    async with crib:
        tasks.append(asyncio.create_task(_reap(crib)))
        try:
            return await serve_http(crib, host=address, port=number, say=say, ready=greet, problems=problems)
        finally:
            noted.close()
            for task in tasks:
                task.cancel()


async def _reap(crib: Crib) -> None:
    """Sweep periodically: remove bundles for good that were deleted two days ago."""
    pause = SECOND_LOOK_SECONDS
    while True:
        try:
            gone = await asyncio.to_thread(crib.bundles.reap)
        except ToolError as problem:
            logger.warning("the sweep of deleted bundles failed: %s", problem.message)
        else:
            for bundle_id in gone:
                logger.info("bundle %s was deleted two days ago and is now removed", bundle_id)
        await asyncio.sleep(pause)
        pause = LOOK_SECONDS


async def _suggest(crib: Crib, problems: ProblemFinder, url: str, host: str) -> None:
    """Print how many tools there are and commands to try; requests are answered meanwhile."""
    link = sign_in_link(crib, _reached_at(url, host))
    number, *lines = await asyncio.to_thread(lambda: [*_greeting(crib, url, host)])
    found = await problems.read()
    say(number)
    if found:
        say(f"{count(len(found), 'problem')}; see: crib check")
    for line in lines:
        say(line)
    say(f"The page, for one sign-in within {LINK_SECONDS // 60} minutes: {link}")
    say("Ctrl-C ends it.")
    sys.stdout.flush()


def _greeting(crib: Crib, url: str, host: str) -> Iterator[str]:
    bundles = crib.bundles.list_bundles(page_size=SHOWN_BUNDLES)
    page = crib.bundles.list_tools(page_size=SHOWN_TOOLS, patience=INDEX_SECONDS)
    # One's own tools come first; the sort is stable.
    tools = sorted((kept for kept in page.items if kept.usable), key=lambda kept: kept.bundle.built_in)
    yield f"{_number(tools, page, 'tool')} and {_number(bundles.items, bundles, 'bundle')}, enabled"
    if page.indexing:
        yield "stored tools are being indexed; lists and searches are incomplete until then"
    yield "Try, in another terminal:"
    for line in _lines(crib, tools, _reached_at(url, host), needs_token=not is_loopback(host)):
        yield f"  {line}"


def _lines(crib: Crib, tools: Sequence[Kept], url: str, *, needs_token: bool) -> Iterator[str]:
    """Commands to paste; those that need a token take it from a variable."""
    curl = f'curl -H "Authorization: Bearer ${TOKEN_VARIABLE}"' if needs_token else "curl"
    if needs_token:
        folder = "" if crib.settings.root in (None, Path.cwd()) else f" -C {shlex.quote(str(crib.settings.root))}"
        yield f"export {TOKEN_VARIABLE}=$({_program()} token create NAME --scope read --scope invoke{folder})"
    yield f"{curl} '{url}/tools?recommendedPageSize=5'"
    if tools:
        yield f"{curl} '{url}/tools/search?q={quote(tools[0].slug, safe='')}'"
    sample = _sample(tools)
    if sample is not None and sample.tool is not None:
        name = _name(crib, sample.tool)
        yield f"{curl} -H 'Content-Type: application/json' -d '{{}}' '{url}/call/{quote(name, safe='')}'"
        yield f"{_program()} call {shlex.quote(visible(name))} --url {url}"


def _program() -> str:
    """How a shell runs this program: by its name, or by its path where the shell would find none or another."""
    own = Path(sys.argv[0])
    if own.name != "crib":
        return f"{shlex.quote(sys.executable)} -m toolcrib"
    found = shutil.which("crib")
    return "crib" if found is not None and Path(found).samefile(own) else shlex.quote(str(own.absolute()))


def _number(items: Sequence[object], page: Page[Any], noun: str) -> str:
    return f"{'more than ' if page.next_token else ''}{count(len(items), noun)}"


def _reached_at(url: str, host: str) -> str:
    """The URL of the server for this machine, even if it listens on every address."""
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host)  # noqa: S104 - recognised, not listened on
    return url if here is None else url.replace(host, here, 1)


def _name(crib: Crib, tool: Tool) -> str:
    """The name to call the tool by: its address if its name means another tool."""
    return tool.address if shadow_of(crib, tool).by else tool.name


def _sample(tools: Sequence[Kept]) -> Kept | None:
    """A tool that needs no arguments."""
    return next((kept for kept in tools if kept.tool is not None and not kept.tool.parameters.get("required")), None)
