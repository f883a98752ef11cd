"""Plain functions on plain data: no I/O, no state. Here: loading a part by the text that names it.

It stands in the package itself, because every start needs it before anything else.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def load(reference: str) -> Any:
    """What `module:name` stands for, as in `load("toolcrib.features.depots.commands:publish")`; the module is imported."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
