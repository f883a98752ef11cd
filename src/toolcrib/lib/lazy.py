"""Load a part by the text that names it: `load("toolcrib.features.depots.commands:publish")`."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(reference: str) -> Any:
    """Import the module before the colon and return what the name behind it stands for."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
