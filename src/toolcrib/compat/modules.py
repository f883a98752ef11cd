"""Modules of the host program that hold tools or rules, loaded when a Crib starts."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.compat.agent import BaseTool, ToolRegistry, tool_from
from toolcrib.compat.paths import document_imports
from toolcrib.dialects.function import is_tool, tool_of
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.protocols import Rule
from toolcrib.model.tool import Tool
from toolcrib.rules import RuleEngine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


def load_module(name: str, root: Path | None) -> ModuleType:
    """Import a module of the host program by name; the project folder comes first on its path."""
    try:
        with document_imports(), _on_path(root):
            return importlib.import_module(name)
    except BaseException as problem:
        raise _report(f"module {name!r}", problem) from problem


def load_file(path: Path) -> ModuleType:
    """Run a file as a module of the host program."""
    try:
        spec = importlib.util.spec_from_file_location(f"toolcrib_file_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is not a Python file")  # noqa: TRY301 - reported like every other problem
        module = importlib.util.module_from_spec(spec)
        # Dataclasses and pickles look their module up by name.
        sys.modules[spec.name] = module
        with document_imports(), _on_path(path.parent):
            spec.loader.exec_module(module)
    except BaseException as problem:
        raise _report(str(path), problem) from problem
    return module


def tools_in(module: ModuleType) -> tuple[list[Tool], list[ToolError]]:
    """The tools that a module holds, and why others of it are none.

    Tools are decorated functions, Tool objects, instances and registries of agent-side tools, and classes of such tools
    that nobody made an instance of.
    """
    tools: list[Tool] = []
    problems: list[ToolError] = []
    for value in _candidates(module):
        try:
            tool = _tool_in(value)
        except ToolError as problem:
            problems.append(problem)
        except TypeError as problem:
            problems.append(ToolError(Kind.VALIDATION, f"module {module.__name__!r}: {problem}"))
        else:
            tools += [tool] if tool is not None and tool not in tools else []
    return tools, problems


def rules_in(module: ModuleType) -> list[Rule]:
    """The rules that a module holds: rules, and those that were added to an engine."""
    found: dict[int, Rule] = {}
    for value in vars(module).values():
        if isinstance(value, RuleEngine):
            found.update((id(rule), rule) for rule in value.added)
        elif isinstance(value, Rule) and not isinstance(value, type):
            found[id(value)] = value
    return list(found.values())


def _candidates(module: ModuleType) -> Iterator[object]:
    values = list(vars(module).values())
    registered = [tool for value in values if isinstance(value, ToolRegistry) for tool in value.instances]
    instances = {id(value): value for value in (*registered, *values) if isinstance(value, BaseTool)}
    yield from instances.values()
    classes = [value for value in values if isinstance(value, type) and issubclass(value, BaseTool)]
    for kind in classes:
        is_made = any(isinstance(instance, kind) for instance in instances.values())
        is_base = any(other is not kind and issubclass(other, kind) for other in classes)
        if kind.__module__ == module.__name__ and not is_made and not is_base:
            yield kind
    yield from (value for value in values if isinstance(value, Tool) or is_tool(value))


def _tool_in(value: object) -> Tool | None:
    if isinstance(value, Tool):
        return value
    if isinstance(value, type) and issubclass(value, BaseTool):
        value = value()
    return tool_from(value) if isinstance(value, BaseTool) else tool_of(value)


def _report(place: str, problem: BaseException) -> ToolError:
    if isinstance(problem, (KeyboardInterrupt, GeneratorExit)):
        raise problem
    line = problem.__traceback__
    while line is not None and line.tb_next is not None:
        line = line.tb_next
    where = f" at {line.tb_frame.f_code.co_filename}:{line.tb_lineno}" if line is not None else ""
    return ToolError(Kind.VALIDATION, f"{place} could not be loaded{where}: {type(problem).__name__}: {problem}")


@contextmanager
def _on_path(folder: Path | None) -> Iterator[None]:
    if folder is None:
        yield
        return
    text = str(Path(folder).resolve())
    sys.path.insert(0, text)
    try:
        yield
    finally:
        if text in sys.path:
            sys.path.remove(text)
