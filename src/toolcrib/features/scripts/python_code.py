"""Read the metadata of a Python file from its syntax tree, and find its entry: a function or a class."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolcrib.features.scripts.metadata import CONFIG_SCHEMAS, FIELDS, Metadata, Notation
from toolcrib.lib.documents import check_plain
from toolcrib.lib.names import near_misses
from toolcrib.lib.python_hints import HintError, writable
from toolcrib.lib.python_source import parse_python, refuse_base_tools
from toolcrib.model.errors import ToolError
from toolcrib.model.tool import Convention

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from toolcrib.lib.positions import Steps
    from toolcrib.lib.python_source import AnyFunction

MAIN = "main"
EXECUTE = "execute"
ACTION = "action"
PARAMS = "params"
# Names of a parameter that takes all arguments as one mapping, if none are declared.
MAPPINGS = frozenset(
    (
        *(PARAMS, "parameters", "args", "arguments", "kwargs", "inputs", "input", "input_data", "payload", "data"),
        *("options", "config", "request"),
    )
)
# Names of a parameter that takes the project folder; the child passes it by the same names.
PROJECT = "project_path"
PROJECTS = frozenset({PROJECT, "project", "project_dir", "project_root", "workspace", "workspace_path", "root"})
PLAIN_HINTS = frozenset(
    (
        "str",
        "int",
        "float",
        "bool",
        "bytes",
        "list",
        "List",
        "Sequence",
        "Iterable",
        "tuple",
        "Tuple",
        "set",
        "Set",
        "Path",
    )
)
ARGUMENT_VECTORS = frozenset({"argv", "args"})
IDLE = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Pass),
)
MAKES_FUNCTIONS = (ast.Lambda, ast.Name, ast.Attribute, ast.Call)
PYTHON = Notation(name="__{}__", sample='{} = "{}"', names={"description": "__tool_description__"})
VARIABLES = {PYTHON.spell(name): name for name in FIELDS}
# Any module may define its version; that alone does not make it a tool.
COMMON = frozenset({"version"})


def read_python_file(path: Path, code: bytes) -> Metadata | None:
    """The metadata of a Python file; None for a helper without metadata."""
    place = str(path)
    module = parse_python(code, place)
    refuse_base_tools(module, place)
    reader = _Variables(place)
    for statement in module.body:
        reader.read(statement)
    if not reader.lines.keys() - {(name,) for name in COMMON}:
        return None
    slips = reader.slips()
    adopted = reader.adopt_config_schema()
    return Metadata(
        path=path,
        fields=reader.fields,
        line_of=reader.line,
        notation=PYTHON,
        language="python",
        code=code,
        module=module,
        docstring=writable(inspect.cleandoc(ast.get_docstring(module, clean=False) or "")),
        problems=tuple(reader.problems),
        warnings=(*adopted, *(reader.warning(slip, meant) for slip, meant in slips)),
        refused=reader.refused(),
        slips={VARIABLES[meant]: slip for slip, meant in slips},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryPoint:
    """The entry point of a file. The signature of `function` gives the arguments; `given` are passed by the platform, not by the caller."""

    convention: Convention
    name: str = ""
    function: AnyFunction | None = None
    given: frozenset[str] = frozenset()


PROGRAM = EntryPoint(convention=Convention.ARGV)


def choose_entry(module: ast.Module, names: frozenset[str] | None, action: str = "") -> EntryPoint:
    """The entry of a file whose tool declares these arguments (None: it declares none)."""
    entry = _choose_defined(module, names, action)
    return _choose_imported(module, names, action) if entry is PROGRAM and does_nothing(module.body) else entry


def does_nothing(statements: Iterable[ast.stmt]) -> bool:
    """Whether the statements only define, import and assign, so that running them does nothing."""
    return all(map(_is_idle, statements))


def missing_names(function: AnyFunction, names: frozenset[str]) -> list[str]:
    """The declared arguments that the function does not take."""
    known = {argument.arg for argument in _named(function)}
    known |= {function.args.vararg.arg} if function.args.vararg else set()
    return [] if function.args.kwarg else sorted(names - known)


def demanded_names(function: AnyFunction) -> list[str]:
    """The required arguments of the function."""
    arguments = function.args
    positional = _positional(function)
    demanded = positional[: len(positional) - len(arguments.defaults)]
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    demanded += [argument for argument, default in pairs if default is None]
    return [argument.arg for argument in demanded]


def _is_idle(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return does_nothing((*statement.body, *statement.orelse))
    if isinstance(statement, ast.Try):
        handled = (inner for handler in statement.handlers for inner in handler.body)
        return does_nothing((*statement.body, *handled, *statement.orelse, *statement.finalbody))
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, IDLE)


def _choose_defined(module: ast.Module, names: frozenset[str] | None, action: str) -> EntryPoint:
    functions = _functions(module)
    if action:
        return _action_entry(functions, names, action)
    main, execute = functions.get(MAIN), functions.get(EXECUTE)
    if main is not None and (execute is None or _takes(main, names)):
        return PROGRAM if _reads_arguments_itself(main, names) and _has_guard(module) else _bound(main, names)
    if execute is not None:
        return _bound(execute, names)
    return _sink(module) or PROGRAM


def _choose_imported(module: ast.Module, names: frozenset[str] | None, action: str) -> EntryPoint:
    """A function that the file imports or assigns under the name of an entry; its parameters are unknown."""
    functions, offered = _functions(module), _imported_names(module)
    for name in [action.replace("-", "_")] if action else (MAIN, EXECUTE):
        if name in offered and not name.startswith("_"):
            known = functions.get(offered[name])
            if known is not None:
                return replace(_bound(known, names), name=name)
            convention = Convention.PARAMS if name == EXECUTE and not action else Convention.KEYWORDS
            return EntryPoint(convention=convention, name=name)
    return PROGRAM


def _imported_names(module: ast.Module) -> dict[str, str]:
    """The imported and assigned names that may be functions, each with the name that it is an alias for."""
    found: dict[str, str] = {}
    for statement in module.body:
        if isinstance(statement, ast.ImportFrom):
            found |= {alias.asname or alias.name: "" for alias in statement.names}
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, MAKES_FUNCTIONS):
            other = statement.value.id if isinstance(statement.value, ast.Name) else ""
            found |= {target.id: other for target in statement.targets if isinstance(target, ast.Name)}
    return found


def _action_entry(functions: dict[str, AnyFunction], names: frozenset[str] | None, action: str) -> EntryPoint:
    own, main = functions.get(action.replace("-", "_")), functions.get(MAIN)
    if own is not None and not own.name.startswith("_"):
        return _bound(own, names)
    if main is not None and any(argument.arg == ACTION for argument in _named(main)):
        return _by_name(main, given=frozenset({ACTION}))
    return PROGRAM


def _bound(function: AnyFunction, names: frozenset[str] | None) -> EntryPoint:
    """The entry of a function that takes its arguments by name, or all of them as one mapping."""
    if _takes_mapping(function, names):
        return EntryPoint(convention=Convention.PARAMS, name=function.name, function=function)
    given = {argument.arg for argument in _named(function)} & {PROJECT} - (names or frozenset())
    return _by_name(function, frozenset(given))


def _takes_mapping(function: AnyFunction, names: frozenset[str] | None) -> bool:
    """Whether the first parameter takes all arguments as one mapping: it is not a declared argument, and its name or hint is that of a mapping."""
    positional = _positional(function)
    if not positional or positional[0].arg in (names or frozenset()):
        return False
    first, count = positional[0], len(positional) - len(function.args.defaults)
    if any(argument.arg not in PROJECTS and argument.arg in (names or frozenset()) for argument in positional[1:]):
        return False
    demanded = positional[1 : max(count, 1)]
    if len(demanded) > 1 or (demanded and function.name != EXECUTE and demanded[0].arg not in PROJECTS):
        return False
    is_mapping = first.annotation is None or _is_record_hint(first.annotation)
    if function.name == EXECUTE:
        return is_mapping and (bool(names) or first.arg in MAPPINGS)
    return is_mapping and first.arg in (MAPPINGS if names else {PARAMS})


def _is_record_hint(hint: ast.expr) -> bool:
    """Whether the hint may be that of a mapping: anything but a plain value or a list."""
    words = ast.unparse(hint).replace("typing.", "").strip("'\"")
    return words.partition("[")[0] not in PLAIN_HINTS


def _by_name(function: AnyFunction, given: frozenset[str] = frozenset()) -> EntryPoint:
    return EntryPoint(convention=Convention.KEYWORDS, name=function.name, function=function, given=given)


def _functions(module: ast.Module) -> dict[str, AnyFunction]:
    return {
        statement.name: statement
        for statement in module.body
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _takes(function: AnyFunction, names: frozenset[str] | None) -> bool:
    return bool(_named(function)) if names is None else not missing_names(function, names)


def _reads_arguments_itself(main: AnyFunction, names: frozenset[str] | None) -> bool:
    """Whether main parses its arguments itself: it takes none although some are declared, or a list of words."""
    arguments = _named(main)
    if main.args.kwarg is not None or main.args.kwonlyargs:
        return False
    if main.args.vararg is not None:
        return not arguments
    if not arguments:
        return bool(names)
    return len(arguments) == 1 and arguments[0].arg in ARGUMENT_VECTORS - (names or frozenset())


def _named(function: AnyFunction) -> list[ast.arg]:
    return [*_positional(function), *function.args.kwonlyargs]


def _positional(function: AnyFunction) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args]


def _has_guard(module: ast.Module) -> bool:
    """Whether the file has an `if __name__ == "__main__"` block."""
    return any(
        isinstance(statement, ast.If)
        and any(isinstance(node, ast.Constant) and node.value == "__main__" for node in ast.walk(statement.test))
        for statement in module.body
    )


def _sink(module: ast.Module) -> EntryPoint | None:
    """The sink class of the file, if there is one."""
    found = {node.name: node for node in module.body if isinstance(node, ast.ClassDef) and _writes_events(node)}
    public = [node for name, node in found.items() if not name.startswith("_")]
    if not public:
        return None
    if len(public) > 1:
        names = ", ".join(node.name for node in public[:20])
        message = f"which class is the sink? found {names}; begin the names of the others with '_'"
        raise HintError(message)
    maker = next(
        (item for item in public[0].body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None
    )
    itself = maker.args.args[:1] if maker is not None else []
    return EntryPoint(
        convention=Convention.SINK,
        name=public[0].name,
        function=maker,
        given=frozenset(argument.arg for argument in itself),
    )


def _writes_events(node: ast.ClassDef) -> bool:
    methods = (item for item in node.body if isinstance(item, ast.AsyncFunctionDef) and item.name == "write")
    return any(len(method.args.posonlyargs + method.args.args) == 2 for method in methods)  # noqa: PLR2004 - itself and the event


class _NotLiteralError(Exception):
    """An expression that is not a literal; `line` is its line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class _Variables:
    """Reads the metadata variables of a module, statement by statement."""

    def __init__(self, place: str) -> None:
        self.fields: dict[str, object] = {}
        self.lines: dict[Steps, int] = {}
        self.problems: list[str] = []
        self._place = place
        self._unknown: dict[str, int] = {}
        self._config_schema: tuple[str, ast.expr | None, int] | None = None

    def line(self, at: Steps) -> int:
        """The line of a value, or of the nearest value around it; line 1 for a missing one."""
        while at and at not in self.lines:
            at = at[:-1]
        return self.lines.get(at, 1)

    def read(self, statement: ast.stmt) -> None:
        """Store the value if the statement assigns a literal to a metadata variable."""
        for name, value in _assignments(statement):
            if name in VARIABLES:
                self._keep(name, VARIABLES[name], value, statement.lineno)
            elif name in CONFIG_SCHEMAS:
                self._config_schema = (name, value, statement.lineno)
            elif name.startswith("__") and name.endswith("__"):
                self._unknown[name.strip("_")] = statement.lineno

    def adopt_config_schema(self) -> list[str]:
        """Use `CONFIG_SCHEMA` as the input schema if nothing else declares the parameters; returns the warnings."""
        if self._config_schema is None or ("input_schema",) in self.lines or ("parameters",) in self.lines:
            return []
        name, value, line = self._config_schema
        before = len(self.problems)
        self._keep(name, "input_schema", value, line)
        if len(self.problems) == before:
            return [f"{self._place}:{line}: {name}: is read as the input schema; write __input_schema__"]
        # Any module may compute something of that name.
        del self.problems[before:], self.lines["input_schema",]
        return [
            f"{self._place}:{line}: {name}: is not a literal, so it is not read; write __input_schema__ as a literal"
        ]

    def refused(self) -> frozenset[str]:
        """The fields whose variables could not be read."""
        return frozenset(VARIABLES.values()) & {at[0] for at in self.lines if len(at) == 1} - self.fields.keys()

    def slips(self) -> list[tuple[str, str]]:
        """Misspelled metadata variables, each with the name that was meant."""
        found = near_misses(self._unknown, [variable.strip("_") for variable in VARIABLES])
        return [(f"__{name}__", f"__{meant}__") for name, meant in found]

    def warning(self, slip: str, meant: str) -> str:
        """The warning about a misspelled variable."""
        return f"{self._place}:{self._unknown[slip.strip('_')]}: {slip}: is not read; write {meant}"

    def _keep(self, name: str, field: str, node: ast.expr | None, line: int) -> None:
        place = f"{self._place}:{line}: {name}"
        if (field,) in self.lines:
            self.problems.append(f"{place}: is set twice; write it once, as a literal")
            return
        self.lines[field,] = line
        try:
            value = self._literal(node, (field,), line)
            check_plain(value, place=place)
        except _NotLiteralError as error:
            self.problems.append(f"{self._place}:{error.line}: {name}: {error}")
        except ToolError as error:
            self.problems.append(error.message)
        else:
            self.fields[field] = value

    def _literal(self, node: ast.expr | None, at: Steps, line: int) -> object:
        line = line if node is None else node.lineno
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool | None):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            number = node.operand.value
            if isinstance(number, int | float) and not isinstance(number, bool):
                return -number
        if isinstance(node, ast.List | ast.Tuple):
            return [self._item(item, (*at, index)) for index, item in enumerate(node.elts)]
        if isinstance(node, ast.Dict):
            return self._mapping(node, at)
        raise _NotLiteralError(
            line, "is not a literal, and nothing of the file is run to find out; write the value itself"
        )

    def _mapping(self, node: ast.Dict, at: Steps) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                raise _NotLiteralError((key or value).lineno, "has a key that is not text; write it in quotes")
            if key.value in found:
                raise _NotLiteralError(key.lineno, f"has the key {key.value[:80]!r} twice; remove one")
            found[key.value] = self._item(value, (*at, key.value))
        return found

    def _item(self, node: ast.expr, at: Steps) -> object:
        self.lines[at] = node.lineno
        return self._literal(node, at, node.lineno)


def _assignments(statement: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that a statement assigns, each with its value; None for an augmented assignment."""
    if isinstance(statement, ast.Assign):
        yield from ((target.id, statement.value) for target in statement.targets if isinstance(target, ast.Name))
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        yield statement.target.id, statement.value
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id, None
