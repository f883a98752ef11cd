"""Modules of the host program that hold tools or rules, loaded when a Crib starts."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.core.rules import RuleEngine
from toolcrib.features.agent_classes.import_paths import document_imports
from toolcrib.features.functions.decorators import functions_among, is_tool, tool_of
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.protocols import Rule
from toolcrib.model.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

AGENT_SIDE = "toolcrib.features.agent_classes.classes"


def load_module(name: str, root: Path | None) -> ModuleType:
    """Import a module of the host program by name; the project folder stands last on its path."""
    try:
        _put_on_path(root)
        with document_imports():
            module = importlib.import_module(name)
    except BaseException as problem:
        raise _report(f"module {name!r}", problem, root) from problem
    _check_home(name, root)
    return module


def load_file(path: Path) -> ModuleType:
    """Run a file as a module of the host program."""
    name = f"toolcrib_file_{path.stem}"
    try:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError("its name does not end in .py; rename it")
        module = importlib.util.module_from_spec(spec)
        # Dataclasses and pickles look their module up by name.
        sys.modules[name] = module
        _put_on_path(path.parent)
        with document_imports():
            spec.loader.exec_module(module)
    except BaseException as problem:
        sys.modules.pop(name, None)
        raise _report(str(path), problem, path.parent) from problem
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
            tools.append(_tool_in(value))
        except ToolError as problem:
            problems.append(problem)
        except Exception as problem:  # noqa: BLE001 - the border to foreign code: one broken tool does not hide the others
            place = f"module {module.__name__!r}: {_name_of(value)}"
            problems.append(_report(place, problem, Path(module.__file__ or "").parent))
    return tools, problems


def functions_in(module: ModuleType) -> dict[str, Callable[..., object]]:
    """The functions of a module that tools of bundles name, by their keys."""
    return functions_among(_values(module))


def rules_in(module: ModuleType) -> list[Rule]:
    """The rules that a module holds: rules, and those that were added to an engine."""
    found: dict[int, Rule] = {}
    for value in _values(module):
        if isinstance(value, RuleEngine):
            found.update((id(rule), rule) for rule in value.added)
        elif isinstance(value, Rule) and not isinstance(value, type):
            found[id(value)] = value
    return list(found.values())


def _candidates(module: ModuleType) -> list[object]:
    """What may be a tool, each once, however many names it goes by."""
    values = _values(module)
    others = [value for value in values if isinstance(value, Tool) or is_tool(value)]
    return list({id(value): value for value in (*_agent_side(module, values), *others)}.values())


def _agent_side(module: ModuleType, values: list[object]) -> list[object]:
    """Instances of agent-side tools, and their classes that nobody made an instance of."""
    if AGENT_SIDE not in sys.modules:
        # Nobody imported the classes, so nobody can have made use of them.
        return []
    from toolcrib.features.agent_classes.classes import BaseTool, ToolRegistry

    registered = [tool for value in values if isinstance(value, ToolRegistry) for tool in value.instances]
    instances = [value for value in (*registered, *values) if isinstance(value, BaseTool)]
    classes = [value for value in values if isinstance(value, type) and issubclass(value, BaseTool)]
    unmade = [kind for kind in classes if kind.__module__ == module.__name__ and not _is_used(kind, instances, classes)]
    return [*instances, *unmade]


def _is_used(kind: type, instances: Sequence[object], classes: Sequence[type]) -> bool:
    """Whether the module makes an instance of the class, or another class of it."""
    is_made = any(isinstance(instance, kind) for instance in instances)
    return is_made or any(other is not kind and issubclass(other, kind) for other in classes)


def _values(module: ModuleType) -> list[object]:
    """What stands at the top of the module, without the things that cannot even say what they are."""
    return [value for value in vars(module).values() if _is_plain(value)]


def _is_plain(value: object) -> bool:
    try:
        # A stand-in for something that is not there yet, such as the request of a web framework, raises when it is asked.
        isinstance(value, (Tool, Rule))
        is_tool(value)
    except Exception:  # noqa: BLE001 - the border to foreign code
        return False
    return True


def _tool_in(value: object) -> Tool:
    if isinstance(value, Tool):
        return value
    if is_tool(value):
        return tool_of(value)
    from toolcrib.features.agent_classes.classes import tool_from

    return tool_from(value() if isinstance(value, type) else value)  # type: ignore[arg-type]  # all that is left


def _name_of(value: object) -> str:
    named = value if hasattr(value, "__qualname__") else type(value)
    return str(getattr(named, "__qualname__", named))


def _check_home(name: str, root: Path | None) -> None:
    """Refuse a module that only happens to be called like the project's own, which would be passed over in silence."""
    top = name.partition(".")[0]
    wanted = None if root is None else PathFinder.find_spec(top, [str(Path(root).resolve())])
    loaded = getattr(sys.modules.get(top), "__file__", None)
    if wanted is None or wanted.origin is None or wanted.origin == loaded:
        return
    raise ToolError(
        Kind.CONFLICT, f"module {name!r}: {wanted.origin} is hidden by {loaded or 'another module'}; rename it"
    )


def _report(place: str, problem: BaseException, root: Path | None) -> ToolError:
    if isinstance(problem, (KeyboardInterrupt, GeneratorExit)):
        raise problem
    where = _line_of(problem, root)
    at = f" at {where}" if where else ""
    return ToolError(Kind.VALIDATION, f"{place} could not be loaded{at}: {type(problem).__name__}: {problem}")


def _line_of(problem: BaseException, root: Path | None) -> str:
    """The line to mend: the innermost one of the project, else the innermost that is no part of importing."""
    if isinstance(problem, SyntaxError) and problem.filename:
        return f"{problem.filename}:{problem.lineno}"
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if not _is_machinery(frame.filename)]
    folder = None if root is None else Path(root).resolve()
    own = [frame for frame in frames if folder is not None and Path(frame.filename).resolve().is_relative_to(folder)]
    innermost = (own or frames)[-1:]
    return "".join(f"{frame.filename}:{frame.lineno}" for frame in innermost)


def _is_machinery(filename: str) -> bool:
    return filename.startswith("<frozen importlib") or filename in {__file__, importlib.__file__}


def _put_on_path(folder: Path | None) -> None:
    """Have the modules of a folder found, last in line: a file that somebody puts there hides nobody else's module."""
    text = None if folder is None else str(Path(folder).resolve())
    if text is not None and text not in sys.path:
        sys.path.append(text)
