"""`python -m toolcrib` and the program `crib`."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

from toolcrib.lib.lazy import load

if TYPE_CHECKING:
    from collections.abc import Sequence

# Until so many objects have come, nothing is collected: most commands end before that, and collecting while modules are
# loaded would take a tenth of their time.
OBJECTS_BEFORE_COLLECTING = 100_000


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line on these words, by default those of the process; the exit code."""
    gc.set_threshold(OBJECTS_BEFORE_COLLECTING)
    # Loaded only now, so that nothing is collected meanwhile.
    return int(load("toolcrib.interfaces.cli.entry:main")(words))


if __name__ == "__main__":
    sys.exit(main())
