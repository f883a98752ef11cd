"""Read what a file says about its tool, from YAML, TOML and JSON or from the comments of JavaScript and Bash.

    /**                                  #!/usr/bin/env bash
     * @version 1.0.0                    # version: 1.0.0
     * @requires [net.http]              # @requires [net.http]
     */

A value may go on over several lines; lists and mappings are written as JSON or YAML. In JavaScript a run of `//` lines is
a comment like any other, and `name: value` is read only where all of the fields stand that make a tool: a single one may
be prose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolcrib.lib.documents import check_plain, decode, read_json, read_toml
from toolcrib.lib.javascript_source import JavaScript
from toolcrib.lib.javascript_tokens import NotLiteralError
from toolcrib.lib.names import near_misses
from toolcrib.lib.positions import Lines, json_lines, spell, toml_lines
from toolcrib.lib.yaml import read_yaml
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from toolcrib.lib.positions import Steps

    Line = tuple[int, str]


REQUIRED = ("tool_id", "category", "tool_type", "version", "description", "executor_id")
OPTIONAL = (
    *("requires", "parameters", "outputs", "actions", "tags", "config", "input_schema", "output_schema", "timeout"),
    *("retry_policy", "cost", "documentation", "metadata", "hosts", "args", "stdin", "stream", "limits"),
)
FIELDS = frozenset(REQUIRED + OPTIONAL)
# Other files say `version` or `description` too; a file with one of these is meant as a tool.
MARKS = frozenset({"tool_id", "tool_type", "executor_id"})
# How files of the format name their input schema besides.
CONFIG_SCHEMAS = ("config_schema", "CONFIG_SCHEMA")


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

    `language` is that of a file of code, and empty for a file that only describes. `problems` and `warnings` were
    found while reading; `refused` are fields that could not be read, `slips` misspelled field names. A `plain` file is a
    program of a tool folder, whose name and language say what its metadata leaves out.
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
    plain: bool = False


class MetadataReport:
    """Collects all problems and warnings of one file."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.fields = metadata.fields
        self.problems = list(metadata.problems)
        self.warnings = list(metadata.warnings)

    def refuse(self, at: Steps, text: str) -> None:
        """Add a problem, which keeps the tool from being loaded."""
        self.problems.append(self._say(at, text))

    def warn(self, at: Steps, text: str) -> None:
        """Add a warning."""
        self.warnings.append(self._say(at, text))

    def refuse_line(self, line: int, text: str) -> None:
        """Add a problem of a line of code."""
        self.problems.append(f"{self.metadata.path}:{line}: {text}")

    def warn_line(self, line: int, text: str) -> None:
        """Add a warning about a line of code."""
        self.warnings.append(f"{self.metadata.path}:{line}: {text}")

    def write(self, field_name: str, value: str) -> str:
        """A line that the author could copy."""
        return self.metadata.notation.write(field_name, value)

    def raise_problems(self) -> None:
        """Raise one ToolError with every problem, one per line."""
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


def warn_of_unknown_keys(
    report: MetadataReport, at: Steps, names: Iterable[str], known: Collection[str]
) -> dict[str, str]:
    """Warn about unknown keys; returns the misspelled name of each known key."""
    unknown = [name for name in names if name not in known]
    meant = dict(near_misses(unknown, known))
    otherwise = f"remove it, or write one of {', '.join(known)}" if at else "remove it, or write it under metadata"
    for name in unknown:
        report.warn((*at, name), f"is not read; {f'write {meant[name]}' if name in meant else otherwise}")
    return {field_name: name for name, field_name in meant.items()}


def _metadata(path: Path, value: object, line_of: Callable[[Steps], int], notation: Notation) -> Metadata | None:
    if not isinstance(value, dict) or not _is_meant(value):
        return None
    fields = {name: value[name] for name in value if name in FIELDS}
    alias = next((name for name in CONFIG_SCHEMAS if isinstance(value.get(name), dict)), None)
    if alias is not None and fields.keys().isdisjoint({"parameters", "input_schema"}):
        fields["input_schema"] = value[alias]
    report = MetadataReport(Metadata(path=path, fields=fields, line_of=line_of, notation=notation))
    slips = warn_of_unknown_keys(report, (), [name for name in value if name != alias], FIELDS)
    if alias is not None:
        report.warn((alias,), "is read as the input schema; write input_schema")
    return replace(report.metadata, warnings=tuple(report.warnings), slips=slips)


def _is_meant(value: dict[str, object]) -> bool:
    """Whether it is meant as a tool: it has a marking field, or two of them spelled with dashes."""
    spelled = {name.replace("-", "_") for name in value}
    return not MARKS.isdisjoint(value) or len(MARKS & spelled) > 1


JAVASCRIPT = Notation(name="@{}", sample="{} {}")
BASH = Notation(name="# {}", sample="{}: {}")
TEXTS = frozenset(REQUIRED)
# The fields that a file of code must have; its file name may be the name of the tool.
NEEDED = TEXTS - {"tool_id"}
WORDS = frozenset({"requires", "tags", "hosts"})
NOTHING = frozenset({"null", "~"})
DESCRIPTION = "__tool_description__"
EXPORTED = re.compile(r"^export[ \t]+const[ \t]+__(?:tool_type|executor_id|tool_id)__", re.MULTILINE)

# An unclosed comment reaches to the end, so that every character is read a bounded number of times.
LEADING = re.compile(
    r"\s++|((?:[ \t]*+//[^\n]*+(?:\n\s*+(?=//)|\n|\Z))+)|/\*(.*?)(?:\*/|\Z)|(?:'use strict'|\"use strict\")[ \t]*+;?+",
    re.DOTALL,
)
MARGIN = re.compile(r"[ \t]*+\*?+ ?+")
JAVASCRIPT_TAG = re.compile(r"@([A-Za-z_]\w*+)(?:[ \t]++(.*)|[ \t]*+)$")
BASH_TAG = re.compile(r"(?:@([A-Za-z_]\w*+)(?=[ \t]|$)|([a-z][a-z_]*+):(?=[ \t]|$))[ \t]*+(.*)$")
UNREAD = re.compile(r"[ \t]*+(?:@(\w++)|(\w++)[ \t]*+[:=])")
VARIABLE = re.compile(
    r"/\*.*?(?:\*/|\Z)"
    r"|^(?:export[ \t]++)?(?:const|let|var)[ \t]++__tool_description__[ \t]*+=\s*+([^\n]*+)"
    r"|`(?:[^`\\]++|\\.)*+(?:`|\Z)",
    re.DOTALL | re.MULTILINE,
)
STRING = re.compile(
    r"(?:\"((?:[^\"\\]++|\\.)*+)\"|'((?:[^'\\]++|\\.)*+)'|`((?:[^`\\$]++|\\.)*+)`)[ \t]*+;?+[ \t]*+(?://.*)?$"
)
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(slots=True)
class _Tag:
    """A name, and the lines that its value takes up."""

    name: str
    line: int
    lines: list[str] = field(default_factory=list)


def read_javascript_file(path: Path, code: bytes, *, plain: bool = False) -> Metadata | None:
    """The metadata of a JavaScript file; None for a file without any, which is a helper unless it is `plain`."""
    text = decode(code, str(path)).replace("\r\n", "\n")
    reader = _Reader(path)
    comments = [*_comments(text)]
    reader.read(_choose_header(comments))
    described = reader.read_constants(text, comments) if EXPORTED.search(text) else reader.read_variable(text)
    if not described and not reader.is_marked():
        if plain:
            return reader.metadata(JAVASCRIPT, "javascript", code)
        _refuse_unread_marks(path, comments)
        return None
    return reader.metadata(JAVASCRIPT, "javascript", code)


def read_bash_file(path: Path, code: bytes, *, plain: bool = False) -> Metadata | None:
    """The metadata of a Bash file; None for a file without any, which is a helper unless it is `plain`."""
    reader = _Reader(path)
    lines = _comment_lines(decode(code, str(path)).replace("\r\n", "\n"))
    reader.read(_tags(lines, BASH_TAG, prose_goes_on=False))
    return reader.metadata(BASH, "bash", code) if plain or reader.is_marked() else None


def _choose_header(comments: Iterable[list[Line]]) -> list[_Tag]:
    """The tags of the comment that describes the tool; of the first that says anything of ours if none does."""
    headers = [[*_tags(lines, JAVASCRIPT_TAG, prose_goes_on=True)] for lines in comments]
    spoken = [[*_tags(lines, BASH_TAG, prose_goes_on=False)] for lines in comments]
    marked = (tags for tags in headers if not MARKS.isdisjoint(_names(tags)))
    complete = (tags for tags in spoken if _names(tags) >= NEEDED)
    known = (tags for tags in headers if not FIELDS.isdisjoint(_names(tags)))
    return next((tags for found in (marked, complete, known) for tags in found), [])


def _names(tags: Iterable[_Tag]) -> set[str]:
    return {tag.name for tag in tags}


def _refuse_unread_marks(path: Path, comments: Iterable[list[Line]]) -> None:
    """Refuse a file whose comments name several fields in a form that is not read; one name alone may be prose."""
    for lines in comments:
        matches = [(number, match[1] or match[2]) for number, line in lines if (match := UNREAD.match(line))]
        found = [(number, name) for number, name in matches if name in TEXTS]
        number, name = next(((number, name) for number, name in found if name in MARKS), (0, ""))
        if name and len({name for _, name in found}) > 1:
            message = (
                f"{path}:{number}: {name}: is not read; write @{name} at the beginning of the line, without a colon"
            )
            raise ToolError(Kind.VALIDATION, message)


def _comments(text: str) -> Iterator[list[Line]]:
    """The comments before the first line of code, each as numbered lines without their margin."""
    position = text.find("\n") + 1 if text.startswith("#!") else 0
    number = 1 + (position > 0)
    while (found := LEADING.match(text, position)) is not None and found.end() > position:
        run, block = found.groups()
        if run is not None:
            lines = [line.strip().removeprefix("//").removeprefix(" ") for line in run.split("\n")]
            yield [(number + index, line) for index, line in enumerate(lines)]
        elif block is not None:
            body = block.removeprefix("*").split("\n")
            yield [(number + index, MARGIN.sub("", line, count=1).rstrip()) for index, line in enumerate(body)]
        number += found[0].count("\n")
        position = found.end()


def _comment_lines(text: str) -> Iterator[Line]:
    """The comment lines before the first line of code, without the `#`."""
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.lstrip()
        if stripped and not stripped.startswith("#"):
            return
        if not stripped.startswith("#!"):
            yield number, stripped.removeprefix("#").removeprefix(" ").rstrip()


def _tags(lines: Iterable[Line], pattern: re.Pattern[str], *, prose_goes_on: bool) -> Iterator[_Tag]:
    """Each tag with all lines of its value; what comes after an empty line belongs to it only if it is indented."""
    tag: _Tag | None = None
    after_gap = False
    for number, line in lines:
        if found := pattern.match(line):
            if tag is not None:
                yield tag
            *names, rest = found.groups()
            tag, after_gap = _Tag(next(filter(None, names)), number, [rest or ""]), False
        elif tag is not None and (not line or _goes_on(tag, line, prose=prose_goes_on and not after_gap)):
            tag.lines.append(line)
            after_gap = after_gap or not line
        elif tag is not None:
            yield tag
            tag = None
    if tag is not None:
        yield tag


def _goes_on(tag: _Tag, line: str, *, prose: bool) -> bool:
    return prose or line[0] in " \t" or (tag.name not in TEXTS and line[0] in "-[]{}")


class _Reader:
    """Turns tags into fields."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fields: dict[str, object] = {}
        self._lines: dict[Steps, int] = {(): 1}
        self._problems: list[str] = []
        self._refused: set[str] = set()
        self._unknown: dict[str, int] = {}
        self._warnings: list[str] = []

    def is_marked(self) -> bool:
        """Whether the file means to be a tool."""
        return any((name,) in self._lines for name in MARKS)

    def read(self, tags: Iterable[_Tag]) -> None:
        """Keep the value of every tag that names a field."""
        for tag in tags:
            if tag.name not in FIELDS:
                self._unknown[tag.name] = tag.line
            elif (tag.name,) in self._lines:
                self._refuse(tag.line, tag.name, "stands twice; write it once, several values as a list")
            else:
                self._lines[tag.name,] = tag.line
                self._keep(tag)

    def read_variable(self, text: str) -> bool:
        """Take a literal `__tool_description__` where no tag describes the tool; whether there is such a variable."""
        found = next((match for match in VARIABLE.finditer(text) if match[1] is not None), None)
        if found is None:
            return False
        line = text.count("\n", 0, found.start()) + 1
        literal = STRING.match(found[1].strip())
        if literal is None:
            self._refused.add("description")
            self._refuse(line, DESCRIPTION, "is not a literal on one line; write the text itself in quotes")
        elif "description" not in self._fields:
            self._lines["description",] = line
            self._fields["description"] = _read_string(literal)
        return True

    def read_constants(self, text: str, comments: list[list[Line]]) -> bool:
        """Take the fields that are written as `export const __version__ = …`; tags count before them."""
        code = JavaScript(text, str(self._path))
        schema_names = dict.fromkeys(CONFIG_SCHEMAS, "input_schema")
        variables = {**{f"__{name}__": name for name in FIELDS}, DESCRIPTION: "description", **schema_names}
        for variable, where in code.found.values.items():
            name = variables.get(variable)
            if name is None or name in self._fields:
                continue
            line = code[where.start - 1].line
            try:
                self._fields[name] = code.literal(where)
            except NotLiteralError:
                self._refused.add(name)
                self._refuse(
                    line,
                    variable,
                    "is not a literal, and nothing of the file is run to find out; write the value itself",
                )
                continue
            self._lines[name,] = line
            if variable in CONFIG_SCHEMAS:
                self._warnings.append(
                    f"{self._path}:{line}: {variable}: is read as the input schema; write @input_schema"
                )
        where_it_stands = next((line for at, line in self._lines.items() if at), 1)
        self._warnings.append(
            f"{self._path}:{where_it_stands}: export const __…__ is read as metadata; write @version and so on in the first comment"
        )
        return bool(self._fields.keys() & MARKS) or bool(comments and self.is_marked())

    def metadata(self, notation: Notation, language: str, code: bytes) -> Metadata:
        """Everything that was found."""
        slips = near_misses(self._unknown, FIELDS)
        warnings = self._warnings + [
            f"{self._path}:{self._unknown[name]}: {notation.spell(name)}: is not read; write {notation.spell(meant)}"
            for name, meant in slips
        ]
        return Metadata(
            path=self._path,
            fields=self._fields,
            line_of=self._line,
            notation=notation,
            language=language,
            code=code,
            problems=tuple(self._problems),
            warnings=tuple(warnings),
            refused=frozenset(self._refused - self._fields.keys()),
            slips={meant: notation.spell(name) for name, meant in slips},
        )

    def _line(self, at: Steps) -> int:
        while at not in self._lines:
            at = at[:-1]
        return self._lines[at]

    def _keep(self, tag: _Tag) -> None:
        words = " ".join(" ".join(tag.lines).split())
        if tag.name in TEXTS:
            is_nothing = tag.name == "executor_id" and words in NOTHING
            self._fields[tag.name] = None if is_nothing else _unquote(words)
        elif tag.name in WORDS and words[:1] not in tuple("[{-\"'"):
            self._fields[tag.name] = words.replace(",", " ").split()
        else:
            self._keep_structure(tag)

    def _keep_structure(self, tag: _Tag) -> None:
        # Empty lines in front let the lines of the value be those of the file.
        text = "\n" * (tag.line - 1) + "\n".join(tag.lines)
        try:
            value, lines = _read_structure(text, str(self._path))
        except ToolError as error:
            self._problems.append(error.message)
            self._refused.add(tag.name)
            return
        self._fields[tag.name] = value
        self._lines |= {(tag.name, *at): line for at, line in lines.items() if at}

    def _refuse(self, line: int, name: str, text: str) -> None:
        self._problems.append(f"{self._path}:{line}: {name}: {text}")


def _read_structure(text: str, place: str) -> tuple[object, Mapping[Steps, int]]:
    try:
        value = read_json(text, place=place)
        check_plain(value, place=place)
        return value, json_lines(text)
    except ToolError:
        # Every JSON is YAML, but the parser for YAML takes long to import.
        document = read_yaml(text, place)
        return document.value, document.lines


def _unquote(words: str) -> str:
    return words[1:-1] if len(words) > 1 and words[0] == words[-1] and words[0] in "\"'" else words


def _read_string(literal: re.Match[str]) -> str:
    written = next(part for part in literal.groups() if part is not None)
    # JavaScript may write a character as a surrogate pair.
    return ESCAPE.sub(_unescape, written).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescape(match: re.Match[str]) -> str:
    code, letter = match.groups()
    return chr(int(code, 16)) if code else ESCAPES.get(letter, letter)
