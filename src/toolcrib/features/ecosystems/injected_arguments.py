"""Find the parameters that a framework fills in itself: a model never gives them, and some can be filled without the framework.

An unused parameter gets None. A server's Context that is only used for logging gets one that discards its messages, and so
does an event emitter. A parameter with a default keeps it. With any other the tool is refused: only the framework knows the
value.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from toolcrib.features.ecosystems.frameworks import EMITTER, OPEN_WEBUI, ends_in, framework_of
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.features.ecosystems.file_names import FileNames
    from toolcrib.features.ecosystems.tool_objects import ToolObject

# Parameters that LangChain and CrewAI fill in by their names.
BY_NAME = frozenset({"run_manager", "callbacks"})


def read_injected(found: ToolObject, names: FileNames) -> dict[str, str]:
    """The injected parameters, each with its substitute: `log`, `emitter`, `nothing`, or its default.

    Raises ToolError for one without which the function cannot work.
    """
    given: dict[str, str] = {}
    for argument, default, is_first in _parameters(found):
        reason = _reason(argument, default, found, names, is_first=is_first)
        if reason:
            given[argument.arg] = _stand_in(argument, default, reason, found)
    return given


def refuse_injected_fields(found: ToolObject, node: ast.expr, names: FileNames) -> None:
    """Refuse a class of arguments with a field that the framework injects."""
    kind = names.classes.get(node.id) if isinstance(node, ast.Name) else None
    for item in [] if kind is None else kind.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            field = ast.arg(item.target.id, item.annotation)
            if reason := _reason(field, item.value, found, names, is_first=False):
                message = f"{ast.unparse(node)}.{field.arg} ({reason}) is injected by {found.framework.title}"
                raise ToolError(Kind.VALIDATION, f"{message}; no model may give it, so take it out of the class")


def _parameters(found: ToolObject) -> Iterator[tuple[ast.arg, ast.expr | None, bool]]:
    arguments = found.function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    pairs = list(zip(positional, [*defaults, *arguments.defaults], strict=True))
    pairs = pairs[1:] if found.owner is not None else pairs
    for place, (argument, default) in enumerate(pairs):
        yield argument, default, place == 0
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield argument, default, False


def _reason(argument: ast.arg, default: ast.expr | None, found: ToolObject, names: FileNames, *, is_first: bool) -> str:
    """Why the parameter is an injected one; empty if a model gives it."""
    framework, name = found.framework, argument.arg
    if framework is OPEN_WEBUI:
        return name if name.startswith("__") and name.endswith("__") else ""
    if is_first and found.context_first:
        return ast.unparse(argument.annotation) if argument.annotation else "the run's context"
    if name in BY_NAME and framework.calls[:1] == ("_run",) and found.owner is not None:
        return name
    nodes = [*([] if argument.annotation is None else ast.walk(argument.annotation)), *([default] if default else [])]
    for node in nodes:
        target = node.func if isinstance(node, ast.Call) else node
        if not isinstance(target, ast.Name | ast.Attribute):
            continue
        full_name = names.full_name(target)
        # LangGraph marks parameters for tools of LangChain.
        known = framework_of(full_name) is framework or full_name.startswith("langgraph.")
        if known and (word := ends_in(full_name, framework.injected)):
            return word
    return ""


def _stand_in(argument: ast.arg, default: ast.expr | None, reason: str, found: ToolObject) -> str:
    name, function = argument.arg, found.function
    if name == EMITTER:
        return "emitter"
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
    if not uses:
        return "default" if default is not None else "nothing"
    attributes = [node for node in ast.walk(function) if isinstance(node, ast.Attribute)]
    told = {id(node.value) for node in attributes if node.attr in found.framework.offered}
    if all(id(use) in told for use in uses):
        return "log"
    if default is not None and not isinstance(default, ast.Call):
        return "default"
    asked = sorted({f"{name}.{node.attr}" for node in attributes if any(node.value is use for use in uses)})
    used = f", and {function.name} uses {', '.join(asked[:3])}" if asked else ""
    message = (
        f"{name} ({reason}) is injected by {found.framework.title}{used}; no model may give it and nothing here can, "
        f"so take it out of {function.name}, or give it a default"
    )
    raise ToolError(Kind.VALIDATION, message)
