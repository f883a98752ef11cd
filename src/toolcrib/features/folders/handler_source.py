"""Check statically that a handler exports a callable `execute`, and that the files it imports belong to the tool.

A handler that imports any other file would work on its author's machine only.
"""

from __future__ import annotations

import ast
import posixpath
import re
from functools import cache
from typing import TYPE_CHECKING

from toolcrib.lib.documents import decode
from toolcrib.lib.names import is_foreign
from toolcrib.lib.positions import show
from toolcrib.lib.python_source import parse_python
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tree_sitter import Language, Node

    from toolcrib.features.folders.report import FolderReport

# The imports of a handler without a match are not checked.
SUSPECT = re.compile(r"node_modules|__pycache__|[/\"'`]\.[^./\"'`\s]")
HERE = frozenset({"", ".", ".."})
NOT_PART = "is not part of the tool, as its path has a name that begins with a dot, or node_modules or __pycache__"
CURE = "it is not there when the handler runs; move it to another name"
LOADERS = frozenset({"import_module", "__import__", "run_path", "spec_from_file_location", "SourceFileLoader"})
EXECUTE = "execute"
# The suffixes that Node tries for a required path.
ENDINGS = ("", ".js", ".mjs", ".cjs", ".json", ".node", "/index.js", "/index.cjs")
# Functions and generators.
FUNCTIONS = frozenset({"function_declaration", "generator_function_declaration"})
NO_JAVASCRIPT_EXPORT = "exports no `execute`; write `export async function execute({ args, context }) { … }`"
NO_PYTHON_FUNCTION = "has no function `execute`; write `async def execute(args, context):`"
POSITIONAL = 2


def check_javascript(report: FolderReport, name: str, code: bytes, folder: str, known: Collection[str]) -> None:
    """Report a syntax error, a missing export `execute`, and each import of a missing file.

    `known` holds the paths of the tool's own and shared files, relative to the root of the folders.
    """
    try:
        text = decode(code, f"{report.place}/{name}")
    except ToolError as error:
        report.refuse_error(name, error)
        return
    root = _parse(text.encode())
    if root.has_error:
        report.refuse(name, _first_error(root), "is not JavaScript from here on; correct the syntax")
        return
    if not any(map(_exports_execute, root.named_children)):
        report.refuse(name, 1, NO_JAVASCRIPT_EXPORT)
    warn_of_javascript(report, name, text, root)
    for source in _sources(root, skip="try_statement"):
        path = source.text.decode("utf-8", "replace")[1:-1] if source.text else ""
        if path.startswith(("./", "../")) and not _is_excluded(path.split("/")) and not _is_there(folder, path, known):
            cure = f"put it into {folder}/, or into a folder beside it that begins with '_', or remove the import"
            report.refuse(
                name, source.start_point.row + 1, f"imports {show(path)}, which is not a file of the tool; {cure}"
            )


def _is_there(folder: str, path: str, known: Collection[str]) -> bool:
    place = posixpath.normpath(f"{folder}/{path}")
    return any(f"{place}{ending}" in known for ending in ENDINGS)


def check_python(report: FolderReport, name: str, code: bytes, _folder: str, _known: Collection[str]) -> None:
    """Report a syntax error, or a missing function `execute` with two arguments."""
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


def warn_of_javascript(report: FolderReport, name: str, text: str, root: Node) -> None:
    """Warn about each imported path that is not part of the tool."""
    if not SUSPECT.search(text):
        return
    for source in _sources(root):
        path = source.text.decode("utf-8", "replace")[1:-1] if source.text else ""
        if path.startswith((".", "/")) and _is_excluded(path.split("/")):
            _warn(report, name, source.start_point.row + 1, path)


def warn_of_python(report: FolderReport, name: str, text: str, module: ast.Module) -> None:
    """Warn about each import that is not part of the tool."""
    if not SUSPECT.search(text):
        return
    for node in ast.walk(module):
        for path, parts in _python_paths(node):
            if _is_excluded(parts):
                _warn(report, name, getattr(node, "lineno", 1), path)


def _warn(report: FolderReport, name: str, line: int, path: str) -> None:
    report.warn(name, line, f"imports {show(path)}, which {NOT_PART}; {CURE}")


def _is_excluded(parts: list[str]) -> bool:
    return any(part not in HERE and is_foreign(part) for part in parts)


def _sources(root: Node, *, skip: str = "") -> Iterator[Node]:
    """The literal sources of all imports, except below nodes of the type `skip`."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if skip and node.type == skip:
            continue
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
    """The names that a node imports, each as written and split into its parts."""
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
    """The line of the first syntax error."""
    node = root
    while not (node.is_error or node.is_missing):
        inner = next((child for child in node.children if child.has_error), None)
        if inner is None:
            break
        node = inner
    return node.start_point.row + 1


def _exports_execute(statement: Node) -> bool:
    """Whether a top-level statement exports `execute`, or re-exports names that are unknown here."""
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
    """The names that a declaration defines."""
    if declaration.type in FUNCTIONS:
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
    """Whether an object literal has the property `execute`, or a spread that may add it."""
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
    """The source text of a node; a string without its quotes."""
    text = "" if node is None or node.text is None else node.text.decode("utf-8", "replace")
    return text[1:-1] if node is not None and node.type == "string" else text
