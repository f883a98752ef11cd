"""Run `crib mcp` without Click: answer the first request, open the crib, and serve it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolcrib.interfaces.mcp.stdio_opening import open_stdio
from toolcrib.interfaces.mcp.stdio_transport import serve
from toolcrib.toolkit.cli import ExitCode, log_on_stderr
from toolcrib.toolkit.loop_watch import watch_loop

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.interfaces.mcp.stdio_opening import Opening
    from toolcrib.toolkit.cli.group import Opener


def serve_project(opener: Opener[Crib], opening: Opening | None = None) -> ExitCode:
    """Serve the project that the opener means to the client on standard input and output."""
    opening = open_stdio() if opening is None else opening
    with log_on_stderr():
        asyncio.run(_serve(opener, opening))
    return ExitCode.DONE


async def _serve(opener: Opener[Crib], opening: Opening) -> None:
    with watch_loop():
        async with opener.open_local() as crib:
            await serve(crib, opening)
