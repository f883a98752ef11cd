"""The modules that the launcher imports before it forks, for later calls: standard library only."""

from __future__ import annotations

import gc
import importlib
import os
import socket
import sys

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Iterable

# An order is one message where the system preserves message boundaries, else one byte without names.
ORDERS = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_STREAM
ORDER_BYTES = 2048 if sys.platform == "linux" else 1
MAX_NAMES = 64
MAX_TRIED = 4_000  # more than the standard library has: beyond it, files only invent names

# Importing these has effects that a worker would inherit (a handler, a window, a printed line), or is useless there.
_EFFECTS = frozenset(
    (
        *("antigravity", "distutils", "doctest", "ensurepip", "idlelib", "lib2to3", "pdb", "pydoc_data", "readline"),
        *("rlcompleter", "test", "this", "tkinter", "turtle", "turtledemo", "venv"),
    )
)

_tried: set[str] = set()
_loaded: set[str] = set()


def to_order(names: Iterable[str]) -> bytes:
    """The order for these modules, up to its maximal size; unsafe names are left out."""
    order = b"."
    for name in list(dict.fromkeys(names))[:MAX_NAMES]:
        extended = order + b" " + name.encode("ascii", "replace")
        if is_harmless(name) and len(extended) <= ORDER_BYTES:
            order = extended
    return order


def is_harmless(name: str) -> bool:
    """Whether this is a module of the standard library whose import has no side effects."""
    parts = name.split(".")
    if not name.isascii() or any(not part.isidentifier() or part.startswith("_") for part in parts):
        return False
    # Test packages inside of others are no better.
    return parts[0] in sys.stdlib_module_names - _EFFECTS and not {"test", "tests"} & set(parts)


def preload(order: bytes) -> bool:
    """Import the modules of the order that were not requested before; returns whether there were any."""
    names = [name for name in order[1:].decode("ascii", "replace").split() if name not in _tried]
    if not names or len(_tried) >= MAX_TRIED:
        return False
    before = set(sys.modules)
    for name in names[:MAX_NAMES]:
        _tried.add(name)
        if is_harmless(name):
            _import(name)
    _loaded.update(module.partition(".")[0] for module in sys.modules.keys() - before)
    gc.freeze()
    return True


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception:  # noqa: BLE001 - a module may be missing on this system; the script's own import reports it
        return


def forget_shadowed(folder: str, own: str) -> None:
    """Let modules in this folder shadow preloaded ones of the same name, as in a fresh interpreter."""
    try:
        neighbours = {entry.partition(".")[0] for entry in os.listdir(folder)}  # noqa: PTH208 - see system
    except OSError:
        return
    for top in (neighbours & _loaded) - {own}:
        for name in [name for name in sys.modules if name.partition(".")[0] == top]:
            del sys.modules[name]
