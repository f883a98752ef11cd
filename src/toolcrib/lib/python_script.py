"""Derive the command line of a Python script that reads `sys.argv` or standard input, or takes no arguments.

A file is a script if running it prints something and it defines no public function, or if its top-level code reads
`sys.argv` or standard input. Only the syntax tree is analysed; nothing runs. Options that are searched for by hand
(`"--all" in sys.argv`) are refused.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.lib.command_line import PLAIN, SPREAD, STDIN, WORD, CommandLine, Parameter
from toolcrib.lib.usage_line import read_usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef

REST = "args"
MAIN = "main"
MAX_PLACES = 40
# A script that uses `sys.argv` more often is not analysed.
MAX_MENTIONS = 200
MAX_ALIASES = 10
TYPES = {"int": {"type": "integer"}, "float": {"type": "number"}}
# Calls that convert one word, which is still named after the variable that the result is assigned to.
CONVERSIONS = frozenset({"int", "float", "str", "Path", "PurePath", "Decimal", "Fraction"})
CURE = "read it with argparse, or write a function that takes it"


@dataclass(slots=True)
class _Word:
    """One positional argument: its name, its type and whether it is optional, as far as they are known."""

    name: str = ""
    kind: str = ""
    optional: bool = False


@dataclass(slots=True)
class _Words:
    """The positional arguments that a script reads, by their positions from 1."""

    places: dict[int, _Word] = field(default_factory=dict)
    rest: str = ""
    problem: tuple[int, str] | None = None

    def note(self, number: int, name: str = "", kind: str = "", *, optional: bool = False) -> None:
        word = self.places.setdefault(number, _Word())
        word.name = word.name or name
        word.kind = word.kind or kind
        word.optional = word.optional or optional


def read_python_script(module: ast.Module, text: str = "", *, has_main: bool = True) -> CommandLine | None:
    """The command line of a script; None if the file is not a script. Without `has_main`, a function `main` is ignored."""
    top = [node for node in module.body if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    guard = [node for node in top if _is_guard(node)]
    unguarded = [node for node in top if not _is_guard(node)]
    main = functions.get(MAIN)
    starts_main = (
        has_main and main is not None and not _needs_arguments(main) and any(_calls(node, MAIN) for node in top)
    )
    has_functions = any(not name.startswith("_") and not (name == MAIN and starts_main) for name in functions)
    acting = [*unguarded, *([main] if main is not None and starts_main else [])]
    bare = _imports_argv(module)
    reads = any(_argv(node, bare=bare) or _reads_input(node) for statement in acting for node in ast.walk(statement))
    if has_functions and not reads:
        return None
    acting += [] if has_functions else guard
    inner = [functions[name] for name in functions if name.startswith("_")]
    if not reads and (has_functions or not _acts([*acting, *inner])):
        return None
    return _interface(module, acting, [one for one in read_usage(text) if not one.option], bare=bare)


def _interface(module: ast.Module, acting: list[ast.stmt], usage: list[Parameter], *, bare: bool) -> CommandLine:
    nodes = list(ast.walk(module))
    words = _read_words(nodes, bare=bare)
    if words.problem is not None:
        return CommandLine(problems=(words.problem,))
    if words.rest == REST and not words.places and usage and all(one.name and one.takes != SPREAD for one in usage):
        # The script takes all words as one list, and its usage line names them.
        words = _Words({number: _Word(optional=not one.required) for number, one in enumerate(usage, 1)})
    highest = max(words.places, default=0)
    parameters = []
    taken: set[str] = set()
    for number in range(1, highest + 1):
        word = words.places.get(number, _Word())
        shown = usage[number - 1].name if number <= len(usage) else ""
        name = next((name for name in (shown, word.name) if name and name not in taken), f"arg{number}")
        taken.add(name)
        schema = dict(TYPES.get(word.kind, WORD))
        parameters.append(Parameter(name=name, schema=schema, required=not word.optional))
    if words.rest:
        name = words.rest if words.rest not in taken else REST
        parameters.append(Parameter(name=name, schema={"type": "array", "items": dict(WORD)}, takes=SPREAD))
    is_read = any(map(_reads_input, nodes))
    # A script that checks its words first reads standard input only if no file is given.
    needs = is_read and not any(_is_choice(node) for statement in acting for node in ast.walk(statement))
    return CommandLine(parameters=tuple(parameters), stdin=STDIN if is_read else "", needs_stdin=needs, dashes=PLAIN)


# Uses of sys.argv


def _read_words(nodes: list[ast.AST], *, bare: bool) -> _Words:
    words = _Words()
    parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
    sources = [(node, 0) for node in nodes if isinstance(node, ast.expr) and _argv(node, bare=bare)]
    names: dict[str, int] = {}
    for node, offset in sources:
        alias = _alias(node, parents, offset)
        if alias is not None and alias[0] not in names:
            name, start = alias
            names[name] = start
            sources += [
                (found, start)
                for found in nodes
                if isinstance(found, ast.Name) and found.id == name and isinstance(found.ctx, ast.Load)
            ]
        elif alias is None:
            _read_use(words, node, parents, offset)
        is_large = len(sources) > MAX_MENTIONS or len(names) > MAX_ALIASES or max(words.places, default=0) > MAX_PLACES
        if words.problem is not None or is_large:
            words.problem = words.problem or (node.lineno, f"reads too many words of sys.argv; {CURE}")
            return words
    return words


def _alias(node: ast.expr, parents: Mapping[ast.AST, ast.AST], offset: int) -> tuple[str, int] | None:
    """The variable that the remaining words are assigned to, with the position of the first: `args = sys.argv[1:]`."""
    parent = parents.get(node)
    value: ast.AST | None = node
    if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.slice, ast.Slice):
        start = _start(parent.slice)
        if start is None or parent.slice.upper is not None:
            return None
        offset, value, parent = offset + start, parent, parents.get(parent)
    if isinstance(parent, ast.Assign) and parent.value is value and len(parent.targets) == 1:
        target = parent.targets[0]
        return (target.id, offset) if isinstance(target, ast.Name) else None
    return None


def _start(where: ast.Slice) -> int | None:
    """The first index of a slice with step one; None for any other slice."""
    lower = where.lower.value if isinstance(where.lower, ast.Constant) else None
    return lower if where.step is None and isinstance(lower, int) and lower >= 0 else None


def _read_use(words: _Words, node: ast.expr, parents: Mapping[ast.AST, ast.AST], offset: int) -> None:
    """Record what one use of `sys.argv` reads; a use that cannot be analysed is a problem."""
    parent = parents.get(node)
    if isinstance(parent, ast.Call) and _name(parent.func) == "len":
        return
    if isinstance(parent, ast.Subscript) and parent.value is node:
        _read_subscript(words, parent, parents, offset)
    elif isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple | ast.List):
        _unpack(words, parent.targets[0].elts, offset)
    elif isinstance(parent, ast.Compare) and parent.left is not node:
        words.problem = (node.lineno, f"searches sys.argv for options; {CURE}")
    elif isinstance(parent, ast.Attribute):
        words.problem = (node.lineno, f"uses sys.argv.{parent.attr}, so its options cannot be derived; {CURE}")
    elif isinstance(parent, ast.If | ast.UnaryOp | ast.BoolOp | ast.While) or (
        isinstance(parent, ast.IfExp) and parent.test is node
    ):
        return  # only tests whether there are any words
    elif offset:
        _read_rest(words, node, parents, offset)
    else:
        words.problem = (node.lineno, f"passes sys.argv on, so its arguments cannot be derived; {CURE}")


def _read_subscript(words: _Words, node: ast.Subscript, parents: Mapping[ast.AST, ast.AST], offset: int) -> None:
    index = node.slice
    if isinstance(index, ast.Slice):
        start = _start(index)
        if start is None or (index.upper is not None and not isinstance(index.upper, ast.Constant)):
            words.problem = (node.lineno, f"slices sys.argv in a way that cannot be analysed; {CURE}")
            return
        _read_rest(words, node, parents, offset + start, is_cut=index.upper is not None)
        return
    number = index.value if isinstance(index, ast.Constant) else None
    if not isinstance(number, int) or isinstance(number, bool):
        words.problem = (node.lineno, f"indexes sys.argv with a computed value; {CURE}")
    elif number + offset > 0:
        name, kind = _target(node, parents)
        words.note(number + offset, name, kind, optional=_is_optional(node, parents))


def _read_rest(
    words: _Words, node: ast.expr, parents: Mapping[ast.AST, ast.AST], start: int, *, is_cut: bool = False
) -> None:
    """Record all words from a position on: unpacked, assigned to a variable, or used as a list."""
    parent, kind = parents.get(node), ""
    if isinstance(parent, ast.Call) and _name(parent.func) == "map" and isinstance(parents.get(parent), ast.Assign):
        kind, parent = _name(parent.args[0]), parents[parent]
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple | ast.List):
        _unpack(words, parent.targets[0].elts, start, kind)
        return
    if is_cut:
        words.problem = (node.lineno, f"slices sys.argv in a way that cannot be analysed; {CURE}")
        return
    is_loop = isinstance(parent, ast.For) and isinstance(parent.target, ast.Name)
    words.rest = words.rest or (_name(parent.target) if is_loop and isinstance(parent, ast.For) else "") or REST
    for number in range(1, start):
        words.note(number)


def _unpack(words: _Words, targets: list[ast.expr], start: int, kind: str = "") -> None:
    for place, target in enumerate(targets, start):
        if isinstance(target, ast.Starred):
            words.rest = _name(target.value) or REST
            return
        if place > 0:
            words.note(place, _name(target), kind)


def _target(node: ast.expr, parents: Mapping[ast.AST, ast.AST]) -> tuple[str, str]:
    """The variable that a word is assigned to, and the type that it is converted to."""
    kind = ""
    child: ast.AST = node
    parent = parents.get(node)
    while parent is not None:
        if isinstance(parent, ast.Call) and child in parent.args and _name(parent.func) in CONVERSIONS:
            kind = kind or _name(parent.func)
        elif not (
            isinstance(parent, ast.IfExp | ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is child)
        ):
            break
        child, parent = parent, parents.get(parent)
    outer = parents.get(parent) if isinstance(parent, ast.Tuple) else None
    if isinstance(parent, ast.Tuple) and isinstance(outer, ast.Assign) and isinstance(outer.targets[0], ast.Tuple):
        targets, place = outer.targets[0].elts, parent.elts.index(child)  # type: ignore[arg-type]  # one of its elements
        return _name(targets[place]) if len(targets) == len(parent.elts) else "", kind
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        return _name(parent.targets[0]), kind
    if isinstance(parent, ast.AnnAssign):
        return _name(parent.target), kind
    return "", kind


def _is_optional(node: ast.expr, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether the script checks that the word is there before it reads it, or continues without it."""
    child: ast.AST = node
    parent = parents.get(node)
    while parent is not None:
        if isinstance(parent, ast.If | ast.IfExp) and child is not parent.test and _counts(parent.test):
            return not _ends_otherwise(parent, child)
        if isinstance(parent, ast.Try) and child in parent.body:
            return not any(_ends(handler.body) for handler in parent.handlers)
        child, parent = parent, parents.get(parent)
    return False


def _counts(test: ast.expr) -> bool:
    """Whether a condition tests the number of words."""
    return any(
        (isinstance(node, ast.Call) and _name(node.func) == "len") or _argv(node, bare=True) for node in ast.walk(test)
    )


def _ends_otherwise(parent: ast.If | ast.IfExp, child: ast.AST) -> bool:
    """Whether the script exits if the word is missing."""
    if isinstance(parent, ast.IfExp):
        return False
    other = parent.orelse if child in parent.body else parent.body
    return _ends(other)


def _ends(body: list[ast.stmt]) -> bool:
    return any(
        isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and _name(node.func) in {"exit", "quit"})
        for statement in body
        for node in ast.walk(statement)
    )


# Helpers for syntax nodes


def _imports_argv(module: ast.Module) -> bool:
    return any(
        isinstance(node, ast.ImportFrom) and node.module == "sys" and any(alias.name == "argv" for alias in node.names)
        for node in ast.walk(module)
    )


def _argv(node: ast.AST, *, bare: bool) -> bool:
    """Whether it is `sys.argv`, or `argv` if that was imported from `sys`."""
    if isinstance(node, ast.Attribute):
        return node.attr == "argv" and _name(node.value) == "sys"
    return bare and isinstance(node, ast.Name) and node.id == "argv" and isinstance(node.ctx, ast.Load)


def _reads_input(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == STDIN and _name(node.value) == "sys"
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "input"
    return False


def _is_choice(node: ast.AST) -> bool:
    """Whether standard input is read only in one branch of a test for the number of words."""
    if not isinstance(node, ast.If | ast.IfExp) or not _counts(node.test):
        return False
    parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [*node.body, *node.orelse]
    return any(_reads_input(inner) for part in parts for inner in ast.walk(part))


def _acts(statements: list[ast.stmt]) -> bool:
    """Whether the statements print something: a script without arguments must print its result."""
    calls = (node for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(
        _name(node.func) in {"print", "pprint"} or (_name(node.func) == "write" and "stdout" in ast.dump(node.func))
        for node in calls
    )


def _is_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and any(
        isinstance(inner, ast.Constant) and inner.value == "__main__" for inner in ast.walk(node.test)
    )


def _calls(statement: ast.stmt, name: str) -> bool:
    return any(isinstance(node, ast.Call) and _name(node.func) == name for node in ast.walk(statement))


def _needs_arguments(function: AnyFunction) -> bool:
    """Whether a function cannot be called without arguments."""
    arguments = function.args
    plain = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return plain > 0 or any(default is None for default in arguments.kw_defaults)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
