"""What `doc.md` shows: its sections, examples that can be tried, and the ways in which the tool fails."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.dialects.folder.markdown import SECTION, Fence, Heading, Text, is_called, read_blocks, sections
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from toolcrib.dialects.folder.markdown import Block

EXAMPLES = "Examples"
FAILURE_MODES = "Failure Modes"
SECTIONS = (
    *("Summary", "Preconditions", "Postconditions", "Invariants"),
    *(FAILURE_MODES, EXAMPLES, "Common Mistakes"),
)
EXAMPLE_LEVEL = SECTION + 1
JSON = "json"
RESULT = re.compile(r"[ \t*_>-]*Result[*_]*:")
CAPITALS = re.compile(r"[A-Z][A-Z_]+")
FAILURE = re.compile(r" {0,3}[-*+][ \t]+\*\*([^*]+)\*\*")
PLACE = "example"


class Absent:
    """What stands for the result of an example that shows none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DocExample:
    """A call that the documentation shows; `line` is where its arguments begin.

    `arguments` is None where they cannot be read, and `problem` says why. `expected` is the data that the example shows
    as its result, or `Absent`; `expected_error` is the error type that its result names.
    """

    title: str
    line: int
    arguments_text: str
    arguments: dict[str, object] | None
    problem: str = ""
    expected: object = Absent
    expected_error: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureMode:
    """A way to fail that the documentation names; `known` says whether it is the name of an error type."""

    name: str
    line: int
    known: bool


class _FaultError(Exception):
    """Why the JSON of an example cannot be read."""


def missing_sections(text: str) -> list[str]:
    """The required sections that have no heading of their own."""
    titles = [block.title for block in read_blocks(text) if isinstance(block, Heading) and block.level == SECTION]
    return [name for name in SECTIONS if not any(is_called(title, name) for title in titles)]


def doc_examples(text: str) -> list[DocExample]:
    """The examples that show arguments, in their order."""
    parts = [part for section in sections(text, EXAMPLES) for part in _parts(section)]
    return [_example(title, blocks) for title, blocks in parts if _fences(blocks)]


def failure_modes(text: str) -> list[FailureMode]:
    """The items of the section on failure modes that name one."""
    lines = [block for section in sections(text, FAILURE_MODES) for block in section if isinstance(block, Text)]
    found = ((FAILURE.match(line.text), line.line) for line in lines)
    names = [(match[1].strip(" \t`:"), number) for match, number in found if match]
    return [FailureMode(name=name, line=number, known=name in Kind.__members__) for name, number in names]


def _parts(section: list[Block]) -> list[tuple[str, list[Block]]]:
    """The section cut at its headings, each part with its title; the whole section where it has none."""
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
    return [block for block in blocks if isinstance(block, Fence) and block.language == JSON]


def _example(title: str, blocks: list[Block]) -> DocExample:
    fence = _fences(blocks)[0]
    arguments: dict[str, object] | None = None
    problem, expected_error = "", ""
    expected: object = Absent
    try:
        arguments = _arguments(fence)
        expected_error, shown = _result(blocks[blocks.index(fence) + 1 :])
        # Beside an error the code shows what the error looks like.
        expected = Absent if shown is None or expected_error else _read(shown)
    except _FaultError as fault:
        problem = str(fault)
    return DocExample(
        title=title,
        line=fence.line,
        arguments_text=fence.code,
        arguments=arguments,
        problem=problem,
        expected=expected,
        expected_error=expected_error,
    )


def _result(blocks: list[Block]) -> tuple[str, Fence | None]:
    """The error type that the result names, and the code that shows it."""
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
        raise _FaultError('the arguments are no JSON object; write {"name": value}')
    return value


def _read(fence: Fence) -> object:
    from toolcrib.pure.documents import check_plain, read_json

    if not fence.closed:
        raise _FaultError(f"nothing closes the code of line {fence.line}; add a line of three backticks")
    try:
        value = read_json(fence.code, place=PLACE)
        check_plain(value, place=PLACE)
    except ToolError as error:
        line, column = error.details.get("line"), error.details.get("column")
        at = fence.line + line if isinstance(line, int) else fence.line
        reason = error.message.removeprefix(f"{PLACE}:{line}:{column}").removeprefix(PLACE).removeprefix(": ")
        raise _FaultError(f"line {at} is no JSON: {reason}") from None
    return value
