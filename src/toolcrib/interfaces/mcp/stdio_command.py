"""Run `crib mcp` without Click: answer the first request, open the crib, and serve it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.plain_code import run_async
from toolcrib.interfaces.mcp.stdio_handshake import open_stdio
from toolcrib.interfaces.mcp.stdio_transport import serve
from toolcrib.toolkit.cli import ExitCode, log_on_stderr
from toolcrib.toolkit.loop_watch import watch_loop

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.interfaces.mcp.stdio_handshake import Handshake
    from toolcrib.toolkit.cli.group import Opener


def serve_project(opener: Opener[Crib], handshake: Handshake | None = None) -> ExitCode:
    """Serve the project that the opener means to the client on standard input and output."""
    handshake = open_stdio() if handshake is None else handshake
    with log_on_stderr():
        run_async(_serve(opener, handshake))
    return ExitCode.DONE


async def _serve(opener: Opener[Crib], handshake: Handshake) -> None:
    with watch_loop():
        async with opener.open_local() as crib:
            await serve(crib, handshake)
