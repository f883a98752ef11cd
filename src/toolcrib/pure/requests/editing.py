"""One field of a request changed or added, and every other byte of its text kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.requests.layout import ROOT, lay_out
from toolcrib.pure.requests.reading import KEYS
from toolcrib.pure.requests.source import Source
from toolcrib.pure.requests.spelling import quote, spell_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.pure.requests.layout import Layout, Span

# The fields that hold one text, in the order of the format.
SCALARS = KEYS[: KEYS.index("inputs")]
MARK = "\ufeff"

_BREAK = re.compile(r"\r\n|\n|\r")


def set_field(text: str, name: str, value: str) -> str:
    """The text with one field of the request changed or, in its place of the format, added.

    Of JSON, letters that were written as two halves come out as themselves.
    """
    if name not in SCALARS:
        raise ToolError(Kind.VALIDATION, f"{name[:80]!r} cannot be set; write one of {', '.join(SCALARS)}")
    source = Source(text, "request")
    wanted = {**source.fields(), ROOT: {**source.root().values, name: value}}
    for changed in _ways(source.read, name, value):
        if _value_of(changed) == wanted:
            return (MARK if text.startswith(MARK) else "") + changed
    message = f"request: {name} cannot be set in this document; write {name}: with its value below {ROOT} by hand"
    raise ToolError(Kind.VALIDATION, message)


def with_id(text: str, request_id: str) -> str:
    """The text with that id."""
    return set_field(text, "id", request_id)


def _value_of(text: str) -> object:
    try:
        return Source(text, "request").document.value
    except ToolError:
        return None


def _ways(text: str, name: str, value: str) -> Iterator[str]:
    """How the text could be changed, the best way first; an odd way of writing YAML may spoil any of them."""
    layout = lay_out(text)
    if layout is None:
        return
    span = layout.fields.get(name)
    if span is not None:
        yield _change(text, layout, span, value)
    elif layout.flow:
        comma = ", " if layout.fields else ""
        yield f"{text[: layout.start]}{quote(name)}: {quote(value)}{comma}{text[layout.start :]}"
    else:
        yield from _ways_to_add(text, layout, name, f"{name}: {spell_text(value)}")


def _change(text: str, layout: Layout, span: Span, value: str) -> str:
    if span.style is None:
        return text
    # The blank lines behind a block of text count as part of it.
    end = span.start + len(text[span.start : span.end].rstrip("\r\n"))
    spelled = quote(value) if layout.flow or span.style else spell_text(value)
    space = "" if end > span.start or text[span.start - 1].isspace() else " "
    return f"{text[: span.start]}{space}{spelled}{text[end:]}"


def _ways_to_add(text: str, layout: Layout, name: str, line: str) -> Iterator[str]:
    """Behind the fields that come before it, behind the line of the root, or right before the first field."""
    found = _BREAK.search(text)
    newline, indent = found[0] if found else "\n", " " * layout.column
    earlier = [layout.fields[word] for word in SCALARS[: SCALARS.index(name)] if word in layout.fields]
    ends = [span.end for span in earlier if span.style is not None]
    for end in (max(ends, default=layout.header), layout.header):
        behind = _BREAK.search(text, end)
        if text[end - 1] in "\r\n":
            yield f"{text[:end]}{indent}{line}{newline}{text[end:]}"
        elif behind is None:
            yield f"{text}{newline}{indent}{line}"
        else:
            yield f"{text[: behind.end()]}{indent}{line}{newline}{text[behind.end() :]}"
    yield f"{text[: layout.start]}{line}{newline}{indent}{text[layout.start :]}"
