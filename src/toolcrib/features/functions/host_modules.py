"""Import the modules of the host program that define tools or rules, when a Crib starts."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from contextlib import ExitStack, contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.core.plugins import Plugins
from toolcrib.core.resources import ModulesSettings
from toolcrib.core.rules import RuleEngine
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.model.protocols import Rule
from toolcrib.model.tool import Function, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    from toolcrib.core.resources import Resources
    from toolcrib.model.protocols import Converter


class HostModules:
    """The modules that the settings of one Crib name."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._root = resources.settings.root
        self._modules = resources.settings.table(ModulesSettings)
        self._plugins = resources.plugins

    def tools(self) -> Iterator[Tool]:
        """The tools of the modules; what cannot be loaded is reported, and does not affect the rest."""
        for name in self._modules.tools:
            yield from self._tools_of(name)

    def rules(self) -> list[Rule]:
        """The operator's own rules; raises SettingsError if one cannot be loaded, so that the Crib does not start."""
        rules: list[Rule] = []
        for name in self._modules.rules:
            try:
                found = rules_in(load_module(name, self._root, self._plugins))
            except ToolError as problem:
                raise SettingsError(f"modules.rules: {problem.message}") from problem
            if not found:
                raise SettingsError(f"modules.rules: {name!r} holds no rule; write one at its top level")
            rules += found
        return rules

    def _tools_of(self, name: str) -> list[Tool]:
        problems = self._plugins.problems
        try:
            module = load_module(name, self._root, self._plugins)
            tools, found = tools_in(module, self._plugins)
        except ToolError as problem:
            problems.append(problem)
            return []
        problems += found
        functions = functions_in(module, self._plugins)
        self._resources.functions |= functions
        if not tools and not found and not functions and not rules_in(module):
            message = (
                f"module {name!r} holds no tool; write one at its top level, or a registry with instances, or remove it"
            )
            problems.append(ToolError(Kind.VALIDATION, message))
        if rules_in(module) and name not in self._modules.rules:
            message = f"module {name!r} holds rules that are not used; name it in modules.rules too"
            problems.append(ToolError(Kind.VALIDATION, message))
        return [tool for tool in tools if not _is_listed_elsewhere(tool, name, self._modules.tools)]


def load_module(name: str, root: Path | None, plugins: Plugins | None = None) -> ModuleType:
    """Import a module of the host program by name; the project folder is last on the import path."""
    try:
        _put_on_path(root)
        with _contexts(plugins or Plugins()):
            module = importlib.import_module(name)
    except BaseException as problem:
        raise _report(f"module {name!r}", problem, root) from problem
    _check_home(name, root)
    return module


def load_file(path: Path, plugins: Plugins | None = None) -> ModuleType:
    """Run a file as a module of the host program."""
    name = f"toolcrib_file_{path.stem}"
    try:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError("its name does not end in .py; rename it")
        module = importlib.util.module_from_spec(spec)
        # Dataclasses and pickle look modules up by name.
        sys.modules[name] = module
        _put_on_path(path.parent)
        with _contexts(plugins or Plugins()):
            spec.loader.exec_module(module)
    except BaseException as problem:
        sys.modules.pop(name, None)
        raise _report(str(path), problem, path.parent) from problem
    return module


def tools_in(module: ModuleType, plugins: Plugins | None = None) -> tuple[list[Tool], list[ToolError]]:
    """The tools that a module defines, and the errors of those that cannot be used.

    Tools are decorated functions, Tool objects, instances and registries of agent-side tools, and classes of such tools
    that have no instance in the module.
    """
    tools: list[Tool] = []
    problems: list[ToolError] = []
    converters = (plugins or Plugins()).converters()
    for value in _candidates(module, converters):
        try:
            tools.append(_tool_in(value, converters))
        except ToolError as problem:
            problems.append(problem)
        except Exception as problem:  # noqa: BLE001 - the border to foreign code: one broken tool does not hide the others
            place = f"module {module.__name__!r}: {_name_of(value)}"
            problems.append(_report(place, problem, Path(module.__file__ or "").parent))
    return tools, problems


def functions_in(module: ModuleType, plugins: Plugins) -> dict[str, Callable[..., object]]:
    """The functions of a module that tools of bundles refer to, by key."""
    converters = plugins.converters()
    values = _values(module, converters)
    return {key: found for converter in converters for key, found in converter.functions_among(values).items()}


def rules_in(module: ModuleType) -> list[Rule]:
    """The rules that a module defines: rules, and those that were added to a RuleEngine."""
    found: dict[int, Rule] = {}
    for value in _values(module, ()):
        if isinstance(value, RuleEngine):
            found.update((id(rule), rule) for rule in value.added)
        elif isinstance(value, Rule) and not isinstance(value, type):
            found[id(value)] = value
    return list(found.values())


def _candidates(module: ModuleType, converters: Sequence[Converter]) -> list[object]:
    """The values that may be tools, each once, even if it has several names."""
    values = _values(module, converters)
    # In reverse order, so that functions, which every module has, come after the values of other converters.
    found = [value for converter in converters[:0:-1] for value in converter.tools_among(module, values)]
    others = [value for value in values if isinstance(value, Tool) or any(each.is_tool(value) for each in converters)]
    return list({id(value): value for value in (*found, *others)}.values())


def _values(module: ModuleType, converters: Sequence[Converter]) -> list[object]:
    """The module-level values, except proxies that raise when they are inspected."""
    return [value for value in vars(module).values() if _is_plain(value, converters)]


def _is_plain(value: object, converters: Sequence[Converter]) -> bool:
    try:
        # A proxy without a target, such as the current request of a web framework, raises on every access.
        isinstance(value, (Tool, Rule))
        for converter in converters:
            converter.is_tool(value)
    except Exception:  # noqa: BLE001 - the border to foreign code
        return False
    return True


def _tool_in(value: object, converters: Sequence[Converter]) -> Tool:
    if isinstance(value, Tool):
        return value
    # In reverse order, because the first converter takes any callable, also a class.
    converter = next(each for each in reversed(converters) if each.converts(value))
    return converter.convert(value)


def _is_listed_elsewhere(tool: Tool, name: str, modules: tuple[str, ...]) -> bool:
    """Whether another of the modules defines the function, so that this one only imports it."""
    home = getattr(tool.run.call, "__module__", name) if isinstance(tool.run, Function) else name
    return home != name and home in modules


@contextmanager
def _contexts(plugins: Plugins) -> Iterator[None]:
    """Enter the import contexts of the features, such as the import paths of existing agent code."""
    with ExitStack() as stack:
        for part in plugins.parts("module_contexts"):
            stack.enter_context(part.load()())
        yield


def _name_of(value: object) -> str:
    named = value if hasattr(value, "__qualname__") else type(value)
    return str(getattr(named, "__qualname__", named))


def _check_home(name: str, root: Path | None) -> None:
    """Refuse a module that hides the project's own module of the same name, which would be ignored silently."""
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
    """The line to correct: the innermost one of the project, else the innermost outside the import system."""
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
    """Put a folder last on the import path, so that no file in it hides another module."""
    text = None if folder is None else str(Path(folder).resolve())
    if text is not None and text not in sys.path:
        sys.path.append(text)
