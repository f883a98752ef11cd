"""`crib serve`: the HTTP API of a project, and what to try first."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from toolcrib import __version__
from toolcrib.faces.cli.codes import ExitCode
from toolcrib.faces.cli.printing import count, say
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.model.bundle import Kept

SHOWN_TOOLS = 200
# Deleted bundles are looked at when the server starts, soon after, and then now and then.
SECOND_LOOK_SECONDS = 60
LOOK_SECONDS = 3_600

logger = logging.getLogger("toolcrib.catalog")


def serve_crib(crib: Crib, host: str | None, port: int | None) -> ExitCode:
    """Serve until told to end."""
    import asyncio

    from toolcrib.faces.http.logs import log_to
    from toolcrib.faces.http.server import new_loop

    crib.secrets.check()
    with log_to(sys.stderr, crib.secrets.hide), asyncio.Runner(loop_factory=new_loop) as runner:
        return ExitCode(runner.run(_serve(crib, host, port)))


async def _serve(crib: Crib, host: str | None, port: int | None) -> int:
    import asyncio

    from toolcrib.faces.http.server import serve

    settings = crib.settings
    address = settings.http_host if host is None else host
    number = settings.http_port if port is None else port

    def greet(url: str) -> None:
        say(f"Toolcrib {__version__} serves {settings.root or 'tools'} on {url}")
        _suggest(crib, url)
        # Whoever reads this through a pipe waits for the address.
        sys.stdout.flush()

    async with crib:
        reaping = asyncio.create_task(_reap(crib))
        try:
            return await serve(crib, host=address, port=number, say=say, ready=greet)
        finally:
            reaping.cancel()


async def _reap(crib: Crib) -> None:
    """Remove for good what was deleted long ago, again and again."""
    import asyncio

    pause = SECOND_LOOK_SECONDS
    while True:
        try:
            gone = await asyncio.to_thread(crib.bundles.reap)
        except ToolError as problem:
            logger.warning("deleted bundles could not be looked at: %s", problem.message)
        else:
            for bundle_id in gone:
                logger.info("the bundle %s was deleted two days ago and is removed", bundle_id)
        await asyncio.sleep(pause)
        pause = LOOK_SECONDS


def _suggest(crib: Crib, url: str) -> None:
    """What a reader can paste into another terminal."""
    bundles = crib.bundles.list_bundles(page_size=256).items
    tools = [kept for kept in crib.bundles.list_tools(page_size=SHOWN_TOOLS).items if kept.usable]
    say(f"{count(len(tools), 'tool')} in {count(len(bundles), 'bundle')}, switched on")
    say("Try, in another terminal:")
    say(f"  curl '{url}/tools?recommendedPageSize=5'")
    say(f"  curl '{url}/tools/search?q=word'")
    sample = _sample(tools)
    if sample is not None:
        place = f"{url}/tools/bundles/{sample.bundle.id}/tools/{sample.slug}/version/{sample.version}/invoke"
        say(f"  curl -H 'Content-Type: application/json' -d '{{\"args\": {{}}}}' {place}")
        say(f"  crib call {sample.slug} --url {url}")
    say(f"  open {url}/docs")
    say("Ctrl-C ends it.")


def _sample(tools: list[Kept]) -> Kept | None:
    """A tool that can be called with no argument at all."""
    return next((kept for kept in tools if kept.tool is not None and not kept.tool.parameters.get("required")), None)
