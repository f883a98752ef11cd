"""What the launcher imports before it forks, so that later calls find it there: modules of the standard library alone."""

from __future__ import annotations

import gc
import importlib
import os
import socket
import sys

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Iterable

# An order is one message where the system keeps messages apart, and one byte that names nothing where it does not.
ORDERS = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_STREAM
ORDER_BYTES = 2048 if sys.platform == "linux" else 1
MAX_NAMES = 64
MAX_TRIED = 4_000  # more than the standard library has: beyond it, files only make names up

# Importing these does something that a worker would inherit (a handler, a window, a printed line), or is of no use there.
_EFFECTS = frozenset(
    (
        *("antigravity", "distutils", "doctest", "ensurepip", "idlelib", "lib2to3", "pdb", "pydoc_data", "readline"),
        *("rlcompleter", "test", "this", "tkinter", "turtle", "turtledemo", "venv"),
    )
)

_tried: set[str] = set()
_loaded: set[str] = set()


def to_order(names: Iterable[str]) -> bytes:
    """The wish for these modules, as long as it may be; what nobody would import is left out."""
    order = b"."
    for name in list(dict.fromkeys(names))[:MAX_NAMES]:
        wish = order + b" " + name.encode("ascii", "replace")
        if is_harmless(name) and len(wish) <= ORDER_BYTES:
            order = wish
    return order


def is_harmless(name: str) -> bool:
    """Whether this is a module of the standard library whose import leaves the process as it is."""
    parts = name.split(".")
    if not name.isascii() or any(not part.isidentifier() or part.startswith("_") for part in parts):
        return False
    # A test inside of a package is no better than one beside it.
    return parts[0] in sys.stdlib_module_names - _EFFECTS and not {"test", "tests"} & set(parts)


def preload(order: bytes) -> bool:
    """Import what the order names and nobody has asked for before; whether there was any."""
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
    except Exception:  # noqa: BLE001 - a module may be missing on this system, and the script will say so better
        return


def forget_namesakes(folder: str, own: str) -> None:
    """Let the modules of a folder be found before the preloaded ones of the same name, as in a fresh interpreter."""
    try:
        neighbours = {entry.partition(".")[0] for entry in os.listdir(folder)}  # noqa: PTH208 - see system
    except OSError:
        return
    for top in (neighbours & _loaded) - {own}:
        for name in [name for name in sys.modules if name.partition(".")[0] == top]:
            del sys.modules[name]
