"""Plain functions on plain data: no I/O, no state. This module loads an object by its reference `module:name`.

It is in the package itself, because every start needs it first.
"""

from __future__ import annotations

from importlib import import_module

# As in `toolcrib` itself: `typing` is not needed to start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"


def load(reference: str) -> Any:
    """Import the module of `module:name` and return the object: `load("toolcrib.features.depots.commands:publish")`."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
