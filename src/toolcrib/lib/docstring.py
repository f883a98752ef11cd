"""Read a docstring: a summary, the rest of the prose, and for each argument a text and the type that it names.

Google, NumPy and Sphinx style are read, from the text alone.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field, replace

ARGUMENTS = frozenset(
    {"args", "arguments", "attributes", "keyword args", "keyword arguments", "other parameters", "parameters", "params"}
)
OTHERS = frozenset(
    {"example", "examples", "note", "notes", "raises", "references", "return", "returns", "see also", "todo", "usage"}
    | {"warning", "warnings", "warns", "yield", "yields"}
)
# Docstrings of foreign files are read too: no two neighbours in a pattern may match the same letters.
FIELD = re.compile(r"[:@]([a-z]+)([^:]*):(.*)")
GOOGLE_ARGUMENT = re.compile(r"(\*{0,2}\w+)[ \t]*(?:\(([^)]*)\)[ \t]*)?:(?:\s(.*)|$)")
NUMPY_ARGUMENT = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::(.*))?$")
FIELD_ARGUMENTS = frozenset({"arg", "argument", "attribute", "key", "keyword", "kwarg", "param", "parameter"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Docstring:
    """A docstring, read."""

    summary: str = ""
    description: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)


NOTHING = Docstring()


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring of any of the three styles."""
    if not text or not text.strip():
        return NOTHING
    lines = [line.rstrip() for line in inspect.cleandoc(text).split("\n")]
    prose: list[str] = []
    found = Docstring()
    index = 0
    while index < len(lines):
        index = _read_block(lines, index, prose, found)
    summary, _, description = "\n".join(prose).strip().partition("\n\n")
    return replace(found, summary=" ".join(summary.split()), description=description.strip())


def _read_block(lines: list[str], index: int, prose: list[str], into: Docstring) -> int:
    """Read one line of prose, one field or one section; the index of what follows."""
    line = lines[index]
    if line[:1] in (":", "@") and (found := FIELD.match(line)):
        end = _end_of_indented(lines, index + 1)
        _read_field(found, lines[index + 1 : end], into)
        return end
    title = line.removesuffix(":").lower()
    if title not in ARGUMENTS and title not in OTHERS:
        prose.append(line)
        return index + 1
    if _is_underlined(lines, index):
        end = _end_of_underlined(lines, index + 2)
        body, pattern = lines[index + 2 : end], NUMPY_ARGUMENT
    elif line.endswith(":"):
        end = _end_of_indented(lines, index + 1)
        body, pattern = lines[index + 1 : end], GOOGLE_ARGUMENT
    else:
        prose.append(line)
        return index + 1
    if title in ARGUMENTS:
        _read_arguments(body, pattern, into)
    return end


def _read_field(found: re.Match[str], rest: list[str], into: Docstring) -> None:
    kind, names, text = found.groups()
    if kind in FIELD_ARGUMENTS and names.strip():
        *types, name = names.split()
        _keep(into.arguments, [name], [text, *rest])
        _keep(into.types, [name], types)
    elif kind == "type" and names.strip():
        _keep(into.types, names.split()[-1:], [text, *rest])


def _read_arguments(body: list[str], pattern: re.Pattern[str], into: Docstring) -> None:
    """Each entry starts at the smallest indentation of the section; what stands deeper belongs to it."""
    margin = min((_indentation(line) for line in body if line), default=0)
    names: list[str] = []
    text: list[str] = []
    for line in body:
        found = pattern.match(line[margin:]) if _indentation(line) == margin else None
        if found is None:
            text.append(line)
            continue
        _keep(into.arguments, names, text)
        names = [name.strip() for name in found[1].split(",")]
        text = [found[3] or ""] if pattern is GOOGLE_ARGUMENT else []
        _keep(into.types, names, [found[2] or ""])
    _keep(into.arguments, names, text)


def _keep(arguments: dict[str, str], names: list[str], text: list[str]) -> None:
    joined = " ".join(" ".join(text).split())
    for name in names:
        if joined and (bare := name.lstrip("*")):
            arguments.setdefault(bare, joined)


def _end_of_indented(lines: list[str], index: int) -> int:
    end = index
    while index < len(lines) and (not lines[index] or lines[index][0] in " \t"):
        index += 1
        if lines[index - 1]:
            end = index
    return end


def _end_of_underlined(lines: list[str], index: int) -> int:
    while index < len(lines) and not _is_underlined(lines, index):
        index += 1
    return index


def _is_underlined(lines: list[str], index: int) -> bool:
    below = lines[index + 1] if index + 1 < len(lines) else ""
    return len(below) > 2 and not below.strip("-") and bool(lines[index])  # noqa: PLR2004 - a rule is at least three dashes


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
