"""Resolve the names of a file: imports, functions, classes, and the calls that run when it is loaded."""

from __future__ import annotations

import ast
from collections import deque
from typing import TYPE_CHECKING

from toolcrib.lib.python_source import literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.lib.python_source import AnyFunction

MAX_BASES = 50
MAX_DEPTH = 20


class FileNames:
    """The names on the first level of a file, blocks such as `try` and `if` included."""

    def __init__(self, module: ast.Module) -> None:
        self.statements = list(_first_level(module.body))
        self.functions: dict[str, AnyFunction] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.calls: list[ast.Call] = []
        self._imports: dict[str, str] = {}
        self._values: dict[str, ast.expr] = {}
        self._rebound: set[str] = set()
        for statement in self.statements:
            self._note(statement)

    @property
    def imports(self) -> list[str]:
        """The full names of what the file imports."""
        return list(self._imports.values())

    @property
    def packages(self) -> set[str]:
        """The packages that the file imports, by their first names."""
        return {name.partition(".")[0] for name in self._imports.values()}

    def full_name(self, node: ast.expr) -> str:
        """The qualified name: `mcp.server.FastMCP` after `from mcp.server import FastMCP`; empty if it is not a name."""
        if isinstance(node, ast.Name):
            return self._imports.get(node.id, node.id)
        holder = self.full_name(node.value) if isinstance(node, ast.Attribute) else ""
        return f"{holder}.{node.attr}" if isinstance(node, ast.Attribute) and holder else ""

    def is_imported(self, node: ast.expr) -> bool:
        """Whether a name was imported."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self._imports

    def value(self, node: ast.expr) -> ast.expr:
        """The value that the file assigns to a name, if it does so once; anything else is returned unchanged."""
        for _ in range(MAX_DEPTH):
            if not isinstance(node, ast.Name) or node.id in self._rebound or node.id not in self._values:
                break
            node = self._values[node.id]
        return node

    def literal(self, node: ast.expr) -> object:
        """The value of a literal, or of a name that is assigned one; NotImplemented for anything else."""
        return literal(self.value(node))

    def lineage(self, node: ast.ClassDef) -> list[ast.ClassDef]:
        """The class and those of the file that it inherits from, nearest first."""
        found: dict[str, ast.ClassDef] = {}
        waiting = [node]
        while waiting and len(found) < MAX_BASES:
            known = waiting.pop(0)
            if known.name not in found:
                found[known.name] = known
                bases = (self.classes.get(base.id) for base in known.bases if isinstance(base, ast.Name))
                waiting += [base for base in bases if base is not None]
        return list(found.values())

    def bases(self, node: ast.ClassDef) -> set[str]:
        """The qualified names of all base classes."""
        return {self.full_name(base) for known in self.lineage(node) for base in known.bases}

    def attribute(self, node: ast.ClassDef, name: str) -> ast.expr | None:
        """The value of a class attribute, its own or inherited."""
        for known in self.lineage(node):
            for item in known.body:
                targets = item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]
                is_meant = any(isinstance(target, ast.Name) and target.id == name for target in targets)
                if is_meant and isinstance(item, ast.Assign | ast.AnnAssign) and item.value is not None:
                    return item.value
        return None

    def method(self, node: ast.ClassDef, name: str) -> AnyFunction | None:
        """A method, its own or inherited."""
        for known in self.lineage(node):
            for item in known.body:
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name == name:
                    return item
        return None

    def _note(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                package = alias.name.partition(".")[0]
                self._imports[alias.asname or package] = alias.name if alias.asname else package
        elif isinstance(statement, ast.ImportFrom):
            home = "." * statement.level + (statement.module or "")
            for alias in statement.names:
                self._imports[alias.asname or alias.name] = f"{home}.{alias.name}"
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            self.functions[statement.name] = statement
        elif isinstance(statement, ast.ClassDef):
            self.classes[statement.name] = statement
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr):
            self._note_value(statement)

    def _note_value(self, statement: ast.Assign | ast.AnnAssign | ast.Expr) -> None:
        value = statement.value
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name) and value is not None:
                if target.id in self._values:
                    self._rebound.add(target.id)
                self._values[target.id] = value
        if value is not None:
            self.calls += _calls_now(value)


def _first_level(body: list[ast.stmt], depth: int = 0) -> Iterator[ast.stmt]:
    """The statements that run when the file is imported."""
    for statement in body:
        if isinstance(statement, ast.If) and depth < MAX_DEPTH:
            if "__name__" not in ast.unparse(statement.test):
                yield from _first_level([*statement.body, *statement.orelse], depth + 1)
        elif isinstance(statement, ast.Try) and depth < MAX_DEPTH:
            yield from _first_level([*statement.body, *statement.orelse, *statement.finalbody], depth + 1)
        elif isinstance(statement, ast.With | ast.For) and depth < MAX_DEPTH:
            yield from _first_level(statement.body, depth + 1)
        else:
            yield statement


def _calls_now(value: ast.expr) -> Iterator[ast.Call]:
    """The calls in an expression that are made when it is evaluated, outermost first."""
    waiting: deque[ast.AST] = deque([value])
    while waiting:
        node = waiting.popleft()
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Call):
            yield node
        waiting.extend(ast.iter_child_nodes(node))
