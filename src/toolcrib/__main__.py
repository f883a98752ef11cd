"""`python -m toolcrib` and the program `crib`."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

from toolcrib.lib import load

if TYPE_CHECKING:
    from collections.abc import Sequence

# Until so many objects have come, nothing is collected: most commands end before that, and collecting while modules are
# loaded would take a tenth of their time.
OBJECTS_BEFORE_COLLECTING = 100_000
PROJECT_OPTION = ("--project", "-C")
MCP_WORDS = 3


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line on these words, by default those of the process; the exit code."""
    gc.set_threshold(OBJECTS_BEFORE_COLLECTING)
    is_own_process = words is None
    words = sys.argv[1:] if words is None else words
    opening = None
    if _serves_stdio(words):
        # A client waits for its first answer, which needs nothing of the rest.
        opening = load("toolcrib.interfaces.mcp.stdio_opening:open_stdio")()
    # Loaded only now, so that nothing is collected meanwhile.
    code = int(load("toolcrib.interfaces.cli:main")(words, opening))
    if is_own_process:
        # Everything ends with the process; its end would look at each object twice.
        gc.freeze()
    return code


def _serves_stdio(words: Sequence[str]) -> bool:
    """Whether the words are `mcp` alone, or with a project."""
    return list(words[:1]) == ["mcp"] and (len(words) == 1 or (len(words) == MCP_WORDS and words[1] in PROJECT_OPTION))


if __name__ == "__main__":
    sys.exit(main())
