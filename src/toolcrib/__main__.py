"""Entry point of the program `crib` and of `python -m toolcrib`."""

from __future__ import annotations

import gc
import signal
import sys
from typing import TYPE_CHECKING

from toolcrib.lib import load

if TYPE_CHECKING:
    from collections.abc import Sequence

# Threshold of the garbage collector: most commands end below it, and collecting while modules are loaded would take a
# tenth of their time.
OBJECTS_BEFORE_COLLECTING = 100_000
PROJECT_OPTION = ("--project", "-C")
MCP_WORDS = 3


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line on these words, by default those of the process, and return the exit status."""
    gc.set_threshold(OBJECTS_BEFORE_COLLECTING)
    is_own_process = words is None
    # Until it is handled: an exception in the middle would crash the extension modules that are being loaded.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    words = sys.argv[1:] if words is None else words
    handshake = None
    if _serves_stdio(words):
        # A client waits for the answer to `initialize`, which needs no other module.
        handshake = load("toolcrib.interfaces.mcp.stdio_handshake:open_stdio")()
    # Loaded only now, so that the garbage collector does not run meanwhile.
    code = int(load("toolcrib.interfaces.cli:main")(words, handshake))
    if is_own_process:
        # The process ends, so the last two collections of the interpreter would be wasted.
        gc.freeze()
    return code


def _serves_stdio(words: Sequence[str]) -> bool:
    """Whether the command is `crib mcp`, alone or with the option of the project."""
    return list(words[:1]) == ["mcp"] and (len(words) == 1 or (len(words) == MCP_WORDS and words[1] in PROJECT_OPTION))


if __name__ == "__main__":
    sys.exit(main())
