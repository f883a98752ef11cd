"""`python -m toolcrib` and the program `crib`."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Until so many objects have come, nothing is collected: most commands end before that, and collecting while modules are
# loaded would take a tenth of their time.
OBJECTS_BEFORE_COLLECTING = 100_000


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line on these words, by default those of the process; the exit code."""
    gc.set_threshold(OBJECTS_BEFORE_COLLECTING)
    from toolcrib.interfaces.cli import entry

    return entry.main(words)


if __name__ == "__main__":
    sys.exit(main())
