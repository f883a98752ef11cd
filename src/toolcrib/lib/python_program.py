"""Derive the command line of a Python program that uses `argparse`, `click` or `typer`, from its syntax tree alone."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolcrib.lib.command_line import (
    COUNT,
    END_OF_OPTIONS,
    FLAG,
    MAX_PARAMETERS,
    REPEAT,
    SPREAD,
    VALUE,
    WORD,
    CommandLine,
    Parameter,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
    Schema = dict[str, object]

LIBRARIES = frozenset({"argparse", "click", "typer"})
TYPES = {
    **dict.fromkeys(("int", "INT", "IntRange"), "integer"),
    **dict.fromkeys(("float", "FLOAT", "FloatRange"), "number"),
    **dict.fromkeys(("str", "STRING"), "string"),
    **dict.fromkeys(("bool", "BOOL"), "boolean"),
}
NOT_LITERAL = object()


@dataclass(slots=True)
class _Parser:
    """A parser of argparse, or a command of click or typer."""

    name: str = ""
    summary: str = ""
    parameters: list[Parameter] = field(default_factory=list)
    commands: dict[str, _Parser] = field(default_factory=dict)


class _UnclearError(Exception):
    """A command line that is only known when the program runs."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


def read_python_program(module: ast.Module) -> CommandLine | None:
    """The command line of a program; None if the file is not a program, or uses none of these libraries."""
    used = _imported(module)
    if not used or not _starts(module):
        return None
    try:
        parser = _argparse(module) if "argparse" in used else _click(module) if "click" in used else _typer(module)
        return None if parser is None else _line(parser, ())
    except _UnclearError as problem:
        text = f"{problem}; write its options as literals, or declare them"
        return CommandLine(problems=((problem.line, text),))


def _imported(module: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found & LIBRARIES


def _starts(module: ast.Module) -> bool:
    """Whether the file has top-level code that runs when it is started as a program."""
    for statement in module.body:
        if isinstance(statement, ast.If) and any(
            isinstance(node, ast.Constant) and node.value == "__main__" for node in ast.walk(statement.test)
        ):
            return True
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            return True
    return False


def _line(parser: _Parser, before: tuple[str, ...]) -> CommandLine:
    if len(parser.parameters) > MAX_PARAMETERS:
        raise _UnclearError(1, f"takes more than {MAX_PARAMETERS} arguments")
    names = [one.name for one in parser.parameters]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise _UnclearError(1, f"two arguments are called {twice}")
    actions = {}
    for name, command in parser.commands.items():
        if command.commands:
            raise _UnclearError(1, f"{name} has sub-commands of its own")
        # Options of the whole program come before the sub-command, so they are not among its parameters.
        actions[name] = _line(command, (*before, name))
    if actions and any(one.required for one in parser.parameters):
        raise _UnclearError(1, "demands options before its sub-commands")
    parameters = () if actions else tuple(parser.parameters)
    return CommandLine(summary=parser.summary, before=before, parameters=parameters, actions=actions)


# argparse


def _argparse(module: ast.Module) -> _Parser | None:
    found = _Parsers(_looped(module))
    for node in _statements(module):
        target, call = _assigned(node)
        if call is not None and isinstance(call.func, ast.Name | ast.Attribute):
            found.read(node, target, call)
    # A parser that is only a parent of others does not parse the command line.
    whole = [parser for parser in found.made if not any(parser is parent for parent in found.lent)]
    if len(whole) > 1:
        raise _UnclearError(1, "more than one ArgumentParser is made")
    return whole[0] if whole else None


class _Parsers:
    """The parsers that a file creates, by their variables; `lent` are those that are parents of others."""

    def __init__(self, looped: set[ast.stmt]) -> None:
        self.made: list[_Parser] = []
        self.lent: list[_Parser] = []
        self._by_name: dict[str, _Parser] = {}
        self._holders: dict[str, _Parser] = {}
        self._looped = looped

    def read(self, node: ast.stmt, target: str, call: ast.Call) -> None:
        """Process one statement, if it creates a parser or adds to one."""
        method, owner = _last(call.func), _owner(call.func)
        if method == "ArgumentParser":
            self.made.append(self._make(target or "parser", call, _Parser(summary=_text(call, "description"))))
        elif owner in self._holders and method == "add_parser":
            self._add_command(target, owner, call)
        elif method == "add_argument" and owner:
            self._add_argument(node, owner, call)
        elif owner in self._by_name and method == "add_subparsers":
            self._holders[target] = self._by_name[owner]
        elif owner in self._by_name and method in {"add_argument_group", "add_mutually_exclusive_group"}:
            self._by_name[target] = self._by_name[owner]

    def _make(self, target: str, call: ast.Call, parser: _Parser) -> _Parser:
        parents = _parents(call, self._by_name)
        self.lent += parents
        parser.parameters += [one for parent in parents for one in parent.parameters]
        self._by_name[target] = parser
        return parser

    def _add_command(self, target: str, owner: str, call: ast.Call) -> None:
        name = _value(call.args[0]) if call.args else NOT_LITERAL
        if not isinstance(name, str):
            raise _UnclearError(call.lineno, "a sub-command has no literal name")
        command = _Parser(name=name, summary=_text(call, "help") or _text(call, "description"))
        self._holders[owner].commands[name] = self._make(target, call, command)

    def _add_argument(self, node: ast.stmt, owner: str, call: ast.Call) -> None:
        if owner not in self._by_name:
            raise _UnclearError(
                call.lineno, f"an argument is added to {owner}, which is not a parser that this file makes"
            )
        if node in self._looped:
            raise _UnclearError(call.lineno, "an argument is added in a loop")
        found = _argument(call)
        if found is not None:
            _add(self._by_name[owner].parameters, found)


def _parents(call: ast.Call, parsers: Mapping[str, _Parser]) -> list[_Parser]:
    """The parsers in `parents=[…]`, whose arguments the new parser inherits."""
    given = next((word.value for word in call.keywords if word.arg == "parents"), None)
    if given is None:
        return []
    names = [ast.unparse(one) for one in given.elts] if isinstance(given, ast.List | ast.Tuple) else []
    if not names or not all(name in parsers for name in names):
        raise _UnclearError(call.lineno, "its parents are not parsers that this file makes")
    return [parsers[name] for name in names]


def _add(parameters: list[Parameter], one: Parameter) -> None:
    """Add an argument; a pair of flags of one name, one for true and one for false, becomes one parameter."""
    for index, known in enumerate(parameters):
        if known.name == one.name and known.takes == one.takes == FLAG:
            yes, no = (known, one) if known.option != END_OF_OPTIONS else (one, known)
            if yes.option != END_OF_OPTIONS and no.option == END_OF_OPTIONS and not yes.off:
                parameters[index] = replace(yes, off=no.off)
                return
    parameters.append(one)


def _looped(module: ast.Module) -> set[ast.stmt]:
    loops = (node for node in ast.walk(module) if isinstance(node, ast.For | ast.While))
    return {inner for loop in loops for inner in ast.walk(loop) if isinstance(inner, ast.stmt)}


def _argument(call: ast.Call) -> Parameter | None:
    flags = [_value(word) for word in call.args]
    known = {keyword.arg: keyword.value for keyword in call.keywords}
    if not flags or not all(isinstance(flag, str) for flag in flags) or None in known:
        raise _UnclearError(call.lineno, "the name of an argument is not a literal")
    words = [str(flag) for flag in flags]
    action = known.get("action")
    verb = _value(action) if isinstance(action, ast.Constant) else _last(action) if action is not None else "store"
    if verb in {"help", "version"}:
        return None
    if verb not in {
        "store",
        "store_true",
        "store_false",
        "store_const",
        "append",
        "extend",
        "count",
        "BooleanOptionalAction",
    }:
        raise _UnclearError(call.lineno, f"{words[0]} has an action of its own")
    is_option = words[0].startswith("-")
    option = next((word for word in words if word.startswith("--")), words[0]) if is_option else ""
    dest = _value(known["dest"]) if "dest" in known else None
    name = dest if isinstance(dest, str) else (option.lstrip("-").replace("-", "_") if is_option else words[0])
    schema = _typed(known.get("type"), known.get("choices"))
    schema |= _described(known)
    parameter = Parameter(
        name=name.replace("-", "_"), schema=schema, option=option, required=_is_true(known.get("required"))
    )
    return _with_action(parameter, str(verb), known, call.lineno)


def _with_action(one: Parameter, verb: str, known: Mapping[str | None, ast.expr], line: int) -> Parameter:
    described = {name: value for name, value in one.schema.items() if name == "description"}
    if verb in {"store_true", "store_const", "BooleanOptionalAction"}:
        off = f"--no-{one.option.lstrip('-')}" if verb == "BooleanOptionalAction" else ""
        return replace(one, schema={"type": "boolean", **described}, takes=FLAG, off=off)
    if verb == "store_false":
        return replace(one, schema={"type": "boolean", **described}, takes=FLAG, off=one.option, option=END_OF_OPTIONS)
    if verb == "count":
        return replace(one, schema={"type": "integer", "minimum": 0, **described}, takes=COUNT)
    items = {name: value for name, value in one.schema.items() if name not in {"description", "default"}}
    many = {"type": "array", "items": items, **described}
    nargs = _value(known["nargs"]) if "nargs" in known else None
    if nargs is NOT_LITERAL or nargs in {"...", "A..."}:
        raise _UnclearError(line, f"{one.name} takes the rest of the words")
    if verb == "append":
        return replace(one, schema=many, takes=REPEAT)
    if verb == "extend" or nargs in {"*", "+"} or isinstance(nargs, int):
        least = 1 if nargs == "+" else nargs if isinstance(nargs, int) else 0
        bounds: dict[str, object] = {"minItems": least} if least else {}
        if isinstance(nargs, int):
            bounds["maxItems"] = nargs
        return replace(
            one, schema={**many, **bounds}, takes=SPREAD, required=one.required or (not one.option and least > 0)
        )
    is_optional = nargs == "?" or bool(one.option)
    return replace(one, required=one.required or not is_optional)


def _typed(kind: ast.expr | None, choices: ast.expr | None) -> Schema:
    listed = _value(choices) if choices is not None else None
    if isinstance(listed, list | tuple) and listed:
        return {"enum": list(listed)}
    if kind is None:
        return {"type": "string"}
    known = TYPES.get(_last(kind))
    return dict(WORD) if known is None else {"type": known}


def _described(known: Mapping[str | None, ast.expr]) -> Schema:
    text = _value(known["help"]) if "help" in known else None
    found: Schema = {"description": text} if isinstance(text, str) and text else {}
    default = _value(known["default"]) if "default" in known else None
    if default is not NOT_LITERAL and default is not None and isinstance(default, str | int | float) and default != "":
        found["default"] = default
    return found


# click


def _click(module: ast.Module) -> _Parser | None:
    groups: dict[str, _Parser] = {}
    commands: list[_Parser] = []
    for function in (node for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        kind, owner, name = _click_kind(function)
        if not kind:
            continue
        parser = _Parser(name=name, summary=_summary(function))
        # Decorators are applied from the function outwards.
        for decorator in function.decorator_list:
            found = _click_parameter(decorator)
            parser.parameters += [found] if found is not None else []
        if kind == "group":
            groups[function.name] = parser
        elif owner in groups:
            groups[owner].commands[name] = parser
        else:
            commands.append(parser)
    if groups:
        top = next(iter(groups.values()))
        return top if top.commands else None
    return commands[0] if len(commands) == 1 else None


def _click_kind(function: AnyFunction) -> tuple[str, str, str]:
    """Whether a function is a command or a group, the group that it belongs to, and its name."""
    for decorator in function.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        kind = _last(target)
        if kind not in {"command", "group"}:
            continue
        words = decorator.args if isinstance(decorator, ast.Call) else []
        keywords = {word.arg: word.value for word in decorator.keywords} if isinstance(decorator, ast.Call) else {}
        given = _value(words[0]) if words else _value(keywords["name"]) if "name" in keywords else None
        name = given if isinstance(given, str) else function.name.replace("_", "-")
        return kind, _owner(target), name
    return "", "", ""


def _click_parameter(decorator: ast.expr) -> Parameter | None:
    if not isinstance(decorator, ast.Call) or _last(decorator.func) not in {"option", "argument"}:
        return None
    words = [_value(word) for word in decorator.args]
    known: dict[str | None, ast.expr] = {keyword.arg: keyword.value for keyword in decorator.keywords}
    if not words or not all(isinstance(word, str) for word in words):
        raise _UnclearError(decorator.lineno, "the name of an argument is not a literal")
    texts = [str(word) for word in words]
    kind = known.get("type")
    choices = kind.args[0] if isinstance(kind, ast.Call) and _last(kind.func) == "Choice" and kind.args else None
    schema = {**_typed(kind.func if isinstance(kind, ast.Call) else kind, choices), **_described(known)}
    if _last(decorator.func) == "argument":
        nargs = _value(known["nargs"]) if "nargs" in known else 1
        required = "default" not in known and not _is_false(known.get("required"))
        name = texts[0].replace("-", "_").lower()
        if nargs == 1:
            return Parameter(name=name, schema=schema, required=required)
        return Parameter(
            name=name, schema={"type": "array", "items": schema}, takes=SPREAD, required=_is_true(known.get("required"))
        )
    return _click_option(texts, known, schema)


def _click_option(texts: list[str], known: Mapping[str | None, ast.expr], schema: Schema) -> Parameter:
    flags = [word for word in texts if word.startswith("-")]
    plain = [word for word in texts if not word.startswith("-")]
    long = next((word for word in flags if word.startswith("--")), flags[0] if flags else "")
    on, _, off = long.partition("/")
    name = plain[0] if plain else on.strip().lstrip("-").replace("-", "_").lower()
    described = {key: value for key, value in schema.items() if key == "description"}
    required = _is_true(known.get("required"))
    default = _value(known["default"]) if "default" in known else None
    if off or _is_true(known.get("is_flag")) or isinstance(default, bool):
        return Parameter(
            name=name, schema={"type": "boolean", **described}, option=on.strip(), off=off.strip(), takes=FLAG
        )
    if _is_true(known.get("count")):
        return Parameter(name=name, schema={"type": "integer", "minimum": 0, **described}, option=on, takes=COUNT)
    if _is_true(known.get("multiple")):
        items = {key: value for key, value in schema.items() if key not in {"description", "default"}}
        many = {"type": "array", "items": items, **described}
        return Parameter(name=name, schema=many, option=on, takes=REPEAT, required=required)
    if "type" not in known and isinstance(default, int | float):
        schema = {**schema, "type": "integer" if isinstance(default, int) else "number"}
    return Parameter(name=name, schema=schema, option=on, required=required)


# typer


def _typer(module: ast.Module) -> _Parser | None:
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    commands = {}
    for function in functions.values():
        kind, _, name = _click_kind(function)
        if kind == "command":
            commands[name] = _typer_command(function, name)
    if not commands:
        runs = (
            node for node in ast.walk(module) if isinstance(node, ast.Call) and ast.unparse(node.func) == "typer.run"
        )
        named = [_last(node.args[0]) for node in runs if node.args]
        found = [functions[name] for name in named if name in functions]
        return _typer_command(found[0], found[0].name) if found else None
    has_callback = any(_last(_called(one)) == "callback" for node in functions.values() for one in node.decorator_list)
    if len(commands) == 1 and not has_callback:
        return next(iter(commands.values()))
    return _Parser(commands=commands)


def _typer_command(function: AnyFunction, name: str) -> _Parser:
    parser = _Parser(name=name, summary=_summary(function))
    arguments = [*function.args.args, *function.args.kwonlyargs]
    given = [None] * (len(function.args.args) - len(function.args.defaults)) + [
        *function.args.defaults,
        *function.args.kw_defaults,
    ]
    for argument, default in zip(arguments, given, strict=True):
        parser.parameters.append(_typer_parameter(argument, default))
    return parser


def _typer_parameter(argument: ast.arg, default: ast.expr | None) -> Parameter:
    hint, declared = argument.annotation, None
    if isinstance(hint, ast.Subscript) and _last(hint.value) == "Annotated" and isinstance(hint.slice, ast.Tuple):
        declared = next((part for part in hint.slice.elts[1:] if isinstance(part, ast.Call)), None)
        hint = hint.slice.elts[0]
    if isinstance(default, ast.Call) and _last(default.func) in {"Option", "Argument"}:
        declared, first = default, default.args[0] if default.args else None
        default = None if first is None or (isinstance(first, ast.Constant) and first.value is ...) else first
    is_list = isinstance(hint, ast.Subscript) and _last(hint.value) in {"list", "List"}
    inner = hint.slice if is_list and isinstance(hint, ast.Subscript) else hint
    is_optional = isinstance(inner, ast.Subscript) and _last(inner.value) == "Optional"
    inner = inner.slice if is_optional and isinstance(inner, ast.Subscript) else inner
    if isinstance(inner, ast.BinOp):
        is_optional, inner = True, inner.left
    known = {word.arg: word.value for word in declared.keywords} if declared is not None else {}
    schema = {**_typed(inner, None), **_described({**known, **({"default": default} if default is not None else {})})}
    is_required = default is None and not is_optional
    is_argument = _last(declared.func) == "Argument" if declared is not None else default is None and not is_optional
    if is_argument:
        schema = {"type": "array", "items": schema} if is_list else schema
        return Parameter(name=argument.arg, schema=schema, takes=SPREAD if is_list else VALUE, required=is_required)
    words = [_value(word) for word in declared.args] if declared is not None else []
    option = next(
        (str(word) for word in words if isinstance(word, str) and word.startswith("--")),
        f"--{argument.arg.replace('_', '-')}",
    )
    if schema.get("type") == "boolean":
        on, _, off = option.partition("/")
        return Parameter(
            name=argument.arg,
            schema={"type": "boolean"},
            option=on,
            off=off or ("" if "/" in option or words else f"--no-{on[2:]}"),
            takes=FLAG,
        )
    if is_list:
        return Parameter(
            name=argument.arg,
            schema={"type": "array", "items": schema},
            option=option,
            takes=REPEAT,
            required=is_required,
        )
    return Parameter(name=argument.arg, schema=schema, option=option, required=is_required)


# Helpers for syntax nodes


def _statements(module: ast.Module) -> Iterator[ast.stmt]:
    """The statements that assign or call, in the order of their lines."""
    found = [node for node in ast.walk(module) if isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr)]
    yield from sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _assigned(node: ast.stmt) -> tuple[str, ast.Call | None]:
    value = getattr(node, "value", None)
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    name = (
        target.id if isinstance(target, ast.Name) else ast.unparse(target) if isinstance(target, ast.Attribute) else ""
    )
    return name, value if isinstance(value, ast.Call) else None


def _owner(node: ast.expr) -> str:
    return (
        ast.unparse(node.value)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute)
        else ""
    )


def _last(node: ast.expr | None) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _value(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return NOT_LITERAL


def _text(call: ast.Call, name: str) -> str:
    value = next((_value(word.value) for word in call.keywords if word.arg == name), "")
    return value if isinstance(value, str) else ""


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _summary(function: AnyFunction) -> str:
    return (ast.get_docstring(function) or "").partition("\n\n")[0].replace("\n", " ").strip()
