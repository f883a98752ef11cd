"""Describe what a file says about its tool, read it from YAML, TOML and JSON files, and collect what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolcrib.lib.documents import check_plain, decode, read_json, read_toml
from toolcrib.lib.names import near_misses
from toolcrib.lib.positions import Lines, spell, toml_lines
from toolcrib.lib.yaml import read_yaml
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from toolcrib.lib.positions import Steps

REQUIRED = ("tool_id", "category", "tool_type", "version", "description", "executor_id")
OPTIONAL = (
    *("requires", "parameters", "outputs", "actions", "tags", "config", "input_schema", "output_schema", "timeout"),
    *("retry_policy", "cost", "documentation", "metadata", "hosts"),
)
FIELDS = frozenset(REQUIRED + OPTIONAL)
# Other files say `version` or `description` too; a file with one of these is meant as a tool.
MARKS = frozenset({"tool_id", "tool_type", "executor_id"})


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
        inner = spell(at[1:])
        return self.metadata.notation.spell(str(at[0])) + (inner if inner[:1] in {"", "["} else f".{inner}")


YAML = Notation()
TOML = Notation(sample='{} = "{}"')
JSON = Notation(sample='"{}": "{}"')


def read_yaml_file(path: Path, code: bytes) -> Metadata | None:
    """The metadata of a YAML file; None if it is not meant to be a tool."""
    document = read_yaml(code, str(path))
    return _metadata(path, document.value, document.line, YAML)


def read_toml_file(path: Path, code: bytes) -> Metadata | None:
    """The metadata of a TOML file; None if it is not meant to be a tool."""
    text = decode(code, str(path))
    return _metadata(path, read_toml(text, str(path)), Lines(text, toml_lines).line, TOML)


def read_json_file(path: Path, code: bytes) -> Metadata | None:
    """The metadata of a JSON file; None if it is not meant to be a tool."""
    text = decode(code, str(path))
    value = read_json(text, place=str(path))
    check_plain(value, place=str(path))
    return _metadata(path, value, Lines(text).line, JSON)


def name_type(value: object) -> str:
    """What a value is, in words."""
    names = {dict: "a mapping", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def warn_of_strangers(report: Report, at: Steps, names: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """Warn of unknown keys; returns what was meant, each with the name that stands there."""
    strangers = [name for name in names if name not in known]
    meant = dict(near_misses(strangers, known))
    otherwise = f"remove it, or write one of {', '.join(known)}" if at else "remove it, or write it under metadata"
    for name in strangers:
        report.warn((*at, name), f"is not read; {f'write {meant[name]}' if name in meant else otherwise}")
    return {field_name: name for name, field_name in meant.items()}


def _metadata(path: Path, value: object, line_of: Callable[[Steps], int], notation: Notation) -> Metadata | None:
    if not isinstance(value, dict) or not _is_meant(value):
        return None
    fields = {name: value[name] for name in value if name in FIELDS}
    report = Report(Metadata(path=path, fields=fields, line_of=line_of, notation=notation))
    slips = warn_of_strangers(report, (), value, FIELDS)
    return replace(report.metadata, warnings=tuple(report.warnings), slips=slips)


def _is_meant(value: dict[str, object]) -> bool:
    """Whether it is meant to be a tool: it says so, or it writes with dashes nearly all that would say so."""
    spelled = {name.replace("-", "_") for name in value}
    return not MARKS.isdisjoint(value) or len(MARKS & spelled) > 1
