"""`python -m toolcrib` and the program `crib`."""

from __future__ import annotations

import sys

from toolcrib.faces.cli.entry import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
