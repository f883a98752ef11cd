"""Where a module gives a name its meaning: every place, however well it is hidden in plain syntax."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Node = ast.stmt | ast.expr | ast.excepthandler | ast.pattern


def find_bindings(module: ast.Module, name: str) -> list[Node]:
    """The statements and expressions that bind the name in the module itself, in their order."""
    found = list(_bindings(module, name))
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _bindings(module: ast.Module, name: str) -> Iterator[Node]:
    waiting: list[ast.AST] = list(module.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, SCOPES):
            if node.name == name:
                yield node
            yield from _global_bindings(node, name)
            continue
        if isinstance(node, Node) and _binds(node, name):
            yield node
        waiting.extend(ast.iter_child_nodes(node))


def _global_bindings(scope: ast.AST, name: str) -> Iterator[Node]:
    """What a function does to the module's name, if it says that it means that one."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Global) and name in node.names:
            yield node


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Import | ast.ImportFrom):
        return any((alias.asname or alias.name.partition(".")[0]) == name for alias in node.names)
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return node.name == name
    return isinstance(node, ast.MatchMapping) and node.rest == name
