"""Find what a Python file does with other files, without running it."""

from __future__ import annotations

import ast

from toolcrib.lib.python_source import parse_python
from toolcrib.model.errors import ToolError

READS = frozenset({"open", "read_text", "read_bytes", "iterdir", "glob", "rglob", "listdir", "scandir", "walk"})
WRITES = frozenset({"write_text", "write_bytes", "mkdir", "makedirs", "unlink", "touch", "rename"})


def file_access(code: bytes) -> tuple[str, ...]:
    """The capabilities that the file would need if the paths that it opens are those of the project."""
    try:
        module = parse_python(code, "")
    except ToolError:
        return ()
    found: set[str] = set()
    for node in ast.walk(module):
        if not isinstance(node, ast.Call) or "__file__" in ast.unparse(node):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        words = [*node.args[1:], *(word.value for word in node.keywords if word.arg == "mode")]
        mode = "".join(word.value for word in words if isinstance(word, ast.Constant) and isinstance(word.value, str))
        if name in WRITES or (name == "open" and set(mode) & set("wax+")):
            found.add("fs.write")
        elif name in READS:
            found.add("fs.read")
    return tuple(sorted(found))
