"""Metadata of Python files: module variables such as `__category__`, read from the syntax tree as literals."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING

from toolcrib.dialects.reading import parse_python, refuse_base_tools
from toolcrib.dialects.script.metadata import FIELDS, Metadata, Notation, near_misses
from toolcrib.dialects.syntax import writable
from toolcrib.model.errors import ToolError
from toolcrib.pure.documents import check_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolcrib.dialects.script.metadata import Steps

PYTHON = Notation(name="__{}__", sample='{} = "{}"', names={"description": "__tool_description__"})
VARIABLES = {PYTHON.spell(name): name for name in FIELDS}
# Every module may say its version; that alone makes no tool of it.
COMMON = frozenset({"version"})


class _NotLiteralError(Exception):
    """An expression that only running code could tell; `line` is where it stands."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def read_python_file(path: Path, code: bytes) -> Metadata | None:
    """The metadata of a Python file; None for a file without any, which is a helper."""
    place = str(path)
    module = parse_python(code, place)
    refuse_base_tools(module, place)
    reader = _Variables(place)
    for statement in module.body:
        reader.read(statement)
    if not reader.lines.keys() - {(name,) for name in COMMON}:
        return None
    slips = reader.slips()
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
        warnings=tuple(reader.warning(slip, meant) for slip, meant in slips),
        refused=reader.refused(),
        slips={VARIABLES[meant]: slip for slip, meant in slips},
    )


class _Variables:
    """Reads the variables of a module, one statement after the other."""

    def __init__(self, place: str) -> None:
        self.fields: dict[str, object] = {}
        self.lines: dict[Steps, int] = {}
        self.problems: list[str] = []
        self._place = place
        self._strangers: dict[str, int] = {}

    def line(self, at: Steps) -> int:
        """The line of a value, or of the nearest thing around it; the first line for what is not there."""
        while at and at not in self.lines:
            at = at[:-1]
        return self.lines.get(at, 1)

    def read(self, statement: ast.stmt) -> None:
        """Keep the value if the statement gives one of our variables a literal."""
        for name, value in _assignments(statement):
            if name in VARIABLES:
                self._keep(name, VARIABLES[name], value, statement.lineno)
            elif name.startswith("__") and name.endswith("__"):
                self._strangers[name.strip("_")] = statement.lineno

    def refused(self) -> frozenset[str]:
        """The fields whose variables could not be read."""
        return frozenset(VARIABLES.values()) & {at[0] for at in self.lines if len(at) == 1} - self.fields.keys()

    def slips(self) -> list[tuple[str, str]]:
        """Variables that look like one of ours, each with the one that was meant."""
        found = near_misses(self._strangers, [variable.strip("_") for variable in VARIABLES])
        return [(f"__{name}__", f"__{meant}__") for name, meant in found]

    def warning(self, slip: str, meant: str) -> str:
        """What there is to say about such a variable."""
        return f"{self._place}:{self._strangers[slip.strip('_')]}: {slip}: is not read; write {meant}"

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
    """The names that a statement sets, each with its value; None for one that changes what is there."""
    if isinstance(statement, ast.Assign):
        yield from ((target.id, statement.value) for target in statement.targets if isinstance(target, ast.Name))
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        yield statement.target.id, statement.value
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id, None
