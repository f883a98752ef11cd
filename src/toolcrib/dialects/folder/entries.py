"""Whether a handler has an `execute` that can be called, found out without running it."""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

from toolcrib.dialects.folder.imports import warn_of_javascript, warn_of_python
from toolcrib.model.errors import ToolError
from toolcrib.pure.documents import decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Language, Node

    from toolcrib.dialects.folder.report import Report

EXECUTE = "execute"
NO_JAVASCRIPT_EXPORT = "exports no `execute`; write `export async function execute({ args, context }) { … }`"
NO_PYTHON_FUNCTION = "has no function `execute`; write `async def execute(args, context):`"
POSITIONAL = 2


def check_javascript(report: Report, name: str, code: bytes) -> None:
    """Note a syntax error, or that nothing named `execute` is exported."""
    try:
        text = decode(code, f"{report.place}/{name}")
    except ToolError as error:
        report.refuse_error(name, error)
        return
    root = _parse(text.encode())
    if root.has_error:
        report.refuse(name, _first_error(root), "is no JavaScript from here on; correct the syntax")
        return
    if not any(map(_exports_execute, root.named_children)):
        report.refuse(name, 1, NO_JAVASCRIPT_EXPORT)
    warn_of_javascript(report, name, text, root)


def check_python(report: Report, name: str, code: bytes) -> None:
    """Note a syntax error, or that no function `execute` takes two arguments."""
    # Only a handler in Python needs what reads plain Python files.
    from toolcrib.dialects.reading import parse_python

    try:
        module = parse_python(code, f"{report.place}/{name}")
    except ToolError as error:
        report.refuse_error(name, error)
        return
    warn_of_python(report, name, code.decode("utf-8", "replace"), module)
    functions = [
        statement
        for statement in module.body
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name == EXECUTE
    ]
    if not functions:
        report.refuse(name, 1, NO_PYTHON_FUNCTION)
    elif not _takes_two(functions[-1].args):
        line = functions[-1].lineno
        report.refuse(name, line, "`execute` must take two arguments; write `async def execute(args, context):`")


def _takes_two(arguments: ast.arguments) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args)
    demanded = positional - len(arguments.defaults)
    keywords_demanded = any(default is None for default in arguments.kw_defaults)
    return demanded <= POSITIONAL <= (POSITIONAL if arguments.vararg else positional) and not keywords_demanded


@cache
def _language() -> Language:
    import tree_sitter_javascript
    from tree_sitter import Language

    return Language(tree_sitter_javascript.language())


def _parse(code: bytes) -> Node:
    from tree_sitter import Parser

    return Parser(_language()).parse(code).root_node


def _first_error(root: Node) -> int:
    """The line of the innermost first thing that the grammar does not know."""
    node = root
    while not (node.is_error or node.is_missing):
        inner = next((child for child in node.children if child.has_error), None)
        if inner is None:
            break
        node = inner
    return node.start_point.row + 1


def _exports_execute(statement: Node) -> bool:
    """Whether a statement at the top of the file exports it, or exports what cannot be seen from here."""
    if statement.type == "export_statement":
        return _is_module_export(statement)
    if statement.type != "expression_statement":
        return False
    return any(_is_common_export(assignment) for assignment in _assignments(statement.named_children[0]))


def _is_module_export(statement: Node) -> bool:
    declaration, value = statement.child_by_field_name("declaration"), statement.child_by_field_name("value")
    if any(child.type == "default" for child in statement.children):
        return value is not None and _holds_execute(value)
    if declaration is not None:
        return EXECUTE in _declared(declaration)
    clause = next((child for child in statement.named_children if child.type != "string"), None)
    if clause is None:
        return True  # export * from another file
    if clause.type != "export_clause":
        return False
    specifiers = [child for child in clause.named_children if child.type == "export_specifier"]
    return any(_spelled(_field(child, "alias") or _field(child, "name")) == EXECUTE for child in specifiers)


def _declared(declaration: Node) -> list[str]:
    """The names that a declaration gives to functions and values."""
    if declaration.type == "function_declaration":
        return [_spelled(_field(declaration, "name"))]
    if declaration.type not in {"lexical_declaration", "variable_declaration"}:
        return []
    names = [_field(child, "name") for child in declaration.named_children if child.type == "variable_declarator"]
    return [_spelled(part) for name in names if name is not None for part in _bound_names(name)]


def _bound_names(pattern: Node) -> Iterator[Node]:
    waiting = [pattern]
    while waiting:
        node = waiting.pop()
        if node.type in {"identifier", "shorthand_property_identifier_pattern"}:
            yield node
        waiting += node.named_children


def _assignments(expression: Node) -> Iterator[Node]:
    """The assignments of `a = b = c`."""
    node: Node | None = expression
    while node is not None and node.type == "assignment_expression":
        yield node
        node = _field(node, "right")


def _is_common_export(assignment: Node) -> bool:
    """Whether it is `exports.execute = …`, or `module.exports = …` with an `execute` in it."""
    target, value = _field(assignment, "left"), _field(assignment, "right")
    if target is None or value is None:
        return False
    spelled = _spelled(target)
    if spelled in {f"exports.{EXECUTE}", f"module.exports.{EXECUTE}"}:
        return True
    return spelled == "module.exports" and (_holds_execute(value) or _is_required(value))


def _is_required(value: Node) -> bool:
    return value.type == "call_expression" and _spelled(_field(value, "function")) == "require"


def _holds_execute(value: Node) -> bool:
    """Whether an object has such a property, or takes in others that cannot be seen from here."""
    if value.type != "object":
        return False
    return any(entry.type == "spread_element" or _key(entry) == EXECUTE for entry in value.named_children)


def _key(entry: Node) -> str:
    if entry.type == "shorthand_property_identifier":
        return _spelled(entry)
    return _spelled(_field(entry, "key") or _field(entry, "name"))


def _field(node: Node, name: str) -> Node | None:
    return node.child_by_field_name(name)


def _spelled(node: Node | None) -> str:
    """The text of a node; of a string what stands between the quotes."""
    text = "" if node is None or node.text is None else node.text.decode("utf-8", "replace")
    return text[1:-1] if node is not None and node.type == "string" else text
