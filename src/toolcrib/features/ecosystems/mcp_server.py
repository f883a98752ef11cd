"""Read low-level servers of the MCP SDK: the tools that `list_tools` returns as literals."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.lib.python_hints import SyntaxHints
from toolcrib.lib.python_source import last_name
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.features.ecosystems.file_names import FileNames
    from toolcrib.lib.python_source import AnyFunction

LIST, CALL = "list_tools", "call_tool"
SCHEMAS = ("inputSchema", "input_schema")
MODEL_SCHEMAS = frozenset({"model_json_schema", "schema"})
CURE = "write Tool(name=…, description=…, inputSchema={…}) with literals, or each as a function below @mcp.tool() of FastMCP"


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A tool that a server lists; `function` answers the calls of all of them, by its name and arguments."""

    name: str
    description: str
    parameters: dict[str, object]
    line: int
    function: AnyFunction
    decorator: int


def read_server(names: FileNames, module: ast.Module) -> Iterator[Listed]:
    """The tools of a low-level server, if the file has one; raises ToolError with the line if they cannot be read."""
    listing, calling = _decorated(names, LIST), _decorated(names, CALL)
    if listing is None or calling is None:
        return
    function, decorator = calling
    if len([*function.args.posonlyargs, *function.args.args]) != len(("name", "arguments")):
        raise _unclear(function.lineno, f"{function.name} does not take a name and arguments")
    for node in _returned(names, listing[0]):
        words = {word.arg: word.value for word in node.keywords}
        schema = next((words[word] for word in SCHEMAS if word in words), None)
        name = names.literal(words["name"]) if "name" in words else None
        said = names.literal(words["description"]) if "description" in words else ""
        parameters = _schema(names, module, schema)
        if not isinstance(name, str) or not isinstance(said, str) or parameters is None:
            raise _unclear(node.lineno, "what it says of a tool is computed")
        yield Listed(
            name=name,
            description=said,
            parameters=parameters,
            line=node.lineno,
            function=function,
            decorator=decorator,
        )


def is_server(names: FileNames) -> bool:
    """Whether the file has such a server."""
    return "mcp" in names.packages and _decorated(names, LIST) is not None


def _decorated(names: FileNames, word: str) -> tuple[AnyFunction, int] | None:
    """The function with the decorator `@server.list_tools()`, and the index of that decorator."""
    for function in names.functions.values():
        for place, item in enumerate(function.decorator_list):
            target = item.func if isinstance(item, ast.Call) else item
            if isinstance(target, ast.Attribute) and target.attr == word:
                return function, place
    return None


def _returned(names: FileNames, function: AnyFunction) -> list[ast.Call]:
    """The calls of `Tool` in the one list that the function returns."""
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]
    local = {
        node.targets[0].id: node.value
        for node in function.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    value = returns[0].value if len(returns) == 1 else None
    if isinstance(value, ast.Call) and last_name(value.func) == "ListToolsResult":
        value = next((word.value for word in value.keywords if word.arg == "tools"), None)
    if isinstance(value, ast.Name):
        value = local.get(value.id) or names.value(value)
    items = [names.value(item) for item in value.elts] if isinstance(value, ast.List) else []
    calls = [item for item in items if isinstance(item, ast.Call) and last_name(item.func) == "Tool" and not item.args]
    if not items or len(calls) != len(items):
        raise _unclear(function.lineno, f"what {function.name} returns is not one list of tools that is written out")
    return calls


def _schema(names: FileNames, module: ast.Module, node: ast.expr | None) -> dict[str, object] | None:
    """A literal schema, or that of a pydantic class of the file; None if it is neither."""
    if node is None:
        return {"type": "object"}
    found = names.literal(node)
    if isinstance(found, dict):
        return found
    node = names.value(node)
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
        or node.func.attr not in MODEL_SCHEMAS
    ):
        return None
    hints = SyntaxHints(module)
    schema = hints.read(node.func.value)
    return schema if schema.get("type") == "object" and not hints.warnings else None


def _unclear(line: int, reason: str) -> ToolError:
    return ToolError(
        Kind.VALIDATION, f"a low-level MCP server ({LIST}, {CALL}): {reason}; {CURE}", details={"line": line}
    )
