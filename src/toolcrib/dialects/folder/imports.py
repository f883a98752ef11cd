"""Imports of files that are no part of a tool: a handler that counts on one works on its author's machine and nowhere else."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from toolcrib.dialects.folder.report import show
from toolcrib.pure.names import is_foreign

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from toolcrib.dialects.folder.report import Report

# Most handlers hold nothing like it, and are not looked through.
SUSPECT = re.compile(r"node_modules|__pycache__|[/\"'`]\.[^./\"'`\s]")
HERE = frozenset({"", ".", ".."})
NOT_TAKEN = "is no part of the tool, as its path has a name that begins with a dot, or node_modules or __pycache__"
CURE = "it is not there when the handler runs; move it to another name"
LOADERS = frozenset({"import_module", "__import__", "run_path", "spec_from_file_location", "SourceFileLoader"})


def warn_of_javascript(report: Report, name: str, text: str, root: Node) -> None:
    """Warn of each such file that the code imports by a path."""
    if not SUSPECT.search(text):
        return
    for source in _sources(root):
        path = source.text.decode("utf-8", "replace")[1:-1] if source.text else ""
        if path.startswith((".", "/")) and _is_left_out(path.split("/")):
            _warn(report, name, source.start_point.row + 1, path)


def warn_of_python(report: Report, name: str, text: str, module: ast.Module) -> None:
    """Warn of each such file that the code imports."""
    if not SUSPECT.search(text):
        return
    for node in ast.walk(module):
        for path, parts in _python_paths(node):
            if _is_left_out(parts):
                _warn(report, name, getattr(node, "lineno", 1), path)


def _warn(report: Report, name: str, line: int, path: str) -> None:
    report.warn(name, line, f"imports {show(path)}, which {NOT_TAKEN}; {CURE}")


def _is_left_out(parts: list[str]) -> bool:
    return any(part not in HERE and is_foreign(part) for part in parts)


def _sources(root: Node) -> Iterator[Node]:
    """The texts that imports name, wherever they stand."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        found = _source(node)
        if found is not None and _is_literal(found):
            yield found
        waiting += reversed(node.named_children)


def _is_literal(node: Node) -> bool:
    is_filled_in = any(child.type == "template_substitution" for child in node.children)
    return node.type in {"string", "template_string"} and not is_filled_in


def _source(node: Node) -> Node | None:
    if node.type in {"import_statement", "export_statement"}:
        return node.child_by_field_name("source")
    if node.type != "call_expression":
        return None
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None or function.text not in {b"import", b"require"}:
        return None
    return next(iter(arguments.named_children), None)


def _python_paths(node: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """What a piece of code imports, as it is written and in its parts."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, alias.name.split(".")) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        begin = [node.module] if node.module else []
        dotted = (".".join([*begin, alias.name]) for alias in node.names)
        yield from ((path, path.split(".")) for path in dotted)
    elif isinstance(node, ast.Call) and _called(node.func) in LOADERS:
        texts = (each.value for each in node.args if isinstance(each, ast.Constant))
        yield from ((text, [*text.split("/"), *_modules(text)]) for text in texts if isinstance(text, str))


def _modules(text: str) -> list[str]:
    return [] if "/" in text else [part for part in text.split(".") if part]


def _called(function: ast.expr) -> str:
    return getattr(function, "attr", "") or getattr(function, "id", "")
