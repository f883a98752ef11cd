"""Metadata of files that only describe: YAML, TOML and JSON with the same keys."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.lib.documents import check_plain, decode, read_json, read_toml
from toolcrib.lib.yaml import read_yaml
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path


# MERGED toolcrib.dialects.script.metadata

# What a file says about its tool before anyone judges it, and everything that is wrong with it, told at once.

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


YAML = Notation()
TOML = Notation(sample='{} = "{}"')
JSON = Notation(sample='"{}": "{}"')
JSON_PART = re.compile(r'("(?:[^"\\]++|\\.)*+")(\s*+:)?|([\[\]{},])|\n')
TOML_NAME = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
TOML_NAMES = rf"{TOML_NAME}(?:[ \t]*+\.[ \t]*+{TOML_NAME})*"
TOML_LINE = re.compile(rf"[ \t]*+(?:\[\[[ \t]*+({TOML_NAMES})|\[[ \t]*+({TOML_NAMES})|({TOML_NAMES})[ \t]*+=)")
TOML_QUOTES = re.compile(r"\"\"\"|'''")


def read_yaml_file(path: Path, code: bytes) -> Metadata | None:
    """The metadata of a YAML file; None if it is not meant to be a tool."""
    # Only a YAML file needs the parser, which takes long to import.
    document = read_yaml(code, str(path))
    return _metadata(path, document.value, document.line, YAML)


def read_toml_file(path: Path, code: bytes) -> Metadata | None:
    """The metadata of a TOML file; None if it is not meant to be a tool."""
    text = decode(code, str(path))
    return _metadata(path, read_toml(text, str(path)), _Lines(text, toml_lines).line, TOML)


def read_json_file(path: Path, code: bytes) -> Metadata | None:
    """The metadata of a JSON file; None if it is not meant to be a tool."""
    text = decode(code, str(path))
    value = read_json(text, place=str(path))
    check_plain(value, place=str(path))
    return _metadata(path, value, _Lines(text, json_lines).line, JSON)


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


class _Lines:
    """Where things stand in a text; looked up only when something is to be said about it."""

    def __init__(self, text: str, scan: Callable[[str], dict[Steps, int]]) -> None:
        self._text = text
        self._scan = scan

    @cached_property
    def _lines(self) -> dict[Steps, int]:
        return {(): 1, **self._scan(self._text)}

    def line(self, at: Steps) -> int:
        """The line of a key or an item, or of the nearest thing around it."""
        while at not in self._lines:
            at = at[:-1]
        return self._lines[at]


def json_lines(text: str) -> dict[Steps, int]:
    """The line of every key and item of a text that is known to be JSON."""
    import json

    lines: dict[Steps, int] = {}
    line = 1
    # One step per open object or list: the key or the index that is being read.
    steps: list[str | int] = []
    for match in JSON_PART.finditer(text):
        string, colon, sign = match.groups()
        is_item = bool(steps) and isinstance(steps[-1], int)
        if colon:
            steps[-1] = json.loads(string)
        elif sign == "," and is_item:
            steps[-1] = int(steps[-1]) + 1
        # An item begins at its first sign; where that is a number, the comma before it is near enough.
        if colon or (is_item and (string or sign in {"[", "{", ","})):
            lines[tuple(steps)] = line
        if sign in {"[", "{"}:
            steps.append(0 if sign == "[" else "")
        elif sign in {"]", "}"}:
            steps.pop()
        line += match[0].count("\n")
    return lines


def toml_lines(text: str) -> dict[Steps, int]:
    """The line of every table and key that begins a line of a text that is known to be TOML."""
    lines: dict[Steps, int] = {}
    counts: dict[Steps, int] = {}
    table: Steps = ()
    quote = ""
    for number, line in enumerate(text.split("\n"), 1):
        found = None if quote else TOML_LINE.match(line)
        for match in TOML_QUOTES.finditer(line):
            quote = "" if quote == match[0] else quote or match[0]
        if found is None:
            continue
        items, header, key = found.groups()
        if key is None:
            table = _table(items or header, counts)
        if items is not None:
            counts[table] = counts.get(table, -1) + 1
            table = (*table, counts[table])
        lines.setdefault(table if key is None else (*table, *_names(key)), number)
    return lines


def _table(dotted: str, counts: dict[Steps, int]) -> Steps:
    """The way to a table; of a list of tables the last one is meant."""
    steps: Steps = ()
    names = _names(dotted)
    for index, name in enumerate(names):
        steps = (*steps, name)
        if index + 1 < len(names) and steps in counts:
            steps = (*steps, counts[steps])
    return steps


def _names(dotted: str) -> list[str]:
    return [name.strip("\"'") for name in re.findall(TOML_NAME, dotted)]


# MERGED toolcrib.dialects.folder.positions

# Where things stand in a text of JSON.

# A string, or else a number, or what people write for one.
_VALUE = re.compile(r'"(?:[^"\\]|\\.)*+"|(-?(?:\d[\d.eE+-]*+|Infinity)|NaN)')


class _Pairs(list[tuple[str, object]]):
    """An object as it is written, equal keys and all."""


class _EqualKeysError(Exception):
    """An object holds a key twice."""


class _NumberError(Exception):
    """A number is none that can be told."""


def lines_of(text: str) -> dict[Steps, int]:
    """The line of every key and item of a text that is known to be JSON; of equal keys that of the last."""
    return {(): 1, **json_lines(text)}


def line_of_fault(code: bytes) -> int:
    """The line of the first key that stands twice in its object, or number that none can tell; 1 if there is neither."""
    text = code.decode("utf-8-sig", "replace")
    try:
        json.loads(
            text,
            object_pairs_hook=_refuse_equal_keys,
            parse_constant=_check_number,
            parse_float=_check_number,
            parse_int=_check_number,
        )
    except _NumberError:
        return text.count("\n", 0, next(_odd_numbers(text))) + 1
    except _EqualKeysError:
        at = _equal_keys(json.loads(text, object_pairs_hook=_Pairs, parse_int=str))
        return 1 if at is None else lines_of(text)[at]
    except (ValueError, RecursionError):
        pass
    return 1


def _refuse_equal_keys(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _EqualKeysError


def _check_number(word: str) -> None:
    if not _can_be_told(word):
        raise _NumberError


def _odd_numbers(text: str) -> Iterator[int]:
    numbers = (match for match in _VALUE.finditer(text) if match[1])
    return (match.start() for match in numbers if not _can_be_told(match[1]))


def _can_be_told(word: str) -> bool:
    """Whether it is a number, and of a size that the interpreter can handle."""
    try:
        number = int(word) if word.lstrip("-").isdecimal() else float(word)
    except ValueError:
        return False
    return isinstance(number, int) or math.isfinite(number)


def _equal_keys(document: object) -> Steps | None:
    waiting: list[tuple[Steps, object]] = [((), document)]
    while waiting:
        at, value = waiting.pop()
        if isinstance(value, _Pairs):
            seen = set()
            for key, inner in value:
                if key in seen:
                    return (*at, key)
                seen.add(key)
                waiting.append(((*at, key), inner))
        elif isinstance(value, list):
            waiting += [((*at, index), inner) for index, inner in enumerate(value)]
    return None
