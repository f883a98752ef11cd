"""How a file of Python code is entered: which function or class, and how it takes its arguments."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.dialects.syntax import HintError
from toolcrib.model.tool import Convention

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.dialects.syntax import AnyFunction

MAIN = "main"
EXECUTE = "execute"
ACTION = "action"
ARGUMENT_VECTORS = frozenset({"argv", "args"})
IDLE = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Pass),
)
MAKES_FUNCTIONS = (ast.Lambda, ast.Name, ast.Attribute, ast.Call)


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """Where a file is entered. `function` has the signature that tells the arguments; `given` are not the caller's."""

    convention: Convention
    name: str = ""
    function: AnyFunction | None = None
    given: frozenset[str] = frozenset()


PROGRAM = Entry(convention=Convention.ARGV)


def choose_entry(module: ast.Module, names: frozenset[str] | None, action: str = "") -> Entry:
    """The entry of a file whose tool declares these arguments (None: it declares none)."""
    entry = _choose_defined(module, names, action)
    return _choose_brought_in(module, action) if entry is PROGRAM and does_nothing(module.body) else entry


def does_nothing(statements: Iterable[ast.stmt]) -> bool:
    """Whether the statements only define, import and assign, so that to run them comes to nothing."""
    return all(map(_is_idle, statements))


def _is_idle(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return does_nothing((*statement.body, *statement.orelse))
    if isinstance(statement, ast.Try):
        handled = (inner for handler in statement.handlers for inner in handler.body)
        return does_nothing((*statement.body, *handled, *statement.orelse, *statement.finalbody))
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, IDLE)


def _choose_defined(module: ast.Module, names: frozenset[str] | None, action: str) -> Entry:
    functions = _functions(module)
    if action:
        return _action_entry(functions, action)
    main, execute = functions.get(MAIN), functions.get(EXECUTE)
    if main is not None and (execute is None or _takes(main, names)):
        return PROGRAM if _reads_arguments_itself(main, names) and _has_guard(module) else _by_name(main)
    if execute is not None:
        return Entry(convention=Convention.PARAMS, name=EXECUTE)
    return _sink(module) or PROGRAM


def _choose_brought_in(module: ast.Module, action: str) -> Entry:
    """A function that the file imports or makes under the name of an entry; nobody knows what it takes."""
    functions, offered = _functions(module), _brought_in(module)
    for name in [action.replace("-", "_")] if action else (MAIN, EXECUTE):
        if name in offered and not name.startswith("_"):
            known = functions.get(offered[name])
            convention = Convention.PARAMS if name == EXECUTE and not action else Convention.KEYWORDS
            return Entry(
                convention=convention, name=name, function=known if convention is Convention.KEYWORDS else None
            )
    return PROGRAM


def _brought_in(module: ast.Module) -> dict[str, str]:
    """The names that may be functions from elsewhere, each with the name that it is another one for."""
    found: dict[str, str] = {}
    for statement in module.body:
        if isinstance(statement, ast.ImportFrom):
            found |= {alias.asname or alias.name: "" for alias in statement.names}
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, MAKES_FUNCTIONS):
            other = statement.value.id if isinstance(statement.value, ast.Name) else ""
            found |= {target.id: other for target in statement.targets if isinstance(target, ast.Name)}
    return found


def missing_names(function: AnyFunction, names: frozenset[str]) -> list[str]:
    """The declared arguments that the function does not take."""
    known = {argument.arg for argument in _named(function)}
    return [] if function.args.kwarg else sorted(names - known)


def demanded_names(function: AnyFunction) -> list[str]:
    """The arguments that the function cannot do without."""
    arguments = function.args
    demanded = arguments.args[: len(arguments.args) - len(arguments.defaults)]
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    demanded += [argument for argument, default in pairs if default is None]
    return [argument.arg for argument in demanded]


def _action_entry(functions: dict[str, AnyFunction], action: str) -> Entry:
    own, main = functions.get(action.replace("-", "_")), functions.get(MAIN)
    if own is not None and not own.name.startswith("_"):
        return _by_name(own)
    if main is not None and any(argument.arg == ACTION for argument in _named(main)):
        return _by_name(main, given=frozenset({ACTION}))
    return PROGRAM


def _by_name(function: AnyFunction, given: frozenset[str] = frozenset()) -> Entry:
    return Entry(convention=Convention.KEYWORDS, name=function.name, function=function, given=given)


def _functions(module: ast.Module) -> dict[str, AnyFunction]:
    return {
        statement.name: statement
        for statement in module.body
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _takes(function: AnyFunction, names: frozenset[str] | None) -> bool:
    return bool(_named(function)) if names is None else not missing_names(function, names)


def _reads_arguments_itself(main: AnyFunction, names: frozenset[str] | None) -> bool:
    """Whether main takes nothing by name: nothing at all where something is declared, or a list of words."""
    arguments = _named(main)
    if main.args.kwarg is not None or main.args.kwonlyargs:
        return False
    if main.args.vararg is not None:
        return not arguments
    if not arguments:
        return bool(names)
    return len(arguments) == 1 and arguments[0].arg in ARGUMENT_VECTORS - (names or frozenset())


def _named(function: AnyFunction) -> list[ast.arg]:
    return [*function.args.args, *function.args.kwonlyargs]


def _has_guard(module: ast.Module) -> bool:
    """Whether the file does something when it is run as a program."""
    return any(
        isinstance(statement, ast.If)
        and any(isinstance(node, ast.Constant) and node.value == "__main__" for node in ast.walk(statement.test))
        for statement in module.body
    )


def _sink(module: ast.Module) -> Entry | None:
    """The class that events are written to, if there is one."""
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
    return Entry(
        convention=Convention.SINK,
        name=public[0].name,
        function=maker,
        given=frozenset(argument.arg for argument in itself),
    )


def _writes_events(node: ast.ClassDef) -> bool:
    methods = (item for item in node.body if isinstance(item, ast.AsyncFunctionDef) and item.name == "write")
    return any(len(method.args.posonlyargs + method.args.args) == 2 for method in methods)  # noqa: PLR2004 - itself and the event
