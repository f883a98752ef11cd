"""What a file says about its tool before anyone judges it, and everything that is wrong with it, told at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

Steps = tuple[str | int, ...]

REQUIRED = ("tool_id", "category", "tool_type", "version", "description", "executor_id")
OPTIONAL = (
    *("requires", "parameters", "outputs", "actions", "tags", "config", "input_schema", "output_schema", "timeout"),
    *("retry_policy", "cost", "documentation", "metadata", "hosts"),
)
FIELDS = frozenset(REQUIRED + OPTIONAL)
# Other files say `version` or `description` too; whoever writes one of these means a tool.
MARKS = frozenset({"tool_id", "tool_type", "executor_id"})
SHOWN = 80
NEAR = 0.8


@dataclass(frozen=True, kw_only=True, slots=True)
class Notation:
    """How a kind of file writes a field, for messages that its author understands."""

    name: str = "{}"
    sample: str = '{}: "{}"'
    names: Mapping[str, str] = field(default_factory=dict)

    def spell(self, field_name: str) -> str:
        """The name of a field as the file writes it."""
        return self.names.get(field_name) or self.name.format(field_name)

    def write(self, field_name: str, value: str) -> str:
        """A line that the author could copy."""
        return self.sample.format(self.spell(field_name), value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Metadata:
    """The fields of one file, plain JSON each, and where they stand.

    `language` is that of a file of code, and empty for a file that only describes. `problems` and `warnings` are what
    reading the file brought to light; `refused` are fields that stand there and could not be read, `slips` the names that
    stand where a field was meant.
    """

    path: Path
    fields: Mapping[str, object]
    line_of: Callable[[Steps], int] = lambda _: 1
    notation: Notation = Notation()
    language: str = ""
    code: bytes = b""
    module: ast.Module | None = None
    docstring: str = ""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: frozenset[str] = frozenset()
    slips: Mapping[str, str] = field(default_factory=dict)


class Report:
    """Collects what is wrong with one file; a person wants to hear of all of it."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.fields = metadata.fields
        self.problems = list(metadata.problems)
        self.warnings = list(metadata.warnings)

    def refuse(self, at: Steps, text: str) -> None:
        """Note what keeps the tool from being loaded."""
        self.problems.append(self._say(at, text))

    def warn(self, at: Steps, text: str) -> None:
        """Note what its author should know."""
        self.warnings.append(self._say(at, text))

    def refuse_line(self, line: int, text: str) -> None:
        """Note what is wrong with a line of code."""
        self.problems.append(f"{self.metadata.path}:{line}: {text}")

    def warn_line(self, line: int, text: str) -> None:
        """Note what its author should know about a line of code."""
        self.warnings.append(f"{self.metadata.path}:{line}: {text}")

    def write(self, field_name: str, value: str) -> str:
        """A line that the author could copy."""
        return self.metadata.notation.write(field_name, value)

    def raise_problems(self) -> None:
        """Raise one ToolError that tells every problem, a line each."""
        if self.problems:
            raise ToolError(Kind.VALIDATION, "\n".join(self.problems), details={"problems": [*self.problems]})

    def _say(self, at: Steps, text: str) -> str:
        place = f"{self.metadata.path}:{self.metadata.line_of(at)}"
        return f"{place}: {self._spell(at)}: {text}" if at else f"{place}: {text}"

    def _spell(self, at: Steps) -> str:
        steps = (f"[{step}]" if isinstance(step, int) else f".{step[:SHOWN]}" for step in at[1:])
        return self.metadata.notation.spell(str(at[0])) + "".join(steps)


def name_type(value: object) -> str:
    """What a value is, in words."""
    names = {dict: "a mapping", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def near_misses(names: Iterable[str], known: Iterable[str]) -> list[tuple[str, str]]:
    """The names that look like a slip of the pen, each with what was meant."""
    strangers = [name for name in names if name]
    if not strangers:
        return []
    import difflib

    found = ((name, difflib.get_close_matches(name, known, n=1, cutoff=NEAR)) for name in strangers)
    return [(name, near[0]) for name, near in found if near]


def warn_of_strangers(report: Report, at: Steps, names: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """Warn of keys that nobody reads; gives back what was meant, each with what stands there."""
    strangers = [name for name in names if name not in known]
    meant = dict(near_misses(strangers, known))
    otherwise = f"remove it, or write one of {', '.join(known)}" if at else "remove it, or write it under metadata"
    for name in strangers:
        report.warn((*at, name), f"is not read; {f'write {meant[name]}' if name in meant else otherwise}")
    return {field_name: name for name, field_name in meant.items()}
