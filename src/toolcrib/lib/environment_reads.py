"""Find the environment variables that a Python, JavaScript or Bash file requires, without running it.

A variable is only required if that is certain: a default, a test whether it is set, a handler for its absence or an
assignment in the file means that it is optional.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.lib.bash_source import decode
from toolcrib.lib.javascript_tokens import NAME, STRING, TEMPLATE, Tokens
from toolcrib.lib.python_source import parse_python
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
MAX_NAMES = 100
# Tokens after and before a variable that is optional.
JS_OPTIONAL_AFTER = frozenset({"||", "??", "||=", "??=", "?", "&&", "=", "===", "!==", "==", "!=", "?."})
JS_OPTIONAL_BEFORE = frozenset({"!", "delete", "typeof", "in", "&&", "===", "!==", "==", "!="})
JS_IN_TEMPLATE = re.compile(r"(?:(?P<whole>\$\{)[ \t]*+)?process\.env\.(?P<name>\w++)(?(whole)(?=[ \t]*+\}))")
JS_TESTS = frozenset({"if", "while", "Boolean"})
ABSENCE = frozenset({"KeyError", "LookupError", "Exception", "BaseException"})
BASH_DEMANDED = re.compile(r"\$\{([A-Za-z_]\w*+):?\?")
BASH_READ = re.compile(r"\$\{?([A-Za-z_]\w*+)")
BASH_ASSIGNED = re.compile(
    r"(?:^|[\s;&|({])(?:(?:export|local|readonly|declare|typeset)(?:[ \t]++-\w++)*+[ \t]++)?([A-Za-z_]\w*+)\+?="
    r"|\b(?:read|for|mapfile|readarray|getopts)\b[^\n;]*?[ \t]([A-Za-z_]\w*+)\b",
    re.MULTILINE,
)


@lru_cache(maxsize=1024)
def needed_variables(code: bytes, language: str) -> tuple[str, ...]:
    """The variables that a file in this language requires."""
    try:
        if language == "python" and (b"environ" in code or b"getenv" in code):
            return _required(_PythonReads(parse_python(code, language)).found())
        if language == "javascript" and b"env" in code:
            return _required(_javascript_reads(code.decode("utf-8", "replace")))
        if language == "bash" and b"$" in code:
            return _required(_bash_reads(decode(code)))
    except (ToolError, RecursionError):
        return ()  # the format reports what is wrong with the file
    return ()


def _required(found: Iterable[tuple[str, bool]]) -> tuple[str, ...]:
    """The names that are required at every place where the file reads them."""
    names: dict[str, bool] = {}
    for name, is_needed in islice(found, 10 * MAX_NAMES):
        if VARIABLE.fullmatch(name) and (name in names or len(names) < MAX_NAMES):
            # A variable that is optional in one place is optional.
            names[name] = names.get(name, True) and is_needed
    return tuple(sorted(name for name in names if names[name]))


class _PythonReads(ast.NodeVisitor):
    """Finds `os.environ["X"]`, `os.environ.get("X")` and `os.getenv("X")`."""

    def __init__(self, module: ast.Module) -> None:
        self._found: list[tuple[str, bool]] = []
        self._meaning: dict[str, str] = {}
        # Inside a test, or a `try` that handles a missing key.
        self._is_optional = False
        for node in ast.walk(module):
            if isinstance(node, ast.Import):
                self._meaning |= {item.asname or item.name: item.name for item in node.names if item.name == "os"}
            elif isinstance(node, ast.ImportFrom) and node.module == "os":
                self._meaning |= {item.asname or item.name: f"os.{item.name}" for item in node.names}
        self.visit(module)

    def found(self) -> list[tuple[str, bool]]:
        """Each name, and whether it is required there."""
        return self._found

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if self._means(node.value) == "os.environ":
            self._note(node.slice, is_needed=isinstance(node.ctx, ast.Load))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = self._means(node.func)
        if called in {"os.getenv", "os.environ.get"} and node.args:
            self._note(node.args[0], is_needed=len(node.args) == 1 and not node.keywords)
        elif called in {"os.environ.setdefault", "os.environ.pop", "os.putenv"} and node.args:
            self._note(node.args[0], is_needed=False)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if any(self._means(other) == "os.environ" for other in node.comparators):
            self._note(node.left, is_needed=False)
        self._visit_optional(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._visit_optional(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self._visit_optional(node)

    def visit_If(self, node: ast.If | ast.IfExp | ast.While) -> None:
        before, self._is_optional = self._is_optional, True
        self.visit(node.test)
        self._is_optional = before
        for name in ("body", "orelse"):
            inner = getattr(node, name)
            for each in inner if isinstance(inner, list) else [inner]:
                self.visit(each)

    visit_IfExp = visit_If  # noqa: N815 - the name that NodeVisitor calls
    visit_While = visit_If  # noqa: N815 - likewise

    def visit_Try(self, node: ast.Try) -> None:
        handled = {ast.unparse(kind) for each in node.handlers for kind in _kinds(each)}
        before = self._is_optional
        self._is_optional = before or bool(handled & ABSENCE)
        for each in node.body:
            self.visit(each)
        self._is_optional = before
        for following in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(following)

    def _visit_optional(self, node: ast.AST) -> None:
        before, self._is_optional = self._is_optional, True
        self.generic_visit(node)
        self._is_optional = before

    def _note(self, node: ast.expr, *, is_needed: bool) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._found.append((node.value, is_needed and not self._is_optional))

    def _means(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return self._meaning.get(node.id, "")
        holder = self._means(node.value) if isinstance(node, ast.Attribute) else ""
        return f"{holder}.{node.attr}" if isinstance(node, ast.Attribute) and holder else ""


def _kinds(handler: ast.ExceptHandler) -> list[ast.expr]:
    if handler.type is None:
        return [ast.Name("BaseException", ast.Load())]
    return handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]


def _javascript_reads(text: str) -> Iterator[tuple[str, bool]]:
    """Find `process.env.X` and `process.env["X"]`."""
    tokens = Tokens(text)
    for token in tokens.tokens:
        if token.kind == TEMPLATE:
            yield from ((found["name"], found["whole"] is not None) for found in JS_IN_TEMPLATE.finditer(token.text))
    for index in range(len(tokens.tokens) - 4):
        if tokens.texts(range(index, index + 3)) != ["process", ".", "env"] or tokens[index - 1].text == ".":
            continue
        sign, name = tokens[index + 3], tokens[index + 4]
        if sign.text == "." and name.kind == NAME:
            found, following = name.text, tokens[index + 5].text
        elif sign.text == "[" and name.kind == STRING and tokens[index + 5].text == "]":
            found, following = name.value, tokens[index + 6].text
        else:
            continue
        before = tokens[index - 1].text
        is_tested = before == "(" and tokens[index - 2].text in JS_TESTS
        yield found, following not in JS_OPTIONAL_AFTER and before not in JS_OPTIONAL_BEFORE and not is_tested


def _bash_reads(text: str) -> Iterator[tuple[str, bool]]:
    """`${X:?}` is required; any other use is optional. Variables that the file assigns itself are left out."""
    # A name in double quotes is a read, one in a comment is not.
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    own = {name for found in BASH_ASSIGNED.finditer(lines) for name in found.groups() if name}
    demanded = {found[1] for found in BASH_DEMANDED.finditer(lines)}
    for name in dict.fromkeys(found[1] for found in BASH_READ.finditer(lines)):
        if name not in own:
            yield name, name in demanded
