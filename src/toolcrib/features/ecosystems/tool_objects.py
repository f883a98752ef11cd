"""Find the tools of a framework in a file's syntax tree: decorated functions, registered functions, classes and their objects.

Each comes with its binding, by which the process that runs the file finds and calls the very same function:

    decorated   the function `name` at `line`, as it stands below decorator number `decorator`
    function    the function `name`
    class       an object of the class `name`, made without arguments
    made        the object that the call at `line` and `column` makes
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolcrib.features.ecosystems.frameworks import FRAMEWORKS, OPEN_WEBUI, Framework, ends_in, framework_of
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolcrib.features.ecosystems.file_names import FileNames
    from toolcrib.lib.python_source import AnyFunction

# Fields of the frameworks' own classes, which an object does not need as arguments.
OWN_FIELDS = frozenset({"args_schema", "description", "name", "return_direct", "response_format", "verbose"})


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolObject:
    """A tool of a framework: its function, the arguments of the call that makes it a tool, and its binding."""

    framework: Framework
    function: AnyFunction
    line: int
    binding: Mapping[str, object]
    said: Mapping[str, ast.expr] = field(default_factory=dict)
    owner: ast.ClassDef | None = None
    context_first: bool = False


def find_tools(names: FileNames) -> Iterator[ToolObject | ToolError]:
    """The tools of a file in order, and the errors of those that cannot be used."""
    finder = _Finder(names)
    for statement in names.statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from finder.decorated(statement)
        elif isinstance(statement, ast.ClassDef):
            yield from finder.of_class(statement)
    for call in names.calls:
        yield from finder.registered(call)


def nested_tool(names: FileNames) -> AnyFunction | None:
    """A function that defines a tool inside, which exists only when the outer function is called; None if there is none."""
    for outer in names.functions.values():
        for node in ast.walk(outer):
            if isinstance(node, ast.ClassDef) and any(_is_tool_class(names, base) for base in node.bases):
                return outer
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node is not outer:
                targets = (item.func if isinstance(item, ast.Call) else item for item in node.decorator_list)
                for target in targets:
                    is_method = isinstance(target, ast.Attribute) and target.attr in {"tool", "tool_plain"}
                    known = framework_of(names.full_name(target))
                    if is_method or (known and ends_in(names.full_name(target), known.decorators)):
                        return outer
    return None


def _is_tool_class(names: FileNames, base: ast.expr) -> bool:
    known = framework_of(names.full_name(base))
    return known is not None and bool(ends_in(names.full_name(base), known.bases))


class _Finder:
    """Finds the tools of one file."""

    def __init__(self, names: FileNames) -> None:
        self._names = names

    def decorated(self, function: AnyFunction) -> Iterator[ToolObject]:
        """The tool that decorators make of a function."""
        for place, decorator in reversed(list(enumerate(function.decorator_list))):
            call = decorator if isinstance(decorator, ast.Call) else None
            made = self._marks(decorator if call is None else call.func)
            if made is None:
                continue
            framework, context_first = made
            yield ToolObject(
                framework=framework,
                function=function,
                line=function.lineno,
                binding={"kind": "decorated", "name": function.name, "line": function.lineno, "decorator": place},
                said={} if call is None else _said(call, framework.names[0]),
                context_first=context_first,
            )
            return

    def registered(self, call: ast.Call) -> Iterator[ToolObject | ToolError]:
        """The tools that a call makes: `server.tool(function)`, `StructuredTool.from_function(…)`, `Agent(tools=[…])`."""
        if isinstance(call.func, ast.Call):
            # A decorator with arguments, applied as a function: `tool("name")(function)`.
            if (made := self._marks(call.func.func)) is not None and call.args:
                yield self._of_function(call.args[0], made[0], call, _said(call.func, made[0].names[0]), made[1])
            return
        name = self._names.full_name(call.func)
        framework = framework_of(name) if self._names.is_imported(call.func) else None
        if framework is not None and ends_in(name, framework.wrappers):
            if (found := self._wrapped(call, framework)) is not None:
                yield found
        elif framework is not None and ends_in(name, framework.lists):
            yield from self._listed(call, framework)
        elif (made := self._marks(call.func)) is not None and call.args and not _is_text(call.args[0]):
            said = {word.arg: word.value for word in call.keywords if word.arg}
            # A tool that is made in place is found by its own call.
            if not isinstance(self._names.value(call.args[0]), ast.Call):
                yield self._of_function(call.args[0], made[0], call, said, made[1])

    def of_class(self, node: ast.ClassDef) -> Iterator[ToolObject | ToolError]:
        """The tool that a class is, or the tools that are its methods."""
        names = self._names
        for base in names.bases(node):
            framework = framework_of(base)
            if framework is not None and ends_in(base, framework.bases):
                yield from self._tool_class(node, framework)
                return
        if node.name == "Tools" and not node.bases and _is_open_webui(node):
            yield from self._methods(node)

    def _marks(self, target: ast.expr) -> tuple[Framework, bool] | None:
        """The framework whose decorator or method this is, and whether its functions take a context first."""
        names = self._names
        full_name = names.full_name(target)
        if names.is_imported(target):
            framework = framework_of(full_name)
            return (framework, False) if framework and ends_in(full_name, framework.decorators) else None
        if not isinstance(target, ast.Attribute):
            return None
        maker = names.value(target.value)
        if not isinstance(maker, ast.Call) or not names.is_imported(maker.func):
            return None
        made_by = names.full_name(maker.func)
        framework = framework_of(made_by)
        if framework is None or target.attr not in framework.methods:
            return None
        kind = ends_in(made_by, framework.makers)
        return (framework, f"{kind}.{target.attr}" in framework.context_first) if kind else None

    def _wrapped(self, call: ast.Call, framework: Framework) -> ToolObject | ToolError | None:
        said = {word.arg: word.value for word in call.keywords if word.arg}
        given = [said[word] for word in ("func", "function", "coroutine", "fn") if word in said]
        given = [node for node in given if self._names.literal(node) is not None]
        # Tool("name", function, "description") of LangChain puts the name first.
        given += [node for node in call.args if not _is_text(node)][:1]
        texts = [node for node in call.args if _is_text(node)]
        said |= dict(zip((framework.names[0], framework.texts[0]), texts, strict=False)) if texts else {}
        if not given:
            # function_tool(name_override="…") is a decorator with arguments.
            return None
        return self._of_function(given[0], framework, call, said, context_first=False)

    def _listed(self, call: ast.Call, framework: Framework) -> Iterator[ToolObject | ToolError]:
        tools = next((word.value for word in call.keywords if word.arg == "tools"), None)
        if tools is None:
            return
        tools = self._names.value(tools)
        if not isinstance(tools, ast.List | ast.Tuple):
            message = f"the tools of {ast.unparse(call.func)[:80]} are made at run time; write them out: tools=[…]"
            yield _problem(call.lineno, message)
            return
        for item in tools.elts:
            is_made = isinstance(self._names.value(item), ast.Call)
            if not is_made and isinstance(item, ast.Name) and not self._is_decorated(item):
                yield self._of_function(item, framework, call, {}, context_first=False)

    def _is_decorated(self, node: ast.Name) -> bool:
        """Whether the function of that name is a tool already."""
        function = self._names.functions.get(node.id)
        return function is not None and any(True for _ in self.decorated(function))

    def _of_function(
        self,
        node: ast.expr,
        framework: Framework,
        call: ast.Call,
        said: Mapping[str, ast.expr],
        context_first: bool,  # noqa: FBT001 - the second value of `_marks`
    ) -> ToolObject | ToolError:
        target = self._names.value(node)
        function = self._names.functions.get(target.id) if isinstance(target, ast.Name) else None
        if function is None:
            message = f"{ast.unparse(node)[:80]} is made a tool of {framework.title}, and is not a function of this file; write it as a function: def …(…)"
            return _problem(call.lineno, message)
        return ToolObject(
            framework=framework,
            function=function,
            line=call.lineno,
            binding={"kind": "function", "name": function.name},
            said=said,
            context_first=context_first,
        )

    def _tool_class(self, node: ast.ClassDef, framework: Framework) -> Iterator[ToolObject | ToolError]:
        names = self._names
        function = self._work(node, framework)
        if function is None:
            if not any(node in names.lineage(other)[1:] for other in names.classes.values()):
                yield _problem(node.lineno, f"{node.name} has no method {framework.calls[0]}; write it")
            return
        made = [call for call in names.calls if isinstance(call.func, ast.Name) and call.func.id == node.name]
        found = ToolObject(framework=framework, function=function, line=node.lineno, binding={}, owner=node)
        for call in made:
            said = {word.arg: word.value for word in call.keywords if word.arg}
            binding = {"kind": "made", "name": node.name, "line": call.lineno, "column": call.col_offset}
            yield replace(found, said=said, line=call.lineno, binding={**binding, "method": function.name})
        if made:
            return
        if needed := self._needed(node, framework):
            message = (
                f"{node.name} is made with {', '.join(needed)}, and the file makes none; "
                f"add a line such as {node.name.lower()} = {node.name}({needed[0]}=…), or give them defaults"
            )
            # A class with subclasses may be only a base.
            if not any(node in names.lineage(other)[1:] for other in names.classes.values()):
                yield _problem(node.lineno, message, names.literal(names.attribute(node, "name") or ast.Constant(None)))
            return
        yield replace(found, binding={"kind": "class", "name": node.name, "method": function.name})

    def _work(self, node: ast.ClassDef, framework: Framework) -> AnyFunction | None:
        """The method that does the work: the first that is implemented."""
        found = [method for name in framework.calls if (method := self._names.method(node, name)) is not None]
        return next((method for method in found if not _is_unimplemented(method)), found[0] if found else None)

    def _needed(self, node: ast.ClassDef, framework: Framework) -> list[str]:
        """The required arguments of the class."""
        init = self._names.method(node, "__init__")
        if init is not None:
            arguments = init.args
            positional = [*arguments.posonlyargs, *arguments.args][1:]
            demanded = positional[: len(positional) - len(arguments.defaults)]
            named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            return [argument.arg for argument in (*demanded, *(item for item, default in named if default is None))]
        fields: dict[str, bool] = {}
        if framework.calls[0] == "_run":  # the classes that are pydantic models
            for known in reversed(self._names.lineage(node)):
                for item in known.body:
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                        fields[item.target.id] = item.value is None or is_required_field(item.value)
        private = (name for name, is_needed in fields.items() if is_needed and not name.startswith("_"))
        return [name for name in private if name not in OWN_FIELDS and name != "model_config"]

    def _methods(self, node: ast.ClassDef) -> Iterator[ToolObject]:
        for item in node.body:
            if not isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not item.name.startswith("_") and not item.decorator_list:
                binding = {"kind": "class", "name": node.name, "method": item.name}
                yield ToolObject(framework=OPEN_WEBUI, function=item, line=item.lineno, binding=binding, owner=node)


def uses_framework(names: FileNames) -> bool:
    """Whether the file imports one of the frameworks."""
    packages = names.packages
    return any(packages & framework.modules for framework in FRAMEWORKS)


def _said(call: ast.Call, name_word: str) -> dict[str, ast.expr]:
    """The keyword arguments of a decorator; a string as first positional argument is the name."""
    said = {word.arg: word.value for word in call.keywords if word.arg}
    return {name_word: call.args[0], **said} if call.args and _is_text(call.args[0]) else said


def _problem(line: int, message: str, name: object = None) -> ToolError:
    details: dict[str, object] = {"line": line}
    return ToolError(
        Kind.VALIDATION, message, details={**details, "tool_id": name} if isinstance(name, str) else details
    )


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_unimplemented(function: AnyFunction) -> bool:
    """Whether a method does nothing but raise that it is not implemented."""
    body = [item for item in function.body if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))]
    return len(body) == 1 and isinstance(body[0], ast.Raise) and "NotImplemented" in ast.unparse(body[0])


def is_required_field(value: ast.expr) -> bool:
    """Whether `Field(…)` gives no default."""
    if not isinstance(value, ast.Call) or not ast.unparse(value.func).endswith("Field"):
        return False
    first = value.args[0] if value.args else None
    if isinstance(first, ast.Constant) and first.value is Ellipsis:
        return True
    return first is None and not any(word.arg in {"default", "default_factory"} for word in value.keywords)


def _is_open_webui(node: ast.ClassDef) -> bool:
    """Whether a class `Tools` has public methods that take `self`."""
    methods = (item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef))
    return any(not item.name.startswith("_") and item.args.args[:1] for item in methods)
