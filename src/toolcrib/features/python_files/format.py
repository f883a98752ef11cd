"""Read plain `.py` files whose public functions are tools, from the syntax tree: no code of a file runs before a call.

A file with one tool gives the tool its name. Its function is the one named like the file, else `run`, else the only public
one. A file declares several tools with `__tools__`, or with `@tool` on each; each then has the name of its function. Without a
declaration, all public functions with a docstring are tools, with a warning.
"""

from __future__ import annotations

import ast
from dataclasses import field, replace
from typing import TYPE_CHECKING

from toolcrib.core.plugins import later
from toolcrib.lib.names import is_capability
from toolcrib.lib.python_declarations import read_docstring
from toolcrib.lib.python_hints import HintError, SyntaxHints, read_answer, read_parameters, writable
from toolcrib.lib.python_source import (
    BASE_TOOL_CURE,
    ClassTable,
    last_name,
    literal,
    parse_python,
    refuse_base_tools,
    top_imports,
)
from toolcrib.lib.schema import check_parameters, check_schema
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Behaviour, Chained, Cost, Origin, RetryPolicy, Script, SideEffects, Tool
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from toolcrib.lib.python_declarations import Docstring
    from toolcrib.lib.python_hints import Schema
    from toolcrib.lib.python_source import AnyFunction
    from toolcrib.lib.tool_options import DeclaredOptions

OTHER_FILES = frozenset({"conftest.py", "setup.py"})
OTHER_BEGINNINGS = ("_", ".", "test_")
# A smaller file whose hints unfold no class or alias cannot exceed the limits of a schema, so the check is skipped.
SURELY_SMALL = 16_000
REQUIRES = "__requires__"
TOOLS = "__tools__"
PACKAGES = b"# /// script"
# Words in a file that prints, and the schema of `-> None`.
PRINTING = (b"print(", b"stdout")
NOTHING_RETURNED = {"type": "null"}
DECORATORS = frozenset({"toolcrib.tool", "toolcrib.features.functions.decorators.tool"})
# The options of `@tool(…)` that a file may use. Each call has a process of its own, so `thread` changes nothing.
OPTIONS = (
    *(
        "name",
        "title",
        "description",
        "version",
        "requires",
        "confirm",
        "behaviour",
        "side_effects",
        "idempotent",
        "modes",
        "tags",
    ),
    *("timeout", "thread", "latency_budget_ms", "calls_per_minute", "retry", "cost", "parameters", "output_schema"),
    "icons",
)
CLASSES: dict[str, Any] = {"RetryPolicy": RetryPolicy, "Cost": Cost}
WORDS: dict[str, Any] = {"Behaviour": Behaviour, "SideEffects": SideEffects}
# Loaded on first use: most functions have no options.
read_options: Callable[[Mapping[str, Any]], DeclaredOptions] = later("toolcrib.lib.tool_options:read_options")
NOT_LITERAL = "is not a literal, and nothing of the file is run to find out; write the value itself"
MAX_NAMED = 20


class PlainFile:
    """Reads plain Python files."""

    name = "plain"

    def reads(self, path: Path) -> bool:
        """Whether the file may hold a tool."""
        return may_hold_tool(path)

    def read(self, path: Path, code: bytes) -> list[Tool]:
        """The tools of the file."""
        file = parse_file(path, code)
        chosen = choose_functions(file)
        tools = [_read(file, function, len(chosen)) for function in chosen]
        if not file.warnings:
            return tools
        return [replace(tools[0], warnings=(*tools[0].warnings, *file.warnings)), *tools[1:]]


@record(kw_only=False)
class ParsedFile:
    """A parsed file; `warnings` are about the file as a whole."""

    path: Path
    code: bytes
    module: ast.Module
    table: ClassTable
    warnings: list[str] = field(default_factory=list)


def may_hold_tool(path: Path) -> bool:
    """Whether a file may hold a tool: hidden files, tests and set-up files do not."""
    name = path.name
    return name.endswith(".py") and not name.startswith(OTHER_BEGINNINGS) and name not in OTHER_FILES


def parse_file(path: Path, code: bytes) -> ParsedFile:
    """Parse a file; raises ToolError if it could not be imported here."""
    module = parse_python(code, str(path))
    refuse_base_tools(module, str(path))
    file = ParsedFile(path, code, module, ClassTable(module))
    _refuse_relative_imports(file)
    return file


def _read(file: ParsedFile, function: AnyFunction, count: int) -> Tool:
    place = f"{file.path}:{function.lineno}"
    try:
        return _tool(file, function, place, is_only=count == 1)
    except HintError as error:
        raise ToolError(Kind.VALIDATION, f"{place}: {error}") from None
    except RecursionError:
        raise ToolError(Kind.VALIDATION, f"{place}: nested too deeply; make it simpler") from None


def _refuse_relative_imports(file: ParsedFile) -> None:
    """Refuse relative imports: a file that is part of a package cannot be imported alone."""
    for statement in file.module.body:
        if isinstance(statement, ast.ImportFrom) and statement.level:
            names = ", ".join(alias.name for alias in statement.names)
            written = f"from {'.' * statement.level}{statement.module or ''} import {names}"
            cure = f"from {statement.module} import {names}" if statement.module else f"import {names}"
            message = f"{file.path}:{statement.lineno}: {written[:80]} is a relative import, and a file here is no part of a package"
            raise ToolError(Kind.VALIDATION, f"{message}; put what it needs beside it and write: {cure[:80]}")


# Which functions are tools.


def choose_functions(file: ParsedFile) -> list[AnyFunction]:
    """The functions of the file that are tools, in their order."""
    public: dict[str, AnyFunction] = {}
    for statement in file.module.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and not statement.name.startswith("_"):
            if any(last_name(decorator) == "overload" for decorator in statement.decorator_list):
                continue
            if statement.name in public:
                first = public[statement.name].lineno
                file.warnings.append(
                    f"{file.path}:{statement.lineno}: {statement.name} is defined twice, at line {first} too; the last one counts, so remove the other"
                )
            public[statement.name] = statement
    if (listed := _listed(file, public)) is not None:
        return listed
    if marked := [function for function in public.values() if _decorator(file, function) is not None]:
        return marked
    return _certain(file, public)


def _listed(file: ParsedFile, public: dict[str, AnyFunction]) -> list[AnyFunction] | None:
    """The functions that `__tools__` names; None if there is no such list."""
    found = find_assignment(file.module, TOOLS)
    if found is None:
        return None
    names = literal(found.value)
    place = f"{file.path}:{found.lineno}: {TOOLS}"
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ToolError(Kind.VALIDATION, f"{place}: write a list of the names of functions, such as [{_some(public)}]")
    if missing := [name for name in names if name not in public]:
        message = f"{place}: {', '.join(map(str, missing))[:80]} is not a public function of this file"
        raise ToolError(Kind.VALIDATION, f"{message}; it has {', '.join(list(public)[:MAX_NAMED]) or 'none'}")
    return [public[name] for name in dict.fromkeys(names)]


def _certain(file: ParsedFile, public: dict[str, AnyFunction]) -> list[AnyFunction]:
    """The functions that are tools if the file does not declare them."""
    wanted = file.path.stem.replace("-", "_")
    if len(public) == 1:
        return list(public.values())
    if not public:
        raise ToolError(Kind.VALIDATION, f"{file.path}:1: {_why_none(file, wanted)}")
    if wanted not in public and "run" in public:
        return [public["run"]]
    named = public.get(wanted)
    # Beside a function named like the file, a function that others in the file use is a helper.
    used = {name for name in public if _is_used(file.module, name)}
    described = {name for name, function in public.items() if ast.get_docstring(function, clean=False)}
    meant = described - used if named is not None else described | (public.keys() - used if described else set())
    found = [
        function
        for name, function in public.items()
        if function is named or (name in meant and not _is_program(file, function))
    ]
    if not found:
        line = next(iter(public.values())).lineno
        message = f"{file.path}:{line}: which function is the tool? found {', '.join(list(public)[:MAX_NAMED])}"
        cure = f"name one `{wanted}` or `run`, begin the others with '_', or write {TOOLS} = [{_some(public)}]"
        raise ToolError(Kind.VALIDATION, f"{message}; {cure}")
    if len(found) > 1:
        file.warnings.append(_undeclared(file, found))
    return found


def _undeclared(file: ParsedFile, found: list[AnyFunction]) -> str:
    names = ", ".join(function.name for function in found[:MAX_NAMED])
    written = ", ".join(f'"{function.name}"' for function in found[:MAX_NAMED])
    return f"{file.path}:{found[0].lineno}: {names} are taken for tools; say so: {TOOLS} = [{written}]"


def _why_none(file: ParsedFile, wanted: str) -> str:
    """Why a file without a public function is not a tool, and what to write."""
    classes = [node.name for node in file.module.body if isinstance(node, ast.ClassDef) and node.name[:1] != "_"]
    if classes:
        return f"no public function, only the class {classes[0]}; write `def {wanted}(…):` that uses it, or begin the file's name with '_'"
    return f"no public function; write `def {wanted}(…):`, or begin the file's name with '_'"


def _some(public: dict[str, AnyFunction]) -> str:
    return ", ".join(f'"{name}"' for name in list(public)[:3])


def _is_used(module: ast.Module, name: str) -> bool:
    """Whether the file uses a function of its own outside of that function."""
    others = (node for node in module.body if getattr(node, "name", "") != name)
    return any(isinstance(inner, ast.Name) and inner.id == name for node in others for inner in ast.walk(node))


def _is_program(file: ParsedFile, function: AnyFunction) -> bool:
    """Whether it is the `main` that runs the file as a program."""
    arguments = function.args
    count = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
    has_guard = any(isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in file.module.body)
    return function.name == "main" and has_guard and count <= 1


# The options of `@tool(…)`, read from literals: a tool that declares that it needs confirmation must not run without.


def _decorator(file: ParsedFile, function: AnyFunction) -> ast.expr | None:
    """The `@tool` of a function; None if it has none."""
    for decorator in function.decorator_list:
        inner = decorator.func if isinstance(decorator, ast.Call) else decorator
        if file.table.full_name(inner) in DECORATORS:
            return decorator
        if isinstance(decorator, ast.Call) and last_name(inner) == "tool":
            message = f"{file.path}:{function.lineno}: what @{ast.unparse(inner)[:80]}(…) declares is not read, as it is not toolcrib's"
            raise ToolError(Kind.VALIDATION, f"{message}; write: from toolcrib import tool, or {BASE_TOOL_CURE}")
    return None


def _options(file: ParsedFile, function: AnyFunction) -> dict[str, Any]:
    """The options of `@tool(…)`."""
    decorator = _decorator(file, function)
    if not isinstance(decorator, ast.Call):
        return {}
    place = f"{file.path}:{decorator.lineno}: @tool"
    if decorator.args or any(word.arg is None for word in decorator.keywords):
        raise ToolError(Kind.VALIDATION, f"{place}: takes its options by name; write @tool(name=…)")
    found: dict[str, Any] = {}
    for word in decorator.keywords:
        if word.arg not in OPTIONS:
            raise ToolError(
                Kind.VALIDATION, f"{place}: {word.arg} is not an option of a file; it has {', '.join(OPTIONS)}"
            )
        found[word.arg] = _option(word.value, f"{place}({word.arg}=…)")
    requires = found.get("requires")
    words = requires if isinstance(requires, list | tuple) else ()
    if wrong := [word for word in words if not isinstance(word, str) or not is_capability(word)]:
        raise ToolError(
            Kind.VALIDATION, f'{place}(requires=…): {wrong[0]!r:.40}: write dotted names, such as ["fs.read"]'
        )
    return found


def _option(node: ast.expr, place: str) -> Any:
    if isinstance(node, ast.Attribute) and (words := WORDS.get(last_name(node.value))) is not None:
        return getattr(words, node.attr, node.attr)
    if isinstance(node, ast.Call) and (made := CLASSES.get(last_name(node.func))) is not None and not node.args:
        values = {word.arg: _option(word.value, place) for word in node.keywords if word.arg is not None}
        try:
            return made(**values)
        except (TypeError, ValueError) as error:
            raise ToolError(Kind.VALIDATION, f"{place}: {error}; correct it") from None
    value = literal(node)
    if value is NotImplemented:
        raise ToolError(Kind.VALIDATION, f"{place}: {NOT_LITERAL}")
    return value


def _returns_nothing(function: AnyFunction) -> bool:
    """Whether no `return` of the function has a value; then its output is the result, as for a program."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return False
        if isinstance(node, ast.Return) and not (node.value is None or _is_none(node.value)):
            return False
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return True


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def find_assignment(module: ast.Module, name: str) -> ast.Assign | None:
    """The statement that sets a variable of the file."""
    for statement in module.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name) and target.id == name:
                    return statement
    return None


def read_requires(file: ParsedFile) -> frozenset[str] | None:
    """The capabilities that the file lists under `__requires__`; None if it does not."""
    found = find_assignment(file.module, REQUIRES)
    if found is None:
        return None
    words = literal(found.value)
    if isinstance(words, list | tuple) and all(isinstance(word, str) and is_capability(word) for word in words):
        return frozenset(words)
    message = f'{file.path}:{found.lineno}: {REQUIRES}: write a list of dotted names, such as ["fs.read"]'
    raise ToolError(Kind.VALIDATION, message)


def _executed(script: Script) -> Chained:
    """Run a file that declares capabilities or packages, or that prints its result, with the runtime of its language."""
    return Chained(
        kind=script.kind, tool_type="file", executor="python_runtime", folder=script.path.parent, script=script
    )


def _schemas(
    function: AnyFunction, hints: SyntaxHints, docstring: Docstring, options: Mapping[str, Any], place: str
) -> tuple[Schema, Schema | None]:
    """The schemas of the arguments and of the answer: those of `@tool(…)`, else what hints and docstring say."""
    parameters = read_parameters(function, hints, docstring)
    output_schema = read_answer(function, hints)
    if options.get("parameters") is not None:
        parameters = options["parameters"]
        check_parameters(parameters, f"{place}: @tool(parameters=…)")
    if options.get("output_schema") is not None:
        output_schema = options["output_schema"]
        check_schema(output_schema, f"{place}: @tool(output_schema=…)")
    return parameters, output_schema


def _tool(file: ParsedFile, function: AnyFunction, place: str, *, is_only: bool) -> Tool:
    path, code, module = file.path, file.code, file.module
    options = _options(file, function)
    hints = SyntaxHints(module, file.table)
    docstring = read_docstring(ast.get_docstring(function, clean=False))
    parameters, output_schema = _schemas(function, hints, docstring, options, place)
    if len(code) > SURELY_SMALL or hints.unfolded:
        check_schema(parameters, f"{place}: parameters")
        check_schema(output_schema or {}, f"{place}: the answer")
    description = options.get("description") or docstring.summary
    if not description and is_only:
        description = read_docstring(ast.get_docstring(module, clean=False)).summary
    problems = [f"{place}: {problem}" for problem in hints.warnings]
    name = str(options.get("name") or (path.stem if is_only else function.name))
    if not description:
        description = name.replace("_", " ").replace("-", " ").capitalize()
        problems.append(f"{place}: nothing describes {function.name}; write a docstring")
    # The conversion of arguments imports typing, which a prefork process has loaded already.
    imports = tuple(dict.fromkeys((*top_imports(module), *(("typing",) if hints.converts else ()))))
    script = Script(path=path, code=code, language="python", entry=function.name, imports=imports)
    requires = read_requires(file)
    answers_by_printing = any(word in code for word in PRINTING) and _returns_nothing(function)
    if answers_by_printing and output_schema == NOTHING_RETURNED:
        output_schema = None
    try:
        declared: DeclaredOptions = read_options(options) if options else {}
        declared["requires"] = declared.get("requires", frozenset()) | (requires or frozenset())
        needs_chain = requires is not None or declared["requires"] or PACKAGES in code or answers_by_printing
        return Tool(
            name=name,
            description=writable(str(description)),
            documentation=writable(docstring.description),
            parameters=parameters,
            output_schema=output_schema,
            run=_executed(script) if needs_chain else script,
            source_type="file",
            origin=Origin(place=str(path), line=function.lineno),
            warnings=tuple(problems),
            **declared,
        )
    except ToolError as error:
        raise error.replace(reason=f"{place}: {error.reason}") from None
    except (ValueError, TypeError, OverflowError) as error:
        raise ToolError(Kind.VALIDATION, f"{place}: @tool(…): {error}; correct it") from None
