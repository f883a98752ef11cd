"""Read the example of a request from its syntax tree, never running it: which function it imports, and how it calls it."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.features.requests.document.fields import CODE_FIELD, MAX_NAME, show
from toolcrib.lib.schema import accepts
from toolcrib.lib.schema_structure import is_json
from toolcrib.model.toolrequest import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.features.requests.document.fields import Fields
    from toolcrib.model.toolrequest import Input

MAX_CODE = 20_000
PACKAGE = "tools"


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """What the example shows: the function of the tool, and the arguments of its first call that are literals."""

    function: str
    shown: Mapping[str, object] = field(default_factory=dict)


class Example:
    """Reports problems of the example's code; `line_of` maps its lines to those of the document."""

    def __init__(self, root: Fields, name: str, line_of: Callable[[int], int]) -> None:
        self.name = name
        self.module = f"{PACKAGE}.{name}"
        self._root = root
        self._line_of = line_of

    def refuse(self, line: int, text: str) -> None:
        """Note what is wrong with a line of the code."""
        self._root.report.refuse((*self._root.at, CODE_FIELD), text, self._line_of(line))

    def warn(self, line: int, text: str) -> None:
        """Note what its author should know about a line of the code."""
        self._root.report.warn((*self._root.at, CODE_FIELD), text, self._line_of(line))


def read_usage(example: Example, code: str, inputs: Iterable[Input] | None) -> Usage:
    """The interface that the example uses; what contradicts the rest of the request is refused.

    If the name is empty or `inputs` is None, because they were refused, that is not checked.
    """
    tree = _parse(example, code)
    if tree is None or not example.name:
        return Usage(function=example.name)
    nodes = sorted(
        (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)),
        key=lambda node: (node.lineno, node.col_offset),
    )
    names = _Names(example)
    for node in nodes:
        names.note(node)
    calls = [(found, node) for node in nodes if isinstance(node, ast.Call) and (found := names.function_of(node.func))]
    function = _choose(example, names, [found for found, _ in calls], len(code.splitlines()))
    if inputs is None:
        return Usage(function=function)
    known = {given.name: given for given in inputs}
    for _, call in calls:
        _check_call(example, call, known)
    return Usage(function=function, shown=_literals(example, calls[0][1], known) if calls else {})


def _parse(example: Example, code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except SyntaxError as error:
        example.refuse(error.lineno or 1, f"is not Python: {error.msg}; correct the line")
    except (RecursionError, MemoryError, ValueError):
        example.refuse(1, "is nested too deeply to be read; make it simpler")
    return None


class _Names:
    """What the names of the code mean, as far as they come from the packages of tools."""

    def __init__(self, example: Example) -> None:
        self.functions: dict[str, str] = {}
        self.first_line = 0
        self.others: list[tuple[int, str]] = []
        self._example = example
        self._modules: dict[str, str] = {}

    def note(self, node: ast.Import | ast.ImportFrom | ast.Call) -> None:
        """Record an import."""
        if isinstance(node, ast.Call) or (isinstance(node, ast.ImportFrom) and (node.level or not node.module)):
            return
        for alias in node.names:
            if isinstance(node, ast.Import):
                self._note_module(node.lineno, alias.name, alias.asname or alias.name)
            elif node.module == PACKAGE:
                self._note_module(node.lineno, f"{PACKAGE}.{alias.name}", alias.asname or alias.name)
            elif node.module == self._example.module:
                self._found(node.lineno)
                self.functions[alias.asname or alias.name] = alias.name
            else:
                self._note_other(node.lineno, str(node.module))

    def function_of(self, node: ast.expr) -> str:
        """Which function of the tool an expression names; empty if none."""
        written = _dotted(node)
        if not (self.functions or self._modules):
            return written if written == self._example.name else ""
        holder, _, attribute = written.rpartition(".")
        return attribute if holder in self._modules else self.functions.get(written, "")

    def _note_module(self, line: int, module: str, local: str) -> None:
        if module == self._example.module:
            self._found(line)
            self._modules[local] = module
        else:
            self._note_other(line, module)

    def _note_other(self, line: int, module: str) -> None:
        if module.startswith(f"{PACKAGE}."):
            self.others.append((line, module))

    def _found(self, line: int) -> None:
        self.first_line = self.first_line or line


def _dotted(node: ast.expr) -> str:
    """A name with its dots; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _choose(example: Example, names: _Names, called: list[str], lines: int) -> str:
    """The one function of the tool; other functions that the example uses are refused."""
    cure = f"write from {example.module} import {example.name}"
    if not names.first_line:
        for line, module in names.others:
            example.refuse(line, f"imports {module[:80]}, but the tool is {example.name}; {cure}")
        if not names.others:
            example.warn(1, f"does not import the tool; {cure}")
        return example.name
    wanted = list(dict.fromkeys([*called, *names.functions.values()]))
    if not called:
        example.warn(lines, "does not call the tool; show a call with keywords")
    if len(wanted) > 1:
        listed = ", ".join(wanted)[:200]
        example.refuse(names.first_line, f"uses {listed}, but a tool has one function; import and call one of them")
    function = wanted[0] if wanted else example.name
    if len(function) > MAX_NAME or not function.isascii() or function.startswith("_") or function == "*":
        example.refuse(names.first_line, f"{show(function)} cannot be the function of a tool; {cure}")
    return function


def _check_call(example: Example, call: ast.Call, inputs: Mapping[str, Input]) -> None:
    if call.args:
        example.refuse(call.args[0].lineno, "a tool takes keywords alone; write name=value for every argument")
    given = Counter(keyword.arg for keyword in call.keywords if keyword.arg is not None)
    for keyword in call.keywords:
        if keyword.arg is None:
            example.warn(keyword.value.lineno, "what ** hands over cannot be checked; write the keywords out")
        elif keyword.arg not in inputs:
            example.refuse(keyword.lineno, f"{keyword.arg[:80]!r} is not among the inputs; add it there, or remove it")
    for name in sorted(name for name, times in given.items() if times > 1):
        example.refuse(call.lineno, f"{name[:80]!r} is given twice; remove one")
    missing = [name for name, one in inputs.items() if one.required and one.default is MISSING and name not in given]
    if missing and not call.args and given.total() == len(call.keywords):
        example.refuse(call.lineno, f"the required input {', '.join(missing)} is missing in the call; add it")


def _literals(example: Example, call: ast.Call, inputs: Mapping[str, Input]) -> dict[str, object]:
    shown: dict[str, object] = {}
    for keyword in call.keywords:
        given = inputs.get(keyword.arg or "")
        if given is None:
            continue
        try:
            value: object = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, RecursionError, MemoryError):
            continue
        if not is_json(value):
            continue
        if accepts(given.schema, value):
            shown[given.name] = value
        else:
            example.warn(keyword.lineno, f"{show(value)} is not what the input {given.name} takes; correct one of them")
    return shown
