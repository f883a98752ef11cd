"""Load an object by its lazy reference."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(reference: str) -> Any:
    """The object that a reference names, as in "module:name"; its module is imported if it is not yet."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
