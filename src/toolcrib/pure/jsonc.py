"""JSON with comments, as people write it: `//` to the end of a line and `/* … */`, and nothing else beyond JSON."""

from __future__ import annotations

import re

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.documents import MAX_DEFINITION_BYTES, decode, read_json

# Text in quotes comes first, so that what looks like a comment inside it stays. One without an end goes to the very end.
_PART = re.compile(r'(?P<text>"(?:[^"\\]++|\\.)*+"?+)|//[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|(?P<open>/\*)', re.DOTALL)
_LETTER = re.compile(r"[^\r\n]")


def read_jsonc(document: str | bytes, place: str = "document", *, max_bytes: int = MAX_DEFINITION_BYTES) -> object:
    """The value of a definition with comments, under all the limits of `read_json`."""
    return read_json(without_comments(document, place, max_bytes=max_bytes), place=place, max_bytes=max_bytes)


def without_comments(document: str | bytes, place: str = "document", *, max_bytes: int = MAX_DEFINITION_BYTES) -> str:
    """The text with a space for each letter of a comment, so that everything else stands where it stood."""
    text = decode(document, place, max_bytes)

    def blank(part: re.Match[str]) -> str:
        if part["text"]:
            return part[0]
        if part["open"]:
            raise _open_comment(text, part.start(), place)
        return _LETTER.sub(" ", part[0])

    return _PART.sub(blank, text)


def _open_comment(text: str, position: int, place: str) -> ToolError:
    line, column = text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
    message = f"{place}:{line}:{column}: the comment has no end; write */ behind it"
    return ToolError(Kind.VALIDATION, message, details={"line": line, "column": column})
