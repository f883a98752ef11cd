"""Metadata of files that only describe: YAML, TOML and JSON with the same keys."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.dialects.script.metadata import FIELDS, MARKS, Metadata, Notation, Report, warn_of_strangers
from toolcrib.pure.documents import check_plain, decode, read_json, read_toml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolcrib.dialects.script.metadata import Steps

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
    from toolcrib.pure.yaml import read_yaml

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
