"""The texts that stand in modules of ours, read once for all tests that look at them."""

from __future__ import annotations

import ast
import functools
import gc
from pathlib import Path


@functools.lru_cache(maxsize=1)
def syntax_of(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a module, the module itself first.

    The nodes of all modules are not kept: they are most of a million objects, and the collector would look at them ever after.
    """
    was_on = gc.isenabled()
    gc.disable()  # nothing of this can be collected, and looking for it takes longer than making it
    try:
        return tuple(ast.walk(ast.parse(path.read_bytes())))
    finally:
        if was_on:
            gc.enable()


@functools.cache
def messages_of(path: Path) -> tuple[tuple[int, str], ...]:
    """The texts of a module that are not docstrings, with their lines and with X for what is filled in."""
    nodes = syntax_of(path)
    left_out = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    left_out |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    found: list[tuple[int, str]] = []
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
            found.append((node.lineno, "".join(parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            found.append((node.lineno, node.value))
    return tuple(found)
