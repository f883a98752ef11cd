"""Parse `doc.md`: its sections, its runnable examples and its failure modes.

Only headings, code fences and plain lines of Markdown are recognised. Text in a fence, in indented code or in a comment is
never a heading. The parser makes one pass over the lines.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from toolcrib.lib.documents import check_plain, read_json
from toolcrib.lib.javascript_source import JavaScript
from toolcrib.lib.javascript_tokens import NAME, NotLiteralError
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)", re.DOTALL)
HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?", re.DOTALL)
COMMENT = re.compile(r" {0,3}<!--")
COMMENT_END = "-->"
# First characters of fences, headings and comments; a line with another one is plain text.
SPECIAL = frozenset("`~#<")
SECTION = 2
EXAMPLES = "Examples"
FAILURE_MODES = "Failure Modes"
SECTIONS = (
    *("Summary", "Preconditions", "Postconditions", "Invariants"),
    *(FAILURE_MODES, EXAMPLES, "Common Mistakes"),
)
EXAMPLE_LEVEL = SECTION + 1
JSON = "json"
JAVASCRIPT = frozenset({"javascript", "js", "jsx", "mjs", "ts", "typescript"})
RESULT = re.compile(r"[ \t*_>-]*Result[*_]*:")
CAPITALS = re.compile(r"[A-Z][A-Z_]+")
FAILURE = re.compile(r" {0,3}[-*+][ \t]+\*\*([^*]+)\*\*")
PLACE = "example"


class Absent:
    """Marks an example without a result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DocExample:
    """A documented call; `line` is the line of its arguments.

    `arguments` is None if they cannot be parsed; `problem` gives the reason. `expected` is the documented result, or
    `Absent`; `expected_error` is the error type that the result names.
    """

    title: str
    line: int
    arguments_text: str
    arguments: dict[str, object] | None
    problem: str = ""
    expected: object = Absent
    expected_error: str = ""
    is_json: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureMode:
    """A documented failure mode; `known` is True if it is the name of an error type."""

    name: str
    line: int
    known: bool


def missing_sections(text: str) -> list[str]:
    """The required sections without a heading."""
    titles = [block.title for block in read_blocks(text) if isinstance(block, Heading) and block.level == SECTION]
    return [name for name in SECTIONS if not any(is_called(title, name) for title in titles)]


def doc_examples(text: str) -> list[DocExample]:
    """The examples with arguments, in document order."""
    parts = [part for section in sections(text, EXAMPLES) for part in _parts(section)]
    return [_example(title, blocks) for title, blocks in parts if _fences(blocks)]


def failure_modes(text: str) -> list[FailureMode]:
    """The named items of the section on failure modes."""
    lines = [block for section in sections(text, FAILURE_MODES) for block in section if isinstance(block, Text)]
    found = ((FAILURE.match(line.text), line.line) for line in lines)
    names = [(match[1].strip(" \t`:"), number) for match, number in found if match]
    return [FailureMode(name=name, line=number, known=name in Kind.__members__) for name, number in names]


@dataclass(frozen=True, kw_only=True, slots=True)
class Heading:
    """A line that begins with `#`; `level` counts them."""

    level: int
    title: str
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Fence:
    """A fenced code block; an unclosed one extends to the end of the document."""

    language: str
    code: str
    line: int
    closed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """Any other line."""

    text: str
    line: int


Block = Heading | Fence | Text


# Sections, examples and failure modes of one document are read one after the other, from one parse.
@lru_cache(maxsize=1)
def read_blocks(text: str) -> tuple[Block, ...]:
    """Split a document into its blocks."""
    lines = iter(enumerate(unix_lines(text).split("\n"), 1))
    blocks: list[Block] = []
    for number, line in lines:
        if line.lstrip(" ")[:1] not in SPECIAL:
            blocks.append(Text(text=line, line=number))
            continue
        fence = FENCE.fullmatch(line)
        if fence and not (fence[1][0] == "`" and "`" in fence[2]):
            blocks.append(_fence(fence, number, lines))
        elif COMMENT.match(line):
            _skip_comment(line, lines)
        elif heading := HEADING.fullmatch(line):
            blocks.append(Heading(level=len(heading[1]), title=_title(heading[2] or ""), line=number))
        else:
            blocks.append(Text(text=line, line=number))
    return tuple(blocks)


def sections(text: str, name: str) -> list[list[Block]]:
    """The blocks under each `## ` heading of this name, including deeper headings."""
    found: list[list[Block]] = []
    is_inside = False
    for block in read_blocks(text):
        if isinstance(block, Heading) and block.level <= SECTION:
            is_inside = block.level == SECTION and is_called(block.title, name)
            if is_inside:
                found.append([])
        elif is_inside:
            found[-1].append(block)
    return found


def is_called(title: str, name: str) -> bool:
    """Whether a heading names the section; a suffix is allowed, as in `Common Mistakes (Do Not)`."""
    rest = title.removeprefix(name)
    return title.startswith(name) and not (rest[:1].isalnum() or rest[:1] == "_")


def unix_lines(text: str) -> str:
    """Normalise line endings to line feeds."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _fence(opened: re.Match[str], number: int, lines: Iterator[tuple[int, str]]) -> Fence:
    marks = opened[1]
    language = opened[2].strip().partition(" ")[0].lower()
    code: list[str] = []
    closed = False
    for _, line in lines:
        if _closes(line, marks):
            closed = True
            break
        code.append(line)
    return Fence(language=language, code="\n".join(code), line=number, closed=closed)


def _closes(line: str, marks: str) -> bool:
    fence = FENCE.fullmatch(line)
    return fence is not None and fence[1].startswith(marks) and not fence[2].strip(" \t")


def _skip_comment(line: str, lines: Iterator[tuple[int, str]]) -> None:
    while COMMENT_END not in line:
        following = next(lines, None)
        if following is None:
            return
        line = following[1]


def _title(text: str) -> str:
    title = text.strip()
    without_marks = title.rstrip("#")
    return without_marks.rstrip() if without_marks[-1:] in {"", " ", "\t"} else title


class _FaultError(Exception):
    """The JSON of an example cannot be parsed."""


def _parts(section: list[Block]) -> list[tuple[str, list[Block]]]:
    """Split the section at its headings; without headings it is one part."""
    titles = [EXAMPLES]
    parts: list[list[Block]] = [[]]
    for block in section:
        if isinstance(block, Heading) and block.level == EXAMPLE_LEVEL:
            titles.append(block.title)
            parts.append([])
        else:
            parts[-1].append(block)
    found = list(zip(titles, parts, strict=True))
    return found[1:] or found


def _fences(blocks: list[Block]) -> list[Fence]:
    """The code blocks that hold a value: JSON, or an object or the call of a tool in JavaScript, written as JSON."""
    fences = (block for block in blocks if isinstance(block, Fence))
    return [found for fence in fences if (found := fence if fence.language == JSON else _from_javascript(fence))]


def _from_javascript(fence: Fence) -> Fence | None:
    """The arguments of `{ … }` and of `await name({ … })` as JSON; None for any other code, which shows something else."""
    if fence.language not in JAVASCRIPT or not fence.closed:
        return None
    try:
        code = JavaScript(fence.code, PLACE)
        start = 1 if code[0].text == "await" else 0
        opening = start if code[start].text == "{" else start + 2
        value = code.literal(range(opening, code.partners[opening] + 1))
        behind = code.texts(range(code.partners[opening] + 1, len(code.tokens)))
    except (ToolError, NotLiteralError, KeyError, IndexError):
        return None
    is_call = code[start].kind == NAME and code[start + 1].text == "(" and code[opening].text == "{"
    if not isinstance(value, dict) or [word for word in behind if word != ";"] != ([")"] if is_call else []):
        return None
    if is_call and value.keys() == {"args"} and isinstance(value["args"], dict):
        value = value["args"]  # execute({ args: { … } })
    return replace(fence, code=json.dumps(value, ensure_ascii=False))


def _example(title: str, blocks: list[Block]) -> DocExample:
    found = _fences(blocks)[0]
    fence = next(block for block in blocks if isinstance(block, Fence) and block.line == found.line)
    arguments: dict[str, object] | None = None
    problem, expected_error = "", ""
    expected: object = Absent
    try:
        arguments = _arguments(found)
        expected_error, shown = _result(blocks[blocks.index(fence) + 1 :])
        # With an error, the code block shows the error and not the data.
        expected = Absent if shown is None or expected_error else _read(shown)
    except _FaultError as fault:
        problem = str(fault)
    return DocExample(
        title=title,
        line=fence.line,
        is_json=fence.language == JSON,
        arguments_text=fence.code,
        arguments=arguments,
        problem=problem,
        expected=expected,
        expected_error=expected_error,
    )


def _result(blocks: list[Block]) -> tuple[str, Fence | None]:
    """The error type that the text of the result names, and its code block."""
    start = next((index for index, block in enumerate(blocks) if _begins_a_result(block)), None)
    if start is None:
        return "", None
    words: list[str] = []
    for block in blocks[start:]:
        if not isinstance(block, Text) or not block.text.strip():
            break
        words += CAPITALS.findall(block.text)
    error = next((word for word in words if word in Kind.__members__), "")
    return error, next(iter(_fences(blocks[start:])), None)


def _begins_a_result(block: Block) -> bool:
    return isinstance(block, Text) and RESULT.match(block.text) is not None


def _arguments(fence: Fence) -> dict[str, object]:
    value = _read(fence)
    if not isinstance(value, dict):
        raise _FaultError('the arguments are not a JSON object; write {"name": value}')
    return value


def _read(fence: Fence) -> object:
    if not fence.closed:
        raise _FaultError(f"nothing closes the code of line {fence.line}; add a line of three backticks")
    try:
        value = read_json(fence.code, place=PLACE)
        check_plain(value, place=PLACE)
    except ToolError as error:
        line, column = error.details.get("line"), error.details.get("column")
        at = fence.line + line if isinstance(line, int) else fence.line
        reason = error.message.removeprefix(f"{PLACE}:{line}:{column}").removeprefix(PLACE).removeprefix(": ")
        raise _FaultError(f"line {at} is not JSON: {reason}") from None
    return value
