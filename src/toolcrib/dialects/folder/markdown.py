"""Markdown, as far as documentation needs it: headings, code fences and lines of text, each with its line.

What stands in a fence, in indented code or in a comment is no heading. Each line is looked at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)", re.DOTALL)
HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?", re.DOTALL)
COMMENT = re.compile(r" {0,3}<!--")
COMMENT_END = "-->"
# What a fence, a heading or a comment begins with; most lines are none of these.
SPECIAL = frozenset("`~#<")
SECTION = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Heading:
    """A line that begins with `#`; `level` counts them."""

    level: int
    title: str
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Fence:
    """Code between fences; one that nobody closes runs to the end."""

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


# A document is asked for its sections, its examples and its failure modes, one after the other.
@lru_cache(maxsize=1)
def read_blocks(text: str) -> tuple[Block, ...]:
    """The blocks of a document, in their order."""
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
    """What stands under each `## ` heading of this name, the headings of lower rank included."""
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
    """Whether a heading is that of a section; more may follow the name, as in `Common Mistakes (Do Not)`."""
    rest = title.removeprefix(name)
    return title.startswith(name) and not (rest[:1].isalnum() or rest[:1] == "_")


def unix_lines(text: str) -> str:
    """The text with one kind of line end."""
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
